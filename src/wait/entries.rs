//! The entries of a list of waiters, each with a number.

use super::record::State;
use std::num::NonZeroUsize;
use std::ops::{Index, IndexMut};
use std::sync::Arc;
use std::task::Waker;

/// Identifies the entry of a waiter: its number, from 1 on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct WaiterKey(NonZeroUsize);

/// The sequence number of a waiter, in the order of arrival.
pub(super) type Arrival = u64;

/// The number of a service, in the order in which they began.
pub(super) type Service = u64;

#[derive(Default)]
pub(super) struct Entries(Vec<ListNode>);

#[derive(Default)]
pub(super) struct ListNode {
    pub(super) state: Arc<State>,
    pub(super) linked: bool,
    pub(super) arrival: Arrival,
    pub(super) before: Option<WaiterKey>,
    pub(super) after: Option<WaiterKey>,
    /// `None`: it was woken, or is idle.
    pub(super) waker: Option<Waker>,
    /// Whether it was woken in vain.
    pub(super) vain: bool,
    /// The number of its service, if it was served since it waited last.
    pub(super) service: Option<Service>,
    /// Whether it keeps what it has obtained so far while it is the first.
    pub(super) gathers: bool,
}

impl Entries {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds an entry.
    pub(super) fn add(&mut self) -> WaiterKey {
        let index = self.0.len();
        self.0.push(ListNode::default());
        WaiterKey(NonZeroUsize::MIN.saturating_add(index))
    }
}

impl Index<WaiterKey> for Entries {
    type Output = ListNode;

    #[inline]
    fn index(&self, key: WaiterKey) -> &ListNode {
        &self.0[key.0.get() - 1]
    }
}

impl IndexMut<WaiterKey> for Entries {
    #[inline]
    fn index_mut(&mut self, key: WaiterKey) -> &mut ListNode {
        &mut self.0[key.0.get() - 1]
    }
}
