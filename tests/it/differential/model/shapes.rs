//! The distributions of the parts of operations.

use super::ops::{Act, QUEUES, SLOTS};
use super::settings::Ticks;
use arbitrary::{Arbitrary, Result, Unstructured};
use std::ops::RangeInclusive;

/// Maximal number of operations inside one transaction, and of items in one batch.
const MOST: usize = 12;

/// A value in this range, or none.
pub(super) fn some<N: arbitrary::unstructured::Int>(
    u: &mut Unstructured,
    range: RangeInclusive<N>,
) -> Result<Option<N>> {
    u.ratio(1, 2)?.then(|| u.int_in_range(range)).transpose()
}

/// A short time.
pub(super) fn few(u: &mut Unstructured) -> Result<Ticks> {
    u.int_in_range(0..=4)
}

pub(super) fn maybe_delay(u: &mut Unstructured) -> Result<Option<Ticks>> {
    some(u, 0..=6)
}

pub(super) fn few_acts(u: &mut Unstructured) -> Result<Vec<Act>> {
    (0..u.int_in_range(0..=2)?).map(|_| u.arbitrary()).collect()
}

pub(super) fn slot(u: &mut Unstructured) -> Result<usize> {
    u.choose_index(SLOTS)
}

pub(super) fn queue(u: &mut Unstructured) -> Result<usize> {
    u.choose_index(QUEUES)
}

/// Queues should be open during most of a case.
pub(super) fn seldom_queue(u: &mut Unstructured) -> Result<Option<usize>> {
    u.ratio(1, 16)?.then(|| queue(u)).transpose()
}

pub(super) fn batch(u: &mut Unstructured) -> Result<usize> {
    u.int_in_range(0..=MOST)
}

pub(super) fn maybe_batch(u: &mut Unstructured) -> Result<Option<usize>> {
    u.ratio(1, 2)?.then(|| batch(u)).transpose()
}

pub(super) fn some_slots(u: &mut Unstructured) -> Result<Vec<usize>> {
    (0..u.int_in_range(1..=3)?).map(|_| slot(u)).collect()
}

pub(super) fn several<'a, T: Arbitrary<'a>>(u: &mut Unstructured<'a>) -> Result<Vec<T>> {
    (0..u.int_in_range(0..=MOST)?)
        .map(|_| u.arbitrary())
        .collect()
}
