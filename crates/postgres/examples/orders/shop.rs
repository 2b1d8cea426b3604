//! The tables of the shop, its queues, and its two kinds of jobs.

use requeue_postgres::{Error, PgQueue, Postgres};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Payments and receipts have no unique key, so that a second one would be seen.
const TABLES: &str = "
    create table orders (id bigint primary key, amount bigint not null, state text not null default 'open');
    create table payments (order_id bigint not null, amount bigint not null, attempts bigint not null);
    create table receipts (order_id bigint not null, amount bigint not null);";

const WAIT: Duration = Duration::from_secs(30);

#[derive(Serialize, Deserialize)]
pub(crate) struct Pay {
    order: i64,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Receipt {
    order: i64,
    amount: i64,
}

pub(crate) struct Shop {
    pub(crate) db: Postgres,
    payments: PgQueue<Pay>,
    receipts: PgQueue<Receipt>,
    /// Orders whose receipt was sent.
    finished: PgQueue<i64>,
}

impl Shop {
    pub(crate) async fn connect(url: &str) -> Result<Self, Error> {
        let db = Postgres::connect(url).await?;
        Ok(Self {
            payments: db.builder("payments").max_attempts(1_000).build(), // so that deliveries are counted
            receipts: db.queue("receipts"),
            finished: db.queue("finished"),
            db,
        })
    }

    /// Creates the tables.
    pub(crate) async fn open(&self) -> Result<(), Error> {
        self.db.install().await?;
        let mut tx = self.db.begin().await?;
        tx.client().batch_execute(TABLES).await?;
        tx.commit().await.map(drop)
    }

    /// Places orders: the rows and the jobs, in one commit.
    pub(crate) async fn place(&self, count: i64) -> Result<(), Error> {
        let mut tx = self.db.begin().await?;
        let insert = "insert into orders (id, amount) select n, 100 + n % 900 from generate_series(1, $1::bigint) n";
        tx.client().execute(insert, &[&count]).await?;
        tx.push_batch(&self.payments, (1..=count).map(|order| Pay { order }))
            .await?;
        tx.commit().await.map(drop)
    }

    /// Pays the next order: the order, its payment, the job and the receipt's job change in one commit.
    pub(crate) async fn pay(&self) -> Result<(), Error> {
        let mut tx = self.db.begin().await?;
        let Some(job) = tx.pop_wait(&self.payments, WAIT).await? else {
            return Ok(());
        };
        let update = "update orders set state = 'paid' where id = $1 returning amount";
        let amount: i64 = tx.client().query_one(update, &[&job.order]).await?.get(0);
        let insert = "insert into payments values ($1, $2, $3)";
        let attempts = i64::from(job.attempts());
        tx.client()
            .execute(insert, &[&job.order, &amount, &attempts])
            .await?;
        let order = job.order;
        tx.push(&self.receipts, Receipt { order, amount }).await?;
        tx.commit().await.map(drop)
    }

    /// Sends the next receipt.
    pub(crate) async fn send(&self) -> Result<(), Error> {
        let mut tx = self.db.begin().await?;
        let Some(receipt) = tx.pop_wait(&self.receipts, WAIT).await? else {
            return Ok(());
        };
        let insert = "insert into receipts values ($1, $2)";
        tx.client()
            .execute(insert, &[&receipt.order, &receipt.amount])
            .await?;
        tx.push(&self.finished, receipt.order).await?;
        tx.commit().await.map(drop)
    }

    /// Waits until `count` more orders are finished, and returns `count`.
    pub(crate) async fn finished(&self, count: i64) -> Result<i64, Error> {
        for _ in 0..count {
            let mut tx = self.db.begin().await?;
            while tx.pop_wait(&self.finished, WAIT).await?.is_none() {}
            tx.commit().await?;
        }
        Ok(count)
    }

    /// Terminates a random connection of a worker. Returns how many it has terminated.
    pub(crate) async fn cut_a_connection(&self) -> Result<i64, Error> {
        let cut = "select pg_terminate_backend(pid) from pg_stat_activity
            where application_name = 'worker' order by random() limit 1";
        let mut tx = self.db.begin().await?;
        let cut = tx.client().query(cut, &[]).await?.len();
        tx.abort().await?;
        Ok(i64::try_from(cut).unwrap_or(0))
    }
}
