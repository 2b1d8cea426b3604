//! A value with one user that others keep alive, for held items that were found by a reference to it.
//!
//! Only the future that finds the items waits.

use crate::raw::hold::item_ref::ItemRef;
use std::future::Future;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::Arc;

/// The value, at an address that does not change.
struct Inner<X>(X);

// SAFETY: only its one `User` has references to it, and says where it is `Sync`. The others only drop it, or take it
// out, as the last owner.
unsafe impl<X: Send> Sync for Inner<X> {}

/// A held item, and the others that were found with it.
pub(crate) type Found<'t, T> = (ItemRef<'t, T>, Vec<ItemRef<'t, T>>);

/// A value that may be used by several threads at the same time, by shared reference, while it is [lent](Lend::lend):
/// such a use begins with a borrow of the cell of the transaction in it, which is lent.
pub(crate) trait Lend {
    /// Lends the cell, or ends that.
    fn lend(&mut self, lent: bool);
}

/// A future that finds held items by a reference to what holds them.
pub(crate) type Finding<'t, T, E> =
    Pin<Box<dyn Future<Output = Result<Found<'t, T>, E>> + Send + 't>>;

/// A value that is kept alive, with its user and items in it.
pub(crate) struct Kept<X, T> {
    pub(crate) keeper: Keeper<X>,
    pub(crate) user: User<X>,
    pub(crate) first: KeptRef<X, T>,
    pub(crate) more: Vec<KeptRef<X, T>>,
}

impl<X: Send + Lend, T> Kept<X, T> {
    /// Keeps the value alive for the items that `find` finds in it; returns the value on an error.
    pub(crate) async fn find<E>(
        mut value: X,
        find: impl for<'t> FnOnce(&'t X) -> Finding<'t, T, E>,
    ) -> Result<Self, (E, X)> {
        value.lend(true);
        let value = Arc::new(Inner(value));
        let found = find(&value.0).await;
        // The items are valid as long as the value is used by shared reference only: `find` has nothing else, since it
        // must work for any lifetime. The references end here, and from now on keepers replace them.
        match found {
            Ok((first, more)) => {
                let keep = |reference: ItemRef<'_, T>| KeptRef::new(reference.into_parts(), &value);
                let (first, more) = (keep(first), more.into_iter().map(keep).collect());
                Ok(Self::new(value, first, more))
            }
            Err(error) => {
                let keeper = Keeper(value);
                Err((
                    error,
                    keeper.into_value().expect("the value is not shared yet"),
                ))
            }
        }
    }

    fn new(value: Arc<Inner<X>>, first: KeptRef<X, T>, more: Vec<KeptRef<X, T>>) -> Self {
        Self {
            first,
            more,
            keeper: Keeper(Arc::clone(&value)),
            user: User {
                value,
                used: PhantomData,
            },
        }
    }
}

/// Keeps the value alive. The last owner can take it out.
pub(crate) struct Keeper<X>(Arc<Inner<X>>);

impl<X: Lend> Keeper<X> {
    /// Returns the value if this is its last owner. Otherwise the last one drops it.
    pub(crate) fn into_value(self) -> Option<X> {
        let Inner(mut value) = Arc::into_inner(self.0)?;
        value.lend(false);
        Some(value)
    }
}

/// The one user of the value, by shared reference. Several threads may have references to it.
pub(crate) struct User<X> {
    value: Arc<Inner<X>>,
    used: PhantomData<X>,
}

// SAFETY: the value is lent as long as there is a user. So threads that use it at the same time by shared reference
// borrow the cell one after the other: the borrow is begun by a read-modify-write, which one of them wins, with
// Acquire, and ended with Release. What is borrowed is `Send`, as `X` is.
unsafe impl<X: Send + Lend> Sync for User<X> {}

impl<X> Deref for User<X> {
    type Target = X;

    fn deref(&self) -> &X {
        &self.value.0
    }
}

/// A reference to an item in the value, which it keeps alive.
pub(crate) struct KeptRef<X, T> {
    item: NonNull<T>,
    attempts: u32,
    keeper: Keeper<X>,
}

// SAFETY: an exclusive reference to the item, and a keeper.
unsafe impl<X: Send, T: Send> Send for KeptRef<X, T> {}
// SAFETY: as above; a shared reference to it reaches the item alone.
unsafe impl<X: Send, T: Sync> Sync for KeptRef<X, T> {}

impl<X, T> KeptRef<X, T> {
    fn new((item, attempts): (NonNull<T>, u32), value: &Arc<Inner<X>>) -> Self {
        let keeper = Keeper(Arc::clone(value));
        Self {
            item,
            attempts,
            keeper,
        }
    }

    pub(crate) fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Converts to a reference that can be taken once.
    pub(crate) fn into_last(self) -> LastRef<X, T> {
        LastRef {
            item: Some(self.item),
            attempts: self.attempts,
            _keeper: self.keeper,
        }
    }
}

impl<X, T> Deref for KeptRef<X, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: found by a reference to the value, which is alive, does not move, and has been used by shared
        // reference only since. So the reference that was found, of which this one is made, would still be valid.
        unsafe { self.item.as_ref() }
    }
}

impl<X, T> DerefMut for KeptRef<X, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; it is the only reference.
        unsafe { self.item.as_mut() }
    }
}

/// A kept reference that can be taken once.
pub(crate) struct LastRef<X, T> {
    item: Option<NonNull<T>>,
    attempts: u32,
    _keeper: Keeper<X>,
}

impl<X, T> LastRef<X, T> {
    /// # Panics
    ///
    /// If it was taken before.
    pub(crate) fn take(&mut self) -> ItemRef<'_, T> {
        let item = self.item.take().expect("the reference was taken before");
        // SAFETY: as in `KeptRef::deref`, while the keeper is borrowed; it is the only reference, since it was taken.
        unsafe { ItemRef::new(item.as_ptr(), self.attempts) }
    }
}
