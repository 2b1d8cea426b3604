use super::{nanos, Plan, ServerClock, Slots, Span, PAUSE};
use std::time::{Duration, Instant};

const MS: i64 = 1_000_000;
const LATE: Duration = Duration::from_millis(100);
/// What the server's clock shows when the test begins.
const ORIGIN: i64 = 1_000_000 * MS;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Slots, and a server that answers at once.
struct Process {
    slots: Slots,
    begin: Instant,
}

impl Process {
    fn new() -> Self {
        let begin = Instant::now();
        Self {
            slots: Slots::new(LATE, true, begin),
            begin,
        }
    }

    /// The server grants slots at a time in milliseconds, the first one `first` milliseconds after the beginning.
    fn granted(&mut self, at: u64, first: i64, left: u64, spacing: i64) -> bool {
        let asked = self.begin + ms(at);
        let clock = ServerClock {
            at: ORIGIN + nanos(ms(at)),
            asked,
            answered: asked,
        };
        let span = Span {
            first: ORIGIN + first * MS,
            spacing: spacing * MS,
            left,
            tolerance: 0,
            granted: clock.at,
        };
        self.slots.answered(Some((clock, span)), asked)
    }

    fn take(&mut self, at: u64) -> Result<i64, Option<Duration>> {
        let taken = self.slots.take(self.begin + ms(at));
        taken.map(|time| (time - ORIGIN) / MS)
    }

    fn plan(&mut self, at: u64) -> Plan {
        self.slots.plan(self.begin + ms(at))
    }
}

#[test]
fn slots_are_used_at_their_times() {
    let mut process = Process::new();
    process.granted(0, 0, 3, 10);
    assert_eq!(process.take(0), Ok(0));
    assert_eq!(process.take(0), Err(Some(ms(10))));
    assert_eq!(process.take(9), Err(Some(ms(1))));
    assert_eq!(process.take(10), Ok(10));
    assert_eq!(process.take(110), Ok(20));
    assert_eq!(process.take(111), Err(None));
}

#[test]
fn a_slot_that_is_too_late_goes_back_and_the_next_one_is_used() {
    let mut process = Process::new();
    process.granted(0, 0, 5, 10);
    assert_eq!(process.take(121), Ok(30));
    let unused = process.plan(121).unused;
    assert_eq!(unused.len(), 1);
    assert_eq!((unused[0].first, unused[0].left), (ORIGIN, 3));
    assert_eq!(unused[0].end(), ORIGIN + 30 * MS);
}

#[test]
fn slots_of_a_burst_can_be_used_for_the_lateness_after_their_grant() {
    let mut process = Process::new();
    process.granted(500, 100, 3, 10);
    assert_eq!(process.take(600), Ok(500));
    assert_eq!(process.take(600), Ok(500));
    assert_eq!(process.take(601), Err(None));
}

#[test]
fn the_time_of_the_round_trip_is_unknown() {
    let mut process = Process::new();
    let clock = ServerClock {
        at: ORIGIN,
        asked: process.begin,
        answered: process.begin + ms(60),
    };
    let span = Span {
        first: ORIGIN + 20 * MS,
        spacing: MS,
        left: 1,
        tolerance: 0,
        granted: ORIGIN,
    };
    process.slots.answered(Some((clock, span)), clock.answered);
    // The answer may have been given when it arrived, or when it was asked for.
    assert_eq!(process.take(79), Err(Some(ms(1))));
    let mut late = Process::new();
    late.slots.answered(Some((clock, span)), clock.answered);
    assert_eq!(process.take(120), Ok(20));
    assert_eq!(late.take(121), Err(None));
}

#[test]
fn batches_double_while_starts_are_refused_and_shrink_to_what_is_used() {
    let mut process = Process::new();
    assert_eq!(process.plan(0).ask, 0);
    assert_eq!(process.take(0), Err(None));
    assert_eq!(process.plan(0).ask, 1);
    assert!(process.granted(0, 0, 1, 1));
    assert!(process.take(0).is_ok());
    assert_eq!(process.take(0), Err(None));
    assert_eq!(process.plan(0).ask, 2);
    assert!(process.granted(0, 0, 2, 1));
    assert_eq!(process.plan(1).ask, 0);
    assert!(process.take(1).is_ok());
    assert_eq!(process.plan(1).ask, 4, "asked before the last one is used");
    assert!(!process.granted(1, 1, 4, 1), "nobody was refused");
    let unused = process.plan(150);
    assert_eq!(unused.unused.iter().map(|span| span.left).sum::<u64>(), 5);
    assert_eq!(process.take(150), Err(None));
    assert_eq!(process.plan(150).ask, 1);
}

#[test]
fn nothing_is_asked_before_the_server_can_grant_it() {
    let mut process = Process::new();
    assert_eq!(process.take(0), Err(None));
    assert!(!process.granted(0, 700, 0, 1000));
    assert_eq!(process.take(0), Err(Some(ms(700))));
    let plan = process.plan(0);
    assert_eq!((plan.ask, plan.wait), (0, Some(ms(200))));
    assert_eq!(process.plan(200).ask, 1);
    assert!(!process.granted(200, 60_000, 0, 1000));
    assert_eq!(process.plan(200).wait, Some(PAUSE), "the rate may change");
    assert!(
        process.granted(1200, 1500, 1, 1000),
        "who was refused is woken"
    );
    assert_eq!(process.take(1200), Err(Some(ms(300))));
    assert_eq!(process.take(1500), Ok(1500));
    assert_eq!(process.take(1500), Err(None));
}

#[test]
fn the_server_is_asked_again_after_a_failure() {
    let mut process = Process::new();
    assert_eq!(process.take(0), Err(None));
    process.slots.answered(None, process.begin);
    let plan = process.plan(0);
    assert_eq!((plan.ask, plan.wait), (0, Some(PAUSE)));
    assert_eq!(process.plan(1000).ask, 1);
}

#[test]
fn a_slot_that_is_put_back_is_used_first_and_keeps_its_time() {
    let mut process = Process::new();
    process.granted(0, 0, 2, 10);
    let time = process.slots.take(process.begin).unwrap();
    process.slots.put_back(time);
    assert_eq!(process.take(50), Ok(0));
    process.slots.put_back(time);
    assert_eq!(process.take(101), Ok(10));
    let unused = process.plan(101).unused;
    assert_eq!(unused[0].end(), ORIGIN + 10 * MS);
    assert!(unused[0].granted <= ORIGIN);
}

#[test]
fn unused_slots_all_go_back_when_the_first_one_expires() {
    let mut process = Process::new();
    process.granted(0, 0, 4, 50);
    assert_eq!(
        process.plan(0).wait,
        Some(ms(100) + Duration::from_nanos(1))
    );
    assert!(process.plan(100).unused.is_empty());
    let unused = process.plan(101).unused;
    assert_eq!(unused.iter().map(|span| span.left).sum::<u64>(), 4);
    assert_eq!(process.plan(101).wait, None);
}

#[test]
fn the_earliest_slot_is_used_first() {
    let mut process = Process::new();
    process.granted(0, 400, 9, 10);
    process.granted(10, 0, 1, 10); // another process has returned it
    assert_eq!(process.take(10), Ok(10));
    assert_eq!(process.take(10), Err(Some(ms(390))));
}

#[test]
fn slots_of_a_clock_that_was_set_are_forgotten() {
    let mut process = Process::new();
    process.granted(0, 400, 9, 10);
    assert_eq!(process.take(10), Err(Some(ms(390))));
    // The server's clock went back an hour.
    let asked = process.begin + ms(20);
    let clock = ServerClock {
        at: ORIGIN - 3_600_000 * MS,
        asked,
        answered: asked,
    };
    let span = Span {
        first: clock.at,
        spacing: MS,
        left: 1,
        tolerance: 0,
        granted: clock.at,
    };
    process.slots.answered(Some((clock, span)), asked);
    assert!(process.take(20).is_ok());
    assert_eq!(process.take(20), Err(None));
}

#[test]
fn extreme_numbers_do_not_overflow() {
    let begin = Instant::now();
    let mut slots = Slots::new(Duration::MAX, true, begin);
    let clock = ServerClock {
        at: i64::MAX,
        asked: begin,
        answered: begin,
    };
    for (first, spacing) in [(i64::MAX, i64::MAX), (i64::MIN, 1), (0, i64::MAX)] {
        let span = Span {
            first,
            spacing,
            left: u64::MAX,
            tolerance: i64::MAX,
            granted: i64::MIN,
        };
        slots.answered(Some((clock, span)), begin);
        let _ = slots.take(begin + PAUSE);
        slots.put_back(i64::MAX);
        let _ = slots.plan(begin + PAUSE);
        for span in slots.take_all() {
            let _ = span.end();
        }
    }
}
