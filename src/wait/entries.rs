//! The entries of a list of waiters, each with a number.

use super::record::State;
use std::sync::Arc;
use std::task::Waker;

/// Identifies the entry of a waiter: its number. That of [`HEAD`] stands for none.
pub(super) type WaiterKey = usize;

/// The entry of no waiter, which is linked before the first one and after the last one.
pub(super) const HEAD: WaiterKey = 0;

/// The sequence number of a waiter, in the order of arrival.
pub(super) type Arrival = u64;

/// The number of a service, in the order in which they began.
pub(super) type Service = u64;

/// An entry of the list.
#[derive(Default)]
pub(super) struct ListNode {
    pub(super) state: Arc<State>,
    pub(super) arrival: Arrival,
    /// Its neighbours; itself if it is not linked.
    pub(super) before: WaiterKey,
    pub(super) after: WaiterKey,
    /// `None`: it was woken, or is idle.
    pub(super) waker: Option<Waker>,
    /// Whether it was woken in vain.
    pub(super) vain: bool,
    /// The number of its service, if it was served since it waited last.
    pub(super) service: Option<Service>,
    /// Whether it keeps what it has obtained so far while it is the first.
    pub(super) gathers: bool,
}
