//! By priority and due time.

use super::staging::Placed;
use super::{Engine, RamBuilder};
use crate::format::OrderTag;
use requeue::{ByPriority, PriorityQueue, Queue};
use std::time::Duration;

/// The default priority.
pub(crate) const DEFAULT_PRIORITY: u16 = PriorityQueue::<()>::DEFAULT_PRIORITY;

impl<T: Send + 'static> Engine<T> for ByPriority {
    type Key = ();
    type Ram = ByPriority;
    type Staging = Placed;
    /// The [step of ageing](crate::Builder::age_after).
    type Settings = Option<Duration>;
    const TAG: OrderTag = OrderTag::ByPriority;

    fn key(_: &Self::Settings, _: &T) {}

    fn builder(age_after: &Self::Settings) -> RamBuilder<T, Self> {
        let builder = Queue::builder().by_priority();
        match age_after {
            Some(step) => builder.age_after(*step),
            None => builder,
        }
    }
}
