//! The books: what the tables say at the end.

use crate::shop::Shop;
use requeue_postgres::Error;
use std::fmt;

/// Counts of the tables and the queues.
pub(crate) struct Books {
    paid: i64,
    paid_once: i64,
    receipts: i64,
    one_receipt: i64,
    /// Payments and receipts of the amount of the order.
    right_amounts: i64,
    /// Jobs of any queue that are left, dead letters included.
    left: i64,
    /// Deliveries of payments that were interrupted.
    interrupted: i64,
}

const COUNT: &str = "select
    (select count(*) from orders where state = 'paid'),
    (select count(*) from orders o where (select count(*) from payments p where p.order_id = o.id) = 1),
    (select count(*) from receipts),
    (select count(*) from orders o where (select count(*) from receipts r where r.order_id = o.id) = 1),
    (select count(*) from orders o join payments p on p.order_id = o.id and p.amount = o.amount
        join receipts r on r.order_id = o.id and r.amount = o.amount),
    (select count(*) from requeue.ready) + (select count(*) from requeue.delayed) + (select count(*) from requeue.dead),
    (select coalesce(sum(attempts - 1), 0)::bigint from payments)";

pub(crate) async fn books(shop: &Shop) -> Result<Books, Error> {
    let mut tx = shop.db.begin().await?;
    let row = tx.client().query_one(COUNT, &[]).await?;
    tx.abort().await?;
    Ok(Books {
        paid: row.get(0),
        paid_once: row.get(1),
        receipts: row.get(2),
        one_receipt: row.get(3),
        right_amounts: row.get(4),
        left: row.get(5),
        interrupted: row.get(6),
    })
}

impl Books {
    /// Whether each of these orders was paid once and has one receipt, and no job is left.
    pub(crate) fn agree(&self, orders: i64) -> bool {
        let counts = [
            self.paid,
            self.paid_once,
            self.receipts,
            self.one_receipt,
            self.right_amounts,
        ];
        counts == [orders; 5] && self.left == 0
    }
}

impl fmt::Display for Books {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} orders are paid, {} of them once",
            self.paid, self.paid_once
        )?;
        writeln!(
            f,
            "{} receipts, {} orders have one",
            self.receipts, self.one_receipt
        )?;
        writeln!(
            f,
            "{} amounts agree, {} jobs are left",
            self.right_amounts, self.left
        )?;
        write!(
            f,
            "{} deliveries of payments were interrupted, and repeated",
            self.interrupted
        )
    }
}
