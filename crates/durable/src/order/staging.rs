//! Pushes in memory.

use super::Place;
use crate::call::{call, Call, Caller};
use requeue::priority::{PriorityError, PushWith};
use requeue::{Order, OwnedTransaction, Prioritized, PushError, Restore, Ticket, Transaction};
use std::future::Future;
use std::time::Duration;

/// The number of the first item, and where the items go, if that is said.
pub(crate) type Placement = (u64, Option<Place>);

type Tx<E, R> = OwnedTransaction<E, R>;

/// A push in memory, of one item or of many.
pub(crate) trait Staged<I>: Future<Output = Result<(), PushError<I>>> + Send {}

impl<I, F: Future<Output = Result<(), PushError<I>>> + Send> Staged<I> for F {}

/// How items `E` are pushed to a queue in memory whose order is `R`.
pub(crate) trait Staging<E, R: Order<E>>: 'static {
    fn stage(tx: &Tx<E, R>, entry: E, place: Placement, caller: Caller) -> impl Staged<E> + '_;

    fn stage_batch(
        tx: &Tx<E, R>,
        entries: Vec<E>,
        place: Placement,
        caller: Caller,
    ) -> impl Staged<Vec<E>> + '_;

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
    fn stage(tx: &Tx<E, R>, entry: E, _: Placement, caller: Caller) -> impl Staged<E> + '_ {
        let staging = call!(caller, tx.[push_waiting push_async](entry));
        staging.end()
    }

    fn stage_batch(
        tx: &Tx<E, R>,
        entries: Vec<E>,
        _: Placement,
        caller: Caller,
    ) -> impl Staged<Vec<E>> + '_ {
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
    fn stage(tx: &Tx<E, R>, entry: E, place: Placement, caller: Caller) -> impl Staged<E> + '_ {
        let to = with_place(tx, place);
        let staging = call!(caller, to.[push_waiting push_async](entry));
        async { staging.end().await.map(drop).map_err(in_range) }
    }

    fn stage_batch(
        tx: &Tx<E, R>,
        entries: Vec<E>,
        place: Placement,
        caller: Caller,
    ) -> impl Staged<Vec<E>> + '_ {
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
    tx: &Tx<E, R>,
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
