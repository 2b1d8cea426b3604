//! The order of priority queues.

use super::{AgeStep, DueTimes, PriorityHeap, PriorityMeta};
use crate::order::{Engine, Leased, Order, ShardsOf, Sorted, Unleased};
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
pub trait Prioritized<T>:
    Order<T>
    + Engine<
        T,
        Settings = Option<AgeStep>,
        Meta = PriorityMeta,
        Source = Sorted<T, PriorityMeta, PriorityHeap<T>, Arc<DueTimes>>,
    >
{
}

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
