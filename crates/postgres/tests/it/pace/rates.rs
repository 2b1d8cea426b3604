use super::start;
use crate::{client, until, Db, LONG};
use requeue::{Limiter, Pace, Queue};
use requeue_postgres::{Error, Postgres};
use std::time::{Duration, Instant};
use tokio::time::timeout;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);
/// How late a slot may be used.
const LATE: i64 = 100_000_000;

fn int(count: usize) -> i64 {
    i64::try_from(count).unwrap()
}

/// Asserts that no window of time has more starts than a rate permits; each start happened between two times.
fn assert_rate(starts: &[(i64, i64)], interval: i64, tolerance: i64) {
    for (begin, _) in starts {
        for (_, end) in starts.iter().filter(|(_, end)| end > begin) {
            let within = |(earliest, latest): &&(i64, i64)| earliest >= begin && latest <= end;
            let count = starts.iter().filter(within).count();
            let most = 1 + (end - begin + tolerance) / interval;
            assert!(int(count) <= most, "{count} starts in {} ns", end - begin);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_processes_share_one_rate() {
    let db = Db::new().await;
    // An interval of a millisecond, and a burst of 6 of which the lateness takes 3.
    db.rate("r", 1000, SECOND).burst(6).set().await.unwrap();
    let sql =
        "select server_time, slots, first, spacing from @.take_slots('r', $1, 3000000, 500000000)";
    let sql = sql.replace('@', &db.schema);
    let process = |wanted: i64| {
        let sql = sql.clone();
        async move {
            let (client, mut times) = (client().await, Vec::new());
            while times.len() < 400 {
                let row = client.query_one(&sql, &[&wanted]).await.unwrap();
                let [time, slots, first, spacing] = [0, 1, 2, 3].map(|n| row.get::<_, i64>(n));
                assert!(slots <= wanted && first + (slots - 1) * spacing <= time + 500_000_000);
                times.extend((0..slots).map(|n| time.max(first + n * spacing)));
            }
            times
        }
    };
    let granted = [1, 2, 7, 20].map(|wanted| tokio::spawn(process(wanted)));
    let mut times = Vec::new();
    for process in granted {
        times.extend(process.await.unwrap());
    }
    times.sort_unstable();
    for (index, begin) in times.iter().enumerate() {
        let last = times.partition_point(|time| *time <= begin + 20_000_000);
        let within = &times[index..last];
        let length = within[within.len() - 1] - begin;
        assert!(int(within.len()) <= 3 + length / 1_000_000, "{within:?}");
    }
}

/// Starts items of a queue in memory, and returns the server's time before and after each start.
async fn consume(db: &Db, pace: Pace, items: usize) -> Vec<(i64, i64)> {
    let queue = Queue::builder().pace(pace).build();
    queue.handle().push_batch(0..items).unwrap();
    let (mut handle, mut starts) = (queue.handle(), Vec::new());
    for _ in 0..items {
        let before = db.nanos().await;
        timeout(LONG, handle.pop_async()).await.unwrap().unwrap();
        starts.push((before, db.nanos().await));
    }
    starts
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_in_memory_of_two_processes_share_a_rate() {
    let db = Db::new().await;
    let other = db.other().await;
    let rate = |db: &Postgres| db.rate("mail", 200, SECOND).pace();
    let (one, two) = (rate(&db).await.unwrap(), rate(&other).await.unwrap());
    let (one, two) = tokio::join!(consume(&db, one, 60), consume(&db, two, 60));
    let starts = [one, two].concat();
    assert_eq!(starts.len(), 120);
    assert_rate(&starts, 5_000_000, LATE);
}

#[tokio::test]
async fn a_burst_is_started_at_once() {
    let db = Db::new().await;
    let pace = db.rate("r", 1, HOUR).burst(5).pace().await.unwrap();
    for _ in 0..4 {
        let _ = start(&pace).await;
    }
}

#[tokio::test]
async fn unused_slots_return_to_other_processes() {
    let db = Db::new().await;
    let other = db.other().await;
    let ahead = "select (mark - @.nanos()) / 1000000000 from @.rates";
    let one = db.rate("r", 1, HOUR).pace().await.unwrap();
    let two = other.rate("r", 1, HOUR).pace().await.unwrap();
    let slot = start(&one).await;
    assert!(two.start(Instant::now()).is_err());
    one.cancel(slot, Instant::now());
    let slot = start(&two).await; // it has expired in the first process
    two.cancel(slot, Instant::now());
    drop(two);
    let slot = start(&one).await;
    one.give_back(slot, Instant::now());
    assert!(db.number(ahead).await > 1800);
    drop(one);
    assert!(db.number(ahead).await > 1800);
}

#[tokio::test]
async fn the_slots_of_a_dropped_pace_return() {
    let db = Db::new().await;
    let pace = db.rate("r", 1, HOUR).lateness(HOUR).pace().await.unwrap();
    let slot = start(&pace).await;
    pace.cancel(slot, Instant::now());
    drop(pace);
    until(|| async { db.number("select mark - @.nanos() from @.rates").await <= 0 }).await;
}

#[tokio::test]
async fn slots_granted_before_a_change_of_the_rate_are_not_refunded() {
    let db = Db::new().await;
    let pace = db.rate("r", 1, HOUR).lateness(HOUR).pace().await.unwrap();
    let slot = start(&pace).await;
    db.rate("r", 2, HOUR).set().await.unwrap();
    pace.cancel(slot, Instant::now());
    let ended = "select mark from @.rates";
    let before = db.number(ended).await;
    let sql = "select @.return_slots('r', array[@.nanos() + 60000000000], array[1], array[0])";
    db.execute(sql).await;
    assert_eq!(db.number(ended).await, before);
    let sql = "select @.return_slots('r', array[mark], array[1], array[@.nanos()]) from @.rates";
    db.execute(sql).await;
    let now = db.nanos().await;
    assert!(db.number(ended).await <= now);
}

#[tokio::test]
async fn a_rate_is_changed_by_another_process() {
    let db = Db::new().await;
    let pace = db.rate("r", 1, HOUR).pace().await.unwrap();
    let queue = Queue::builder().pace(pace).build();
    queue.handle().push_batch(0..5).unwrap();
    let mut handle = queue.handle();
    assert_eq!(timeout(LONG, handle.pop_async()).await.unwrap(), Ok(0));
    let next = tokio::spawn(async move {
        for item in 1..5 {
            assert_eq!(timeout(LONG, handle.pop_async()).await.unwrap(), Ok(item));
        }
    });
    db.other()
        .await
        .rate("r", 1000, SECOND)
        .set()
        .await
        .unwrap();
    next.await.unwrap();
}

#[tokio::test]
async fn the_cost_of_outstanding_slots_changes_with_the_rate() {
    let db = Db::new().await;
    let _pace = db.rate("r", 1, HOUR).pace().await.unwrap();
    let ahead = "select (mark - @.nanos()) / 1000000000 from @.rates";
    db.execute("update @.rates set mark = @.nanos() + 3000000000000")
        .await; // 3,000 s
    db.rate("r", 1, HOUR / 10).set().await.unwrap();
    let left = db.number(ahead).await;
    assert!((1..=300).contains(&left), "{left}");
    db.rate("r", 1, HOUR).set().await.unwrap();
    let left = db.number(ahead).await;
    assert!((301..=3000).contains(&left), "{left}");
}

#[tokio::test]
async fn a_rate_that_was_set_holds_until_another_one_is_declared() {
    let db = Db::new().await;
    let spacing = "select spacing from @.rates";
    let declare = |n| db.rate("r", n, SECOND).pace();
    declare(10).await.unwrap();
    assert_eq!(db.number(spacing).await, 100_000_000);
    db.rate("r", 50, SECOND).set().await.unwrap();
    declare(10).await.unwrap();
    assert_eq!(db.number(spacing).await, 20_000_000);
    declare(20).await.unwrap();
    assert_eq!(db.number(spacing).await, 50_000_000);
    db.rate("new", 50, SECOND).set().await.unwrap();
    db.rate("new", 10, SECOND).pace().await.unwrap();
    let spacing = "select spacing from @.rates where name = 'new'";
    assert_eq!(db.number(spacing).await, 20_000_000);
}

#[tokio::test]
async fn nothing_starts_while_the_server_does_not_answer() {
    let db = Db::new().await;
    let pace = db.rate("r", 1000, SECOND).pace().await.unwrap();
    let _ = start(&pace).await;
    let mut another = client().await;
    let locked = another.transaction().await.unwrap();
    let lock = format!("select from {}.rates for update", db.schema);
    locked.query(&lock, &[]).await.unwrap();
    // What this process has is used up, or expires.
    let local = async {
        let mut count = 0;
        let waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%take_slots%'
            and query like '%@%'";
        while db.number(waiting).await == 0 || super::starts(&pace).is_some() {
            count += u32::from(super::starts(&pace).is_some());
        }
        count
    };
    let count = timeout(LONG, local).await.unwrap();
    assert!(count <= 1000, "{count} starts");
    assert!(super::starts(&pace).is_none());
    locked.commit().await.unwrap();
    let _ = start(&pace).await;
}

#[tokio::test]
async fn a_lost_connection_is_replaced() {
    let db = Db::new().await;
    let pace = db.rate("r", 1000, SECOND).pace().await.unwrap();
    let _ = start(&pace).await;
    let kill = "select pg_terminate_backend(pid) from pg_stat_activity where query like '%@%' and pid <> pg_backend_pid()";
    db.execute(kill).await;
    for _ in 0..3 {
        let _ = start(&pace).await;
    }
}

#[tokio::test]
async fn a_clock_that_goes_back_delays_no_slot_for_long() {
    let db = Db::new().await;
    let pace = db.rate("r", 1000, SECOND).pace().await.unwrap();
    db.execute("update @.rates set mark = @.nanos() + 86400000000000")
        .await;
    let _ = start(&pace).await;
}

#[tokio::test]
async fn names_are_checked_and_quoted() {
    let db = Db::new().await;
    for name in ["", "a\0b", &"x".repeat(1001)] {
        let made = db.rate(name, 1, SECOND).pace().await;
        assert!(matches!(made, Err(Error::Name(_))));
        assert!(matches!(
            db.concurrency(name, 1).set().await,
            Err(Error::Name(_))
        ));
    }
    let pace = db
        .rate("'; drop table rates; --", 10, SECOND)
        .pace()
        .await
        .unwrap();
    let _ = start(&pace).await;
}

#[tokio::test]
async fn extreme_rates_are_clamped() {
    let db = Db::new().await;
    let rates = [
        db.rate("never", 1, Duration::MAX).burst(u32::MAX),
        db.rate("fast", u32::MAX, Duration::ZERO).burst(u32::MAX),
    ];
    for rate in rates {
        let pace = rate.pace().await.unwrap();
        let _ = start(&pace).await;
    }
}
