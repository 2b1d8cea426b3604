//! Statements whose answer does not come, since their connection hangs: they end in errors, and the connection is replaced.

use crate::base::{options, until, Db, Mode, LONG, MODES};
use crate::proxy::{Direction, Proxy, DIRECTIONS};
use requeue_postgres::{Error, PgQueue, Postgres};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The time of a statement here. One that does not hang may miss it too, on a busy machine: so each call is repeated.
const LIMIT: Duration = Duration::from_secs(2);

/// A process whose connections go through a proxy.
async fn behind(proxy: &Proxy, db: &Db) -> Postgres {
    let url = format!("{} application_name={}", proxy.url(), application(db));
    let options = options(&url, &db.schema).statement_timeout(LIMIT);
    options.connect().await.unwrap()
}

fn application(db: &Db) -> String {
    format!("{}_misses", db.schema)
}

/// A call of a process; each uses connections in another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    /// The connection for short statements.
    Stats,
    /// A writer of commits.
    Push,
    /// A connection of the pool.
    Pop(Mode),
    /// A statement of the user, with an item that is held, and the commit.
    Work(Mode),
}

const CALLS: [Call; 8] = [
    Call::Stats,
    Call::Push,
    Call::Pop(Mode::Locked),
    Call::Pop(Mode::Leased),
    Call::Pop(Mode::Prefetched),
    Call::Work(Mode::Locked),
    Call::Work(Mode::Leased),
    Call::Work(Mode::Prefetched),
];

impl Call {
    async fn run(self, db: &Postgres) -> Result<(), Error> {
        let results: PgQueue<i64> = db.queue("results");
        match self {
            Self::Stats => results.stats().await.map(drop),
            Self::Push => results.push(0).await.map(drop),
            Self::Pop(mode) => {
                let mut tx = db.begin().await?;
                tx.pop(&mode.jobs(db)).await?;
                tx.abort().await
            }
            Self::Work(mode) => {
                let mut tx = db.begin().await?;
                tx.pop(&mode.jobs(db)).await?;
                tx.client().query_one("select 1", &[]).await?;
                tx.push(&results, 0).await?;
                tx.commit().await.map(drop)
            }
        }
    }
}

fn is_of_a_missed_statement(error: &Error) -> bool {
    match error {
        Error::TimedOut(_) => error.is_retryable(),
        Error::InDoubt(why) => why.contains("did not answer"),
        _ => false,
    }
}

/// The call is an error, and then it succeeds.
async fn misses(call: Call, direction: Direction) {
    let (db, proxy) = (Db::new().await, Proxy::start().await);
    let process = behind(&proxy, &db).await;
    Mode::Locked.jobs(&db).push_batch(0..100).await.unwrap();
    until(|| async { call.run(&process).await.is_ok() }).await; // its connections wait for their next use
    proxy.hang(direction);
    let called = timeout(LONG, call.run(&process)).await;
    let error = called.expect("it ends").unwrap_err();
    let is_missed = is_of_a_missed_statement(&error);
    assert!(is_missed, "{direction:?} {call:?}: {error}");
    until(|| async { call.run(&process).await.is_ok() }).await;
}

/// In each direction, for each kind of connection.
#[tokio::test]
async fn a_call_on_a_connection_that_hangs_is_an_error_and_the_next_one_has_another_connection() {
    for direction in DIRECTIONS {
        let calls = CALLS.map(|call| misses(call, direction));
        calls.into_iter().collect::<JoinSet<()>>().join_all().await;
    }
}

#[tokio::test]
async fn without_any_connection_calls_are_errors_until_there_is_one() {
    let (db, proxy) = (Db::new().await, Proxy::start().await);
    let process = behind(&proxy, &db).await;
    until(|| async { Call::Stats.run(&process).await.is_ok() }).await;
    proxy.stop_answers(); // also those of connections that are opened now
    for call in [Call::Stats, Call::Stats, Call::Push] {
        let called = timeout(LONG, call.run(&process)).await;
        let error = called.expect("it ends").unwrap_err();
        let unopened = matches!(error, Error::Pool(_)); // in time
        assert!(unopened || is_of_a_missed_statement(&error), "{error}");
    }
    proxy.resume();
    until(|| async { Call::Push.run(&process).await.is_ok() }).await;
}

#[tokio::test]
async fn workers_report_what_they_missed_and_go_on() {
    for mode in MODES {
        let (db, proxy) = (Db::new().await, Proxy::start().await);
        let process = behind(&proxy, &db).await;
        let jobs = mode.jobs(&process);
        let (done, mut ran) = mpsc::unbounded_channel();
        let (failed, mut failures) = mpsc::unbounded_channel();
        let workers = jobs.workers().tasks(2).on_error(move |failure| {
            let _ = failed.send(failure.database.clone());
        });
        let workers = workers.run_async(move |job, _| {
            let _ = done.send(*job);
            async { Ok::<_, Error>(()) }
        });
        db.uncounted().push(1).await.unwrap();
        assert_eq!(timeout(LONG, ran.recv()).await.unwrap(), Some(1));
        proxy.hang(Direction::ToClient);
        loop {
            let failure = timeout(LONG, failures.recv()).await.expect("a failure");
            let error = failure.unwrap().expect("of the database");
            if is_of_a_missed_statement(&error) {
                break;
            }
        }
        db.uncounted().push(2).await.unwrap();
        while timeout(LONG, ran.recv()).await.expect("a job") != Some(2) {}
        workers.shutdown(LIMIT).await;
    }
}

#[tokio::test]
async fn leases_are_renewed_on_another_connection() {
    for direction in DIRECTIONS {
        let (db, proxy) = (Db::new().await, Proxy::start().await);
        let process = behind(&proxy, &db).await;
        let jobs: PgQueue<i64> = process.builder("jobs").leased(3 * LIMIT).build();
        until(|| async { jobs.push(1).await.is_ok() }).await;
        let mut tx = process.begin().await.unwrap();
        tx.pop(&jobs).await.unwrap().unwrap();
        let alive = "select (extract(epoch from max(alive_until)) * 1000)::bigint from @.holders";
        for _ in 0..2 {
            proxy.hang(direction);
            let before = db.number(alive).await;
            until(|| async { db.number(alive).await > before + 3000 }).await;
        }
    }
}

#[tokio::test]
async fn a_listener_that_hangs_listens_again() {
    for direction in DIRECTIONS {
        let (db, proxy) = (Db::new().await, Proxy::start().await);
        let process = Arc::new(behind(&proxy, &db).await);
        let waiting = Arc::clone(&process);
        let waits = tokio::spawn(async move {
            let jobs: PgQueue<i64> = waiting.queue("jobs");
            loop {
                let mut tx = waiting.begin().await?;
                if let Ok(Some(item)) = tx.pop_wait(&jobs, LONG).await {
                    return Ok::<i64, Error>(*item);
                }
            }
        });
        // The last statement of a session that has just begun to listen.
        let listens = format!(
            "select count(*) from pg_stat_activity where application_name = '{}' and query like 'listen%'",
            application(&db)
        );
        until(|| async { db.number(&listens).await == 1 }).await;
        until(|| async { db.number(&listens).await == 0 }).await; // it was asked whether it is there
        proxy.hang(direction);
        until(|| async { db.number(&listens).await == 1 }).await;
        db.uncounted().push(7).await.unwrap();
        assert_eq!(timeout(LONG, waits).await.unwrap().unwrap().unwrap(), 7);
    }
}

#[tokio::test]
async fn a_statement_of_the_user_may_have_a_time_of_its_own() {
    let db = Db::new().await;
    let mut tx = db.begin().await.unwrap();
    let short = Duration::from_millis(10);
    let asleep = tx
        .client()
        .timeout(short)
        .batch_execute("select pg_sleep(60)");
    let error = asleep.await.unwrap_err();
    assert!(
        matches!(error, Error::TimedOut(limit) if limit == short),
        "{error}"
    );
    let error = tx.commit().await.unwrap_err(); // nothing was sent
    assert!(matches!(error, Error::TimedOut(_)), "{error}");
    // The session is closed, and its statement ends.
    let sleeps = "select count(*) from pg_stat_activity where query = 'select pg_sleep(60)'";
    until(|| async { db.number(sleeps).await == 0 }).await;
}
