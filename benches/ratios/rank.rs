//! The rank error: how much the order across handles differs from the order of the pushes.

use crate::common::subjects::{Endpoint, Subject};
use crate::common::threads::{pop_waiting, together};
use crate::common::ITEMS;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;

pub(crate) struct RankError {
    pub(crate) mean: f64,
    pub(crate) max: u64,
}

/// Equal numbers of producers and consumers pass items that are stamped right before their push and right after their
/// pop. The result of a queue in strict order is the error of the stamping itself.
pub(crate) fn measure<S: Subject>(threads: usize) -> RankError {
    let subject = S::default();
    let mut endpoints: Vec<_> = (0..2 * threads).map(|_| subject.endpoint()).collect();
    let (pushing, popping) = endpoints.split_at_mut(threads);
    let (pushed, popped) = (AtomicU64::new(0), AtomicU64::new(0));
    let share = ITEMS / threads;
    let stamps = Mutex::new(Vec::new());
    together(
        pushing,
        |endpoint| (0..share).for_each(|_| endpoint.push(pushed.fetch_add(1, Ordering::SeqCst))),
        popping,
        |endpoint| {
            let pop = |_| {
                let item = pop_waiting(endpoint);
                (popped.fetch_add(1, Ordering::SeqCst), item)
            };
            let own: Vec<_> = (0..share).map(pop).collect();
            stamps.lock().unwrap().extend(own);
        },
    );
    let mut stamps = stamps.into_inner().unwrap();
    stamps.sort_unstable();
    rank_error(stamps.into_iter().map(|(_, item)| item))
}

/// For each item, in the order of the pops, counts the older items that are popped later.
#[allow(clippy::cast_precision_loss)]
fn rank_error(items: impl Iterator<Item = u64>) -> RankError {
    let mut gone = Counts::new(ITEMS);
    let (mut sum, mut max) = (0, 0);
    for item in items {
        let older = item - gone.below(item);
        sum += older;
        max = max.max(older);
        gone.add(item);
    }
    RankError {
        mean: sum as f64 / ITEMS as f64,
        max,
    }
}

/// Counts the added numbers below a given one: a Fenwick tree.
struct Counts(Vec<u64>);

impl Counts {
    fn new(numbers: usize) -> Self {
        Self(vec![0; numbers + 1])
    }

    fn add(&mut self, number: u64) {
        let mut at = usize::try_from(number).unwrap() + 1;
        while let Some(count) = self.0.get_mut(at) {
            *count += 1;
            at += at & at.wrapping_neg();
        }
    }

    fn below(&self, number: u64) -> u64 {
        let mut at = usize::try_from(number).unwrap();
        let mut sum = 0;
        while at > 0 {
            sum += self.0[at];
            at &= at - 1;
        }
        sum
    }
}
