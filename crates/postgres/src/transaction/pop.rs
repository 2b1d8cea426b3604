//! Pops.

use super::{Ending, PgTransaction, Taken};
use crate::claim::{claim_leased, Leased, Turn};
use crate::error::Error;
use crate::item::{PgItem, Record};
use crate::pace::Start;
use crate::prefetch::take_ahead;
use crate::queue::{Core, PgQueue};
use requeue::{Limiter, ReturnTo, Wait};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::select;
use tokio::time::{sleep_until, Instant};

/// How long a waiter waits for a notification before it looks again: the commit of an item may have missed it.
const FIRST_LOOKS: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(100)];
const POLL: Duration = Duration::from_secs(1);
/// Longer than any wait.
const FAR: Duration = Duration::from_secs(30 * 365 * 86_400);

/// What a pop has taken, and when to try again, if the pace has refused a start.
type Popped<T> = (Vec<PgItem<T>>, Option<Instant>);

impl PgTransaction<'_> {
    /// Takes the next item, if one is ready. The transaction holds it.
    ///
    /// An item that is due, or whose lease has expired, may not be found while another session makes it ready; a
    /// [wait](Self::pop_wait) gets it then.
    ///
    /// An item that cannot be decoded becomes a [dead letter](PgQueue::dead_letters), and the next one is taken.
    ///
    /// # Errors
    ///
    /// [`Error::Database`] and [`Error::Pool`]. After an error of the server the transaction can only be aborted.
    pub async fn pop<T: 'static>(
        &mut self,
        queue: &PgQueue<T>,
    ) -> Result<Option<PgItem<T>>, Error> {
        Ok(self.pop_batch(queue, 1).await?.pop())
    }

    /// Takes up to `max` items that are ready, in their order.
    ///
    /// # Errors
    ///
    /// As for [`pop`](Self::pop).
    pub async fn pop_batch<T: 'static>(
        &mut self,
        queue: &PgQueue<T>,
        max: usize,
    ) -> Result<Vec<PgItem<T>>, Error> {
        Ok(self.pop_at_pace(queue, max).await?.0)
    }

    /// Takes up to `max` items that are ready.
    pub(super) async fn pop_ready<T: 'static>(
        &mut self,
        queue: &PgQueue<T>,
        max: usize,
    ) -> Result<Vec<PgItem<T>>, Error> {
        let core = &queue.core;
        let id = core.id().await?;
        let was_open = self.link.begun || !self.taken.is_empty();
        let mut items = Vec::new();
        let mut promoted = false;
        while items.len() < max {
            let wanted = max - items.len();
            let records = self.claim(core, id, wanted).await?;
            let found = records.len();
            let held = records.into_iter();
            items.extend(held.filter_map(|(record, claim)| self.hold(queue, record, claim)));
            if found == 0 && items.is_empty() && !promoted {
                promoted = true;
                if !was_open && self.taken.is_empty() {
                    self.link.send_roll_back(""); // the next statement may need its session, behind a pooler
                }
                if self.link.shared.promote(true).await? {
                    continue;
                }
            }
            if found < wanted {
                break;
            }
        }
        if items.is_empty() && !was_open {
            self.end_in_vain().await?;
        }
        Ok(items)
    }

    /// Takes the next item; waits for one for at most `timeout`.
    ///
    /// Cancel safe while it waits; see [above](Self#cancel-safety). Of the waiters of a process, the first one is woken first.
    ///
    /// # Errors
    ///
    /// As for [`pop`](Self::pop).
    pub async fn pop_wait<T: 'static>(
        &mut self,
        queue: &PgQueue<T>,
        timeout: Duration,
    ) -> Result<Option<PgItem<T>>, Error> {
        let mut items = self.take(queue, 1, Wait::For(timeout)).await?;
        Ok(items.pop())
    }

    /// Takes the next item; waits for one until `deadline`. Otherwise as [`pop_wait`](Self::pop_wait).
    ///
    /// # Errors
    ///
    /// As for [`pop`](Self::pop).
    pub async fn pop_deadline<T: 'static>(
        &mut self,
        queue: &PgQueue<T>,
        deadline: std::time::Instant,
    ) -> Result<Option<PgItem<T>>, Error> {
        let mut items = self.take(queue, 1, Wait::Until(deadline)).await?;
        Ok(items.pop())
    }

    /// Takes up to `max` items that are ready, or waits for the first one.
    pub(super) async fn take<T: 'static>(
        &mut self,
        queue: &PgQueue<T>,
        max: usize,
        wait: Wait,
    ) -> Result<Vec<PgItem<T>>, Error> {
        let now = Instant::now();
        let deadline = wait.deadline(now.into()).map_or(now + FAR, Instant::from);
        let items = self.pop_batch(queue, max).await?;
        if !items.is_empty() || wait == Wait::Never {
            return Ok(items);
        }
        let (shared, id) = (self.shared(), queue.core.id().await?);
        let mut waiter = shared.hub.enter(id);
        shared.wait_for(id).await?; // from now on no item is missed
        let mut next = Instant::now() + POLL;
        let mut pauses = FIRST_LOOKS.into_iter();
        loop {
            select! {
                biased;
                () = waiter.woken(next) => {}
                () = sleep_until(deadline) => return Ok(Vec::new()),
            }
            shared.wait_for(id).await?;
            let (items, again) = self.pop_at_pace(queue, max).await?;
            if !items.is_empty() {
                waiter.served(items.len());
                return Ok(items);
            }
            let pause = Instant::now() + pauses.next().unwrap_or(POLL);
            next = again.map_or(pause, |again| pause.min(again));
        }
    }

    /// Returns the next item without taking it.
    ///
    /// # Errors
    ///
    /// [`Error::Codec`] if it cannot be decoded, [`Error::Database`] and [`Error::Pool`].
    pub async fn peek<T: 'static>(&self, queue: &PgQueue<T>) -> Result<Option<PgItem<T>>, Error> {
        let rows = queue.core.run(|sql| &sql.peek, &[]).await?;
        let Some(record) = rows.first().map(Record::read_claimed) else {
            return Ok(None);
        };
        let value = queue.items.decode(&record.payload)?;
        Ok(Some(PgItem::new(value, &record)))
    }

    /// Holds a claimed item. `None` if it is not to be delivered: then the commit makes it a dead letter.
    fn hold<T: 'static>(
        &mut self,
        queue: &PgQueue<T>,
        mut record: Record,
        claim: Option<i64>,
    ) -> Option<PgItem<T>> {
        let core = &queue.core;
        let decoded = queue.items.decode(&record.payload);
        let ending = match &decoded {
            Err(error) => Ending::dead(
                &format!("the item cannot be decoded: {error}"),
                "undecodable",
            ),
            Ok(_) if core.is_exhausted(record.attempts) => {
                // Neither this claim nor earlier ones that found it exhausted and were rolled back delivered it.
                record.attempts = core.rules.max_attempts.unwrap_or(record.attempts);
                Ending::dead("its workers ended without a commit", "aborted")
            }
            Ok(_) => Ending::Done,
        };
        let delivered = matches!(ending, Ending::Done);
        let lasts = |_: &&T| delivered && core.rules.unique_for > 0;
        let unique = decoded.as_ref().ok().filter(lasts);
        let unique = unique.and_then(|value| queue.items.unique_key(value));
        let item = decoded.ok().map(|value| PgItem::new(value, &record));
        self.taken.push(Taken {
            core: Arc::clone(core),
            record,
            claim,
            unique,
            delivered,
            snoozed: false,
            result: None,
            ending,
            start: None,
        });
        item.filter(|_| delivered)
    }

    /// Nothing was found: ends the database transaction that the pop has begun, and gives its connection back.
    async fn end_in_vain(&mut self) -> Result<(), Error> {
        if !self.taken.is_empty() {
            let staged = std::mem::take(&mut self.staged);
            let ended = self.write().await;
            self.staged = staged;
            ended?;
            self.taken.clear();
        }
        self.link.send_roll_back("");
        Ok(())
    }

    async fn claim(
        &mut self,
        core: &Arc<Core>,
        id: i32,
        max: usize,
    ) -> Result<Vec<(Record, Option<i64>)>, Error> {
        self.check()?;
        if core.rules.term.is_some() && !self.link.is_within() {
            let buffer = core.buffer(self.of_worker);
            let claimed = match buffer {
                Some(buffer) => take_ahead(core, buffer, id, max).await?,
                None => claim_leased(core, id, max, self.link.connection.is_some()).await?,
            };
            let held = |item: Leased| (item.record, Some(item.claim));
            return Ok(claimed.into_items().into_iter().map(held).collect());
        }
        self.link.shared.control().await?;
        self.link.connect().await?;
        self.enter()?;
        let mut turn = Turn::new(core, id, max, None);
        let saves = core.rules.return_to == ReturnTo::Tail && self.link.is_new();
        if let Some((sql, params)) = turn.lock().filter(|_| saves) {
            self.link.run(sql, &params).await?;
            self.link.save();
        }
        while let Some((sql, params)) = turn.next() {
            let rows = self.link.run(sql, &params).await?;
            turn.took(&rows);
        }
        let mut records = turn.records;
        for record in &mut records {
            record.attempts = record.attempts.saturating_add(1);
        }
        if core.rules.is_counted() && !records.is_empty() {
            self.count(&mut records).await?;
        }
        self.leave();
        Ok(records.into_iter().map(|record| (record, None)).collect())
    }

    /// Counts the deliveries, so that they count even if this process dies.
    async fn count(&self, records: &mut [Record]) -> Result<(), Error> {
        let shared = &self.link.shared;
        shared.start_promoter(); // it forgets the counts that a dead process leaves
        let ids: Vec<i64> = records.iter().map(|record| record.id).collect();
        let before: Vec<i32> = records.iter().map(|record| record.attempts - 1).collect();
        let rows = shared.run(&shared.sql.count, &[&ids, &before]).await?;
        let counts: HashMap<i64, i32> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        for record in records {
            record.attempts = counts[&record.id];
        }
        Ok(())
    }

    /// Takes up to `max` items that are ready, as many as the pace of the queue permits.
    pub(super) async fn pop_at_pace<T: 'static>(
        &mut self,
        queue: &PgQueue<T>,
        max: usize,
    ) -> Result<Popped<T>, Error> {
        let pace = &queue.core.pace;
        if pace.is_unlimited() {
            return Ok((self.pop_ready(queue, max).await?, None));
        }
        if !has_ready(&queue.core).await? {
            return Ok((Vec::new(), None));
        }
        let (starts, again) = Start::take(pace, max);
        let before = self.taken.len();
        let items = self.pop_ready(queue, starts.len()).await?;
        let mut starts = starts.into_iter();
        let taken = self.taken.iter_mut().skip(before);
        for taken in taken.filter(|taken| taken.is_done()) {
            taken.start = starts.next();
        }
        for mut unused in starts {
            unused.end(|pace, slot| pace.cancel(slot, Instant::now().into()));
        }
        Ok((items, again.map(Instant::from)))
    }
}

/// Whether a pop may find an item. A slot is taken only then.
async fn has_ready(core: &Arc<Core>) -> Result<bool, Error> {
    if core.buffer.iter().any(|buffer| buffer.len() > 0) {
        return Ok(true);
    }
    loop {
        let rows = core.run(|sql| &sql.has_ready, &[]).await?;
        if rows[0].get(0) || !core.db.shared.promote(true).await? {
            return Ok(rows[0].get(0));
        }
    }
}
