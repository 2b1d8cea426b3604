//! Pushes with a priority, a time, and a time to live.

use super::unique::{refuse_duplicates, require_distinct};
use super::{is_valid, Key, PgQueue};
use crate::error::{Error, Result};
use crate::item::Ticket;
use crate::transaction::{PgTransaction, Staged};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The longest time, in microseconds: 5,000 years. The server knows times that are so far from now, before and after it.
const FARTHEST: i64 = 5_000 * 366 * 86_400 * 1_000_000;

/// When an item is due, in microseconds, by the clock of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Now,
    /// After the commit.
    After(i64),
    /// After 1970.
    At(i64),
}

impl Due {
    /// The columns `after` and `at`.
    pub(crate) fn columns(self) -> (Option<i64>, Option<i64>) {
        match self {
            Self::Now => (None, None),
            Self::After(micros) => (Some(micros), None),
            Self::At(micros) => (None, Some(micros)),
        }
    }
}

/// Microseconds, rounded up, at most [`FARTHEST`].
pub(crate) fn micros(duration: Duration) -> i64 {
    let micros = duration.as_nanos().div_ceil(1000);
    i64::try_from(micros).map_or(FARTHEST, |micros| micros.min(FARTHEST))
}

/// A view that pushes with a priority, a time, or a time to live; [to a queue](PushTo), or [in a transaction](PushWith).
#[derive(Debug)]
#[must_use = "a view does nothing until it pushes"]
pub struct Placed<S> {
    pub(super) to: S,
    priority: u16,
    due: Due,
    /// In microseconds; otherwise that of the queue.
    ttl: Option<i64>,
}

/// Pushes to a queue with a priority or a time: `queue.priority(1).after(delay).push(item)`.
pub type PushTo<'q, T> = Placed<&'q PgQueue<T>>;

/// Pushes in a transaction with a priority or a time: `tx.priority(1).after(delay).push(&queue, item)`.
pub type PushWith<'t, 'c> = Placed<&'t mut PgTransaction<'c>>;

impl<S> Placed<S> {
    pub(super) fn new(to: S) -> Self {
        Self {
            to,
            priority: 5000,
            due: Due::Now,
            ttl: None,
        }
    }

    /// Sets the priority, from 0 to 65,535.
    pub fn priority(mut self, priority: u16) -> Self {
        self.priority = priority;
        self
    }

    /// Sets the delay, which begins with the commit, by the clock of the server.
    pub fn after(mut self, delay: Duration) -> Self {
        self.due = Due::After(micros(delay));
        self
    }

    /// Sets the time, by the clock of the server.
    pub fn at(mut self, time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        self.due = Due::At(micros(since));
        self
    }

    /// Sets the time to live, instead of that of the [queue](crate::Builder::ttl). It begins when the item is due.
    pub fn expires_in(mut self, ttl: Duration) -> Self {
        self.ttl = Some(micros(ttl));
        self
    }

    /// Encodes items for a queue, none of which has the unique key of another one, or of those staged before.
    async fn stage<T: 'static>(
        &self,
        queue: &PgQueue<T>,
        before: &[Staged],
        items: impl IntoIterator<Item = T>,
    ) -> Result<Vec<Staged>> {
        self.encode(queue, queue.core.id().await?, before, items)
    }

    /// The same, for a queue with this id.
    pub(super) fn encode<T: 'static>(
        &self,
        PgQueue { core, items: of }: &PgQueue<T>,
        queue: i32,
        before: &[Staged],
        items: impl IntoIterator<Item = T>,
    ) -> Result<Vec<Staged>> {
        let priority = self.priority.into();
        let stage = |item| {
            let key_of = |key: &Option<Key<T>>| match key.as_ref().map(|key| key(&item)) {
                Some(key) if !is_valid(&key) => Err(Error::Key(key.into())),
                key => Ok(key),
            };
            let (key, unique) = (key_of(&of.key)?, key_of(&of.unique)?);
            Ok(Staged {
                payload: of.encoding.encode(&item)?,
                queue,
                priority,
                key,
                due: self.due,
                ttl: self.ttl.or(core.rules.ttl),
                serial: core.rules.is_serial(),
                unique,
                on_duplicate: core.rules.on_duplicate,
            })
        };
        let staged = items.into_iter().map(stage).collect::<Result<Vec<_>>>()?;
        require_distinct(before, &staged)?;
        Ok(staged)
    }
}

impl<T: 'static> PushTo<'_, T> {
    /// Pushes an item: see [`PgQueue::push`].
    ///
    /// # Errors
    ///
    /// As for [`PgQueue::push`].
    pub async fn push(self, item: T) -> Result<Ticket> {
        Ok(self.push_batch([item]).await?[0])
    }

    /// Pushes items, all or none.
    ///
    /// # Errors
    ///
    /// As for [`push`](Self::push).
    pub async fn push_batch(self, items: impl IntoIterator<Item = T>) -> Result<Vec<Ticket>> {
        let mut tx = PgTransaction::new(&self.to.core.db.shared);
        tx.staged = self.stage(self.to, &[], items).await?;
        tx.commit().await
    }
}

impl PushWith<'_, '_> {
    /// Stages a push: see [`PgTransaction::push`].
    ///
    /// # Errors
    ///
    /// As for [`PgTransaction::push`].
    pub async fn push<T: 'static>(self, queue: &PgQueue<T>, item: T) -> Result<()> {
        self.push_batch(queue, [item]).await
    }

    /// Stages pushes, all or none.
    ///
    /// # Errors
    ///
    /// As for [`push`](Self::push).
    pub async fn push_batch<T: 'static>(
        self,
        queue: &PgQueue<T>,
        items: impl IntoIterator<Item = T>,
    ) -> Result<()> {
        let mut staged = self.stage(queue, &self.to.staged, items).await?;
        if queue.items.unique.is_some() {
            refuse_duplicates(&queue.core, &staged).await?;
        }
        self.to.staged.append(&mut staged);
        Ok(())
    }
}

impl<T: 'static> PgQueue<T> {
    /// Pushes an item, in a transaction of its own: it is in the database when this returns.
    ///
    /// Not cancel safe: if the future is dropped before it is ready, the item may have been pushed.
    ///
    /// # Errors
    ///
    /// [`Error::Codec`], [`Error::Key`] and [`Error::Duplicate`] for the item, and those of [a commit](PgTransaction::commit).
    pub async fn push(&self, item: T) -> Result<Ticket> {
        Placed::new(self).push(item).await
    }

    /// Pushes items, all or none, as [`push`](Self::push) does.
    ///
    /// # Errors
    ///
    /// As for [`push`](Self::push).
    pub async fn push_batch(&self, items: impl IntoIterator<Item = T>) -> Result<Vec<Ticket>> {
        Placed::new(self).push_batch(items).await
    }

    /// Returns a view that pushes with a priority, from 0 to 65,535; lower ones are delivered first, and 5,000 is the default.
    pub fn priority(&self, priority: u16) -> PushTo<'_, T> {
        Placed::new(self).priority(priority)
    }

    /// Returns a view that pushes items that become ready after a delay.
    pub fn after(&self, delay: Duration) -> PushTo<'_, T> {
        Placed::new(self).after(delay)
    }

    /// Returns a view that pushes items that become ready at a time, by the clock of the server.
    pub fn at(&self, time: SystemTime) -> PushTo<'_, T> {
        Placed::new(self).at(time)
    }

    /// Returns a view that pushes items with a time to live of their own, instead of that of the [queue](crate::Builder::ttl).
    ///
    /// ```no_run
    /// # async fn quote(quotes: requeue_postgres::PgQueue<String>) -> Result<(), requeue_postgres::Error> {
    /// use std::time::Duration;
    ///
    /// quotes.expires_in(Duration::from_secs(60)).push("quote of 9:00".into()).await?;
    /// # Ok(()) }
    /// ```
    pub fn expires_in(&self, ttl: Duration) -> PushTo<'_, T> {
        Placed::new(self).expires_in(ttl)
    }
}

impl<'c> PgTransaction<'c> {
    /// Stages a push: the commit writes it. The item is encoded at once.
    ///
    /// Cancel safe: if the future is dropped before it is ready, nothing was staged.
    ///
    /// # Errors
    ///
    /// [`Error::Codec`], [`Error::Key`] and [`Error::Duplicate`] for the item, and [`Error::Database`] when the queue is used for the first
    /// time, or has [unique](crate::Builder::unique_by) items. The transaction stays open.
    pub async fn push<T: 'static>(&mut self, queue: &PgQueue<T>, item: T) -> Result<()> {
        Placed::new(self).push(queue, item).await
    }

    /// Stages pushes, all or none.
    ///
    /// # Errors
    ///
    /// As for [`push`](Self::push).
    pub async fn push_batch<T: 'static>(
        &mut self,
        queue: &PgQueue<T>,
        items: impl IntoIterator<Item = T>,
    ) -> Result<()> {
        Placed::new(self).push_batch(queue, items).await
    }

    /// Returns a view that pushes with a priority, from 0 to 65,535; lower ones are delivered first, and 5,000 is the default.
    pub fn priority(&mut self, priority: u16) -> PushWith<'_, 'c> {
        Placed::new(self).priority(priority)
    }

    /// Returns a view that pushes items that become ready after a delay, which begins with the commit.
    pub fn after(&mut self, delay: Duration) -> PushWith<'_, 'c> {
        Placed::new(self).after(delay)
    }

    /// Returns a view that pushes items that become ready at a time, by the clock of the server.
    pub fn at(&mut self, time: SystemTime) -> PushWith<'_, 'c> {
        Placed::new(self).at(time)
    }

    /// Returns a view that pushes items with a time to live of their own.
    pub fn expires_in(&mut self, ttl: Duration) -> PushWith<'_, 'c> {
        Placed::new(self).expires_in(ttl)
    }
}

#[cfg(test)]
mod tests {
    use super::{micros, FARTHEST};
    use std::time::Duration;

    #[test]
    fn delays_are_rounded_up_and_clamped() {
        assert_eq!(micros(Duration::from_nanos(1)), 1);
        assert_eq!(micros(Duration::MAX), FARTHEST);
    }
}
