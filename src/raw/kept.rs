//! A value with one user that others keep alive, for a held item that was found by a reference to it.
//!
//! Only the future that finds the item waits.

use super::item_ref::ItemRef;
use std::future::Future;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::Arc;

/// The value, at an address that does not change.
struct Inner<X>(X);

// SAFETY: only its one `User` has references to it, and is `Sync` where `X` is. The others only drop it, or take it
// out, as the last owner.
unsafe impl<X: Send> Sync for Inner<X> {}

/// A future that finds a held item by a reference to what holds it.
pub(crate) type Finding<'t, T, E> =
    Pin<Box<dyn Future<Output = Result<ItemRef<'t, T>, E>> + Send + 't>>;

/// A value that is kept alive, with its user and an item in it.
pub(crate) struct Kept<X, T> {
    pub(crate) keeper: Keeper<X>,
    pub(crate) user: User<X>,
    pub(crate) reference: KeptRef<X, T>,
}

impl<X: Send, T> Kept<X, T> {
    /// Keeps the value alive for the item that `find` finds in it; returns the value on an error.
    pub(crate) async fn find<E>(
        value: X,
        find: impl for<'t> FnOnce(&'t X) -> Finding<'t, T, E>,
    ) -> Result<Self, (E, X)> {
        let value = Arc::new(Inner(value));
        let found = find(&value.0).await;
        // The item is valid as long as the value is used by shared reference only: `find` has nothing else, since it
        // must work for any lifetime. The reference ends here, and from now on a keeper replaces it.
        match found.map(ItemRef::into_parts) {
            Ok((item, attempts)) => Ok(Self::new(value, item, attempts)),
            Err(error) => {
                let Inner(value) = Arc::into_inner(value).expect("the value is not shared yet");
                Err((error, value))
            }
        }
    }

    fn new(value: Arc<Inner<X>>, item: NonNull<T>, attempts: u32) -> Self {
        Self {
            reference: KeptRef {
                item,
                attempts,
                keeper: Keeper(Arc::clone(&value)),
            },
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

impl<X> Keeper<X> {
    /// Returns the value if this is its last owner. Otherwise the last one drops it.
    pub(crate) fn into_value(self) -> Option<X> {
        Arc::into_inner(self.0).map(|Inner(value)| value)
    }
}

/// The one user of the value, by shared reference.
pub(crate) struct User<X> {
    value: Arc<Inner<X>>,
    used: PhantomData<X>,
}

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
