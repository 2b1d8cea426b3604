//! The rank error: how much the order across handles differs from that of the pushes. It is reported, and bounded
//! only where the order is guaranteed: one handle that pushes, one consumer.

use crate::common::rng::Rng;
use crate::harness::{on_all_threads, scaled, together};
use crate::history::rank::{measure, RankError};
use crate::recorded_handle::RecordedHandle;
use crate::recorder::{Recorder, Recording, Subject};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Pops until all pushes are done and the queue is empty.
fn pop_all(handle: &mut RecordedHandle, recorder: &mut Recorder, pushing: &AtomicUsize) {
    loop {
        let last = pushing.load(Ordering::SeqCst) == 0;
        if !handle.pop(recorder) {
            if last {
                return;
            }
            thread::yield_now();
        }
    }
}

fn pass(items: usize, producers: usize, consumers: usize, rng: &mut Rng) -> RankError {
    let recording = Recording::new();
    let subject = Subject::default();
    let pushing = AtomicUsize::new(producers);
    together(producers + consumers, rng, |number, _| {
        let mut recorder = recording.recorder();
        let mut handle = RecordedHandle::new(&subject, &recorder);
        if number < producers {
            (0..items / producers).for_each(|_| handle.push(&mut recorder));
            pushing.fetch_sub(1, Ordering::SeqCst);
        } else {
            pop_all(&mut handle, &mut recorder, &pushing);
        }
        handle.close(&mut recorder);
    });
    measure(&recording.finish(&[subject]))
}

#[test]
fn rank_error_of_plain_pops() {
    on_all_threads(|threads, rng| {
        let half = threads / 2;
        let RankError { mean, max } = pass(scaled(8_000), half, half, rng);
        println!("{half} pushing, {half} popping: rank error {mean:.1} on average, {max} at most");
    });
}

#[test]
fn a_lone_consumer_pops_in_the_order_of_a_lone_handle() {
    on_all_threads(|_, rng| {
        assert_eq!(pass(scaled(2_000), 1, 1, rng).max, 0);
    });
}
