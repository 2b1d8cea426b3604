//! The rank error: by how much the order across handles differs from that of the pushes.

use crate::common::subjects::{Port, Subject};
use crate::common::threads::{pop_waiting, together};
use crate::common::ITEMS;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;

pub(crate) struct RankError {
    pub(crate) mean: f64,
    pub(crate) max: u64,
}

/// As many producers as consumers pass items that are stamped right before their push and right
/// after their pop. A queue in strict order shows what the stamping itself adds.
pub(crate) fn measure<S: Subject>(threads: usize) -> RankError {
    let subject = S::default();
    let mut ports: Vec<_> = (0..2 * threads).map(|_| subject.port()).collect();
    let (pushing, popping) = ports.split_at_mut(threads);
    let (pushed, popped) = (AtomicU64::new(0), AtomicU64::new(0));
    let share = ITEMS / threads;
    let stamps = Mutex::new(Vec::new());
    together(
        pushing,
        |port| (0..share).for_each(|_| port.push(pushed.fetch_add(1, Ordering::SeqCst))),
        popping,
        |port| {
            let pop = |_| {
                let item = pop_waiting(port);
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

/// For each item, in the order of the pops, counts the older ones that are popped after it.
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

/// How many numbers were added below any number: a Fenwick tree.
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
