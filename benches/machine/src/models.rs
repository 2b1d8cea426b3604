//! The protocols of other queues, over the same atomics.

mod array;
mod locked;
mod per_producer;
mod segments;

pub(crate) use array::ArrayQueue;
pub(crate) use locked::LockedDeque;
pub(crate) use per_producer::{Consumer, PerProducer, Producer};
pub(crate) use segments::SegmentQueue;

/// Prevents that fields of two cores are on one line, or on two that are prefetched together.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);
