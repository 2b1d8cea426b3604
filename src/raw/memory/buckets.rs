//! Tables that grow by buckets, which do not move.

use crate::sync::{exclusive, weak, AtomicPtr, Ordering};
use std::marker::PhantomData;
use std::ptr;

/// Buckets that are allocated when they are first used, and live as long as the table.
pub(in crate::raw) struct Buckets<B, const N: usize> {
    buckets: [AtomicPtr<B>; N],
    /// The table owns the buckets, and gives out references to them.
    owned: PhantomData<B>,
}

impl<B, const N: usize> Buckets<B, N> {
    pub(in crate::raw) fn new() -> Self {
        Self {
            buckets: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
            owned: PhantomData,
        }
    }

    #[inline]
    pub(in crate::raw) fn get(&self, index: usize) -> Option<&B> {
        // ORDERING: Acquire; pairs with `buckets.add`.
        let bucket = self.buckets[index].load(weak!("buckets.get", Acquire));
        // SAFETY: buckets live as long as the table.
        unsafe { bucket.as_ref() }
    }

    /// A bucket that the caller knows to be there.
    #[inline]
    pub(in crate::raw) fn existing(&self, index: usize) -> &B {
        // ORDERING: Relaxed; what the caller knows it by was written after the bucket was added.
        let bucket = self.buckets[index].load(Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { bucket.as_ref() }.expect("the bucket was added before")
    }

    /// The bucket, which is made if there is none.
    pub(in crate::raw) fn get_or_add(&self, index: usize, make: impl FnOnce() -> B) -> &B {
        self.get(index).unwrap_or_else(|| self.add(index, make()))
    }

    #[cold]
    fn add(&self, index: usize, bucket: B) -> &B {
        let new = Box::into_raw(Box::new(bucket));
        // ORDERING: Release; pairs with `buckets.get`. Acquire on failure: another thread's, as above.
        let added = self.buckets[index].compare_exchange(
            ptr::null_mut(),
            new,
            weak!("buckets.add", Release),
            weak!("buckets.other", Acquire),
        );
        let bucket = added.map_or_else(
            |theirs| {
                // SAFETY: not shared.
                drop(unsafe { Box::from_raw(new) });
                theirs
            },
            |_| new,
        );
        // SAFETY: as above.
        unsafe { &*bucket }
    }
}

impl<B, const N: usize> Drop for Buckets<B, N> {
    fn drop(&mut self) {
        for bucket in &mut self.buckets {
            let bucket = exclusive(bucket);
            if !bucket.is_null() {
                // SAFETY: made by `Box::into_raw`, and not shared any more.
                drop(unsafe { Box::from_raw(bucket) });
            }
        }
    }
}
