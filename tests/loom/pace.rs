//! Changes of a rate limit, and pauses for a time, with a manual clock.

use super::{large_model, model, warm};
use loom::thread;
use requeue::{ManualClock, Pace, Queue};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// A queue of two items, with a rate limit that allows one of them.
fn paced(pace: &Pace) -> (ManualClock, Queue<u32>) {
    let clock = ManualClock::new();
    let queue = Queue::builder().clock(clock.clone()).build();
    let mut handle = warm(&queue);
    queue.set_pace(pace.clone());
    handle.push(1).unwrap();
    handle.push(2).unwrap();
    (clock, queue)
}

#[test]
fn a_start_against_another_pace() {
    model(|| {
        let (_, queue) = paced(&Pace::every(SECOND));
        let other = queue.clone();
        let pop = thread::spawn(move || other.pop().is_ok());
        queue.set_pace(Pace::every(SECOND));
        let mine = queue.pop().is_ok();
        assert!(mine != pop.join().unwrap(), "one of two may start");
    });
}

#[test]
fn a_sleeper_against_another_interval() {
    large_model(|| {
        let pace = Pace::every(60 * SECOND);
        let (clock, queue) = paced(&pace);
        assert_eq!(queue.pop(), Ok(1));
        clock.advance(SECOND);
        let sleeper = thread::spawn(move || queue.handle().pop_blocking());
        pace.set_interval(SECOND);
        assert_eq!(sleeper.join().unwrap(), Ok(2));
    });
}

#[test]
fn a_sleeper_against_a_pause_with_an_end() {
    large_model(|| {
        let (clock, queue) = paced(&Pace::unlimited());
        queue.pause();
        let sleeper = thread::spawn({
            let queue = queue.clone();
            move || queue.handle().pop_blocking()
        });
        queue.pause_for(SECOND);
        clock.advance(SECOND);
        assert_eq!(sleeper.join().unwrap(), Ok(1));
    });
}

#[test]
fn the_end_of_a_pause_against_another_pause() {
    model(|| {
        let (clock, queue) = paced(&Pace::unlimited());
        queue.pause_for(SECOND);
        clock.advance(SECOND);
        let other = queue.clone();
        let pop = thread::spawn(move || other.pop().is_ok());
        queue.pause();
        pop.join().unwrap();
        assert!(queue.is_paused());
    });
}
