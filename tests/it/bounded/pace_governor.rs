//! Compares paces with the crate `governor`, which uses the same algorithm.
//!
//! `governor` rounds the interval of a rate down, so that it may allow a start too early; so here both get the
//! interval. It cannot take slots back.

use arbitrary::{Arbitrary, Unstructured};
use governor::clock::{Clock, FakeRelativeClock};
use governor::{Quota, RateLimiter};
use requeue::{Limiter, Pace};
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

/// A step of both.
#[derive(Arbitrary, Debug)]
enum Step {
    /// Time passes: this many hundredths of an interval.
    Advance(u16),
    /// Time passes until one nanosecond before the next start.
    AdvanceUntilNext,
    Nanosecond,
    Start,
    StartMany(u8),
}

#[derive(Arbitrary, Debug)]
struct Case {
    interval: u32,
    burst: u8,
    steps: Vec<Step>,
}

/// A pace and a `governor` limiter at the same time.
struct Pair {
    pace: Pace,
    peer: RateLimiter<
        governor::state::NotKeyed,
        governor::state::InMemoryState,
        FakeRelativeClock,
        governor::middleware::NoOpMiddleware<governor::nanos::Nanos>,
    >,
    clock: FakeRelativeClock,
    now: Instant,
    next: Option<Duration>,
}

impl Pair {
    fn new(interval: Duration, burst: NonZeroU32) -> Self {
        let clock = FakeRelativeClock::default();
        let quota = Quota::with_period(interval).unwrap().allow_burst(burst);
        Self {
            pace: Pace::every(interval).burst(burst.get()),
            peer: RateLimiter::direct_with_clock(quota, clock.clone()),
            clock,
            now: Instant::now(),
            next: None,
        }
    }

    fn advance(&mut self, by: Duration) {
        self.now += by;
        self.clock.advance(by);
        self.next = self.next.and_then(|next| next.checked_sub(by));
    }

    /// Tries one start in both: true if it was allowed.
    fn start(&mut self) -> bool {
        let mine = self.pace.start(self.now).map(drop);
        let theirs = self.peer.check();
        let mine = mine.map_err(|at| at - self.now);
        let theirs = theirs.map_err(|until| until.wait_time_from(self.clock.now()));
        assert_eq!(mine, theirs);
        self.next = mine.err();
        mine.is_ok()
    }
}

fn run(case: &Case) -> u64 {
    let interval = Duration::from_nanos(u64::from(case.interval) + 1);
    let burst = NonZeroU32::MIN.saturating_add(u32::from(case.burst));
    let mut pair = Pair::new(interval, burst);
    let mut started = 0;
    for step in &case.steps {
        match step {
            Step::Advance(hundredths) => pair.advance(interval * u32::from(*hundredths) / 100),
            Step::AdvanceUntilNext => {
                let left = pair.next.unwrap_or_default();
                pair.advance(left.saturating_sub(Duration::from_nanos(1)));
            }
            Step::Nanosecond => pair.advance(Duration::from_nanos(1)),
            Step::Start => started += u64::from(pair.start()),
            Step::StartMany(count) => {
                started += (0..*count).filter(|_| pair.start()).count() as u64;
            }
        }
    }
    started
}

/// Deterministic bytes for cases.
fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let step = |state: &u64| {
        let next = state.wrapping_mul(6_364_136_223_846_793_005);
        Some(next.wrapping_add(1_442_695_040_888_963_407))
    };
    let states = std::iter::successors(Some(seed), step).skip(1);
    states
        .map(|state| state.to_be_bytes()[0])
        .take(len)
        .collect()
}

#[test]
fn both_answer_the_same() {
    let mut started = 0;
    for seed in 0..2000 {
        let bytes = bytes(seed, 400);
        let case = Case::arbitrary(&mut Unstructured::new(&bytes)).unwrap();
        started += run(&case);
    }
    assert!(started > 10_000, "{started} are too few to tell");
}
