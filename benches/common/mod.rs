//! The scenarios, each written once for all ways to use a queue.

mod alone;
mod own;
mod subjects;
mod transactions;

use std::time::Duration;
use subjects::{Direct, Handled, Transactional};
use transactions::End;

/// Number of items per round; divisible by the sizes of batches.
pub(crate) const ITEMS: usize = 98_304;

/// One way to use a queue, in one scenario.
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    /// Passes `ITEMS` items and returns the elapsed time.
    pub(crate) round: Box<dyn FnMut() -> Duration>,
}

impl Contender {
    pub(crate) fn new(name: &'static str, round: impl FnMut() -> Duration + 'static) -> Self {
        Self {
            name,
            round: Box::new(round),
        }
    }
}

/// A scenario and its contenders.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) contenders: Vec<Contender>,
}

/// The scenario with all subjects.
macro_rules! everyone {
    ($($scenario:ident)::+ $(, $argument:expr)*) => {
        vec![
            $($scenario)::+::<Handled>($($argument),*),
            $($scenario)::+::<Direct>($($argument),*),
            $($scenario)::+::<Transactional>($($argument),*),
        ]
    };
}

/// All scenarios, with queues ready to run.
pub(crate) fn scenarios() -> Vec<Scenario> {
    [
        ("push", everyone!(alone::push)),
        ("pop", everyone!(alone::pop)),
        ("pair", everyone!(alone::pair)),
        ("batch of 1", everyone!(alone::batch, 1)),
        ("batch of 8", everyone!(alone::batch, 8)),
        ("batch of 32", everyone!(alone::batch, 32)),
        ("64 of its own, on 2 threads", own::contenders(2)),
        ("64 of its own, on 8 threads", own::contenders(8)),
        (
            "end of 32 held",
            vec![
                transactions::end(End::Commit),
                transactions::end(End::Abort),
            ],
        ),
        (
            "hold 32, end",
            vec![
                transactions::hold_and_end(End::Commit),
                transactions::hold_and_end(End::Abort),
            ],
        ),
        (
            "push to 2 queues",
            vec![transactions::joint(), transactions::separate()],
        ),
    ]
    .map(|(name, contenders)| Scenario { name, contenders })
    .into()
}
