//! Commits that wait at the same time, which one statement writes.

use crate::{client, options, until, Db, LONG};
use requeue_postgres::{Error, PgItem, PgQueue, Ticket};
use tokio::task::JoinHandle;
use tokio_postgres::Client;

/// How many commits are written at a time.
const WRITERS: usize = 2;

/// A lock that commits wait for, and the commits that were written before it.
struct Blocked {
    client: Client,
    first: Vec<JoinHandle<Result<Ticket, Error>>>,
}

impl Blocked {
    /// Has all writers wait for a lock, each with a push.
    async fn new(db: &Db, queue: &PgQueue<u32>) -> Self {
        queue.stats().await.unwrap(); // there is a queue
        let client = client().await;
        let lock = format!("begin; lock table {}.ready in exclusive mode", db.schema);
        client.batch_execute(&lock).await.unwrap();
        let mut first = Vec::new();
        for number in 1..=WRITERS {
            let queue = queue.clone();
            first.push(tokio::spawn(async move { queue.push(1000).await }));
            let waiting = "select count(*) from pg_locks join pg_stat_activity using (pid)
                where not granted and relation = '@.ready'::regclass and query like '%nextval%'";
            let number = i64::try_from(number).unwrap();
            until(|| async { db.number(waiting).await == number }).await;
        }
        Self { client, first }
    }

    async fn unlock(self) {
        self.client.batch_execute("commit").await.unwrap();
        for push in self.first {
            push.await.unwrap().unwrap();
        }
    }
}

/// The number of database transactions that pushed the items in `range`.
async fn transactions(db: &Db) -> i64 {
    db.number("select count(distinct xmin::text) from @.ready where json::text::int < 1000")
        .await
}

#[tokio::test]
async fn commits_that_wait_are_one_transaction_of_the_database_with_their_own_tickets() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.queue("q");
    let blocked = Blocked::new(&db, &queue).await;
    let (one, three, two, ()) = tokio::join!(
        biased;
        queue.push(1),
        queue.push_batch([2, 3, 4]),
        queue.push_batch([5, 6]),
        blocked.unlock()
    );
    assert_eq!(transactions(&db).await, 1);
    let tickets = [vec![one.unwrap()], three.unwrap(), two.unwrap()].concat();
    let mut tx = db.begin().await.unwrap();
    let items = tx.pop_batch(&queue, 100).await.unwrap();
    let items = items.iter().filter(|item| ***item < 1000);
    let found: Vec<_> = items.map(|item| (**item, item.ticket())).collect();
    assert_eq!(found, (1..).zip(tickets).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_commit_that_is_refused_fails_alone() {
    let db = Db::new().await;
    let jobs: PgQueue<u32> = db.builder("jobs").leased(LONG).build();
    let results: PgQueue<u32> = db.queue("results");
    let tickets = jobs.push_batch([2000, 2001]).await.unwrap();
    let (mut lost, mut kept) = (db.begin().await.unwrap(), db.begin().await.unwrap());
    for tx in [&mut lost, &mut kept] {
        let job = tx.pop(&jobs).await.unwrap().map(PgItem::into_inner);
        tx.push(&results, job.unwrap() - 1999).await.unwrap();
    }
    let expire = format!("delete from @.leased where id = {}", tickets[0]);
    db.execute(&expire).await;
    let blocked = Blocked::new(&db, &results).await;
    let (lost, kept, push, ()) = tokio::join!(
        biased;
        lost.commit(),
        kept.commit(),
        results.push(3),
        blocked.unlock()
    );
    assert!(matches!(lost, Err(Error::Expired)), "{lost:?}");
    assert_eq!((kept.unwrap().len(), push.is_ok()), (1, true));
    let mut tx = db.begin().await.unwrap();
    let found = tx.pop_batch(&results, 100).await.unwrap();
    let mut found: Vec<_> = found.into_iter().map(PgItem::into_inner).collect();
    found.retain(|number| *number < 1000);
    assert_eq!(found, [2, 3]);
    assert_eq!(jobs.stats().await.unwrap().held, 0);
}

#[tokio::test]
async fn a_commit_whose_future_is_dropped_while_it_waits_is_not_written() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.queue("q");
    let blocked = Blocked::new(&db, &queue).await;
    tokio::select! {
        biased;
        _ = queue.push(1) => panic!("the table is locked"),
        () = std::future::ready(()) => {}
    }
    let (second, ()) = tokio::join!(biased; queue.push(2), blocked.unlock());
    second.unwrap();
    let mut tx = db.begin().await.unwrap();
    let found = tx.pop_batch(&queue, 100).await.unwrap();
    let mut found: Vec<_> = found.iter().map(|item| **item).collect();
    found.sort_unstable();
    assert_eq!(found, [2, 1000, 1000]);
}

/// A dropped call leaves no open transaction on a connection that others use.
#[tokio::test]
async fn a_commit_after_a_dropped_begin_is_a_commit() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.queue("q");
    queue.push(0).await.unwrap();
    let small = options(&db.schema).max_connections(2).connect(); // one is for short statements
    let small = small.await.unwrap();
    let own: PgQueue<u32> = small.queue("q");
    own.push(1).await.unwrap();
    for _ in 0..4 {
        let mut tx = small.begin().await.unwrap();
        tokio::select! {
            biased;
            _ = tx.client().batch_execute("select 1") => panic!("the server has answered at once"),
            () = std::future::ready(()) => {}
        }
    }
    own.push(2).await.unwrap();
    assert_eq!(queue.stats().await.unwrap().ready, 3);
}

#[tokio::test]
async fn after_a_dropped_begin_a_transaction_can_only_be_aborted() {
    let db = Db::new().await;
    db.queue("q").push(0).await.unwrap(); // the pool has a connection
    let mut tx = db.begin().await.unwrap();
    tokio::select! {
        biased;
        _ = tx.client().batch_execute("select 1") => panic!("the server has answered at once"),
        () = std::future::ready(()) => {}
    }
    let error = tx.client().batch_execute("select 1").await.unwrap_err();
    assert!(matches!(error, Error::Broken));
    assert!(matches!(tx.commit().await, Err(Error::Broken)));
}

/// Each runtime has writers of its own, which end with it.
#[test]
fn commits_go_on_after_the_runtime_of_their_writers_has_ended() {
    let runtime = || tokio::runtime::Runtime::new().unwrap();
    let (first, second) = (runtime(), runtime());
    let (db, queue, blocked) = second.block_on(async {
        let db = Db::new().await;
        let queue: PgQueue<u32> = db.queue("q");
        queue.push(0).await.unwrap();
        let client = client().await;
        let lock = format!("begin; lock table {}.ready in exclusive mode", db.schema);
        client.batch_execute(&lock).await.unwrap();
        (db, queue, client)
    });
    first.block_on(async {
        tokio::select! {
            biased;
            _ = queue.push(1) => panic!("the table is locked"),
            _ = queue.push(1) => panic!("the table is locked"),
            () = std::future::ready(()) => {}
        }
    });
    drop(first); // with all writers
    second.block_on(async {
        blocked.batch_execute("commit").await.unwrap();
        for number in 2..=4 {
            let pushed = tokio::time::timeout(LONG, queue.push(number)).await;
            pushed.expect("a writer").unwrap();
        }
        assert!(queue.stats().await.unwrap().ready >= 4);
        drop(db);
    });
}
