//! A value in an [`Arc`], and references into it that keep it alive.
//!
//! The items of a task's run are such references: the future of the run owns them, and is `'static`.

use std::future::Future;
use std::marker::PhantomData;
use std::mem::{self, ManuallyDrop, MaybeUninit};
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::ptr;
use std::sync::Arc;

/// A transaction as the owner of the items that it holds.
pub trait Holds: Send {
    /// The type of the items.
    type Item: Send;
    /// An item that the transaction holds.
    type Held<'t>: DerefMut<Target = Self::Item> + Send;
    /// What the functions of a [worker pool](crate::Workers) get beside the item, by reference.
    type View;

    /// How often the item was delivered, including this time.
    fn attempts(item: &Self::Held<'_>) -> u32;

    /// The last error with which a delivery of the item has failed before, if the queue keeps it.
    fn last_error(&self, item: &Self::Held<'_>) -> Option<Arc<str>> {
        let _ = item;
        None
    }

    /// The transaction as the functions of a worker pool get it.
    fn view(&self) -> &Self::View;

    /// Begins or ends the use by several threads at a time, by shared reference. For queues in memory.
    #[doc(hidden)]
    fn lend(&mut self, lent: bool) {
        let _ = lent;
    }
}

/// A transaction that several threads can use at a time. Then they can use the transaction of a task's run so, too.
pub trait Share: Holds + Sync {}

/// A transaction that is shared, or whose [`lend`](Holds::lend) lends the [cell](super::cell::LocalCell) that is all it has.
pub(crate) trait Lend: Holds {}

impl<X: Share> Lend for X {}

struct Inner<X>(X);

// SAFETY: only its one [`KeptTransaction`], or before that the one future that looks for items, has references to it; that says
// where it is `Sync`. The others only drop it, or take it out, as the last owner.
unsafe impl<X: Send> Sync for Inner<X> {}

/// Looks for items of a transaction.
pub(crate) type Finding<'t, X, E> =
    Pin<Box<dyn Future<Output = Result<Vec<<X as Holds>::Held<'t>>, E>> + Send + 't>>;

/// Keeps the value alive.
pub(crate) struct Keeper<X>(Arc<Inner<X>>);

impl<X: Holds + Send + 'static> Keeper<X> {
    pub(crate) fn new(mut value: X) -> Self {
        value.lend(true);
        Self(Arc::new(Inner(value)))
    }

    /// Finds items. `find` has nothing else than a reference to the value, since it must work for any lifetime.
    ///
    /// Only before the value has a [user](Self::user).
    pub(crate) async fn find<E>(
        &self,
        find: impl for<'t> FnOnce(&'t X) -> Finding<'t, X, E>,
    ) -> Result<Vec<KeptItem<X>>, E> {
        let found = find(&self.0 .0).await?;
        let keep = |held| KeptItem::new(held, &self.0);
        Ok(found.into_iter().map(keep).collect())
    }

    /// The only user of the value.
    pub(crate) fn user(&self) -> KeptTransaction<X> {
        KeptTransaction {
            value: Arc::clone(&self.0),
            used: PhantomData,
        }
    }

    /// Returns the value, if nobody else keeps it.
    pub(crate) fn into_value(self) -> Option<X> {
        let Inner(mut value) = Arc::into_inner(self.0)?;
        value.lend(false);
        Some(value)
    }
}

/// The transaction of a run of [`run_async`](crate::workers::PoolBuilder::run_on), owned by the run's future: [`TaskTransaction`](crate::TaskTransaction) for a
/// queue in memory.
///
/// It dereferences to what the backend [shows](Holds::View), for a queue in memory a
/// [`Transaction`](crate::Transaction), so it has all methods by `&self`, in all forms of waiting. It cannot be ended: the
/// pool commits or aborts, depending on the result of the run. Dropping it neither commits nor aborts.
///
/// An item that the run pops itself is an [`Item`](crate::Item): use `Transaction::retry(&tx, item)` for it. The methods of
/// the same names here are for the item of the run.
///
/// ```
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use requeue::{Queue, Workers};
///
/// let queue = Queue::bounded(1);
/// queue.push("request")?;
/// let tasks = Workers::builder(&queue).tasks(1).run_async(|job, tx| async move {
///     if *job == "request" {
///         tx.push_async("reply").await?; // takes its place
///     }
///     Ok::<_, requeue::PushError<&str>>(())
/// });
/// queue.wait_idle_async().await;
/// assert_eq!(queue.stats().committed, 2);
/// # tasks.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// The future of a run may be moved between threads while references to the item and to the transaction are in use,
/// so functions can take them:
///
/// ```
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use requeue::{PushError, Queue, TaskItem, TaskTransaction, Workers};
///
/// async fn halve(job: &TaskItem<u32>, tx: &TaskTransaction<u32>) -> Result<(), PushError<u32>> {
///     if **job > 1 {
///         tx.push_async(**job / 2).await?;
///     }
///     Ok(())
/// }
///
/// let queue = Queue::unbounded();
/// queue.push(8)?;
/// queue.close();
/// let tasks = Workers::builder(&queue).run_async(|job, tx| async move { halve(&job, &tx).await });
/// assert_eq!(tasks.join().await.done, 4); // 8, 4, 2, 1
/// # Ok::<(), PushError<u32>>(())
/// # }).unwrap();
/// ```
///
/// Several threads may use it at once, too. But their calls must not coincide: a call panics that finds another one
/// under way, as on a transaction that is [borrowed](crate::Transaction#borrowing).
// The only user of the value.
pub struct KeptTransaction<X> {
    value: Arc<Inner<X>>,
    used: PhantomData<X>,
}

// SAFETY: the value is `Sync`, or it is lent as long as there is a user. So threads that use it at the same time by shared reference
// borrow the cell one after the other: the borrow is begun by a read-modify-write, which one of them wins, with
// Acquire, and ended with Release. What is borrowed is `Send`, as `X` is.
unsafe impl<X: Send + Lend> Sync for KeptTransaction<X> {}

impl<X> KeptTransaction<X> {
    pub(crate) fn tx(&self) -> &X {
        &self.value.0
    }
}

deref!([X: Holds] KeptTransaction<X> => X::View, |kept| kept.tx().view());

/// The item of a run of [`run_async`](crate::workers::PoolBuilder::run_on), owned by the run's future: [`TaskItem`](crate::TaskItem) for a queue in
/// memory.
///
/// Dropping it does not give the item back: the pool commits or aborts the transaction of the run.
///
/// ```
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use requeue::{Queue, Workers};
///
/// let queue = Queue::unbounded();
/// queue.push(vec![1, 2])?;
/// queue.close();
/// let (send, mut sums) = tokio::sync::mpsc::unbounded_channel();
/// let tasks = Workers::builder(&queue).run_async(move |mut numbers, _tx| {
///     let attempts = numbers.attempts();
///     numbers.push(attempts);
///     let send = send.clone();
///     async move { send.send(numbers.iter().sum::<u32>()) }
/// });
/// assert_eq!(sums.recv().await, Some(4));
/// assert_eq!(tasks.join().await.done, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
// It keeps the value alive.
pub struct KeptItem<X: Holds + 'static> {
    /// Initialized until the drop. Not a plain field, since the references in it are shorter than their type says.
    held: MaybeUninit<X::Held<'static>>,
    keeper: Arc<Inner<X>>,
}

impl<X: Holds + 'static> KeptItem<X> {
    fn new<'t>(held: X::Held<'t>, keeper: &'t Arc<Inner<X>>) -> Self {
        // SAFETY: the lifetime is that of a reference to the value, which is alive as long as `keeper`, does not move, and
        // is used by shared reference only. All that is borrowed from `held` borrows `self`, so that nobody gets hold of
        // the longer lifetime.
        let held = MaybeUninit::new(unsafe { with_lifetime(held) });
        let keeper = Arc::clone(keeper);
        Self { held, keeper }
    }

    pub(crate) fn held(&self) -> &X::Held<'static> {
        // SAFETY: initialized until the drop.
        unsafe { self.held.assume_init_ref() }
    }

    /// Returns how often the item was delivered, this delivery included: see [`Item::attempts`](crate::Item::attempts).
    pub fn attempts(&self) -> u32 {
        X::attempts(self.held())
    }

    /// Gives the item to `settle`, with the transaction, and keeps the value alive until that returns.
    #[track_caller]
    pub(crate) fn settle<R>(
        self,
        user: &KeptTransaction<X>,
        settle: impl for<'t> FnOnce(&'t X, X::Held<'t>) -> R,
    ) -> R {
        let this = ManuallyDrop::new(self);
        // SAFETY: each field is moved out once, since `this` is not used any more. `keeper` is alive until the end.
        let (held, _keeper) = unsafe {
            let held = with_lifetime(this.held.assume_init_read());
            (held, ptr::read(&this.keeper))
        };
        settle(user.tx(), held)
    }
}

/// The same value, with another lifetime in its type.
///
/// # Safety
///
/// The types differ in lifetimes alone, and what they refer to is valid as long as the result is used.
unsafe fn with_lifetime<A, B>(value: A) -> B {
    let value = ManuallyDrop::new(value);
    // SAFETY: as above.
    unsafe { mem::transmute_copy(&*value) }
}

impl<X: Holds + 'static> Drop for KeptItem<X> {
    fn drop(&mut self) {
        // SAFETY: it is not used any more. The value is dropped after it, if at all.
        unsafe { self.held.assume_init_drop() }
    }
}

impl<X: Holds + 'static> Deref for KeptItem<X> {
    type Target = X::Item;

    fn deref(&self) -> &X::Item {
        self.held()
    }
}

impl<X: Holds + 'static> DerefMut for KeptItem<X> {
    fn deref_mut(&mut self) -> &mut X::Item {
        // SAFETY: as in `held`.
        unsafe { self.held.assume_init_mut() }
    }
}
