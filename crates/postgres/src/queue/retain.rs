//! Removals of items that nobody holds.

use super::{count, PgQueue};
use crate::connect::Params;
use crate::error::Error;
use crate::item::{Record, Ticket};
use crate::sql::{Statement, PIECE};
use std::time::SystemTime;
use tokio_postgres::Row;

/// What is known of an item in the queue, for [`PgQueue::retain`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Queued {
    /// The item.
    pub ticket: Ticket,
    /// How often it was delivered before.
    pub attempts: u32,
    /// When it was pushed, by the clock of the server.
    pub pushed_at: SystemTime,
    /// When it becomes ready, if it is delayed.
    pub due: Option<SystemTime>,
}

impl<T: 'static> PgQueue<T> {
    /// Removes the items for which `keep` returns `false`, whether ready or delayed, and returns their number. Items that are held,
    /// also [ahead](crate::Builder::prefetch), stay, and so do dead letters, items that cannot be decoded, and those that
    /// [follow](crate::Builder::on_duplicate) others.
    ///
    /// The items are read in pieces, and no lock is held while `keep` is called. So it may be called with an item that a transaction
    /// holds by a lock, or takes meanwhile: this item stays. An item that comes back meanwhile, or is pushed, may be missed; one
    /// that becomes ready may be seen twice.
    ///
    /// ```no_run
    /// # async fn forget(jobs: requeue_postgres::PgQueue<(String, u32)>) -> Result<(), requeue_postgres::Error> {
    /// let removed = jobs.retain(|(user, _), queued| user != "bob" || queued.attempts > 0).await?;
    /// println!("{removed} jobs of bob were removed");
    /// # Ok(()) }
    /// ```
    ///
    /// Not cancel safe: if the future is dropped before it is ready, some items may have been removed.
    ///
    /// # Errors
    ///
    /// [`Error::Database`], [`Error::InDoubt`] and [`Error::Pool`]. Some items may have been removed.
    pub async fn retain(&self, mut keep: impl FnMut(&T, Queued) -> bool) -> Result<u64, Error> {
        let end = self.core.db.shared.next_id().await?;
        let mut removed = 0;
        let looks: [Statement; 2] = [|sql| &sql.look_delayed, |sql| &sql.look_ready];
        for look in looks {
            let mut last = (i32::MIN, i64::MIN);
            loop {
                let place: Params<'_> = &[&last.0, &last.1, &end];
                let rows = self.core.run(look, place).await?;
                let Some(row) = rows.last() else {
                    break;
                };
                last = (row.get(1), row.get(0));
                let unwanted = rows.iter().filter(|row| !self.is_kept(row, &mut keep));
                let ids: Vec<i64> = unwanted.map(|row| row.get(0)).collect();
                if !ids.is_empty() {
                    let rows = self.core.change(|sql| &sql.remove, &[&ids]).await?;
                    removed += count(&rows[0], 0);
                }
            }
        }
        Ok(removed)
    }

    fn is_kept(&self, row: &Row, keep: &mut impl FnMut(&T, Queued) -> bool) -> bool {
        let record = Record::read_claimed(row);
        let queued = Queued {
            ticket: Ticket(record.ticket),
            attempts: record.deliveries(),
            pushed_at: record.pushed,
            due: row.get(11),
        };
        let item = self.items.decode(&record.payload);
        item.map_or(true, |item| keep(&item, queued))
    }

    /// Removes all items that nobody holds, whether ready or delayed, and returns their number, as [`retain`](Self::retain) does. Up
    /// to 1,000 are removed by a statement. Those that cannot be decoded are removed too; dead letters stay.
    ///
    /// # Errors
    ///
    /// As for [`retain`](Self::retain).
    #[doc(alias = "purge")]
    pub async fn clear_all(&self) -> Result<u64, Error> {
        let end = self.core.db.shared.next_id().await?;
        let mut removed = 0;
        loop {
            let rows = self.core.change(|sql| &sql.clear, &[&end]).await?;
            let piece = count(&rows[0], 0);
            removed += piece;
            if piece < PIECE {
                return Ok(removed);
            }
        }
    }
}
