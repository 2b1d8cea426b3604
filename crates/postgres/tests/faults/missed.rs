//! Statements whose answer does not come, since their connection hangs: they end in errors, and the connection is replaced.

use crate::base::{options, until, Db, Mode, LONG, MODES, TERM};
use crate::calls::{application, behind, is_in_doubt, succeed, Call, Warm, CALLS, LIMIT};
use crate::proxy::{Direction, Proxy, DIRECTIONS};
use requeue_postgres::{Error, PgQueue, PgTransaction};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The call is an error, and then it succeeds. On a busy machine its connection may have been replaced before, or not be prepared.
async fn misses(call: Call, direction: Direction) {
    let (db, proxy) = (Db::new().await, Proxy::start().await);
    let warm = Warm::new(&proxy, &db, call).await;
    let hangs = || async {
        proxy.hang(direction);
        let called = timeout(LONG, warm.run()).await;
        let error = called.expect("it ends").err();
        let is_busy = matches!(error, None | Some(Error::Pool(_) | Error::TimedOut(LIMIT)));
        let missed = error.iter().any(|error| warm.is_missed(error));
        assert!(missed || is_busy, "{direction:?} {call:?}: {error:?}");
        missed
    };
    until(hangs).await;
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
        let tx = succeed(|| work(&warm)).await;
        proxy.hang(Direction::ToClient);
        let error = tx.commit().await.unwrap_err();
        assert!(is_in_doubt(&error), "{call:?}: {error}");
    }
}

#[tokio::test]
async fn a_push_whose_statement_was_not_sent_is_not_in_doubt() {
    let (db, proxy) = (Db::new().await, Proxy::start().await);
    let warm = Warm::new(&proxy, &db, Call::Pop(Mode::Locked)).await;
    succeed(|| warm.results.stats()).await; // its connection of the pool has prepared no push
    proxy.hang(Direction::ToServer);
    let error = warm.results.push(0).await.unwrap_err();
    assert!(matches!(error, Error::TimedOut(LIMIT)), "{error}");
}

#[tokio::test]
async fn pushes_go_on_while_two_writers_hang_and_after_that() {
    let (db, proxy) = (Db::new().await, Proxy::start().await);
    let warm = Warm::new(&proxy, &db, Call::Push).await;
    let push = || async {
        let mut tx = warm.process.begin().await?;
        tx.client().batch_execute("select 1").await?;
        tx.push(&warm.results, 0).await?;
        Ok::<_, Error>(tx)
    };
    let both = || async {
        let (one, two) = (push().await?, push().await?);
        one.commit().await?;
        two.commit().await
    };
    succeed(both).await; // the statement is prepared on two connections
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
    succeed(|| warm.results.push(2)).await;
    for ended in hanging.join_all().await {
        assert!(is_in_doubt(&ended.unwrap_err()));
    }
    succeed(|| warm.results.push(3)).await;
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
            let _ = failed.send(failure.error.clone());
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
            let error = failure.unwrap();
            if error.contains("did not answer within") {
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
    // Without names the settings are not sent either.
    let checks = "options='-c client_connection_check_interval=1000'";
    let unnamed = options(&format!("{} {checks}", db.url), &db.schema).transaction_pooling();
    let unnamed = unnamed.connect().await.unwrap();
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
