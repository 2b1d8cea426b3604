//! Single-threaded tests of paces.

use super::{Limiter, Pace, RateSlot};
use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);
const NANO: Duration = Duration::from_nanos(1);
/// A second less a nanosecond.
const SHORT: Duration = Duration::from_nanos(999_999_999);
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// How many slots are available at a time.
fn count(pace: &Pace, now: Instant) -> usize {
    (0..1000).take_while(|_| pace.start(now).is_ok()).count()
}

#[test]
fn an_interval_begins_with_each_start() {
    let (pace, start) = (Pace::every(SECOND), Instant::now());
    for late in [0, 1, 2, 5] {
        let now = start + SECOND * late + SECOND / 4 * late;
        assert_eq!(count(&pace, now), 1);
        let next = pace.start(now + SECOND / 2).unwrap_err();
        assert_eq!(next, now + SECOND);
        assert!(pace.start(now + SHORT).is_err());
    }
}

#[test]
fn a_refused_start_changes_nothing() {
    let (pace, now) = (Pace::every(SECOND), Instant::now());
    assert_eq!(count(&pace, now), 1);
    assert!((0..10).all(|_| pace.start(now) == Err(now + SECOND)));
    assert!(pace.start(now + SECOND).is_ok());
}

#[test]
fn a_rate_is_never_exceeded_by_rounding() {
    let (pace, now) = (Pace::rate(3, SECOND), Instant::now());
    assert!(pace.start(now).is_ok());
    let next = pace.start(now).unwrap_err();
    assert_eq!(next - now, Duration::from_nanos(333_333_334));
}

#[test]
fn a_rate_of_more_than_a_billion_a_second_is_one_of_a_billion() {
    let (pace, now) = (Pace::rate(u32::MAX, SECOND), Instant::now());
    assert!(pace.start(now).is_ok());
    assert_eq!(pace.start(now), Err(now + NANO));
}

#[test]
#[should_panic(expected = "rate of 0")]
fn a_rate_of_none_is_refused() {
    let _ = Pace::rate(0, SECOND);
}

#[test]
#[should_panic(expected = "burst of 0")]
fn a_burst_of_none_is_refused() {
    let _ = Pace::every(SECOND).burst(0);
}

#[test]
fn a_burst_is_replenished_with_time() {
    let (pace, start) = (Pace::every(SECOND).burst(4), Instant::now());
    assert_eq!(count(&pace, start), 4);
    assert_eq!(count(&pace, start + SECOND), 1);
    assert_eq!(count(&pace, start + SECOND * 3), 2);
    assert_eq!(count(&pace, start + SECOND * 100), 4);
    assert_eq!(count(&pace, start + SECOND * 101), 1);
}

#[test]
fn burst_makes_a_new_pace() {
    let (one, now) = (Pace::every(SECOND), Instant::now());
    assert_eq!(count(&one, now), 1);
    let many = one.clone().burst(5);
    assert_eq!((count(&many, now), count(&one, now)), (5, 0));
    assert_eq!(format!("{many:?}"), "Pace { interval: 1s, burst: 5 }");
    assert_eq!(count(&many.burst(1), now), 1);
}

#[test]
fn an_interval_of_zero_is_no_limit() {
    let now = Instant::now();
    for pace in [
        Pace::unlimited(),
        Pace::unlimited().burst(3),
        Pace::every(Duration::ZERO),
        Pace::rate(7, Duration::ZERO),
    ] {
        assert!(pace.is_unlimited());
        assert_eq!(count(&pace, now), 1000);
    }
}

#[test]
fn a_cancelled_slot_counts_as_never_taken() {
    let start = Instant::now();
    for burst in [1, 2, 5] {
        let pace = Pace::every(SECOND).burst(burst);
        for round in 0..10 {
            let now = start + SECOND / 4 * round;
            let slot = pace.start(now).unwrap();
            pace.cancel(slot, now + SECOND / 8);
        }
        let now = start + SECOND * 3;
        assert_eq!(count(&pace, now), burst as usize);
    }
}

#[test]
fn a_slot_that_is_cancelled_late_allows_no_early_start() {
    let (pace, start) = (Pace::every(SECOND), Instant::now());
    let old = pace.start(start).unwrap();
    let now = start + SECOND;
    let _used = pace.start(now).unwrap();
    pace.cancel(old, now);
    assert_eq!(pace.start(now), Err(now + SECOND));
}

#[test]
fn an_aborted_start_keeps_its_interval() {
    let (pace, start) = (Pace::every(SECOND), Instant::now());
    for round in 0..10 {
        let now = start + SECOND * round;
        let slot = pace.start(now).unwrap();
        pace.give_back(slot, now);
        let early = now + SHORT;
        assert_eq!(pace.start(early), Err(now + SECOND));
    }
}

#[test]
fn each_aborted_start_of_a_burst_is_refunded() {
    let (pace, now) = (Pace::every(SECOND).burst(3), Instant::now());
    for round in 0..10 {
        let slots = [(); 3].map(|()| pace.start(now).unwrap());
        assert_eq!(pace.start(now), Err(now + SECOND), "round {round}");
        for slot in slots {
            pace.give_back(slot, now);
        }
    }
    assert_eq!(count(&pace, now), 3);
}

#[test]
fn nothing_of_an_old_slot_is_refunded() {
    let (pace, start) = (Pace::every(SECOND).burst(3), Instant::now());
    let old = [(); 3].map(|()| pace.start(start).unwrap());
    let now = start + SECOND * 5;
    assert_eq!(count(&pace, now), 3);
    for slot in old {
        pace.give_back(slot, now);
    }
    assert_eq!(pace.start(now), Err(now + SECOND));
}

/// Small pseudorandom numbers, the same in each run.
fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |below| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    }
}

#[test]
fn another_interval_scales_the_outstanding_starts() {
    for (seconds, next) in [(10, 10), (2, 2), (1, 1)] {
        let (pace, start) = (Pace::every(SECOND * 4).burst(3), Instant::now());
        assert_eq!(count(&pace, start), 3);
        pace.set_interval(SECOND * seconds);
        assert_eq!(pace.start(start), Err(start + SECOND * next));
        assert_eq!(count(&pace, start + SECOND * 3 * seconds), 3);
    }
    let (pace, start) = (Pace::every(SECOND * 4).burst(3), Instant::now());
    assert_eq!(count(&pace, start), 3);
    assert_eq!(count(&pace, start + SECOND * 6), 1);
    pace.set_interval(SECOND * 8); // 10 s of 4 s each were outstanding at 6: now 20 s of 8 s each
    assert_eq!(pace.start(start + SECOND * 6), Err(start + SECOND * 10));
}

#[test]
fn the_last_slot_is_refunded_after_a_change_of_interval() {
    let (pace, start) = (Pace::every(SECOND).burst(2), Instant::now());
    let first = pace.start(start).unwrap();
    let now = start + SECOND / 2;
    let second = pace.start(now).unwrap();
    pace.set_interval(SECOND * 60);
    pace.give_back(first, now);
    assert_eq!(count(&pace, now), 0, "its share is not known");
    pace.give_back(second, now);
    assert_eq!(count(&pace, now), 1);
}

#[test]
fn setting_the_same_interval_changes_nothing() {
    let (pace, start) = (Pace::every(SECOND * 3).burst(5), Instant::now());
    let peer = Pace::every(SECOND * 3).burst(5);
    for quarters in 0..100 {
        let now = start + SECOND / 4 * quarters;
        peer.set_interval(SECOND * 3);
        assert_eq!(pace.start(now).is_ok(), peer.start(now).is_ok());
    }
}

#[test]
fn a_cancelled_slot_is_not_the_last_start() {
    let (pace, start) = (Pace::every(SECOND), Instant::now());
    let unused = pace.start(start).unwrap();
    pace.cancel(unused, start);
    pace.set_interval(SECOND * 60);
    assert!(pace.start(start).is_ok());
    let unused = pace.start(start + SECOND * 60).unwrap();
    pace.cancel(unused, start + SECOND * 60);
    pace.set_interval(SECOND * 90);
    assert_eq!(pace.start(start), Err(start + SECOND * 90));
}

/// Whichever slots are given back, and when: in no window are more slots kept than the pace allows. After a
/// change of interval this holds from the last start before it.
#[test]
#[cfg_attr(miri, ignore = "too many steps for Miri")]
fn kept_slots_obey_the_pace_in_each_window() {
    let origin = Instant::now();
    let at = |tenths: u64| origin + SECOND / 10 * u32::try_from(tenths).unwrap();
    for seed in 0..500 {
        let mut below = numbers(seed);
        let burst = 1 + below(5);
        let pace = Pace::every(SECOND).burst(u32::try_from(burst).unwrap());
        let (mut now, mut kept) = (0, Vec::new());
        let (mut interval, mut last, mut since) = (10, 0, 0);
        for _ in 0..60 {
            match below(5) {
                0 => now += below(25),
                1 if !kept.is_empty() => {
                    let index = usize::try_from(below(kept.len() as u64)).unwrap();
                    let (taken, slot): (u64, RateSlot) = kept.remove(index);
                    assert!(taken <= now);
                    pace.give_back(slot, at(now));
                    if burst == 1 {
                        kept.push((taken, RateSlot::new(at(0), 0)));
                    }
                }
                2 if below(4) == 0 => {
                    interval = 1 + below(30);
                    since = last;
                    pace.set_interval(at(interval) - origin);
                }
                _ => {
                    if let Ok(slot) = pace.start(at(now)) {
                        kept.push((now, slot));
                        last = now;
                    }
                }
            }
            kept.sort_by_key(|&(taken, _)| taken);
            let recent: Vec<_> = kept.iter().filter(|(taken, _)| *taken >= since).collect();
            for (i, &(from, _)) in recent.iter().enumerate() {
                for (j, &(to, _)) in recent.iter().enumerate().skip(i) {
                    let started = (j - i + 1) as u64;
                    assert!(started <= burst + (to - from) / interval, "seed {seed}");
                }
            }
        }
    }
}

#[test]
fn a_clock_that_goes_back_prolongs_the_wait() {
    let (pace, earlier) = (Pace::every(SECOND), Instant::now());
    let now = earlier + SECOND * 60;
    assert!(pace.start(now).is_ok());
    assert_eq!(pace.start(earlier), Err(now + SECOND));
    let slot = pace.start(now + SECOND).unwrap();
    pace.cancel(slot, earlier);
    assert!(pace.start(now + SECOND).is_ok());
}

#[test]
fn extreme_times_do_not_panic() {
    let now = Instant::now();
    let far = now.checked_add(YEAR * 1000).unwrap_or(now + YEAR * 100);
    let long_ago = now.checked_sub(YEAR * 1000).unwrap_or(now);
    for interval in [NANO, SECOND, YEAR * 400, Duration::MAX] {
        for burst in [1, 2, u32::MAX] {
            let pace = Pace::every(interval).burst(burst);
            for time in [long_ago, far, now, far, long_ago, far] {
                match pace.start(time) {
                    Ok(slot) => pace.give_back(slot, long_ago),
                    Err(next) => assert!(next > time),
                }
                if let Ok(slot) = pace.start(time) {
                    pace.cancel(slot, far);
                }
            }
        }
    }
    let pace = Pace::every(Duration::MAX);
    assert!(pace.start(now).is_ok());
    assert!(pace.start(now).unwrap_err() > now + YEAR * 100);
}

#[test]
fn a_slot_of_another_pace_does_not_panic() {
    let (pace, now) = (Pace::every(SECOND).burst(2), Instant::now());
    for mark in [0, u64::MAX] {
        pace.cancel(RateSlot::new(now, mark), now);
        pace.give_back(RateSlot::new(now, mark), now);
    }
}

/// A limiter that grants one slot at a time.
struct Door(std::sync::Mutex<bool>);

impl Limiter for Door {
    fn start(&self, now: Instant) -> Result<RateSlot, Instant> {
        let mut taken = self.0.lock().unwrap();
        if std::mem::replace(&mut *taken, true) {
            return Err(now + SECOND);
        }
        Ok(RateSlot::new(now, 7))
    }

    fn give_back(&self, slot: RateSlot, _: Instant) {
        assert_eq!(slot.mark(), 7);
        *self.0.lock().unwrap() = false;
    }
}

#[test]
fn a_shared_pace_calls_its_limiter() {
    let (pace, now) = (Pace::shared(Door(false.into())), Instant::now());
    assert!(!pace.is_unlimited());
    let slot = pace.start(now).unwrap();
    assert_eq!(pace.clone().start(now), Err(now + SECOND));
    pace.give_back(slot, now);
    let slot = pace.start(now).unwrap();
    pace.cancel(slot, now); // does nothing by default
    assert!(pace.start(now).is_err());
}

#[test]
#[should_panic(expected = "burst of a shared pace")]
fn a_shared_pace_refuses_a_burst() {
    let _ = Pace::shared(Door(false.into())).burst(2);
}
