//! Claims under an old snapshot begin at fronts, and nothing stays before those.

use crate::server::SERVER;
use crate::{client, Db, LONG};
use requeue_postgres::{PgItem, PgQueue, Postgres, Ticket};
use tokio_postgres::Client;

/// How many items are taken while another one is pushed, or held.
fn claims() -> u32 {
    let set = std::env::var("REQUEUE_CLAIMS").ok();
    set.map_or(3000, |count| count.parse().expect("a number"))
}

/// A process whose claims begin at fronts, since a snapshot is open.
struct Fronted {
    db: Db,
    process: Postgres,
    queue: PgQueue<u32>,
    _snapshot: Client,
}

impl Fronted {
    async fn new() -> Self {
        let (db, snapshot) = (Db::new().await, client().await);
        let url = format!("{} options='-c track_functions=pl'", SERVER.url());
        let process = Postgres::options(&url)
            .schema(&db.schema)
            .connect()
            .await
            .unwrap();
        let begin = "begin isolation level repeatable read; select count(*) from pg_class";
        snapshot.batch_execute(begin).await.unwrap();
        let queue = process
            .builder("q")
            .leased(60 * LONG)
            .max_attempts(9)
            .build();
        let fronted = Self {
            db,
            process,
            queue,
            _snapshot: snapshot,
        };
        while fronted.calls().await == 0 {
            fronted.work(1000).await;
        }
        fronted
    }

    /// How many claims began at fronts, as far as the server has counted them.
    async fn calls(&self) -> i64 {
        let calls = "select coalesce(sum(calls), 0)::bigint from pg_stat_user_functions
            where schemaname = '@' and funcname = 'take_from_fronts'";
        self.db.number(calls).await
    }

    /// Pushes items and takes as many.
    async fn work(&self, items: u32) {
        for _ in 0..items.div_ceil(200) {
            self.queue.push_batch((0..200).map(|_| 0)).await.unwrap();
            let taken = self.take(200).await;
            assert_eq!(taken.len(), 200);
        }
    }

    /// Takes up to this many items for good.
    async fn take(&self, max: usize) -> Vec<(u32, Ticket)> {
        let mut tx = self.process.begin().await.unwrap();
        let items = tx.pop_batch(&self.queue, max).await.unwrap();
        tx.commit().await.unwrap();
        items
            .into_iter()
            .map(|item| (*item, item.ticket()))
            .collect()
    }
}

#[tokio::test]
async fn a_push_that_is_open_over_many_claims_is_delivered_when_it_commits() {
    let fronted = Fronted::new().await;
    let mut pushes = client().await;
    let tx = pushes.transaction().await.unwrap();
    let ticket = fronted.queue.push_in(&tx, 7).await.unwrap();
    fronted.work(claims()).await;
    tx.commit().await.unwrap();
    fronted.queue.push(8).await.unwrap();
    let taken = fronted.take(2).await;
    assert_eq!(taken[0], (7, ticket));
    assert_eq!(taken[1].0, 8);
}

#[tokio::test]
async fn what_comes_back_from_before_a_front_is_delivered_at_its_place() {
    let fronted = Fronted::new().await;
    let Fronted {
        db, process, queue, ..
    } = &fronted;
    let locked: PgQueue<u32> = process.builder("q").max_attempts(9).build();
    let only_once: PgQueue<u32> = process.builder("q").leased(LONG).build();
    let mut tickets = queue.push_batch([1, 2, 3, 4]).await.unwrap();
    let (mut retries, mut aborts, mut dies, mut locks) = (
        process.begin().await.unwrap(),
        process.begin().await.unwrap(),
        process.begin().await.unwrap(),
        process.begin().await.unwrap(),
    );
    let item: PgItem<u32> = retries.pop(queue).await.unwrap().unwrap();
    aborts.pop(queue).await.unwrap().unwrap();
    let dead = dies.pop(&only_once).await.unwrap().unwrap();
    dies.fail(dead, "it failed").unwrap();
    dies.commit().await.unwrap();
    locks.pop(&locked).await.unwrap().unwrap();
    tickets.push(queue.after(LONG).push(5).await.unwrap());
    tickets.push(queue.priority(9000).push(6).await.unwrap());
    fronted.work(claims()).await;
    retries.retry(item).unwrap();
    retries.commit().await.unwrap();
    aborts.abort().await.unwrap();
    locks.abort().await.unwrap();
    assert!(queue.dead_letters().requeue(tickets[2]).await.unwrap());
    db.execute("update @.delayed set until = now()").await;
    while queue.stats().await.unwrap().delayed > 0 {
        process.queue::<u32>("other").stats().await.unwrap(); // a process makes it ready
        let mut tx = process.begin().await.unwrap();
        assert!(tx
            .pop(&process.queue::<u32>("empty"))
            .await
            .unwrap()
            .is_none());
    }
    assert!(queue.reprioritize(tickets[5], 5000).await.unwrap());
    let late = queue.push(9).await.unwrap();
    let taken = fronted.take(100).await;
    let expected: Vec<_> = (1..=6).zip(tickets).chain([(9, late)]).collect();
    assert_eq!(taken, expected);
}

/// A copy that was started may draw ids again that were before a front.
#[tokio::test]
async fn fronts_are_those_of_one_start_of_the_server() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.queue("q");
    queue.push_batch([1, 2]).await.unwrap();
    let take = |start: &str| {
        format!(
            "select count(*) from @.take_from_fronts((select id from @.queues), 1, '{{-1,5000}}', '{{0,1000000}}', '{{5000,65536}}', {start})"
        )
    };
    assert_eq!(db.number(&take("pg_postmaster_start_time()")).await, 0);
    assert_eq!(db.number(&take("'2020-01-01'")).await, 1);
    db.execute("update @.ready set late = true").await;
    assert_eq!(db.number(&take("pg_postmaster_start_time()")).await, 1);
}
