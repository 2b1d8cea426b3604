//! The order of priority queues.

use super::{AgeStep, DueTimes, PriorityHeap, PriorityMeta};
use crate::order::{Engine, Leased, Order, ShardsOf, Sorted, Source, Ticket, Unleased};
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
        message = "items of a queue in the order `{Self}` have no priorities",
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

    fn source(ageing: Option<AgeStep>, shards: &Arc<ShardsOf<T, Self>>) -> Self::Source {
        let times = Arc::new(DueTimes::new(shards.is_timed()));
        let heap = PriorityHeap::new(Arc::clone(&times), ageing);
        Sorted::new(heap, times, shards)
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

/// A source of items with priorities, each of which can be found by its ticket.
pub(crate) trait TicketSource<T, M>: Source<T, M> {
    /// The metadata of an item that has another priority.
    fn prioritized(meta: M, priority: u16) -> M;

    /// Changes the priority of an item that is not held; `false` if there is none with this ticket.
    fn reprioritize(&self, ticket: Ticket, priority: u16) -> bool;
}

impl<T> TicketSource<T, PriorityMeta> for Sorted<T, PriorityMeta, PriorityHeap<T>, Arc<DueTimes>> {
    fn prioritized(meta: PriorityMeta, priority: u16) -> PriorityMeta {
        meta.with(priority)
    }

    fn reprioritize(&self, ticket: Ticket, priority: u16) -> bool {
        self.with(|heap| heap.reprioritize(ticket, priority))
    }
}
