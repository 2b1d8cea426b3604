//! A value that one has and others keep alive, for a held item that was found by a reference to it.
//!
//! All waiting is that of the future that finds.

use super::item_ref::ItemRef;
use std::future::Future;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::Arc;

/// The value, at an address that does not change.
struct Inner<X>(X);

// SAFETY: only its one `User` has references to it, which is `Sync` where `X` is. Others drop it, or take it out, if
// they are the last.
unsafe impl<X: Send> Sync for Inner<X> {}

/// A future that finds a held item by a reference to what holds it.
pub(crate) type Finding<'t, T, E> =
    Pin<Box<dyn Future<Output = Result<ItemRef<'t, T>, E>> + Send + 't>>;

/// A value that is kept, with its user, and an item of it.
pub(crate) struct Kept<X, T> {
    pub(crate) keeper: Keeper<X>,
    pub(crate) user: User<X>,
    pub(crate) reference: KeptRef<X, T>,
}

impl<X: Send, T> Kept<X, T> {
    /// Keeps the value for the item that is found in it; it comes back if there is none.
    pub(crate) async fn find<E>(
        value: X,
        find: impl for<'t> FnOnce(&'t X) -> Finding<'t, T, E>,
    ) -> Result<Self, (E, X)> {
        let value = Arc::new(Inner(value));
        let found = find(&value.0).await;
        // What was found is good as long as the value is only used by shared reference: `find` had nothing else, as it has
        // to do for any lifetime. It ends here, and from now on a keeper stands for it.
        match found.map(ItemRef::into_parts) {
            Ok((item, attempts)) => Ok(Self::new(value, item, attempts)),
            Err(error) => {
                let Inner(value) = Arc::into_inner(value).expect("shared with nobody yet");
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

/// Keeps the value alive, and takes it out as the last one.
pub(crate) struct Keeper<X>(Arc<Inner<X>>);

impl<X> Keeper<X> {
    /// The value, if nobody else has or keeps it. If not, the last of them drops it.
    pub(crate) fn into_value(self) -> Option<X> {
        Arc::into_inner(self.0).map(|Inner(value)| value)
    }
}

/// The one that has the value, by shared reference.
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

/// The reference to an item of the value, which it keeps alive.
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

    /// The reference for its end.
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
        // SAFETY: found by a reference to the value, which lives, does not move, and has been used by shared reference
        // alone since. So the reference that was found would still be good, and this is made of it.
        unsafe { self.item.as_ref() }
    }
}

impl<X, T> DerefMut for KeptRef<X, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; it is the only reference.
        unsafe { self.item.as_mut() }
    }
}

/// A kept reference that is given out once, and not used by itself any more.
pub(crate) struct LastRef<X, T> {
    item: Option<NonNull<T>>,
    attempts: u32,
    _keeper: Keeper<X>,
}

impl<X, T> LastRef<X, T> {
    /// # Panics
    ///
    /// If it was taken.
    pub(crate) fn take(&mut self) -> ItemRef<'_, T> {
        let item = self.item.take().expect("taken once");
        // SAFETY: as in `KeptRef::deref`, while the keeper is borrowed; it is the only reference, as it was taken.
        unsafe { ItemRef::new(item.as_ptr(), self.attempts) }
    }
}
