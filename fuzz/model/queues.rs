//! Queues of all kinds, and their handles.

use super::disciplines::Key;
use super::item::Tracked;
use super::wishes::{Call, Pusher, Said};
use super::work::Name;
use requeue::{ByPriority, FairQueue, Fifo, Handle, PriorityQueue, Queue, Transaction};
use std::ops::Deref;

/// A queue of some kind.
pub(crate) enum AnyQueue<const PAD: usize> {
    Plain(Queue<Tracked<PAD>>),
    Fair(FairQueue<Key, Tracked<PAD>>),
    Priority(PriorityQueue<Tracked<PAD>>),
}

impl<const PAD: usize> Deref for AnyQueue<PAD> {
    type Target = Queue<Tracked<PAD>>;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Plain(queue) => queue,
            Self::Fair(queue) => queue,
            Self::Priority(queue) => queue,
        }
    }
}

impl<const PAD: usize> AnyQueue<PAD> {
    /// Pushes without a handle.
    pub(super) fn push_so(&self, call: Call, item: Tracked<PAD>) -> Said<PAD> {
        match self {
            Self::Priority(queue) => queue.push_so(call, item),
            _ => Ok(self.push(item).map(|()| None)?),
        }
    }
}

/// A kind of handles: those of one world are all alike.
pub(crate) trait Kind: Sized {
    fn handle<const PAD: usize>(
        queue: &AnyQueue<PAD>,
        name: Option<Name>,
    ) -> Handle<Tracked<PAD>, Self>;

    fn push<const PAD: usize>(
        handle: &mut Handle<Tracked<PAD>, Self>,
        call: Call,
        item: Tracked<PAD>,
    ) -> Said<PAD>;

    fn stage<const PAD: usize>(
        tx: &Transaction<'_, Tracked<PAD>, Self>,
        call: Call,
        item: Tracked<PAD>,
    ) -> Said<PAD>;
}

/// Knows no priorities.
impl Kind for Fifo {
    fn handle<const PAD: usize>(
        queue: &AnyQueue<PAD>,
        name: Option<Name>,
    ) -> Handle<Tracked<PAD>, Self> {
        match name {
            Some(name) => queue.named_handle(name),
            None => queue.handle(),
        }
    }

    fn push<const PAD: usize>(
        handle: &mut Handle<Tracked<PAD>, Self>,
        _: Call,
        item: Tracked<PAD>,
    ) -> Said<PAD> {
        Ok(handle.push(item).map(|()| None)?)
    }

    fn stage<const PAD: usize>(
        tx: &Transaction<'_, Tracked<PAD>, Self>,
        _: Call,
        item: Tracked<PAD>,
    ) -> Said<PAD> {
        Ok(tx.push(item).map(|()| None)?)
    }
}

impl Kind for ByPriority {
    fn handle<const PAD: usize>(
        queue: &AnyQueue<PAD>,
        name: Option<Name>,
    ) -> Handle<Tracked<PAD>, Self> {
        let AnyQueue::Priority(queue) = queue else {
            panic!("a queue of another kind");
        };
        match name {
            Some(name) => queue.named_handle(name),
            None => queue.handle(),
        }
    }

    fn push<const PAD: usize>(
        handle: &mut Handle<Tracked<PAD>, Self>,
        call: Call,
        item: Tracked<PAD>,
    ) -> Said<PAD> {
        handle.push_so(call, item)
    }

    fn stage<const PAD: usize>(
        tx: &Transaction<'_, Tracked<PAD>, Self>,
        call: Call,
        item: Tracked<PAD>,
    ) -> Said<PAD> {
        tx.push_so(call, item)
    }
}
