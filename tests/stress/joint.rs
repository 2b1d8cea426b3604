//! Commits over several queues, with concurrent consumers.
//!
//! The history shows half a commit as a false `Empty`: an item counts as ready since another item of its commit was
//! popped, from any queue.

use crate::common::rng::Rng;
use crate::harness::{on_all_threads, scaled, together};
use crate::history::Span;
use crate::recorded_handle::RecordedHandle;
use crate::recorder::{Item, Recorder, Recording, Subject};
use crate::transaction::Draft;
use requeue::{commit_all, Transaction};
use std::array;
use std::thread;

/// The part of a commit over several queues in one of them.
type Part<'h> = (Transaction<'h, Item>, Draft);

fn some_steps((tx, draft): &mut Part, recorder: &mut Recorder, rng: &mut Rng) {
    for _ in 0..rng.below(3) {
        draft.push(tx, recorder);
    }
    if rng.percent(50) {
        let most = 1 + rng.below(3);
        draft.pop(tx, recorder, most);
    }
}

fn write<'h>(recorder: &mut Recorder, span: Span, drafts: impl IntoIterator<Item = Draft> + 'h) {
    for draft in drafts {
        draft.committed(recorder, span);
    }
}

fn commit_two(parts: [Part; 2], recorder: &mut Recorder) {
    let [(a, first), (b, second)] = parts;
    let ((taken_a, taken_b), span) = recorder.timed(|| commit_all((a, b)));
    first.check_taken(taken_a, usize::MAX);
    second.check_taken(taken_b, usize::MAX);
    write(recorder, span, [first, second]);
}

fn commit_three(parts: [Part; 3], recorder: &mut Recorder) {
    let [(a, first), (b, second), (c, third)] = parts;
    let ((taken_a, taken_b, taken_c), span) = recorder.timed(|| commit_all((a, b, c)));
    first.check_taken(taken_a, usize::MAX);
    second.check_taken(taken_b, usize::MAX);
    third.check_taken(taken_c, usize::MAX);
    write(recorder, span, [first, second, third]);
}

/// Moves items between queues: all parts are committed together, or each is aborted.
fn run<const N: usize>(
    handles: &mut [RecordedHandle; N],
    recorder: &mut Recorder,
    rng: &mut Rng,
    commit: fn([Part; N], &mut Recorder),
) {
    let mut rest = handles.iter_mut();
    let mut begun: [Part; N] = array::from_fn(|_| {
        let handle = rest.next().expect("N handles");
        handle.begin(recorder)
    });
    for part in &mut begun {
        some_steps(part, recorder, rng);
    }
    if rng.percent(75) {
        commit(begun, recorder);
    } else {
        for (tx, draft) in begun {
            let ((), span) = recorder.timed(|| drop(tx));
            draft.aborted(recorder, span);
        }
    }
}

/// Half of the threads commit over the queues with these indices, each in its own order; the others pop from any.
fn compete<const N: usize>(
    transactions: usize,
    queues: u32,
    places: [usize; N],
    commit: fn([Part; N], &mut Recorder),
) {
    on_all_threads(|threads, rng| {
        let recording = Recording::new();
        let subjects = Subject::several(queues);
        let share = scaled(transactions) / threads;
        together(threads, rng, |number, rng| {
            let mut recorder = recording.recorder();
            let mut places = places;
            places.rotate_left(number / 2 % N);
            let mut handles = places.map(|place| RecordedHandle::new(&subjects[place], &recorder));
            for _ in 0..share {
                if number % 2 == 0 {
                    run(&mut handles, &mut recorder, rng, commit);
                }
                for _ in 0..2 {
                    let handle = rng.below(N);
                    if !handles[handle].pop(&mut recorder) {
                        thread::yield_now();
                    }
                }
            }
            for handle in handles {
                handle.close(&mut recorder);
            }
        });
        recording.finish(&subjects);
    });
}

#[test]
fn over_two_queues() {
    compete(5_000, 2, [0, 1], commit_two);
}

#[test]
fn over_three_queues() {
    compete(4_000, 3, [0, 1, 2], commit_three);
}

#[test]
fn over_one_queue_twice() {
    compete(4_000, 1, [0, 0], commit_two);
}

#[test]
fn over_one_queue_twice_and_another() {
    compete(4_000, 2, [0, 1, 0], commit_three);
}
