//! The rank error of a history: the number of older items that were still ready at each pop.

use super::lives::Life;

pub(crate) struct RankError {
    pub(crate) mean: f64,
    pub(crate) max: usize,
}

/// Measures the pops in the order in which their calls ended. No item may be aborted.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn measure(lives: &[Life]) -> RankError {
    let mut by_push: Vec<&Life> = lives.iter().collect();
    by_push.sort_by_key(|life| life.push.to);
    let mut by_pop: Vec<usize> = (0..by_push.len()).collect();
    by_pop.sort_by_key(|&rank| by_push[rank].holds[0].claim.to);
    let mut gone = Counts(vec![0; lives.len() + 1]);
    let (mut sum, mut max) = (0, 0);
    for rank in by_pop {
        let older = rank - gone.below(rank);
        sum += older;
        max = max.max(older);
        gone.add(rank);
    }
    let mean = sum as f64 / lives.len() as f64;
    RankError { mean, max }
}

/// Counts the added numbers below a given one: a Fenwick tree.
struct Counts(Vec<usize>);

impl Counts {
    fn add(&mut self, number: usize) {
        let mut at = number + 1;
        while let Some(count) = self.0.get_mut(at) {
            *count += 1;
            at += at & at.wrapping_neg();
        }
    }

    fn below(&self, number: usize) -> usize {
        let mut at = number;
        let mut sum = 0;
        while at > 0 {
            sum += self.0[at];
            at &= at - 1;
        }
        sum
    }
}
