//! Waiting for the first item of several queues, shared by handles that pop and transactions that hold.

use super::sealed::Borrowed;
use crate::core::CellOf;
use crate::future::Borrowing;
use crate::order::Order;
use crate::time::{Time, Wait};
use crate::wait::{block, spin, SpinStart, WakeTarget};
use crate::{Handle, Item, PopError};
use std::borrow::BorrowMut;
use std::future::{poll_fn, Future};
use std::task::Poll;

/// One of several queues that are polled for the first item.
pub(super) trait Pollable {
    type Item;

    /// Takes an item, or enters the wait queue if there is a wake target. `Pending` if the caller should wait.
    fn poll(&mut self, wake_target: Option<&WakeTarget<'_>>) -> Poll<Result<Self::Item, PopError>>;

    fn time(&mut self) -> Time;
}

/// A handle that pops, and leaves the wait queue on drop, also if a pace or a clock panics.
pub(super) struct Popping<'h, T, O: Order<T>>(&'h mut CellOf<T, O>);

pub(super) fn popping<T, O: Order<T>, H: BorrowMut<Handle<T, O>>>(
    handles: &mut [H],
    prepare: fn(&mut CellOf<T, O>),
) -> Vec<Popping<'_, T, O>> {
    let cells = handles.iter_mut().map(|handle| handle.borrow_mut().cell());
    let prepared = cells.map(|cell| {
        prepare(cell);
        Popping(cell)
    });
    prepared.collect()
}

impl<T, O: Order<T>> Pollable for Popping<'_, T, O> {
    type Item = T;

    fn poll(&mut self, wake_target: Option<&WakeTarget<'_>>) -> Poll<Result<T, PopError>> {
        match wake_target {
            Some(wake_target) => self.0.get_mut().poll_pop(wake_target),
            None => match self.0.pop() {
                Err(PopError::Empty) => Poll::Pending,
                other => Poll::Ready(other),
            },
        }
    }

    fn time(&mut self) -> Time {
        self.0.get_mut().shared().time.clone()
    }
}

impl<T, O: Order<T>> Drop for Popping<'_, T, O> {
    fn drop(&mut self) {
        self.0.end_waiting();
    }
}

/// A transaction that holds.
pub(super) struct Holding<'t, T, O: Order<T>> {
    borrowing: Borrowing<'t, T, O>,
    /// Whether one of the transactions that are polled together holds or has staged something.
    busy: bool,
}

#[track_caller]
pub(super) fn holding<'t, 'h: 't, T: 'h, O: Order<T> + 'h>(
    transactions: impl IntoIterator<Item = impl Borrowed<'t, 'h, T, O>>,
) -> Vec<Holding<'t, T, O>> {
    let (mut all, mut busy) = (Vec::new(), false);
    for borrowed in transactions {
        let borrowing = Borrowing(borrowed.transaction().local());
        busy |= borrowing.0.has_work();
        all.push(Holding { borrowing, busy });
    }
    for holding in &mut all {
        holding.busy = busy;
    }
    all
}

impl<'t, T, O: Order<T>> Pollable for Holding<'t, T, O> {
    type Item = Item<'t, T>;

    fn poll(
        &mut self,
        wake_target: Option<&WakeTarget<'_>>,
    ) -> Poll<Result<Item<'t, T>, PopError>> {
        let held = self.borrowing.0.poll_pop(wake_target, self.busy);
        held.map(|held| held.map(Item::new))
    }

    fn time(&mut self) -> Time {
        self.borrowing.0.shared().time.clone()
    }
}

/// Blocks the thread until the first item; without a timeout, forever.
pub(super) fn wait_for_first<S: Pollable>(
    sources: &mut [S],
    wait: Wait,
) -> Result<(usize, S::Item), PopError> {
    let Some(time) = sources.first_mut().map(S::time) else {
        return Err(PopError::Closed);
    };
    let mut found = None;
    if !wait.is_over(&time) {
        let (spun, _) = spin(
            sources,
            SpinStart::default(),
            |_| true,
            |all| first(all, None),
        );
        found = spun.or_else(|| {
            block(wait, &time, |wake_target| {
                first(sources, Some(wake_target)).map_or(Poll::Pending, Poll::Ready)
            })
        });
    }
    found
        .or_else(|| first(sources, None))
        .unwrap_or(Err(PopError::Empty))
}

/// A future that resolves to the first item.
pub(super) fn future_of<S: Pollable>(
    sources: Vec<S>,
) -> impl Future<Output = Result<(usize, S::Item), PopError>> {
    let mut waiting = Some(sources);
    poll_fn(move |context| {
        let sources = waiting.as_mut().expect("future polled after completion");
        let found = first(sources, Some(&WakeTarget::task(context.waker())));
        if found.is_some() {
            waiting = None;
        }
        found.map_or(Poll::Pending, Poll::Ready)
    })
}

/// Takes the first item. If none can come: `Closed` if all sources return it, otherwise `Empty`.
fn first<S: Pollable>(
    sources: &mut [S],
    wake_target: Option<&WakeTarget<'_>>,
) -> Option<Result<(usize, S::Item), PopError>> {
    let (mut over, mut said) = (0, PopError::Closed);
    for (index, source) in sources.iter_mut().enumerate() {
        match source.poll(wake_target) {
            Poll::Ready(Ok(item)) => return Some(Ok((index, item))),
            Poll::Ready(Err(error)) => {
                over += 1;
                if error.is_empty() {
                    said = error;
                }
            }
            Poll::Pending => {}
        }
    }
    (over == sources.len()).then_some(Err(said))
}
