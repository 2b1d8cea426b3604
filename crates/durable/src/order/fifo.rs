//! First in, first out.

use super::staging::Plain;
use super::{Engine, RamBuilder};
use crate::format::OrderTag;
use requeue::{Fifo, Queue};

impl<T: Send + 'static> Engine<T> for Fifo {
    type Key = ();
    type Ram = Fifo;
    type Staging = Plain;
    /// The [stickiness](crate::Builder::stickiness).
    type Settings = Option<u32>;
    const TAG: OrderTag = OrderTag::Fifo;

    fn key(_: &Self::Settings, _: &T) {}

    fn builder(stickiness: &Self::Settings) -> RamBuilder<T, Self> {
        let builder = Queue::builder();
        match stickiness {
            Some(items) => builder.stickiness(*items),
            None => builder,
        }
    }
}
