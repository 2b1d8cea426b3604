//! How many of the possible faults are injected.

use std::env;

/// The numbers of the faults to inject: all up to `first`, then fewer and fewer; with `REQUEUE_STRESS` more.
///
/// A test ends the walk at the first number that is not reached.
pub(crate) fn faults(first: u64) -> impl Iterator<Item = u64> {
    let stress = env::var("REQUEUE_STRESS").map_or(1, |factor| factor.parse().expect("a number"));
    let first = first * stress;
    let next = move |number: &u64| Some(number + (number / first).max(1));
    std::iter::successors(Some(1), next)
}
