//! Storms: every thread repeats random actions.

use crate::actions::Action::{
    Abort, AskWhetherEmpty, Pop, PopBatch, PopWithoutHandle, Push, PushBatch, PushWithoutHandle,
    Renew, Swap, Transaction,
};
use crate::actions::{Action, Actor, Pool};
use crate::harness::{on_all_threads, scaled, together};
use crate::recorder::{Recording, Subject};

/// The random actions of each thread, with their frequency; the threads take the tastes in turn.
type Tastes<'a> = &'a [&'a [Action]];

/// Runs this many actions, shared among the threads, and checks the history.
fn storm(actions: usize, tastes: Tastes) {
    on_all_threads(|threads, rng| {
        let recording = Recording::new();
        let subject = Subject::default();
        let pool = Pool::new(threads / 2, &subject, &recording.recorder());
        let share = scaled(actions) / threads;
        together(threads, rng, |number, rng| {
            let mut actor = Actor::new(&recording, &subject, &pool);
            let taste = tastes[number % tastes.len()];
            for _ in 0..share {
                actor.act(rng.pick(taste), rng);
            }
            actor.close();
        });
        pool.close(&mut recording.recorder());
        let lives = recording.finish(&[subject]);
        assert!(lives.len() * 8 > share, "the storm pushed next to nothing");
    });
}

#[test]
fn plain_pushes_and_pops() {
    storm(16_000, &[&[Push], &[Pop]]);
    storm(16_000, &[&[Push, Pop, Pop, AskWhetherEmpty]]);
}

#[test]
fn one_pushes_and_the_others_pop() {
    let mut tastes: [&[Action]; 16] = [&[Pop, PopBatch, Abort]; 16];
    tastes[0] = &[Push, PushBatch];
    storm(12_000, &tastes);
}

#[test]
fn one_pops_and_the_others_push() {
    let mut tastes: [&[Action]; 16] = [&[Push]; 16];
    tastes[0] = &[Pop, PopBatch, Abort];
    storm(8_000, &tastes);
}

#[test]
fn batches() {
    storm(8_000, &[&[PushBatch, PopBatch, Pop]]);
}

#[test]
fn without_a_handle() {
    storm(12_000, &[&[PushWithoutHandle], &[PopWithoutHandle]]);
    storm(
        12_000,
        &[&[
            PushWithoutHandle,
            PopWithoutHandle,
            PopWithoutHandle,
            Push,
            Pop,
        ]],
    );
}

#[test]
fn transactions_that_end_in_any_way() {
    storm(10_000, &[&[Transaction, Push, Pop]]);
    storm(10_000, &[&[PushBatch, PushWithoutHandle], &[Transaction]]);
}

#[test]
fn aborts_against_pops_that_find_little() {
    storm(
        12_000,
        &[
            &[Push, Pop],
            &[Abort],
            &[Pop, PopWithoutHandle, AskWhetherEmpty],
        ],
    );
    storm(12_000, &[&[PushWithoutHandle, Abort, Pop]]);
}

#[test]
fn handles_that_live_shortly() {
    storm(10_000, &[&[Push, Push, Pop, Transaction, Renew]]);
    storm(10_000, &[&[Push, Renew], &[Pop, Abort]]);
}

#[test]
fn handles_that_migrate() {
    storm(10_000, &[&[Push, Push, Pop, Transaction, Swap]]);
}

#[test]
fn everything() {
    let all = &[
        Push,
        Pop,
        PushBatch,
        PopBatch,
        PushWithoutHandle,
        PopWithoutHandle,
        AskWhetherEmpty,
        Transaction,
        Abort,
        Renew,
        Swap,
    ];
    storm(20_000, &[all]);
}
