//! An inbox: a lock-free stack with many producers that is emptied as a whole.
//!
//! Values are put into nodes allocated in advance, so that putting one in allocates nothing.

use crate::sync::{exclusive, weak, AtomicPtr, Ordering};
use std::mem::size_of;
use std::ptr;

/// Bytes of empty nodes that a list keeps for the next transaction.
const KEPT_BYTES: usize = 8 * 1024;

/// Receives values from any number of threads, and returns them all at once.
pub(crate) struct Inbox<N> {
    top: AtomicPtr<InboxNode<N>>,
}

/// A node for one value.
struct InboxNode<N> {
    value: Option<N>,
    below: *mut InboxNode<N>,
}

/// An empty node.
pub(crate) struct Vacant<N>(Box<InboxNode<N>>);

// SAFETY: it contains no value, and refers to no other node.
unsafe impl<N: Send> Send for Vacant<N> {}
// SAFETY: a shared reference gives no access.
unsafe impl<N: Send> Sync for Vacant<N> {}

impl<N> Vacant<N> {
    pub(crate) fn new() -> Self {
        Self(Box::new(InboxNode {
            value: None,
            below: ptr::null_mut(),
        }))
    }
}

/// Empty nodes.
pub(crate) struct VacantList<N>(Vec<Vacant<N>>);

impl<N> VacantList<N> {
    /// The number of nodes that are kept for the next transaction: as many as fit into a few KiB, at least one.
    const KEPT_NODES: usize = {
        let fitting = KEPT_BYTES / size_of::<InboxNode<N>>();
        fitting + (fitting == 0) as usize
    };

    pub(crate) fn new() -> Self {
        Self(Vec::new())
    }

    /// Allocates nodes until there are `count`.
    pub(crate) fn fill(&mut self, count: usize) {
        let more = count.saturating_sub(self.0.len());
        self.0.extend((0..more).map(|_| Vacant::new()));
    }

    pub(crate) fn pop(&mut self) -> Option<Vacant<N>> {
        self.0.pop()
    }

    /// Whether there are more than are kept for the next transaction.
    pub(crate) fn is_long(&self) -> bool {
        self.0.len() > Self::KEPT_NODES
    }

    /// Frees all of a long list: an abort that would keep some would allocate.
    pub(crate) fn shorten(&mut self) {
        if self.is_long() {
            self.0 = Vec::new();
        }
    }
}

// SAFETY: values move between threads, and are never shared.
unsafe impl<N: Send> Send for Inbox<N> {}
// SAFETY: as above.
unsafe impl<N: Send> Sync for Inbox<N> {}

impl<N> Inbox<N> {
    pub(crate) fn new() -> Self {
        Self {
            top: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Puts a value in, without allocation. Lock-free.
    pub(crate) fn put(&self, node: Vacant<N>, value: N) {
        let mut node = node.0;
        node.value = Some(value);
        // ORDERING: Relaxed; the CAS below checks it.
        node.below = self.top.load(Ordering::Relaxed);
        let node = Box::into_raw(node);
        loop {
            // SAFETY: the node is not shared yet.
            let below = unsafe { (*node).below };
            // ORDERING: Release; pairs with `inbox.take-all`: publishes the value. Relaxed on failure, as above.
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
        // SAFETY: these nodes are no longer reachable for other threads.
        unsafe { into_values(top) }
    }
}

impl<N> Drop for Inbox<N> {
    fn drop(&mut self) {
        // SAFETY: `&mut self`.
        drop(unsafe { into_values(exclusive(&mut self.top)) });
    }
}

/// Frees the nodes from `at` on, and returns their values, the last one first.
///
/// # Safety
///
/// The caller has exclusive access to the nodes.
unsafe fn into_values<N>(mut at: *mut InboxNode<N>) -> Vec<N> {
    let mut values = Vec::new();
    while !at.is_null() {
        // SAFETY: created by `Box::into_raw`; exclusive by contract.
        let node = unsafe { Box::from_raw(at) };
        at = node.below;
        values.extend(node.value);
    }
    values.reverse();
    values
}
