//! Pushes in memory.

use super::Place;
use crate::call::{call, Call, Caller};
use requeue::priority::{PriorityError, PushWith};
use requeue::{Order, OwnedTransaction, Prioritized, PushError, Restore, Ticket, Transaction};
use std::future::Future;
use std::time::Duration;

/// The number of the first item, and where the items go, if that is said.
pub(crate) type Placement = (u64, Option<Place>);

/// How items `E` are pushed to a queue in memory whose order is `R`.
pub(crate) trait Staging<E, R: Order<E>>: 'static {
    fn stage(
        tx: &OwnedTransaction<E, R>,
        entry: E,
        place: Placement,
        caller: Caller,
    ) -> impl Future<Output = Result<(), PushError<E>>> + Send + '_;

    fn stage_batch(
        tx: &OwnedTransaction<E, R>,
        entries: Vec<E>,
        place: Placement,
        caller: Caller,
    ) -> impl Future<Output = Result<(), PushError<Vec<E>>>> + Send + '_;

    /// Adds an item of an earlier process, which was delivered `attempts` times.
    fn restore(
        queue: &mut Restore<'_, E, R>,
        entry: E,
        place: Placement,
        attempts: u32,
        delay: Duration,
    );
}

/// Without a place.
#[derive(Debug)]
pub(crate) struct Plain;

impl<E: Send, R: Order<E>> Staging<E, R> for Plain {
    #[inline]
    fn stage(
        tx: &OwnedTransaction<E, R>,
        entry: E,
        _: Placement,
        caller: Caller,
    ) -> impl Future<Output = Result<(), PushError<E>>> + Send + '_ {
        let staging = call!(caller, tx.[push_waiting push_async](entry));
        staging.end()
    }

    fn stage_batch(
        tx: &OwnedTransaction<E, R>,
        entries: Vec<E>,
        _: Placement,
        caller: Caller,
    ) -> impl Future<Output = Result<(), PushError<Vec<E>>>> + Send + '_ {
        let staging = call!(caller, tx.[push_batch_waiting push_batch_async](entries));
        async { staging.end().await.map(drop) }
    }

    fn restore(
        queue: &mut Restore<'_, E, R>,
        entry: E,
        _: Placement,
        attempts: u32,
        delay: Duration,
    ) {
        queue.add(entry, attempts, delay);
    }
}

/// With a ticket, a priority and a due time.
#[derive(Debug)]
pub(crate) struct Placed;

impl<E: Send, R: Prioritized<E>> Staging<E, R> for Placed {
    fn stage(
        tx: &OwnedTransaction<E, R>,
        entry: E,
        place: Placement,
        caller: Caller,
    ) -> impl Future<Output = Result<(), PushError<E>>> + Send + '_ {
        let to = with_place(tx, place);
        let staging = call!(caller, to.[push_waiting push_async](entry));
        async { staging.end().await.map(drop).map_err(in_range) }
    }

    fn stage_batch(
        tx: &OwnedTransaction<E, R>,
        entries: Vec<E>,
        place: Placement,
        caller: Caller,
    ) -> impl Future<Output = Result<(), PushError<Vec<E>>>> + Send + '_ {
        let to = with_place(tx, place);
        let staging = call!(caller, to.[push_batch_waiting push_batch_async](entries));
        async { staging.end().await.map(drop).map_err(in_range) }
    }

    fn restore(
        queue: &mut Restore<'_, E, R>,
        entry: E,
        place: Placement,
        attempts: u32,
        delay: Duration,
    ) {
        let (first, place) = place;
        let (ticket, Place { priority, due }) =
            (Ticket::of_store(first), place.unwrap_or_default());
        queue.add_with(entry, ticket, priority, due, attempts, delay);
    }
}

fn with_place<E: Send, R: Prioritized<E>>(
    tx: &OwnedTransaction<E, R>,
    (first, place): Placement,
) -> PushWith<&Transaction<'static, E, R>> {
    let place = place.unwrap_or_default();
    let view = tx.priority(place.priority).numbered(first);
    match place.due {
        Some(due) => view.at(due),
        None => view,
    }
}

/// The error of a push whose priority was checked before.
fn in_range<I: Send>(error: PriorityError<I>) -> PushError<I> {
    match error {
        PriorityError::Full(item) | PriorityError::OutOfRange(item) => PushError::Full(item),
        PriorityError::Closed(item) => PushError::Closed(item),
    }
}
