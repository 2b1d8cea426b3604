//! Timeouts of statements.

use crate::base::{client, options, until, Db, LONG, MODES};
use requeue_postgres::{Error, PgQueue, Postgres};

const QUERY_CANCELED: &str = "57014";

/// A process whose statements have this time.
async fn timed(db: &Db, settings: &str) -> Postgres {
    let url = format!("{} options='{settings}'", db.url);
    options(&url, &db.schema).connect().await.unwrap()
}

#[tokio::test]
async fn a_canceled_statement_of_the_user_undoes_the_transaction() {
    for mode in MODES {
        let db = Db::new().await;
        let timed = timed(&db, "-c statement_timeout=1s").await;
        let (jobs, results): (_, PgQueue<i64>) = (mode.jobs(&timed), timed.queue("results"));
        jobs.push_batch(0..2).await.unwrap();
        let mut tx = timed.begin().await.unwrap();
        let job = tx.pop(&jobs).await.unwrap().unwrap();
        tx.push(&results, *job).await.unwrap();
        let error = tx
            .client()
            .batch_execute("select pg_sleep(60)")
            .await
            .unwrap_err();
        assert_eq!(error.code().unwrap().code(), QUERY_CANCELED);
        tx.commit().await.unwrap_err();
        let is_back = || async {
            jobs.release_prefetched().await.unwrap();
            jobs.stats().await.unwrap().held == 0
        };
        until(is_back).await;
        assert_eq!(results.stats().await.unwrap().ready, 0);
        assert_eq!(db.drain().await, [0, 1], "{mode:?}");
    }
}

#[tokio::test]
async fn a_job_that_is_canceled_each_time_becomes_a_dead_letter_with_the_error() {
    for mode in MODES {
        let db = Db::new().await;
        let timed = timed(&db, "-c statement_timeout=300ms").await;
        let (jobs, results): (_, PgQueue<i64>) = (mode.limited(&timed, 2), timed.queue("results"));
        jobs.push_batch(0..2).await.unwrap();
        let done = results.clone();
        let workers = jobs.workers().tasks(1).run_async(move |job, tx| {
            let done = done.clone();
            async move {
                let mut tx = tx.lock().await?;
                if *job == 0 {
                    tx.client().batch_execute("select pg_sleep(60)").await?;
                }
                tx.push(&done, *job).await
            }
        });
        let mut tx = db.begin().await.unwrap();
        let results: PgQueue<i64> = db.queue("results");
        assert_eq!(*tx.pop_wait(&results, LONG).await.unwrap().unwrap(), 1);
        until(|| async { jobs.stats().await.unwrap().dead == 1 }).await;
        workers.stop().await;
        let letter = jobs.dead_letters().list(1).await.unwrap().remove(0);
        assert_eq!((letter.item.unwrap(), letter.attempts), (0, 2), "{mode:?}");
        assert!(letter.error.unwrap().contains("statement timeout"));
    }
}

#[tokio::test]
async fn a_canceled_statement_of_the_queue_takes_and_pushes_nothing() {
    for mode in MODES {
        let db = Db::new().await;
        mode.jobs(&db).push(0).await.unwrap();
        let timed = timed(&db, "-c lock_timeout=200ms").await;
        let jobs = mode.jobs(&timed);
        assert_eq!(jobs.stats().await.unwrap().ready, 1);
        let client = client(&db.url).await;
        let lock = format!("begin; lock table {}.ready", db.schema);
        client.batch_execute(&lock).await.unwrap();
        let mut tx = timed.begin().await.unwrap();
        for error in [
            tx.pop(&jobs).await.unwrap_err(),
            jobs.push(1).await.unwrap_err(),
        ] {
            assert!(matches!(error, Error::Database(_)), "{error}");
            assert!(error.to_string().contains("lock timeout"), "{error}");
        }
        tx.abort().await.unwrap();
        client.batch_execute("commit").await.unwrap();
        let mut tx = timed.begin().await.unwrap();
        assert_eq!(*tx.pop(&jobs).await.unwrap().unwrap(), 0);
        tx.commit().await.unwrap();
        assert!(db.drain().await.is_empty(), "{mode:?}");
    }
}
