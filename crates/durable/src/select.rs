//! The first item of several queues.

use crate::call::{now, Call, Caller};
use crate::delivery::RamItem;
use crate::error::PopError;
use crate::item::Item;
use crate::order::{EntryOf, Order};
use crate::transaction::Local;
use crate::{Handle, Transaction};
use std::borrow::BorrowMut;
use std::future::Future;

requeue::verb! {
    pop_any[<T: Send + 'static, O: Order<T>, H: BorrowMut<Handle<T, O>>>](handles: &mut [H]) -> Result<(usize, T), PopError>,
        |wait| now(pop(handles, Caller::Thread(wait)));
    blocking:
    /// Pops from the first of several queues that has an item, and waits until one has. Returns the index of the handle and the
    /// item; the pop is durable when it returns.
    ///
    /// If several have items, the first of them in the list is used. Closed and drained queues are skipped.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// use requeue_durable::pop_any;
    ///
    /// let (urgent, normal) = (store.queue("urgent")?, store.queue("normal")?);
    /// normal.push("sweep".to_string())?;
    /// let mut handles = [urgent.handle(), normal.handle()];
    /// assert_eq!(pop_any(&mut handles)?, (1, "sweep".to_string()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PopError::Closed`] if all of the queues are closed and drained, or if there are none; [`PopError::Store`].
    timed: "Pops from the first of several queues that has an item", "one, by the clock of the first queue",
    /// use requeue_durable::*;
    ///
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// let (mut a, mut b) = (store.queue::<u32>("a")?.handle(), store.queue("b")?.handle());
    nothing = (&mut [a, b]);
    /// assert!(nothing.unwrap_err().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PopError::Empty`] on timeout, otherwise as for [`pop_any`].
}

/// As [`pop_any`], in a task.
///
/// # Errors
///
/// As for [`pop_any`].
///
/// # Cancel safety
///
/// As for [`Handle::pop_async`].
pub async fn pop_any_async<T: Send + 'static, O: Order<T>, H: BorrowMut<Handle<T, O>>>(
    handles: &mut [H],
) -> Result<(usize, T), PopError> {
    pop(handles, Caller::Task).await
}

async fn pop<T: Send + 'static, O: Order<T>, H: BorrowMut<Handle<T, O>>>(
    handles: &mut [H],
    caller: Caller,
) -> Result<(usize, T), PopError> {
    let handles = handles.iter_mut();
    let mut transactions: Vec<_> = handles.map(|handle| handle.borrow_mut().begin()).collect();
    let (index, _) = first::<T, O>(split(&transactions), caller).await?;
    let tx = transactions.swap_remove(index);
    drop(transactions); // so that their handles are free while this one waits for the disk
    let mut taken = tx.commit_by(caller).await?;
    Ok((index, taken.next().expect("the transaction held an item")))
}

requeue::verb! {
    hold_any[<'t, 'h: 't, T: Send + 'static, O: Order<T>>](transactions: impl IntoIterator<Item = &'t Transaction<'h, T, O>>) -> Result<(usize, Item<'t, T, O>), PopError>,
        |wait| now(hold(transactions, Caller::Thread(wait)));
    blocking:
    /// Pops from the first of several queues that has an item, and holds it in its transaction; waits until one has. Returns the
    /// index of the transaction and the item.
    ///
    /// Takes borrowed transactions: `&transactions` of a `Vec` or an array, or `[&a, &b]`. Otherwise as [`pop_any`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// use requeue_durable::hold_any;
    ///
    /// let (urgent, normal) = (store.queue("urgent")?, store.queue("normal")?);
    /// normal.push("sweep".to_string())?;
    /// let (mut from_urgent, mut from_normal) = (urgent.handle(), normal.handle());
    /// let (first, second) = (from_urgent.begin(), from_normal.begin());
    /// let (which, job) = hold_any([&first, &second])?;
    /// assert_eq!((which, job.as_str()), (1, "sweep"));
    /// second.commit()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`requeue::hold_any`], and [`PopError::Store`] if the item could not be read; it is held nevertheless.
    ///
    /// # Panics
    ///
    /// If one of the transactions is in use by a future or a peek, or listed twice.
    timed: "Pops from the first of several queues that has an item, and holds it", "one, by the clock of the first queue",
    /// use requeue_durable::*;
    ///
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// let (mut a, mut b) = (store.queue::<u32>("a")?.handle(), store.queue("b")?.handle());
    /// let (first, second) = (a.begin(), b.begin());
    nothing = ([&first, &second]);
    /// assert!(nothing.unwrap_err().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PopError::Empty`] on timeout, otherwise as for [`hold_any`].
    ///
    /// # Panics
    ///
    /// As for [`hold_any`].
}

/// As [`hold_any`], in a task. Dropping the future loses nothing.
///
/// # Errors
///
/// As for [`hold_any`].
///
/// # Panics
///
/// As for [`hold_any`].
#[track_caller]
pub fn hold_any_async<'t, 'h: 't, T: Send + 'static, O: Order<T>>(
    transactions: impl IntoIterator<Item = &'t Transaction<'h, T, O>>,
) -> impl Future<Output = Result<(usize, Item<'t, T, O>), PopError>> + 't {
    hold(transactions, Caller::Task)
}

#[track_caller]
fn hold<'t, 'h: 't, T: Send + 'static, O: Order<T>>(
    transactions: impl IntoIterator<Item = &'t Transaction<'h, T, O>>,
    caller: Caller,
) -> impl Future<Output = Result<(usize, Item<'t, T, O>), PopError>> + 't {
    let cores = split(transactions);
    let holding = first::<T, O>(cores.clone(), caller);
    async move {
        let (index, item) = holding.await?;
        let (local, tx) = cores[index];
        let shared = &local.shared;
        if shared.max_attempts.is_none() {
            return Ok((index, shared.hand_out(item)?));
        }
        let delivery = (item.id, item.attempts());
        // Dropped after the delivery is taken back.
        let mut held = Held::<T, O>(Some(item), tx);
        shared.mark_one(delivery, caller).await?;
        let item = held.0.take().expect("it is held until here");
        Ok((index, shared.hand_out(item)?))
    }
}

/// Waits for the first item, which is not handed out.
#[track_caller]
fn first<T: Send + 'static, O: Order<T>>(
    cores: Vec<Split<'_, T, O>>,
    caller: Caller,
) -> impl Future<Output = Result<(usize, RamItem<'_, T, O>), PopError>> + '_ {
    for (local, _) in &cores {
        local.begin_pop(&[]);
    }
    let rams = || cores.iter().map(|(_, ram)| *ram).collect::<Vec<_>>();
    let holding = match caller {
        Caller::Thread(wait) => Call::Ended(loop {
            let before: Vec<_> = cores.iter().map(|(local, _)| local.pages_read()).collect();
            let held = requeue::hold_any_waiting(rams(), wait);
            let mut queues = cores.iter().zip(before);
            if held.is_ok() || !queues.any(|((local, _), before)| local.has_more(before)) {
                break held;
            }
        }),
        Caller::Task => Call::Pends(requeue::hold_any_async(rams())),
    };
    async move {
        let held = holding.end().await;
        for (index, (local, _)) in cores.iter().enumerate() {
            match &held {
                Ok((first, _)) if *first == index => local.end_pop(1)?,
                Ok(_) => {}
                Err(_) => local.end_pop(0)?,
            }
        }
        Ok(held?)
    }
}

/// A transaction, with that in memory.
type Split<'t, T, O> = (&'t Local<T, O>, Ram<'t, T, O>);

type Ram<'t, T, O> =
    &'t requeue::Transaction<'static, EntryOf<T, O>, <O as crate::order::Engine<T>>::Ram>;

fn split<'t, 'h: 't, T: Send + 'static, O: Order<T>>(
    transactions: impl IntoIterator<Item = &'t Transaction<'h, T, O>>,
) -> Vec<Split<'t, T, O>> {
    let cores = transactions.into_iter().map(Transaction::core);
    cores.map(|core| (&*core.local, &*core.ram)).collect()
}

/// An item that is held, and given back when this is dropped, unless it was taken out.
struct Held<'t, T: Send + 'static, O: Order<T>>(Option<RamItem<'t, T, O>>, Ram<'t, T, O>);

impl<T: Send + 'static, O: Order<T>> Drop for Held<'_, T, O> {
    fn drop(&mut self) {
        if let Some(item) = self.0.take() {
            // On an error it stays held.
            let _ = self.1.put_back(item);
        }
    }
}
