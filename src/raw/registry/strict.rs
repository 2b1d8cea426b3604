//! The linearizable `Empty`: a double collect over all shards.
//!
//! Each shard has a version, the sum of two counts that only grow: positions claimed at its head, and
//! last items of returned runs about to be claimed. The caller reads each version and looks for an item
//! after it (first pass), then checks every shard again (second pass): no item visible, no run with items,
//! and *then* the version unchanged. Why every shard was empty at the instant between the passes:
//!
//! - an item at the head then was either claimed since, which moves the head, or is visible now;
//! - a returned item then is either in a run with items now, or that run was used up since. The consumer
//!   that claimed its last item read the run, incremented `emptied`, and claimed, in this order. An
//!   increment after the first pass has changed the version. An increment before it means that the run
//!   was linked before it too and not yet used up, so the first pass, which checks the runs after it
//!   has read the version, has found an item there.
//!
//! Whether more items can come to a closed queue is asked between the passes. At that instant nothing was
//! ready. An item that a transaction held then was claimed before: not after the first pass read its
//! shard, or the version would have changed; so the counters showed it when they were asked, or the
//! transaction had ended by then, and the items it returned were claimed after that read or are visible now.
//! Items it put elsewhere were there when that was asked: none left meanwhile, since it would be ready.
//!
//! A late push that finds the queue closed takes its item back if it is at the head, and otherwise succeeds,
//! since the item before it was not popped yet. It passes a full barrier between its publication and its read
//! of the head; the caller passes one between the passes. So if the first pass sees that the item before was
//! claimed, by whatever thread, and the push did not, then the second pass sees the published item.
//!
//! A queue whose order sorts also asks in between whether the order has no items. Items come there only from
//! the shards, by claims; the claimant holds the lock of the order until they are in it. So if the versions
//! are unchanged, all items that came since the first pass were there when the lock was taken, and the order
//! that was found empty was still empty at the second pass.
//!
//! The passes visit the attached shards. The version of that set is the same before the first pass and after the
//! second, so both have seen the same shards. All versions only grow, so their sum is unchanged only if each is.
//! A shard that is not attached is empty: `detach.rs` says why no item in it is relied upon before it is attached. A
//! thread that finds it detached sees everything that its consumers had seen.

use crate::raw::memory::SetVersion;
use crate::raw::registry::shards::Shards;
use crate::sync::{barrier, count_visit, Ordering};

impl<T> Shards<T> {
    /// The version of a shard: grows when items are claimed at its head or a returned run is used up.
    #[inline]
    pub(in crate::raw) fn shard_version(&self, shard: usize) -> u64 {
        let front = self.records.get(shard).front();
        let emptied = front.emptied();
        front.head().position().wrapping_add(emptied)
    }

    /// Makes a second collect; `None` if an item is visible.
    pub(in crate::raw) fn collect_if_empty(&self) -> Option<Collect> {
        let mut versions = 0_u64;
        for shard in self.attached().from(0) {
            versions = versions.wrapping_add(self.version_if_empty(shard)?);
        }
        let attached = self.attached().version();
        Some(Collect { attached, versions })
    }

    /// Begins a first collect, without the versions of the shards.
    pub(in crate::raw) fn begin_collect(&self) -> Collect {
        Collect {
            attached: self.attached().version(),
            versions: 0,
        }
    }

    fn version_if_empty(&self, shard: usize) -> Option<u64> {
        let shard = self.records.get(shard);
        let (front, position) = (shard.front(), shard.position_if_empty());
        if position.is_none() {
            front.attach_for_item();
        }
        let position = position?;
        let exhausted = front.is_exhausted();
        exhausted.then(|| position.wrapping_add(front.emptied()))
    }

    /// Whether no item is visible in a shard.
    pub(in crate::raw) fn looks_empty(&self, shard: usize) -> bool {
        self.version_if_empty(shard).is_some()
    }

    /// Whether certainly no item is visible in any attached shard, one after the other.
    #[inline(never)]
    pub(in crate::raw) fn look_empty(&self) -> bool {
        let is_empty = |number| self.records.get(number).looks_empty();
        self.attached().from(0).all(is_empty)
    }

    fn collect(&self) -> Collect {
        let mut collect = self.begin_collect();
        let shards = self.attached().from(0);
        shards.for_each(|shard| collect.add(self.shard_version(shard)));
        collect
    }

    /// Whether the queue is empty. Linearizable.
    pub(crate) fn is_empty(&self) -> bool {
        self.remainder(|| true) != Remainder::Ready
    }

    /// Determines what is left in a queue that accepts no more pushes.
    ///
    /// The caller has passed a heavy barrier since pushes are refused. `none_in_order` says whether the order
    /// has no items; it is called first, since items leave the order for transactions, and come there only
    /// from the shards. `none_elsewhere` says whether no item is neither ready nor held; it is called after
    /// the counters are read, since items go there from transactions.
    pub(crate) fn left_when_closed(
        &self,
        mut none_in_order: impl FnMut() -> bool,
        none_elsewhere: impl Fn() -> bool,
    ) -> Remainder {
        self.remainder(|| {
            // ORDERING: SeqCst, between the two passes; pairs with `shard.retract`.
            barrier::full("strict.between");
            none_in_order() && !self.has_open_transaction() && none_elsewhere()
        })
    }

    /// Whether a transaction of any handle is open. The search begins at the one that was found last: while that stays open,
    /// no call reads the counters of all handles, and if transactions end in the order of their handles, each call reads
    /// those of the next one only.
    fn has_open_transaction(&self) -> bool {
        let handles = &self.handles;
        let is_open = |number: &usize| {
            count_visit();
            handles.get(*number).is_open()
        };
        // ORDERING: Relaxed, both; a hint where to begin.
        let first = self.last_open.load(Ordering::Relaxed);
        let before = handles.used().from(0).take_while(|number| *number < first);
        let open = handles.used().from(first).chain(before).find(is_open);
        if let Some(number) = open.filter(|number| *number != first) {
            self.last_open.store(number, Ordering::Relaxed);
        }
        open.is_some()
    }

    /// Makes both passes, and asks in between whether no more items can come.
    pub(crate) fn remainder(&self, mut none_can_come: impl FnMut() -> bool) -> Remainder {
        loop {
            let first = self.collect();
            if self.collect_if_empty().is_none() {
                return Remainder::Ready;
            }
            if !none_can_come() {
                return Remainder::Open;
            }
            match self.collect_if_empty() {
                None => return Remainder::Ready,
                Some(second) if second == first => return Remainder::Nothing,
                Some(_) => {}
            }
        }
    }
}

/// The result of one pass over all attached shards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::raw) struct Collect {
    /// The version of the set of attached shards.
    attached: SetVersion,
    /// The sum of the shards' versions.
    versions: u64,
}

impl Collect {
    /// Adds the version of a shard.
    pub(in crate::raw) fn add(&mut self, version: u64) {
        self.versions = self.versions.wrapping_add(version);
    }
}

/// What is left in a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Remainder {
    /// An item is ready.
    Ready,
    /// A transaction holds or has staged something.
    Open,
    /// Nothing was left, at one instant of the call.
    Nothing,
}
