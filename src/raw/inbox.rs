//! An inbox: a stack that many fill without waiting, and that is emptied as a whole.
//!
//! What is put in lies in an node that was set aside before, so that putting it in allocates
//! nothing.

use crate::sync::{exclusive, weak, AtomicPtr, Ordering};
use std::ptr;

/// Takes in values in any number of threads, and gives them out all at once.
pub(crate) struct Inbox<N> {
    top: AtomicPtr<InboxNode<N>>,
}

/// A place for one value.
struct InboxNode<N> {
    value: Option<N>,
    below: *mut InboxNode<N>,
}

/// An empty node.
pub(crate) struct Vacant<N>(Box<InboxNode<N>>);

// SAFETY: it holds no value, and refers to no other node.
unsafe impl<N: Send> Send for Vacant<N> {}
// SAFETY: by shared reference nothing of it can be used.
unsafe impl<N: Send> Sync for Vacant<N> {}

impl<N> Vacant<N> {
    pub(crate) fn new() -> Self {
        Self(Box::new(InboxNode {
            value: None,
            below: ptr::null_mut(),
        }))
    }
}

// SAFETY: values move from one thread to another, never by shared reference.
unsafe impl<N: Send> Send for Inbox<N> {}
// SAFETY: as above.
unsafe impl<N: Send> Sync for Inbox<N> {}

impl<N> Inbox<N> {
    pub(crate) fn new() -> Self {
        Self {
            top: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Puts a value in. Lock-free, and allocates nothing.
    pub(crate) fn put(&self, node: Vacant<N>, value: N) {
        let mut node = node.0;
        node.value = Some(value);
        // ORDERING: Relaxed; the CAS below checks it.
        node.below = self.top.load(Ordering::Relaxed);
        let node = Box::into_raw(node);
        loop {
            // SAFETY: not shared yet.
            let below = unsafe { (*node).below };
            // ORDERING: Release; pairs with `inbox.take-all`: the value. Relaxed on failure, as above.
            match self.top.compare_exchange_weak(
                below,
                node,
                weak!("inbox.put", Release),
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                // SAFETY: as above.
                Err(now) => unsafe { (*node).below = now },
            }
        }
    }

    /// Takes all values out, the oldest first.
    pub(crate) fn take_all(&self) -> Vec<N> {
        // ORDERING: Acquire; pairs with `inbox.put`.
        let acquire = weak!("inbox.take-all", Acquire);
        let top = self.top.swap(ptr::null_mut(), acquire);
        // SAFETY: nobody else can reach these node any more.
        unsafe { open_all(top) }
    }
}

impl<N> Drop for Inbox<N> {
    fn drop(&mut self) {
        // SAFETY: `&mut self`: nobody else is there.
        drop(unsafe { open_all(exclusive(&mut self.top)) });
    }
}

/// Frees the node from `at` on, and returns their values, the last one first.
///
/// # Safety
///
/// They are the caller's alone.
unsafe fn open_all<N>(mut at: *mut InboxNode<N>) -> Vec<N> {
    let mut values = Vec::new();
    while !at.is_null() {
        // SAFETY: made by `Box::into_raw`, and the caller's.
        let node = unsafe { Box::from_raw(at) };
        at = node.below;
        values.extend(node.value);
    }
    values.reverse();
    values
}
