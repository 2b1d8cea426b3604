//! Statements whose answer does not come, since their connection hangs: they end in errors, and the connection is replaced.

use crate::base::{options, until, Db, Mode, LONG, MODES, TERM};
use crate::proxy::{Direction, Proxy, DIRECTIONS};
use requeue_postgres::{Error, PgQueue, PgTransaction, Postgres, Ticket};
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
    /// A short statement that is a commit.
    Change(Change),
    /// A writer of commits.
    Push,
    /// A connection of the pool.
    Pop(Mode),
    /// A statement of the user, with an item that is held, and the commit.
    Work(Mode),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Cancel,
    Reprioritize,
    Recover,
    Drain,
    Requeue,
}

const CALLS: [Call; 13] = [
    Call::Stats,
    Call::Change(Change::Cancel),
    Call::Change(Change::Reprioritize),
    Call::Change(Change::Recover),
    Call::Change(Change::Drain),
    Call::Change(Change::Requeue),
    Call::Push,
    Call::Pop(Mode::Locked),
    Call::Pop(Mode::Leased),
    Call::Pop(Mode::Prefetched),
    Call::Work(Mode::Locked),
    Call::Work(Mode::Leased),
    Call::Work(Mode::Prefetched),
];

/// A process whose queues are known to it: its next statement is that of the call.
struct Warm {
    process: Postgres,
    jobs: PgQueue<i64>,
    results: PgQueue<i64>,
    call: Call,
}

impl Warm {
    async fn new(proxy: &Proxy, db: &Db, call: Call) -> Self {
        let warm = Self::of(behind(proxy, db).await, call);
        Mode::Locked.jobs(db).push_batch(0..100).await.unwrap();
        until(|| async { warm.run().await.is_ok() }).await; // its connections wait for their next use
        warm
    }

    fn of(process: Postgres, call: Call) -> Self {
        let mode = match call {
            Call::Pop(mode) | Call::Work(mode) => mode,
            _ => Mode::Locked,
        };
        Self {
            jobs: mode.jobs(&process),
            results: process.queue("results"),
            process,
            call,
        }
    }

    async fn run(&self) -> Result<(), Error> {
        match self.call {
            Call::Stats => self.results.stats().await.map(drop),
            Call::Change(change) => self.change(change).await,
            Call::Push => self.results.push(0).await.map(drop),
            Call::Pop(_) => {
                let mut tx = self.process.begin().await?;
                tx.pop(&self.jobs).await?;
                tx.abort().await
            }
            Call::Work(_) => {
                let mut tx = self.process.begin().await?;
                tx.pop(&self.jobs).await?;
                tx.client().query_one("select 1", &[]).await?;
                tx.push(&self.results, 0).await?;
                tx.commit().await.map(drop)
            }
        }
    }

    async fn change(&self, change: Change) -> Result<(), Error> {
        let (queue, nothing) = (&self.results, Ticket(-1));
        match change {
            Change::Cancel => queue.cancel(nothing).await.map(drop),
            Change::Reprioritize => queue.reprioritize(nothing, 1).await.map(drop),
            Change::Recover => queue.recover("nobody", LIMIT).await.map(drop),
            Change::Drain => queue.dead_letters().drain(1).await.map(drop),
            Change::Requeue => queue.dead_letters().requeue_all().await.map(drop),
        }
    }

    /// Whether this is the error of the call, if its first statement hangs.
    fn is_missed(&self, error: &Error) -> bool {
        match self.call {
            Call::Push | Call::Change(_) => is_in_doubt(error),
            _ => matches!(error, Error::TimedOut(LIMIT)) && error.is_retryable(),
        }
    }
}

fn is_in_doubt(error: &Error) -> bool {
    matches!(error, Error::InDoubt(why) if why.contains("did not answer"))
}

/// The call is an error, and then it succeeds.
async fn misses(call: Call, direction: Direction) {
    let (db, proxy) = (Db::new().await, Proxy::start().await);
    let warm = Warm::new(&proxy, &db, call).await;
    proxy.hang(direction);
    let called = timeout(LONG, warm.run()).await;
    let error = called.expect("it ends").unwrap_err();
    assert!(warm.is_missed(&error), "{direction:?} {call:?}: {error}");
    until(|| async { warm.run().await.is_ok() }).await;
}

/// The caller gives up before each time, and the call succeeds all the same in the end.
async fn is_given_up(call: Call, direction: Direction) {
    let (db, proxy) = (Db::new().await, Proxy::start().await);
    let warm = Warm::new(&proxy, &db, call).await;
    proxy.hang(direction);
    until(|| async {
        timeout(LIMIT / 2, warm.run())
            .await
            .is_ok_and(|ended| ended.is_ok())
    })
    .await;
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
async fn a_caller_that_gives_up_early_gets_another_connection_in_the_end() {
    for direction in DIRECTIONS {
        let calls = CALLS.map(|call| is_given_up(call, direction));
        calls.into_iter().collect::<JoinSet<()>>().join_all().await;
    }
}

/// A transaction that pops and pushes, up to its commit.
async fn work(warm: &Warm) -> Result<PgTransaction<'static>, Error> {
    let mut tx = warm.process.begin().await?;
    tx.pop(&warm.jobs).await?;
    tx.push(&warm.results, 0).await?;
    if matches!(warm.call, Call::Work(_)) {
        tx.client().batch_execute("select 1").await?; // no longer written by a writer
    }
    Ok(tx)
}

#[tokio::test]
async fn a_commit_that_misses_its_time_is_in_doubt() {
    for call in [Call::Work, Call::Pop].map(|of| MODES.map(of)).concat() {
        let (db, proxy) = (Db::new().await, Proxy::start().await);
        let warm = Warm::new(&proxy, &db, call).await;
        let committed = || async {
            let tx = work(&warm).await.ok()?;
            tx.commit().await.ok()
        };
        until(|| async { committed().await.is_some() }).await; // the statement is prepared
        let tx = work(&warm).await.unwrap();
        proxy.hang(Direction::ToClient);
        let error = tx.commit().await.unwrap_err();
        assert!(is_in_doubt(&error), "{call:?}: {error}");
    }
}

#[tokio::test]
async fn a_push_whose_statement_was_not_sent_is_not_in_doubt() {
    let (db, proxy) = (Db::new().await, Proxy::start().await);
    let warm = Warm::new(&proxy, &db, Call::Pop(Mode::Locked)).await;
    warm.results.stats().await.unwrap(); // its connection of the pool has prepared no push
    proxy.hang(Direction::ToServer);
    let error = warm.results.push(0).await.unwrap_err();
    assert!(matches!(error, Error::TimedOut(LIMIT)), "{error}");
}

#[tokio::test]
async fn pushes_go_on_while_two_writers_hang_and_after_that() {
    let (db, proxy) = (Db::new().await, Proxy::start().await);
    let warm = Warm::new(&proxy, &db, Call::Push).await;
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut tx = warm.process.begin().await.unwrap();
        tx.client().batch_execute("select 1").await.unwrap();
        tx.push(&warm.results, 0).await.unwrap();
        open.push(tx);
    }
    for tx in open {
        tx.commit().await.unwrap(); // the statement is prepared on two connections
    }
    let results: PgQueue<i64> = db.queue("results");
    let ready = || async { results.stats().await.unwrap().ready };
    let before = ready().await;
    proxy.hang(Direction::ToClient);
    let mut hanging = JoinSet::new();
    for written in 1..=2 {
        let queue = warm.results.clone();
        hanging.spawn(async move { queue.push(1).await });
        until(|| async { ready().await >= before + written }).await;
    }
    warm.results.push(2).await.unwrap();
    for ended in hanging.join_all().await {
        assert!(is_in_doubt(&ended.unwrap_err()));
    }
    warm.results.push(3).await.unwrap();
}

/// Callers that wait for others to open a connection wait no longer than those.
#[tokio::test]
async fn the_times_of_callers_do_not_add_up() {
    let (db, proxy) = (Db::new().await, Proxy::start().await);
    let warm = Arc::new(Warm::new(&proxy, &db, Call::Stats).await);
    proxy.stop_answers();
    warm.run().await.unwrap_err(); // now there is no connection
    let mut calls = JoinSet::new();
    for _ in 0..2 * LONG.as_secs() / LIMIT.as_secs() {
        let warm = Arc::clone(&warm);
        calls.spawn(async move { warm.run().await.is_err() });
    }
    let ended = timeout(LONG, calls.join_all()).await.expect("in time");
    assert!(ended.into_iter().all(|failed| failed));
}

#[tokio::test]
async fn without_any_connection_calls_are_errors_until_there_is_one() {
    let (db, proxy) = (Db::new().await, Proxy::start().await);
    let process = behind(&proxy, &db).await;
    let warm = [Call::Stats, Call::Push].map(|call| Warm::of(process.clone(), call));
    for warm in &warm {
        until(|| async { warm.run().await.is_ok() }).await;
    }
    proxy.stop_answers(); // also those of connections that are opened now
    for warm in warm.iter().chain(&warm) {
        let called = timeout(LONG, warm.run()).await;
        let error = called.expect("it ends").unwrap_err();
        let unopened = matches!(error, Error::Pool(_)); // in time
        assert!(unopened || warm.is_missed(&error), "{error}");
    }
    proxy.resume();
    until(|| async { warm[1].run().await.is_ok() }).await;
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
            if matches!(error, Error::TimedOut(_)) || is_in_doubt(&error) {
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

/// The long term of another queue is no reason to wait.
#[tokio::test]
async fn leases_are_renewed_while_another_holder_is_made() {
    let (db, proxy) = (Db::new().await, Proxy::start().await);
    let url = proxy.url();
    let options = options(&url, &db.schema).statement_timeout(2 * LONG);
    let process = options.connect().await.unwrap();
    let short: PgQueue<i64> = process.builder("short").leased(3 * LIMIT).build();
    let long: PgQueue<i64> = process.builder("long").leased(TERM).build();
    for queue in [&short, &long] {
        queue.push(1).await.unwrap();
    }
    let (mut tx, mut other) = (
        process.begin().await.unwrap(),
        process.begin().await.unwrap(),
    );
    tx.pop(&short).await.unwrap().unwrap();
    proxy.hang(Direction::ToClient);
    let pop = tokio::spawn(async move { other.pop(&long).await.map(drop) });
    let alive = "select (extract(epoch from max(alive_until)) * 1000)::bigint from @.holders";
    for _ in 0..2 {
        let before = db.number(alive).await;
        until(|| async { db.number(alive).await > before }).await;
    }
    pop.abort();
}

#[tokio::test]
async fn a_statement_of_the_user_may_have_a_limit_of_its_own() {
    let db = Db::new().await;
    let options = || options(&db.url, &db.schema);
    let unnamed = options().transaction_pooling().connect().await.unwrap();
    for process in [db.other().await, unnamed] {
        let (mut tx, mut other) = (
            process.begin().await.unwrap(),
            process.begin().await.unwrap(),
        );
        let idle = session(&mut other).await;
        session(&mut tx).await;
        other.abort().await.unwrap();
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
        // Not those of others.
        let mut next = process.begin().await.unwrap();
        assert_eq!(session(&mut next).await, idle);
    }
}

/// The number of the session of a transaction.
async fn session(tx: &mut PgTransaction<'_>) -> i32 {
    let row = tx.client().query_one("select pg_backend_pid()", &[]).await;
    row.unwrap().get(0)
}
