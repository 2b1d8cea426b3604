//! Worker pools of threads.

use crate::steps::{
    drains, eventually, fail, filled, filled_with, left, letter, push, Steps, AT_ONCE,
};
use crate::{HeldOf, Settings, Subject, Threaded, TxOf, ViewOf, LONG};
use requeue::backend::{Backend, Holds, Settlement};
use requeue::workers::{PoolBuilder, WorkerState};
use requeue::Workers;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use tokio::sync::mpsc::unbounded_channel;

/// A pool of one worker that does not wait after failures.
fn pool<B: Backend>(queue: &B) -> PoolBuilder<B> {
    Workers::builder(queue).threads(1).backoff(AT_ONCE)
}

fn attempts(max: u32) -> Settings {
    Settings {
        max_attempts: Some(max),
        ..Settings::default()
    }
}

fn attempts_of<S: Subject>(item: &HeldOf<'_, S>) -> u32 {
    TxOf::<S>::attempts(item)
}

pub async fn items_are_done<S: Threaded>(subject: &S) {
    let queue = filled(subject, 0..9).await;
    let sum = AtomicU32::new(0);
    thread::scope(|scope| {
        let add = |item: HeldOf<'_, S>, _: &ViewOf<S>| {
            sum.fetch_add(*item, Ordering::Relaxed);
            Ok::<(), ()>(())
        };
        let report = pool(&queue).threads(3).run_scoped(scope, add).finish(LONG);
        assert_eq!((report.done, report.failed, report.left), (9, 0, 0));
    });
    assert_eq!(sum.into_inner(), 36);
}

pub async fn a_worker_waits_for_items<S: Threaded>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    let (send, mut ran) = unbounded_channel();
    let workers = pool(&queue).run(move |item, _tx| send.send(*item));
    for item in 0..3 {
        push(&queue, [item]).await;
        assert_eq!(ran.recv().await, Some(item));
    }
    assert_eq!(workers.finish(LONG).done, 3);
}

pub async fn errors_and_panics_give_the_item_back<S: Threaded>(subject: &S) {
    let queue = filled_with(subject, attempts(9), [1]).await;
    let workers = pool(&queue).run(|item, _tx| match attempts_of::<S>(&item) {
        1 => Err("no"),
        2 => panic!("bad luck"),
        _ => Ok(()),
    });
    let report = workers.finish(LONG);
    assert_eq!((report.done, report.failed, report.panicked), (1, 1, 1));
}

pub async fn hooks_learn_of_failures<S: Threaded>(subject: &S) {
    let queue = filled_with(subject, attempts(1), [1]).await;
    let (send, failures) = channel();
    let workers = pool(&queue)
        .name("mail")
        .on_error(move |failure| send.send(failure.clone()).unwrap())
        .run(|_, _| Err::<(), _>("no"));
    let failure = failures.recv().unwrap();
    assert_eq!((&*failure.worker, &*failure.error), ("mail-0", "\"no\""));
    assert_eq!(
        (failure.items, failure.attempts, failure.panicked),
        (1, 1, false)
    );
    let letter = letter(subject, &queue).await;
    assert_eq!((letter.item, letter.error.as_deref()), (1, Some("\"no\"")));
    drop(workers);
}

pub async fn a_run_settles_its_item<S: Threaded>(subject: &S) {
    let queue = filled_with(subject, attempts(9), [1, 2]).await;
    let workers = pool(&queue).run(|item, tx| match (*item, attempts_of::<S>(&item)) {
        (1, 1) => S::settle_in(tx, item, Settlement::Retry),
        (2, _) => S::settle_in(tx, item, fail("not this one")),
        _ => Ok(()),
    });
    let report = workers.finish(LONG);
    assert_eq!((report.done, report.given_up, report.failed), (1, 2, 0));
    let letter = letter(subject, &queue).await;
    assert_eq!(
        (letter.item, letter.error.as_deref()),
        (2, Some("not this one"))
    );
}

pub async fn batches_are_runs<S: Threaded>(subject: &S) {
    let queue = filled(subject, 0..7).await;
    let (send, ran) = channel();
    let workers = pool(&queue).run_batches(3, move |items, _tx| send.send(items.len()));
    let mut count = 0;
    while count < 7 {
        let batch = ran.recv().unwrap();
        assert!(batch <= 3);
        count += batch;
    }
    workers.finish(LONG);
}

pub async fn a_worker_lingers_until_its_batch_is_full<S: Threaded>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    let (send, ran) = channel();
    let workers = pool(&queue)
        .linger(LONG)
        .run_batches(3, move |items, _tx| send.send(items.len()));
    for item in 0..3 {
        push(&queue, [item]).await;
    }
    assert_eq!(ran.recv(), Ok(3));
    workers.finish(LONG);
}

pub async fn a_paused_worker_takes_nothing<S: Threaded>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    let workers = pool(&queue).run(|_, _| Ok::<(), ()>(()));
    workers.pause_all();
    eventually(async || workers.status()[0].state == WorkerState::Paused).await;
    push(&queue, [1]).await;
    let tx = queue.begin(None);
    assert_eq!(tx.look().await, Some(1));
    drop(tx);
    workers.resume_all();
    assert_eq!(workers.finish(LONG).done, 1);
}

/// A pool whose runs end when the sender is used or dropped, and where it says that they have begun.
macro_rules! held_up {
    ($pool:expr, $begun:ident, $go_on:ident) => {{
        let (send, receive) = channel();
        let (go_on, wait) = channel::<()>();
        ($begun, $go_on) = (receive, go_on);
        let wait = std::sync::Mutex::new(wait);
        $pool.run(move |item, _tx| {
            let name = thread::current().name().map(str::to_owned);
            send.send((*item, name)).unwrap();
            let _ = wait.lock().unwrap().recv();
            Ok::<(), ()>(())
        })
    }};
}

pub async fn a_shutdown_names_the_stuck_workers<S: Threaded>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let (begun, go_on);
    let workers = held_up!(pool(&queue).threads(2), begun, go_on);
    let (item, name) = begun.recv().unwrap();
    // The other worker ends at once, or is stuck too.
    let report = workers.shutdown(std::time::Duration::ZERO);
    let stuck = report
        .stuck
        .iter()
        .find(|worker| name.as_deref() == Some(&*worker.name));
    let state = stuck.expect("it runs").state;
    assert!(matches!(state, WorkerState::Busy { .. }));
    assert_eq!((item, report.done), (1, 0));
    drop(go_on);
    eventually(async || left(&queue).await == 0).await; // the run goes on to its end
}

/// A worker in a run is stuck at the deadline, one that waits for an item is not.
pub async fn a_finish_that_is_over_says_what_is_left<S: Threaded>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let (begun, go_on);
    let workers = held_up!(pool(&queue).threads(3), begun, go_on);
    begun.recv().unwrap();
    let report = workers.finish(std::time::Duration::ZERO);
    assert_eq!((report.done, report.stuck.len(), report.left), (0, 1, 1));
    assert!(queue.is_closed());
    drop(go_on);
    eventually(async || left(&queue).await == 0).await;
}

pub async fn letters_keep_the_errors_of_runs<S: Threaded>(subject: &S) {
    let queue = filled_with(subject, attempts(1), [1, 2]).await;
    let workers = pool(&queue).run(|item, _tx| {
        assert_eq!(*item, 1, "bad luck");
        Err::<(), _>("no")
    });
    workers.finish(LONG);
    let letters = subject.letters(&queue).await;
    let reasons: Vec<_> = letters.iter().map(|letter| &*letter.reason).collect();
    assert_eq!(reasons, ["failed", "panicked"]);
    assert_eq!(letters[0].error.as_deref(), Some("\"no\""));
    assert!(letters[1].error.as_deref().unwrap().contains("bad luck"));
}

pub async fn a_stop_leaves_what_is_ready<S: Threaded>(subject: &S) {
    let queue = filled(subject, [1, 2, 3]).await;
    let (send, begun) = channel();
    let (go_on, wait) = channel();
    let wait = std::sync::Mutex::new(wait);
    let workers = pool(&queue).run(move |item, _tx| {
        send.send(*item).unwrap();
        wait.lock().unwrap().recv()
    });
    assert_eq!(begun.recv(), Ok(1));
    assert!(matches!(
        workers.status()[0].state,
        WorkerState::Busy { .. }
    ));
    let stop = thread::spawn(move || workers.stop());
    // Its run ends when it has been told to stop, or a moment before: then it may run once more.
    thread::yield_now();
    go_on.send(()).unwrap();
    drop(go_on);
    let report = stop.join().unwrap();
    assert!(report.done >= 1 && report.stuck.is_empty());
    assert_eq!(left(&queue).await + report.done, 3);
}

pub async fn a_finish_does_follow_ups<S: Threaded>(subject: &S) {
    let queue = filled(subject, [4]).await;
    let runtime = tokio::runtime::Handle::current();
    let workers = pool(&queue).threads(2).run(move |item, tx| match *item {
        0 => Ok(()),
        number => runtime.block_on(S::push_in(tx, number - 1)),
    });
    let report = workers.finish(LONG);
    assert_eq!((report.done, report.left), (5, 0));
}

pub async fn a_dropped_pool_ends_its_runs<S: Threaded>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let workers = pool(&queue).run(|_, _| Ok::<(), ()>(()));
    eventually(async || workers.status()[0].done == 1).await;
    drop(workers);
    push(&queue, [2]).await;
    drains(&queue, &[2]).await;
}
