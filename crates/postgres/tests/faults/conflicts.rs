//! Serialization failures and deadlocks.

use crate::base::{options, until, Db, LONG, MODES};
use requeue_postgres::{Error, PgQueue, Postgres};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use tokio::sync::Barrier;

const ACCOUNTS: &str = "create table @.accounts (id int primary key, balance bigint not null);
    insert into @.accounts values (0, 0), (1, 0)";

/// Pops a job and changes both accounts, one of them first.
async fn pay(
    db: &Db,
    jobs: &PgQueue<i64>,
    first: i32,
    met: Option<&Barrier>,
) -> Result<i64, Error> {
    let mut tx = db.begin().await?;
    let job = tx.pop(jobs).await?.expect("a job");
    let update = format!(
        "update {}.accounts set balance = balance + 1 where id = $1",
        db.schema
    );
    tx.client().execute(&update, &[&first]).await?;
    if let Some(met) = met {
        met.wait().await;
    }
    tx.client().execute(&update, &[&(1 - first)]).await?;
    tx.commit().await?;
    Ok(*job)
}

#[tokio::test]
async fn a_deadlock_undoes_one_transaction_which_may_be_retried() {
    for mode in MODES {
        let db = Db::new().await;
        db.execute(ACCOUNTS).await;
        let jobs = mode.jobs(&db);
        jobs.push_batch(0..2).await.unwrap();
        let met = Barrier::new(2);
        let (one, two) = tokio::join!(
            pay(&db, &jobs, 0, Some(&met)),
            pay(&db, &jobs, 1, Some(&met))
        );
        let (done, error) = match (one, two) {
            (Ok(done), Err(error)) | (Err(error), Ok(done)) => (done, error),
            both => panic!("{both:?}"),
        };
        assert!(error.is_retryable(), "{error}");
        until(|| async { jobs.stats().await.unwrap().held == 0 }).await;
        assert_eq!(
            pay(&db, &jobs, 0, None).await.unwrap(),
            1 - done,
            "{mode:?}"
        );
        assert_eq!(
            db.number("select sum(balance)::bigint from @.accounts")
                .await,
            4
        );
        assert!(db.drain().await.is_empty());
    }
}

#[tokio::test]
async fn workers_retry_a_deadlock() {
    for mode in MODES {
        let db = Arc::new(Db::new().await);
        db.execute(ACCOUNTS).await;
        let jobs = mode.jobs(&db);
        let results: PgQueue<i64> = db.queue("results");
        jobs.push_batch(0..2).await.unwrap();
        // The first two runs meet with one account each.
        let (met, first_runs) = (Arc::new(Barrier::new(2)), Arc::new(AtomicU64::new(0)));
        let (retryable, done) = (Arc::new(AtomicBool::new(false)), results.clone());
        let told = Arc::clone(&retryable);
        let update = format!(
            "update {}.accounts set balance = balance + 1 where id = $1",
            db.schema
        );
        let workers = jobs.workers().tasks(2).run_async(move |job, tx| {
            let (met, first_runs, told) = (met.clone(), first_runs.clone(), told.clone());
            let (update, done) = (update.clone(), done.clone());
            async move {
                let mut tx = tx.lock().await?;
                let first = i32::try_from(*job).unwrap_or(0);
                tx.client().execute(&update, &[&first]).await?;
                if first_runs.fetch_add(1, Ordering::SeqCst) < 2 {
                    met.wait().await;
                }
                let second = tx.client().execute(&update, &[&(1 - first)]).await;
                if let Err(error) = &second {
                    told.store(error.is_retryable(), Ordering::SeqCst);
                }
                second?;
                tx.push(&done, *job).await
            }
        });
        let mut found = Vec::new();
        for _ in 0..2 {
            let mut tx = db.begin().await.unwrap();
            found.push(*tx.pop_wait(&results, LONG).await.unwrap().unwrap());
            tx.commit().await.unwrap();
        }
        let report = workers.stop().await;
        found.sort_unstable();
        assert_eq!(
            (found, report.done, report.failed),
            (vec![0, 1], 2, 1),
            "{mode:?}"
        );
        assert!(retryable.load(Ordering::SeqCst));
        assert_eq!(
            db.number("select sum(balance)::bigint from @.accounts")
                .await,
            4
        );
    }
}

/// A process whose transactions are serializable.
async fn serializable(db: &Db) -> Postgres {
    let level = "options='-c default_transaction_isolation=serializable'";
    options(&format!("{} {level}", db.url), &db.schema)
        .connect()
        .await
        .unwrap()
}

#[tokio::test]
async fn serializable_sessions_take_each_item_once() {
    for mode in MODES {
        let db = Db::new().await;
        let serializable = serializable(&db).await;
        let results: PgQueue<i64> = serializable.queue("results");
        let jobs = mode.jobs(&serializable);
        jobs.push_batch(0..60).await.unwrap();
        let consumers = (0..4).map(|_| {
            let (jobs, db, results) = (jobs.clone(), serializable.clone(), results.clone());
            tokio::spawn(async move { while consume(&db, &jobs, &results).await {} })
        });
        for consumer in consumers.collect::<Vec<_>>() {
            consumer.await.unwrap();
        }
        until(|| async {
            while consume(&serializable, &jobs, &results).await {}
            jobs.stats().await.unwrap().held == 0
        })
        .await;
        let mut tx = db.begin().await.unwrap();
        let results: Vec<_> = tx
            .pop_batch(&db.queue::<i64>("results"), 100)
            .await
            .unwrap();
        let mut found: Vec<_> = results.iter().map(|item| **item).collect();
        found.sort_unstable();
        assert_eq!(found, (0..60).collect::<Vec<_>>(), "{mode:?}");
        assert!(db.drain().await.is_empty());
    }
}

/// Moves an item, and again after a conflict. Returns whether there was one.
async fn consume(db: &Postgres, jobs: &PgQueue<i64>, results: &PgQueue<i64>) -> bool {
    loop {
        let moved = async {
            let mut tx = db.begin().await?;
            let Some(job) = tx.pop(jobs).await? else {
                return Ok(false);
            };
            tx.client().batch_execute("select 1").await?;
            tx.push(results, *job).await?;
            tx.commit().await.map(|_| true)
        };
        match moved.await {
            Ok(moved) => return moved,
            Err(error) => {
                let error: Error = error;
                assert!(error.is_retryable(), "{error}");
            }
        }
    }
}
