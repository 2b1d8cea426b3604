//! Pushes with a priority and a time.

use super::{is_valid, PgQueue};
use crate::error::Error;
use crate::item::Ticket;
use crate::transaction::{PgTransaction, Staged};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The longest time, in microseconds: 5,000 years. The server knows times that are so far from now, before and after it.
const FARTHEST: i64 = 5_000 * 366 * 86_400 * 1_000_000;

/// Where an item goes in its queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    priority: u16,
    due: Option<Delay>,
}

/// When an item is due, in microseconds, by the clock of the server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Delay {
    /// After the commit.
    After(i64),
    /// After 1970.
    At(i64),
}

impl Delay {
    pub(crate) fn after(self) -> Option<i64> {
        match self {
            Self::After(micros) => Some(micros),
            Self::At(_) => None,
        }
    }

    pub(crate) fn at(self) -> Option<i64> {
        match self {
            Self::At(micros) => Some(micros),
            Self::After(_) => None,
        }
    }
}

impl Default for Place {
    fn default() -> Self {
        Self {
            priority: 5000,
            due: None,
        }
    }
}

impl Place {
    fn after(&mut self, delay: Duration) {
        self.due = Some(Delay::After(micros(delay)));
    }

    fn at(&mut self, time: SystemTime) {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        self.due = Some(Delay::At(micros(since)));
    }
}

/// Microseconds, rounded up, at most [`FARTHEST`].
pub(crate) fn micros(duration: Duration) -> i64 {
    let micros = duration.as_nanos().div_ceil(1000);
    i64::try_from(micros).map_or(FARTHEST, |micros| micros.min(FARTHEST))
}

impl<T: 'static> PgQueue<T> {
    /// Encodes an item for the queue of this id.
    fn stage(&self, queue: i32, place: Place, item: &T) -> Result<Staged, Error> {
        let Some(priority) = (1..=9999)
            .contains(&place.priority)
            .then_some(place.priority)
        else {
            return Err(Error::OutOfRange);
        };
        let key = self.items.key.as_ref().map(|key| key(item));
        if let Some(key) = key.as_deref().filter(|key| !is_valid(key)) {
            return Err(Error::Key(key.into()));
        }
        Ok(Staged {
            payload: self.items.encoding.encode(item)?,
            queue,
            priority: i16::try_from(priority).map_err(|_| Error::OutOfRange)?,
            key,
            due: place.due,
            serial: self.core.rules.serial,
        })
    }

    async fn stage_all(
        &self,
        place: Place,
        items: impl IntoIterator<Item = T>,
    ) -> Result<Vec<Staged>, Error> {
        let id = self.core.id().await?;
        let items = items.into_iter();
        items.map(|item| self.stage(id, place, &item)).collect()
    }

    /// Pushes an item, in a transaction of its own: it is in the database when this returns.
    ///
    /// Not cancel safe: if the future is dropped before it is ready, the item may have been pushed.
    ///
    /// # Errors
    ///
    /// [`Error::Codec`] and [`Error::Key`] for the item, and those of [a commit](PgTransaction::commit).
    pub async fn push(&self, item: T) -> Result<Ticket, Error> {
        self.with_default().push(item).await
    }

    /// Pushes items, all or none, as [`push`](Self::push) does.
    ///
    /// # Errors
    ///
    /// As for [`push`](Self::push).
    pub async fn push_batch(
        &self,
        items: impl IntoIterator<Item = T>,
    ) -> Result<Vec<Ticket>, Error> {
        self.with_default().push_batch(items).await
    }

    /// Returns a view that pushes with a priority, from 1 to 9,999; lower ones are delivered first, and 5,000 is the default.
    pub fn priority(&self, priority: u16) -> PushTo<'_, T> {
        self.with_default().priority(priority)
    }

    /// Returns a view that pushes items that become ready after a delay.
    pub fn after(&self, delay: Duration) -> PushTo<'_, T> {
        self.with_default().after(delay)
    }

    /// Returns a view that pushes items that become ready at a time, by the clock of the server.
    pub fn at(&self, time: SystemTime) -> PushTo<'_, T> {
        self.with_default().at(time)
    }

    fn with_default(&self) -> PushTo<'_, T> {
        PushTo {
            queue: self,
            place: Place::default(),
        }
    }
}

/// Pushes to a queue with a priority or a time: `queue.priority(1).after(delay).push(item)`.
#[derive(Debug)]
#[must_use = "a view does nothing until it pushes"]
pub struct PushTo<'q, T> {
    queue: &'q PgQueue<T>,
    place: Place,
}

impl<T: 'static> PushTo<'_, T> {
    /// Sets the priority, from 1 to 9,999.
    pub fn priority(mut self, priority: u16) -> Self {
        self.place.priority = priority;
        self
    }

    /// Sets the delay, by the clock of the server.
    pub fn after(mut self, delay: Duration) -> Self {
        self.place.after(delay);
        self
    }

    /// Sets the time, by the clock of the server.
    pub fn at(mut self, time: SystemTime) -> Self {
        self.place.at(time);
        self
    }

    /// Pushes an item: see [`PgQueue::push`].
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] for the priority, and those of [`PgQueue::push`].
    pub async fn push(self, item: T) -> Result<Ticket, Error> {
        let id = self.queue.core.id().await?;
        let staged = self.queue.stage(id, self.place, &item)?;
        let tickets = PgTransaction::of_pushes(self.queue.database(), vec![staged])
            .commit()
            .await?;
        Ok(tickets[0])
    }

    /// Pushes items, all or none.
    ///
    /// # Errors
    ///
    /// As for [`push`](Self::push).
    pub async fn push_batch(
        self,
        items: impl IntoIterator<Item = T>,
    ) -> Result<Vec<Ticket>, Error> {
        let staged = self.queue.stage_all(self.place, items).await?;
        PgTransaction::of_pushes(self.queue.database(), staged)
            .commit()
            .await
    }
}

impl<'c> PgTransaction<'c> {
    /// Stages a push: the commit writes it. The item is encoded at once.
    ///
    /// Cancel safe: if the future is dropped before it is ready, nothing was staged.
    ///
    /// # Errors
    ///
    /// [`Error::Codec`] and [`Error::Key`] for the item, and [`Error::Database`] when the queue is used for the first time. The
    /// transaction stays open.
    pub async fn push<T: 'static>(&mut self, queue: &PgQueue<T>, item: T) -> Result<(), Error> {
        self.with_default().push(queue, item).await
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
    ) -> Result<(), Error> {
        self.with_default().push_batch(queue, items).await
    }

    /// Returns a view that pushes with a priority, from 1 to 9,999; lower ones are delivered first, and 5,000 is the default.
    pub fn priority(&mut self, priority: u16) -> PushWith<'_, 'c> {
        self.with_default().priority(priority)
    }

    /// Returns a view that pushes items that become ready after a delay, which begins with the commit.
    pub fn after(&mut self, delay: Duration) -> PushWith<'_, 'c> {
        self.with_default().after(delay)
    }

    /// Returns a view that pushes items that become ready at a time, by the clock of the server.
    pub fn at(&mut self, time: SystemTime) -> PushWith<'_, 'c> {
        self.with_default().at(time)
    }

    fn with_default(&mut self) -> PushWith<'_, 'c> {
        PushWith {
            tx: self,
            place: Place::default(),
        }
    }
}

/// Pushes in a transaction with a priority or a time: `tx.priority(1).after(delay).push(&queue, item)`.
#[derive(Debug)]
#[must_use = "a view does nothing until it pushes"]
pub struct PushWith<'t, 'c> {
    tx: &'t mut PgTransaction<'c>,
    place: Place,
}

impl PushWith<'_, '_> {
    /// Sets the priority, from 1 to 9,999.
    pub fn priority(mut self, priority: u16) -> Self {
        self.place.priority = priority;
        self
    }

    /// Sets the delay, which begins with the commit.
    pub fn after(mut self, delay: Duration) -> Self {
        self.place.after(delay);
        self
    }

    /// Sets the time, by the clock of the server.
    pub fn at(mut self, time: SystemTime) -> Self {
        self.place.at(time);
        self
    }

    /// Stages a push: see [`PgTransaction::push`].
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] for the priority, and those of [`PgTransaction::push`].
    pub async fn push<T: 'static>(self, queue: &PgQueue<T>, item: T) -> Result<(), Error> {
        let id = queue.core.id().await?;
        let staged = queue.stage(id, self.place, &item)?;
        self.tx.staged.push(staged);
        Ok(())
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
    ) -> Result<(), Error> {
        let mut staged = queue.stage_all(self.place, items).await?;
        self.tx.staged.append(&mut staged);
        Ok(())
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
