//! Tests of backoffs.

use super::super::Backoff;
use super::SECOND;
use std::collections::HashSet;
use std::time::Duration;

const EXTREMES: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_nanos(1),
    SECOND,
    Duration::from_nanos(u64::MAX),
    Duration::MAX,
];

#[test]
fn it_doubles_up_to_the_cap() {
    let backoff = Backoff::exponential(3 * SECOND, 50 * SECOND);
    let seconds = |failures| backoff.delay(failures).as_secs();
    let delays: Vec<_> = (0..8).map(seconds).collect();
    assert_eq!(delays, [3, 3, 6, 12, 24, 48, 50, 50]);
    assert_eq!(seconds(u32::MAX), 50);
}

#[test]
fn a_first_delay_beyond_the_cap_is_the_cap() {
    assert_eq!(Backoff::exponential(3 * SECOND, SECOND).delay(1), SECOND);
    assert_eq!(
        Backoff::exponential(SECOND, Duration::ZERO).delay(9),
        Duration::ZERO
    );
}

#[test]
fn it_doubles_from_a_nanosecond_to_the_maximum() {
    let backoff = Backoff::exponential(Duration::from_nanos(1), Duration::MAX);
    assert_eq!(
        backoff.delay(94),
        Duration::from_nanos(1) * (1 << 31) * (1 << 31) * (1 << 31)
    );
    assert_eq!(backoff.delay(95), Duration::MAX);
}

#[test]
fn nothing_overflows() {
    for (first, cap) in EXTREMES
        .iter()
        .flat_map(|first| EXTREMES.map(|cap| (*first, cap)))
    {
        for failures in [0, 1, 2, 64, 95, 1000, u32::MAX] {
            let backoff = Backoff::exponential(first, cap);
            let longest = backoff.delay(failures);
            assert!(longest <= cap);
            for random in [0, 1, u32::MAX / 2, u32::MAX] {
                let delay = backoff.with_jitter().delay_with(failures, random);
                assert!((longest / 2..=longest).contains(&delay));
            }
        }
    }
}

#[test]
fn jitter_takes_off_up_to_half() {
    let backoff = Backoff::fixed(8 * SECOND).with_jitter();
    let delays = [0, u32::MAX / 2 + 1, u32::MAX].map(|random| backoff.delay_with(1, random));
    assert_eq!(delays.map(|delay| delay.as_secs()), [4, 6, 8]);
    assert_eq!(delays[2], 8 * SECOND);
}

#[test]
fn jitter_differs() {
    let backoff = Backoff::fixed(1000 * SECOND).with_jitter();
    let delays: HashSet<_> = (0..100).map(|_| backoff.delay(1)).collect();
    assert!(delays.len() > 90);
}
