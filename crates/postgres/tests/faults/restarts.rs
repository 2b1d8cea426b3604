//! A server that is restarted, and one that is stopped at once, under load.

use crate::base::{Db, Mode, LONG, MODES};
use crate::server::Server;
use requeue_postgres::{Error, PgQueue};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The items of one producer are this far from those of the next one.
const RANGE: i64 = 1_000_000;
const PRODUCERS: i64 = 2;
const CONSUMERS: usize = 3;
/// Results between two stops of the server.
const LOAD: usize = 40;

/// What the tasks know of their commits.
#[derive(Default)]
struct Ledger {
    pushed: BTreeSet<i64>,
    in_doubt: BTreeSet<i64>,
}

/// Pushes items until it is stopped.
async fn produce(db: Arc<Db>, mode: Mode, first: i64, stop: watch::Receiver<bool>) -> Ledger {
    let jobs = mode.jobs(&db);
    let mut ledger = Ledger::default();
    let mut next = first;
    while !*stop.borrow() {
        match jobs.push(next).await {
            Ok(_) => ledger.pushed.insert(next),
            Err(Error::InDoubt(_)) => ledger.in_doubt.insert(next),
            Err(_) => continue,
        };
        next += 1;
    }
    ledger
}

/// Moves items to the results, until it is dropped.
async fn consume(db: Arc<Db>, mode: Mode) {
    let (jobs, results): (_, PgQueue<i64>) = (mode.jobs(&db), db.queue("results"));
    loop {
        let moved = async {
            let mut tx = db.begin().await?;
            if let Some(job) = tx.pop_wait(&jobs, Duration::from_secs(1)).await? {
                tx.push(&results, *job).await?;
                tx.commit().await?;
            }
            Ok::<_, Error>(())
        };
        let _ = moved.await; // undone, or in doubt: the items tell
    }
}

/// Takes results until there are `count`. Its own commits are in doubt too, so results are looked at first, and then removed.
async fn results(db: &Db, count: usize) -> Vec<i64> {
    let results: PgQueue<i64> = db.queue("results");
    loop {
        let looked = async {
            let mut tx = db.begin().await?;
            let items = tx.pop_batch(&results, usize::MAX >> 1).await?;
            tx.abort().await?;
            Ok::<_, Error>(items.iter().map(|item| **item).collect::<Vec<_>>())
        };
        match looked.await {
            Ok(found) if found.len() >= count => return found,
            _ => tokio::task::yield_now().await,
        }
    }
}

async fn survives(stop: &[&str]) {
    for mode in MODES {
        let server = Server::start("on");
        let db = Arc::new(Db::at(&server.url()).await);
        let stopped = watch::Sender::new(false);
        let mut producers = JoinSet::new();
        for producer in 0..PRODUCERS {
            producers.spawn(produce(
                db.clone(),
                mode,
                producer * RANGE,
                stopped.subscribe(),
            ));
        }
        let mut consumers = JoinSet::new();
        for _ in 0..CONSUMERS {
            consumers.spawn(consume(db.clone(), mode));
        }
        for round in 1..=3 {
            results(&db, round * LOAD).await;
            tokio::task::block_in_place(|| {
                server.control(stop, "");
                server.control(&["start"], "-c fsync=on");
            });
        }
        stopped.send_replace(true);
        let mut ledger = Ledger::default();
        while let Some(mut own) = producers.join_next().await.transpose().unwrap() {
            ledger.pushed.append(&mut own.pushed);
            ledger.in_doubt.append(&mut own.in_doubt);
        }
        let found = tokio::time::timeout(LONG, settled(&db, mode))
            .await
            .expect("all items");
        consumers.shutdown().await;
        check(&ledger, &found, mode);
    }
}

/// The results, when nothing else is left.
async fn settled(db: &Db, mode: Mode) -> Vec<i64> {
    loop {
        if let Ok(stats) = mode.jobs(db).stats().await {
            if stats.ready + stats.held + stats.delayed == 0 {
                return results(db, 0).await;
            }
        }
    }
}

fn check(ledger: &Ledger, found: &[i64], mode: Mode) {
    let once: BTreeSet<i64> = found.iter().copied().collect();
    assert_eq!(once.len(), found.len(), "{mode:?}: done twice");
    let lost: Vec<_> = ledger.pushed.difference(&once).collect();
    assert!(lost.is_empty(), "{mode:?}: lost {lost:?}");
    let known = |item: &&i64| !ledger.pushed.contains(item) && !ledger.in_doubt.contains(item);
    let unknown: Vec<_> = once.iter().filter(known).collect();
    assert!(
        unknown.is_empty(),
        "{mode:?}: an undone push took effect: {unknown:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_under_load_loses_nothing() {
    survives(&["stop", "-m", "fast"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_immediate_stop_under_load_loses_nothing() {
    survives(&["stop", "-m", "immediate"]).await;
}
