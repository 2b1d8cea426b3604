//! The scenarios of both benches, each written once for all compared queues.

mod alone;
pub(crate) mod subjects;
pub(crate) mod threads;
mod transactions;

use std::time::Duration;
use subjects::{Direct, Handled, Locked, Seg, Transactional};
use transactions::End;

/// Number of items per round; divisible by the numbers of batches and threads.
pub(crate) const ITEMS: usize = 98_304;

/// One queue in one scenario.
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
            $($scenario)::+::<Seg>($($argument),*),
            $($scenario)::+::<Locked>($($argument),*),
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
        ("1P1C", everyone!(threads::pass, 1, 1)),
        ("2P2C", everyone!(threads::pass, 2, 2)),
        ("4P4C", everyone!(threads::pass, 4, 4)),
        ("1P3C", everyone!(threads::pass, 1, 3)),
        ("3P1C", everyone!(threads::pass, 3, 1)),
        (
            "2P2C, batches of 32",
            everyone!(threads::pass_batches, 2, 2, 32),
        ),
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
            vec![
                transactions::joint(),
                transactions::separate(),
                alone::two::<Seg>(),
                alone::two::<Locked>(),
            ],
        ),
    ]
    .map(|(name, contenders)| Scenario { name, contenders })
    .into()
}
