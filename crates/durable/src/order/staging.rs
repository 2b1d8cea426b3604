//! Pushes in memory.

use super::Place;
use requeue::priority::{PriorityError, PushWith};
use requeue::{
    Order, OwnedTransaction, Prioritized, PushError, Restore, Ticket, Transaction, Wait,
};
use std::future::Future;
use std::time::Duration;

/// How items `E` are pushed to a queue in memory whose order is `R`.
pub(crate) trait Staging<E, R: Order<E>>: 'static {
    /// Whether items have tickets.
    const HAS_TICKETS: bool;

    fn stage(
        tx: &OwnedTransaction<E, R>,
        entry: E,
        place: Option<Place>,
        wait: Wait,
    ) -> Result<Option<Ticket>, PushError<E>>;

    fn stage_batch(
        tx: &OwnedTransaction<E, R>,
        entries: Vec<E>,
        place: Option<Place>,
        wait: Wait,
    ) -> Result<Vec<Ticket>, PushError<Vec<E>>>;

    /// Adds an item of an earlier process, which was delivered `attempts` times.
    fn restore(
        queue: &mut Restore<'_, E, R>,
        entry: E,
        place: Option<Place>,
        attempts: u32,
        delay: Duration,
    ) -> Option<Ticket>;

    fn stage_async(
        tx: &OwnedTransaction<E, R>,
        entry: E,
        place: Option<Place>,
    ) -> impl Future<Output = Result<Option<Ticket>, PushError<E>>> + Send + '_;

    fn stage_batch_async(
        tx: &OwnedTransaction<E, R>,
        entries: Vec<E>,
        place: Option<Place>,
    ) -> impl Future<Output = Result<Vec<Ticket>, PushError<Vec<E>>>> + Send + '_;
}

/// Without a place.
#[derive(Debug)]
pub(crate) struct Plain;

impl<E: Send, R: Order<E>> Staging<E, R> for Plain {
    const HAS_TICKETS: bool = false;

    fn stage(
        tx: &OwnedTransaction<E, R>,
        entry: E,
        _: Option<Place>,
        wait: Wait,
    ) -> Result<Option<Ticket>, PushError<E>> {
        match wait {
            Wait::Never => tx.push(entry),
            wait => tx.push_waiting(entry, wait),
        }
        .map(|()| None)
    }

    fn stage_batch(
        tx: &OwnedTransaction<E, R>,
        entries: Vec<E>,
        _: Option<Place>,
        wait: Wait,
    ) -> Result<Vec<Ticket>, PushError<Vec<E>>> {
        tx.push_batch_waiting(entries, wait).map(|_| Vec::new())
    }

    fn restore(
        queue: &mut Restore<'_, E, R>,
        entry: E,
        _: Option<Place>,
        attempts: u32,
        delay: Duration,
    ) -> Option<Ticket> {
        queue.add(entry, attempts, delay);
        None
    }

    fn stage_async(
        tx: &OwnedTransaction<E, R>,
        entry: E,
        _: Option<Place>,
    ) -> impl Future<Output = Result<Option<Ticket>, PushError<E>>> + Send + '_ {
        let staging = tx.push_async(entry);
        async { staging.await.map(|()| None) }
    }

    fn stage_batch_async(
        tx: &OwnedTransaction<E, R>,
        entries: Vec<E>,
        _: Option<Place>,
    ) -> impl Future<Output = Result<Vec<Ticket>, PushError<Vec<E>>>> + Send + '_ {
        let staging = tx.push_batch_async(entries);
        async { staging.await.map(|_| Vec::new()) }
    }
}

/// With a priority, a due time and a ticket.
#[derive(Debug)]
pub(crate) struct Placed;

impl<E: Send, R: Prioritized<E>> Staging<E, R> for Placed {
    const HAS_TICKETS: bool = true;

    fn stage(
        tx: &OwnedTransaction<E, R>,
        entry: E,
        place: Option<Place>,
        wait: Wait,
    ) -> Result<Option<Ticket>, PushError<E>> {
        let staged = with_place(tx, place).push_waiting(entry, wait);
        staged.map(Some).map_err(in_range)
    }

    fn stage_batch(
        tx: &OwnedTransaction<E, R>,
        entries: Vec<E>,
        place: Option<Place>,
        wait: Wait,
    ) -> Result<Vec<Ticket>, PushError<Vec<E>>> {
        let staged = with_place(tx, place).push_batch_waiting(entries, wait);
        staged.map_err(in_range)
    }

    fn restore(
        queue: &mut Restore<'_, E, R>,
        entry: E,
        place: Option<Place>,
        attempts: u32,
        delay: Duration,
    ) -> Option<Ticket> {
        let Place { priority, due } = place.unwrap_or_default();
        Some(queue.add_with(entry, priority, due, attempts, delay))
    }

    fn stage_async(
        tx: &OwnedTransaction<E, R>,
        entry: E,
        place: Option<Place>,
    ) -> impl Future<Output = Result<Option<Ticket>, PushError<E>>> + Send + '_ {
        let staging = with_place(tx, place).push_async(entry);
        async { staging.await.map(Some).map_err(in_range) }
    }

    fn stage_batch_async(
        tx: &OwnedTransaction<E, R>,
        entries: Vec<E>,
        place: Option<Place>,
    ) -> impl Future<Output = Result<Vec<Ticket>, PushError<Vec<E>>>> + Send + '_ {
        let staging = with_place(tx, place).push_batch_async(entries);
        async { staging.await.map_err(in_range) }
    }
}

/// A transaction with the place of its pushes.
fn with_place<E: Send, R: Prioritized<E>>(
    tx: &OwnedTransaction<E, R>,
    place: Option<Place>,
) -> PushWith<&Transaction<'static, E, R>> {
    let place = place.unwrap_or_default();
    let view = tx.priority(place.priority);
    match place.due {
        Some(due) => view.at(due),
        None => view,
    }
}

/// Priorities are checked before the push.
fn in_range<I: Send>(error: PriorityError<I>) -> PushError<I> {
    match error {
        PriorityError::Full(item) | PriorityError::OutOfRange(item) => PushError::Full(item),
        PriorityError::Closed(item) => PushError::Closed(item),
    }
}
