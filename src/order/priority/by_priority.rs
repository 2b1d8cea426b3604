//! The order of priority queues.

use super::{AgeStep, DueTimes, PriorityHeap, PriorityMeta, PushOptions, Ticket};
use crate::order::{Engine, Leased, Order, Registry, Sequence, ShardsOf, Sorted, Source, Unleased};
use crate::raw::{Entry, Stored};
use crate::wait::DueTimer;
use std::sync::Arc;

/// The order of a [`PriorityQueue`](crate::PriorityQueue): by priority, then by due time, then by arrival.
///
/// Builders, handles and transactions with this order have additional methods for priorities and schedules.
///
/// ```
/// use requeue::{ByPriority, Handle, PriorityQueue};
///
/// fn fill(handle: &mut Handle<&str, ByPriority>) {
///     handle.priority(1).push("urgent").unwrap();
/// }
///
/// let queue = PriorityQueue::by_priority();
/// fill(&mut queue.handle());
/// assert_eq!(queue.len(), 1);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ByPriority;

impl Unleased for ByPriority {}

/// An order by priority and schedule: [`ByPriority`], [leased](crate::Leased) or not. Sealed.
///
/// ```
/// use requeue::{Handle, Prioritized, PriorityQueue};
///
/// fn push_urgent<T: Send, O: Prioritized<T>>(handle: &mut Handle<T, O>, item: T) {
///     assert!(handle.priority(1).push(item).is_ok());
/// }
///
/// let queue = PriorityQueue::by_priority();
/// push_urgent(&mut queue.handle(), "job");
/// assert_eq!(queue.len(), 1);
/// ```
#[cfg_attr(
    on_unimplemented,
    diagnostic::on_unimplemented(
        message = "items of a queue in the order `{Self}` have no priorities and times",
        note = "make the queue with `PriorityQueue::by_priority()` or `Queue::builder().by_priority()`"
    )
)]
#[allow(private_bounds)] // sealed
pub trait Prioritized<T>: Order<T> + Ticketed<T> + Engine<T, Settings = Option<AgeStep>> {}

impl<T> Prioritized<T> for ByPriority {}

impl<T: Clone, O: Prioritized<T> + Unleased> Prioritized<T> for Leased<O> {}

impl<T> Engine<T> for ByPriority {
    /// The waiting time after which the priority of a ready item improves by one; `None`: no ageing.
    type Settings = Option<AgeStep>;
    type Meta = PriorityMeta;
    type Source = Sorted<T, PriorityMeta, PriorityHeap<T>, Arc<DueTimes>>;

    /// Ageing needs the timestamps of pushes.
    fn is_timed(ageing: &Option<AgeStep>) -> bool {
        ageing.is_some()
    }

    fn source(
        ageing: Option<AgeStep>,
        shards: &Arc<ShardsOf<T, Self>>,
        due_timer: &Arc<DueTimer>,
    ) -> Self::Source {
        let times = Arc::new(DueTimes::new());
        let heap = PriorityHeap::new(Arc::clone(&times), ageing);
        Sorted::new(heap, times, shards, due_timer)
    }
}

/// An order whose [`Source`] is a [`TicketSource`].
pub(crate) trait Ticketed<T>: Engine<T, Source = <Self as Ticketed<T>>::Tickets> {
    type Tickets: TicketSource<T, Self::Meta>;
}

impl<T, O: Engine<T>> Ticketed<T> for O
where
    O::Source: TicketSource<T, O::Meta>,
{
    type Tickets = O::Source;
}

/// A source of items with priorities and due times, each of which can be found by its ticket.
pub(crate) trait TicketSource<T, M>:
    Source<T, M, Registry = <Self as TicketSource<T, M>>::Times>
{
    type Times: Registry<T, M, Place = PushOptions>;

    /// The time of the next scheduled item; [`NEVER`](crate::time::NEVER) if there is none.
    fn next_scheduled(&self) -> u64;

    /// Changes the priority of an item that is not held; `false` if there is none with this ticket.
    fn reprioritize(&self, ticket: Ticket, priority: u16) -> bool;

    /// Changes the due time of an item that is not held; `false` if there is none with this ticket. The item waits, even
    /// if it is due, until the next [`Source::advance`].
    fn reschedule(&self, ticket: Ticket, due: u64) -> bool;

    /// Removes an item that is not held.
    fn cancel(&self, ticket: Ticket) -> Option<Entry<Stored<T, M>>>;
}

impl<T> TicketSource<T, PriorityMeta> for Sorted<T, PriorityMeta, PriorityHeap<T>, Arc<DueTimes>> {
    type Times = Arc<DueTimes>;

    fn next_scheduled(&self) -> u64 {
        self.with(|heap| heap.next_due())
    }

    fn reprioritize(&self, ticket: Ticket, priority: u16) -> bool {
        self.with(|heap| heap.reprioritize(ticket, priority))
    }

    fn reschedule(&self, ticket: Ticket, due: u64) -> bool {
        self.with(|heap| heap.reschedule(ticket, due))
    }

    fn cancel(&self, ticket: Ticket) -> Option<Entry<Stored<T, PriorityMeta>>> {
        self.with(|heap| heap.cancel(ticket))
    }
}
