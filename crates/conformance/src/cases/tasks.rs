//! Worker pools of tasks.

use crate::steps::{
    dead, drains, drains_any, eventually, filled, filled_with, half, left, letter, push, Delay,
    Steps, AT_ONCE,
};
use crate::{Settings, Subject, LONG};
use requeue::backend::Backend;
use requeue::workers::{PoolBuilder, WorkerState};
use requeue::{Backoff, Workers};
use std::future::pending;
use std::sync::Arc;
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::Semaphore;

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

pub async fn items_are_done<S: Subject>(subject: &S) {
    let queue = filled(subject, 0..9).await;
    let (send, mut ran) = unbounded_channel();
    let tasks = pool(&queue).threads(3).run_async(move |item, _tx| {
        let send = send.clone();
        async move { send.send(*item) }
    });
    let report = tasks.finish(LONG).await;
    assert_eq!((report.done, report.failed, report.left), (9, 0, 0));
    let mut items = Vec::new();
    ran.recv_many(&mut items, 10).await;
    items.sort_unstable();
    assert!(items.iter().copied().eq(0..9));
}

pub async fn a_worker_waits_for_items<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    let (send, mut ran) = unbounded_channel();
    let tasks = pool(&queue).run_async(move |item, _tx| {
        let send = send.clone();
        async move { send.send(*item) }
    });
    for item in 0..3 {
        push(&queue, [item]).await;
        assert_eq!(ran.recv().await, Some(item));
    }
    tasks.stop().await;
}

pub async fn an_error_gives_the_item_back<S: Subject>(subject: &S) {
    let queue = filled_with(subject, attempts(9), [1]).await;
    let tasks = pool(&queue).run_async(|item, _tx| async move {
        match item.attempts() {
            1 | 2 => Err("not yet"),
            _ => Ok(()),
        }
    });
    let report = tasks.finish(LONG).await;
    assert_eq!((report.done, report.failed, report.panicked), (1, 2, 0));
}

pub async fn a_panic_gives_the_item_back<S: Subject>(subject: &S) {
    let queue = filled_with(subject, attempts(9), [1]).await;
    let tasks = pool(&queue).run_async(|item, _tx| async move {
        assert!(item.attempts() > 1, "bad luck");
        Ok::<(), ()>(())
    });
    let report = tasks.finish(LONG).await;
    assert_eq!((report.done, report.failed, report.panicked), (1, 0, 1));
}

pub async fn a_panic_before_the_future_gives_the_item_back<S: Subject>(subject: &S) {
    let queue = filled_with(subject, attempts(9), [1]).await;
    let tasks = pool(&queue).run_async(|item, _tx| {
        assert!(item.attempts() > 1, "bad luck");
        async { Ok::<(), ()>(()) }
    });
    let report = tasks.finish(LONG).await;
    assert_eq!((report.done, report.panicked), (1, 1));
}

pub async fn pushes_of_a_run_are_committed_with_its_item<S: Subject>(subject: &S) {
    let queue = filled(subject, [3]).await;
    let tasks = pool(&queue).run_async(|item, tx| async move {
        match *item {
            0 => Ok(()),
            number => S::push_in(&tx, number - 1).await,
        }
    });
    assert_eq!(tasks.finish(LONG).await.done, 4);
}

pub async fn pushes_of_a_failed_run_vanish<S: Subject>(subject: &S) {
    let queue = filled_with(subject, attempts(9), [1]).await;
    let tasks = pool(&queue).run_async(|item, tx| async move {
        if *item == 1 {
            S::push_in(&tx, 2).await?;
            match item.attempts() {
                1 => return Err("no".to_owned()),
                2 => panic!("bad luck"),
                _ => {}
            }
        }
        Ok(())
    });
    let report = tasks.finish(LONG).await;
    assert_eq!((report.done, report.failed, report.panicked), (2, 1, 1));
}

pub async fn a_run_retries_its_item<S: Subject>(subject: &S) {
    let queue = filled_with(subject, attempts(9), [1]).await;
    let tasks = pool(&queue).run_async(|item, tx| async move {
        match item.attempts() {
            1 | 2 => tx.retry(item).map_err(|_| "refused"),
            _ => Ok(()),
        }
    });
    let report = tasks.finish(LONG).await;
    assert_eq!((report.done, report.given_up, report.failed), (1, 2, 0));
}

pub async fn a_run_retries_its_item_later<S: Subject>(subject: &S) {
    let queue = filled_with(subject, attempts(9), [1]).await;
    let (send, mut ran) = unbounded_channel();
    let tasks = pool(&queue).run_async(move |item, tx| {
        let send = send.clone();
        async move {
            send.send(item.attempts()).unwrap();
            match item.attempts() {
                1 => tx.retry_after(item, S::SHORT).map_err(|_| "refused"),
                _ => Ok(()),
            }
        }
    });
    assert_eq!(ran.recv().await, Some(1));
    eventually(async || tasks.status()[0].given_up == 1).await;
    subject.pass(S::SHORT).await;
    assert_eq!(ran.recv().await, Some(2));
    tasks.finish(LONG).await;
}

pub async fn a_run_fails_its_item<S: Subject>(subject: &S) {
    let queue = filled(subject, [1, 2]).await;
    let tasks = pool(&queue).run_async(|item, tx| async move {
        match *item {
            1 => tx.fail(item, "not this one").map_err(|_| "refused"),
            _ => Ok(()),
        }
    });
    let report = tasks.finish(LONG).await;
    assert_eq!((report.done, report.given_up, report.failed), (1, 1, 0));
    let letter = letter(subject, &queue).await;
    assert_eq!(letter.error.as_deref(), Some("not this one"));
    assert_eq!((letter.item, &*letter.reason), (1, "failed"));
}

pub async fn letters_keep_the_errors_of_runs<S: Subject>(subject: &S) {
    let queue = filled_with(subject, attempts(1), [1, 2]).await;
    let tasks = pool(&queue).run_async(|item, _tx| async move {
        assert_eq!(*item, 1, "bad luck");
        Err::<(), _>("no")
    });
    tasks.finish(LONG).await;
    let mut letters = subject.letters(&queue).await;
    letters.sort_by_key(|letter| letter.item);
    assert_eq!(letters.len(), 2);
    assert_eq!(
        (&*letters[0].reason, letters[0].error.as_deref()),
        ("failed", Some("\"no\""))
    );
    assert_eq!(letters[1].reason, "panicked");
    assert!(letters[1].error.as_deref().unwrap().contains("bad luck"));
}

pub async fn hooks_learn_of_failures<S: Subject>(subject: &S) {
    let queue = filled_with(subject, attempts(9), [1]).await;
    let (send, mut failures) = unbounded_channel();
    let tasks = pool(&queue)
        .name("mail")
        .on_error(move |failure| send.send(failure.clone()).unwrap())
        .run_async(|item, _tx| async move {
            match item.attempts() {
                1 => Err("no"),
                2 => panic!("bad luck"),
                _ => Ok(()),
            }
        });
    let failed = failures.recv().await.unwrap();
    assert_eq!((&*failed.worker, &*failed.error), ("mail-0", "\"no\""));
    assert_eq!(
        (failed.items, failed.attempts, failed.panicked),
        (1, 1, false)
    );
    let panicked = failures.recv().await.unwrap();
    assert_eq!(
        (&*panicked.worker, &*panicked.error),
        ("mail-0", "bad luck")
    );
    assert_eq!(
        (panicked.items, panicked.attempts, panicked.panicked),
        (1, 2, true)
    );
    tasks.finish(LONG).await;
}

pub async fn a_hook_gets_the_payload_of_a_panic<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let (send, mut payloads) = unbounded_channel();
    let tasks = pool(&queue)
        .on_panic(move |worker, payload| {
            let text = payload.downcast_ref::<&str>();
            send.send(format!("{worker}: {text:?}")).unwrap();
        })
        .run_async(|item, tx| async move {
            assert!(item.attempts() > 1, "bad luck");
            tx.fail(item, "").map_err(|_| "refused")
        });
    let payload = payloads.recv().await.unwrap();
    assert_eq!(payload, "worker-0: Some(\"bad luck\")");
    tasks.stop().await;
}

pub async fn a_hook_sees_the_item_back_in_the_queue<S: Subject>(subject: &S) {
    let queue = filled_with(subject, attempts(1), [1]).await;
    let (send, mut failures) = unbounded_channel();
    let tasks = pool(&queue)
        .on_error(move |_| send.send(()).unwrap())
        .run_async(|_, _| async { Err::<(), _>("no") });
    failures.recv().await.unwrap();
    assert_eq!(dead(subject, &queue).await, [(1, 1)]);
    tasks.stop().await;
}

pub async fn failed_items_are_delayed_by_the_pool<S: Subject>(subject: &S) {
    let queue = filled_with(subject, attempts(9), [1]).await;
    let (send, mut failures) = unbounded_channel();
    let delay = Delay::short::<S>();
    let tasks = pool(&queue)
        .backoff(Backoff::fixed(S::SHORT))
        .on_error(move |failure| send.send(failure.attempts).unwrap())
        .run_async(|item, _| async move {
            match item.attempts() {
                1 => Err("no"),
                _ => Ok(()),
            }
        });
    assert_eq!(failures.recv().await, Some(1));
    let tx = queue.begin(None);
    delay.not_before(tx.look()).await;
    half(subject).await;
    delay.not_before(tx.look()).await;
    drop(tx);
    subject.pass(S::SHORT).await;
    assert_eq!(tasks.finish(LONG).await.done, 1);
}

pub async fn batches_are_runs<S: Subject>(subject: &S) {
    let queue = filled(subject, 0..7).await;
    let (send, mut ran) = unbounded_channel();
    let tasks = pool(&queue).run_batches_async(3, move |items, _tx| {
        send.send(items.iter().map(|item| **item).collect::<Vec<_>>())
            .unwrap();
        async move {
            drop(items);
            Ok::<(), ()>(())
        }
    });
    let mut items = Vec::new();
    while items.len() < 7 {
        let batch = ran.recv().await.unwrap();
        assert!(batch.len() <= 3);
        items.extend(batch);
    }
    assert!(items.iter().copied().eq(0..7));
    tasks.finish(LONG).await;
}

pub async fn a_failed_batch_comes_back_as_a_whole<S: Subject>(subject: &S) {
    let queue = filled(subject, [1, 2, 3]).await;
    let (send, mut failures) = unbounded_channel();
    let tasks = pool(&queue)
        .on_error(move |failure| send.send((failure.items, failure.attempts)).unwrap())
        .run_batches_async(3, |items, _tx| async move {
            match items[0].attempts() {
                1 => Err("no"),
                _ => Ok(()),
            }
        });
    assert_eq!(failures.recv().await, Some((3, 1)));
    tasks.finish(LONG).await;
}

pub async fn a_run_that_takes_too_long_is_cancelled<S: Subject>(subject: &S) {
    let queue = filled_with(subject, attempts(9), [1]).await;
    let (send, mut begun) = unbounded_channel();
    let (tell, mut errors) = unbounded_channel();
    let tasks = pool(&queue)
        .run_timeout(S::SHORT)
        .on_error(move |failure| tell.send(failure.error.clone()).unwrap())
        .run_async(move |item, _tx| {
            let send = send.clone();
            async move {
                if item.attempts() == 1 {
                    send.send(()).unwrap();
                    pending::<()>().await;
                }
                Ok::<(), ()>(())
            }
        });
    begun.recv().await.unwrap();
    subject.pass(S::SHORT).await;
    let error = errors.recv().await.unwrap();
    assert_eq!(*error, *format!("the run took longer than {:?}", S::SHORT));
    let report = tasks.finish(LONG).await;
    assert_eq!((report.done, report.failed, report.left), (1, 1, 0));
}

pub async fn a_worker_lingers_until_its_batch_is_full<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let (send, mut ran) = unbounded_channel();
    let tasks = pool(&queue)
        .linger(LONG)
        .run_batches_async(3, move |items, _tx| {
            send.send(items.len()).unwrap();
            async move {
                drop(items);
                Ok::<(), ()>(())
            }
        });
    let other = queue.begin(None);
    eventually(async || other.look().await.is_none() && left(&queue).await == 1).await;
    drop(other);
    push(&queue, [2, 3]).await;
    assert_eq!(ran.recv().await, Some(3));
    tasks.finish(LONG).await;
}

pub async fn a_stopped_worker_does_not_linger<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    let tasks = pool(&queue)
        .linger(LONG)
        .run_batches_async(3, |items, _tx| async move {
            drop(items);
            Ok::<(), ()>(())
        });
    push(&queue, [1]).await;
    let report = tasks.stop().await;
    assert_eq!(report.done + report.left, 1); // stopped before it took the item, or after
}

pub async fn a_paused_worker_takes_nothing<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    let tasks = pool(&queue).run_async(|_, _| async { Ok::<(), ()>(()) });
    tasks.pause_all();
    eventually(async || tasks.status()[0].state == WorkerState::Paused).await;
    push(&queue, [1]).await;
    let tx = queue.begin(None);
    assert_eq!(tx.look().await, Some(1));
    drop(tx);
    tasks.resume_all();
    assert_eq!(tasks.finish(LONG).await.done, 1);
}

pub async fn one_of_two_workers_is_paused<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    let tasks = pool(&queue)
        .threads(2)
        .run_async(|_, _| async { Ok::<(), ()>(()) });
    tasks.pause(0);
    eventually(async || tasks.status()[0].state == WorkerState::Paused).await;
    push(&queue, [1, 2]).await;
    eventually(async || tasks.status()[1].done == 2).await;
    tasks.resume(0);
    eventually(async || tasks.status()[0].state != WorkerState::Paused).await;
    tasks.stop().await;
}

/// A pool whose runs end when they are let go on, and where it says that they have begun.
macro_rules! held_up {
    ($pool:expr, $begun:ident, $go_on:ident) => {{
        let (send, receive) = unbounded_channel();
        $begun = receive;
        $go_on = Arc::new(Semaphore::new(0));
        let go_on = Arc::clone(&$go_on);
        $pool.run_async(move |item, _tx| {
            let (send, go_on) = (send.clone(), Arc::clone(&go_on));
            async move {
                send.send(*item).unwrap();
                go_on.acquire().await.unwrap().forget();
                Ok::<(), ()>(())
            }
        })
    }};
}

pub async fn a_stop_ends_runs_and_leaves_what_is_ready<S: Subject>(subject: &S) {
    let queue = filled(subject, [1, 2, 3, 4]).await;
    let (mut begun, go_on);
    let tasks = held_up!(pool(&queue).threads(2), begun, go_on);
    let mut items = [begun.recv().await, begun.recv().await];
    items.sort_unstable();
    assert_eq!(items, [Some(1), Some(2)]);
    assert!(begun.try_recv().is_err(), "there are two workers");
    let (report, ()) = tokio::join!(biased; tasks.stop(), async { go_on.add_permits(9) });
    assert_eq!((report.done, report.left), (2, 2));
    assert!(report.stuck.is_empty());
    drains(&queue, &[3, 4]).await;
}

pub async fn a_finish_does_what_is_left<S: Subject>(subject: &S) {
    let queue = filled_with(subject, attempts(9), 0..30).await;
    let tasks = pool(&queue).threads(3).run_async(|item, tx| async move {
        match (*item, item.attempts()) {
            (0, 1) => Err("again".to_owned()),
            (29, _) => S::push_in(&tx, 30).await,
            _ => Ok(()),
        }
    });
    tasks.pause_all();
    let report = tasks.finish(LONG).await;
    assert_eq!((report.done, report.failed), (31, 1));
    assert_eq!((report.left, report.error), (0, None));
    assert!(report.stuck.is_empty());
    let can_be_closed = queue.close().await.unwrap();
    assert_eq!(queue.is_closed(), can_be_closed);
}

/// A task in a run is stuck at the deadline, one that waits for an item is not.
pub async fn a_finish_that_is_over_says_what_is_left<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let (mut begun, go_on);
    let tasks = held_up!(pool(&queue).threads(3), begun, go_on);
    assert_eq!(begun.recv().await, Some(1));
    let report = tasks.finish(std::time::Duration::ZERO).await;
    assert_eq!((report.done, report.stuck.len(), report.left), (0, 1, 1));
    go_on.close();
    drains(&queue, &[1]).await;
}

pub async fn a_finish_does_follow_ups<S: Subject>(subject: &S) {
    let queue = filled(subject, [4]).await;
    let tasks = pool(&queue).threads(2).run_async(|item, tx| async move {
        match *item {
            0 => Ok(()),
            number => S::push_in(&tx, number - 1).await,
        }
    });
    let report = tasks.finish(LONG).await;
    assert_eq!((report.done, report.left), (5, 0));
}

pub async fn a_shutdown_reports_runs_that_do_not_end<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let (mut begun, go_on);
    let tasks = held_up!(pool(&queue), begun, go_on);
    assert_eq!(begun.recv().await, Some(1));
    let report = tasks.shutdown(std::time::Duration::ZERO).await;
    assert_eq!((report.done, report.stuck.len()), (0, 1));
    assert_eq!(&*report.stuck[0].name, "worker-0");
    go_on.close();
    drains(&queue, &[1]).await;
}

pub async fn a_dropped_pool_gives_its_items_back<S: Subject>(subject: &S) {
    let queue = filled_with(subject, attempts(9), [1, 2]).await;
    let (send, mut begun) = unbounded_channel();
    let tasks = pool(&queue).threads(2).run_async(move |item, _tx| {
        send.send(*item).unwrap();
        async move {
            pending::<()>().await;
            drop(item);
            Ok::<(), ()>(())
        }
    });
    for _ in 0..2 {
        begun.recv().await.unwrap();
    }
    drop(tasks);
    drains_any(&queue, &[1, 2]).await;
}

pub async fn a_future_stops_the_pool<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let stop = Arc::new(Semaphore::new(0));
    let stopped = Arc::clone(&stop);
    let tasks = pool(&queue)
        .run_async(|_, _| async { Ok::<(), ()>(()) })
        .stop_by(async move { stopped.acquire().await.map(drop) });
    eventually(async || tasks.status()[0].done == 1).await;
    stop.add_permits(1);
    assert_eq!(tasks.join().await.done, 1);
}

pub async fn workers_have_names_and_states<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let (mut begun, go_on);
    let tasks = held_up!(pool(&queue).threads(2).name("mail"), begun, go_on);
    begun.recv().await.unwrap();
    let is_busy = |status: &requeue::WorkerStatus| matches!(status.state, WorkerState::Busy { .. });
    let status = tasks.status();
    let names: Vec<_> = status.iter().map(|worker| &*worker.name).collect();
    assert_eq!(names, ["mail-0", "mail-1"]);
    assert_eq!(status.iter().filter(|worker| is_busy(worker)).count(), 1);
    go_on.add_permits(1);
    eventually(async || tasks.status().iter().map(|worker| worker.done).sum::<u64>() == 1).await;
    assert!(!tasks.status().iter().any(is_busy));
    tasks.stop().await;
}

pub async fn a_run_that_keeps_its_item_has_failed<S: Subject>(subject: &S) {
    let queue = filled_with(subject, attempts(9), [1]).await;
    let (send, mut kept) = unbounded_channel();
    let (fail, mut failures) = unbounded_channel();
    let tasks = pool(&queue)
        .on_error(move |failure| fail.send(failure.error.to_string()).unwrap())
        .run_async(move |item, tx| {
            let send = send.clone();
            async move {
                if item.attempts() == 1 {
                    S::push_in(&tx, 2).await?;
                    let _ = send.send((item, tx));
                }
                Ok::<(), String>(())
            }
        });
    let (item, tx) = kept.recv().await.unwrap();
    assert!(failures.recv().await.unwrap().contains("kept"));
    assert_eq!(*item, 1);
    // Not at once: the count is approximate while the worker looks for another item.
    eventually(async || left(&queue).await == 1).await;
    drop((item, tx));
    let report = tasks.finish(LONG).await;
    assert_eq!((report.done, report.failed), (1, 1));
}

pub async fn any_executor_runs_workers<S: Subject>(subject: &S) {
    let queue = filled_with(subject, attempts(9), 0..6).await;
    let workers = Workers::builder(&queue).threads(2).backoff(AT_ONCE).run_on(
        |worker| drop(tokio::spawn(worker)),
        |item, tx| async move {
            match (*item, item.attempts()) {
                (1, 1) => Err("no".to_owned()),
                (2, 1) => tx.retry(item).map_err(|_| "refused".to_owned()),
                (3, _) => S::push_in(&tx, 6).await,
                _ => Ok(()),
            }
        },
    );
    let report = tokio::task::spawn_blocking(|| workers.finish(LONG))
        .await
        .unwrap();
    assert_eq!((report.done, report.failed, report.given_up), (7, 1, 1));
}

pub async fn two_pools_share_a_queue<S: Subject>(subject: &S) {
    let queue = filled(subject, 0..10).await;
    let pools = [(); 2].map(|()| pool(&queue).run_async(|_, _| async { Ok::<(), ()>(()) }));
    let mut done = 0;
    for tasks in pools {
        done += tasks.finish(LONG).await.done;
    }
    assert_eq!(done, 10);
}
