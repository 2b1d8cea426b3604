//! What is made at the first need, and lives as long as what it is in: a box, and a table of boxes.

use crate::sync::{exclusive, weak, AtomicPtr, Ordering};
use std::marker::PhantomData;
use std::ptr;

/// A box that the first thread that needs it fills, for good.
pub(crate) struct OnceBox<B> {
    value: AtomicPtr<B>,
    /// It owns the value, and gives out references to it.
    owned: PhantomData<B>,
}

// SAFETY: it owns the value.
unsafe impl<B: Send> Send for OnceBox<B> {}
// SAFETY: a shared reference gives one to the value, and may make it on any thread.
unsafe impl<B: Send + Sync> Sync for OnceBox<B> {}

impl<B> Default for OnceBox<B> {
    fn default() -> Self {
        Self {
            value: AtomicPtr::new(ptr::null_mut()),
            owned: PhantomData,
        }
    }
}

impl<B> OnceBox<B> {
    #[inline]
    pub(crate) fn get(&self) -> Option<&B> {
        // ORDERING: Acquire; pairs with `once.add`.
        let value = self.value.load(weak!("once.get", Acquire));
        // SAFETY: a value lives as long as the box.
        unsafe { value.as_ref() }
    }

    /// The value that the caller knows to be there.
    #[inline]
    pub(in crate::raw) fn existing(&self) -> &B {
        // ORDERING: Relaxed; what the caller knows it by was written after the value was added.
        #[cfg(not(loom))]
        let value = self.value.load(Ordering::Relaxed);
        // SAFETY: no other thread writes it: what is added stays. Loom checks that the addition happened before, and need not
        // explore the load.
        #[cfg(loom)]
        let value = unsafe { self.value.unsync_load() };
        // SAFETY: as above.
        unsafe { value.as_ref() }.expect("the value was added before")
    }

    /// The value, which is made if there is none. Of several threads that make one, one keeps it.
    #[inline]
    pub(crate) fn get_or_add(&self, make: impl FnOnce() -> B) -> &B {
        self.get().unwrap_or_else(|| self.add(make()))
    }

    #[cold]
    fn add(&self, value: B) -> &B {
        let new = Box::into_raw(Box::new(value));
        // ORDERING: Release; pairs with `once.get`. Acquire on failure: another thread's, as above.
        let added = self.value.compare_exchange(
            ptr::null_mut(),
            new,
            weak!("once.add", Release),
            weak!("once.other", Acquire),
        );
        let value = added.map_or_else(
            |theirs| {
                // SAFETY: not shared.
                drop(unsafe { Box::from_raw(new) });
                theirs
            },
            |_| new,
        );
        // SAFETY: as above.
        unsafe { &*value }
    }
}

impl<B> Drop for OnceBox<B> {
    fn drop(&mut self) {
        let value = exclusive(&mut self.value);
        if !value.is_null() {
            // SAFETY: made by `Box::into_raw`, and not shared any more.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}

/// Buckets from number 1 on, each made when it is first used, and so is the table of all but the first one, since most tables
/// need no other.
pub(in crate::raw) struct Buckets<B, const MORE: usize> {
    first: OnceBox<B>,
    more: OnceBox<[OnceBox<B>; MORE]>,
}

impl<B, const MORE: usize> Buckets<B, MORE> {
    pub(in crate::raw) fn new() -> Self {
        Self {
            first: OnceBox::default(),
            more: OnceBox::default(),
        }
    }

    #[inline]
    pub(in crate::raw) fn get(&self, number: usize) -> Option<&B> {
        match number {
            1 => self.first.get(),
            _ => self.more.get()?[number - 2].get(),
        }
    }

    /// A bucket that the caller knows to be there.
    #[inline]
    pub(in crate::raw) fn existing(&self, number: usize) -> &B {
        match number {
            1 => self.first.existing(),
            _ => self.more.existing()[number - 2].existing(),
        }
    }

    /// The bucket, which is made if there is none.
    pub(in crate::raw) fn get_or_add(&self, number: usize, make: impl FnOnce() -> B) -> &B {
        let more = || std::array::from_fn(|_| OnceBox::default());
        match number {
            1 => self.first.get_or_add(make),
            _ => self.more.get_or_add(more)[number - 2].get_or_add(make),
        }
    }
}
