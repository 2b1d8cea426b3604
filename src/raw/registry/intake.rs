//! An intake: drains the shards for an order that sorts the items and chooses the next one.
//!
//! Returned items are taken separately from pushed ones, since they come first.

use crate::raw::memory::{DeliveryMeta, Entry, SetVersion};
use crate::raw::registry::detach::Visits;
use crate::raw::registry::shards::{Shards, COMMON};
use crate::raw::shard::{Cursor, Front, Home, Shard, Sink, Take};
use crate::sync::{planted, Backoff, SMALL};
use std::ptr::NonNull;
use std::sync::Arc;

/// The number of shares into which the shards are divided, besides that of the common one.
pub(crate) const SHARES: usize = if SMALL { 2 } else { 8 };

/// The share of a shard: 0 is that of the common one.
#[inline]
pub(in crate::raw) fn share_of(shard: usize) -> usize {
    match shard {
        COMMON => 0,
        _ => 1 + shard % SHARES,
    }
}

/// Drains the shards of a queue, and keeps them alive.
pub(crate) struct Intake<T> {
    /// The shards that were attached at the last check, with their numbers, in order.
    visited: Vec<(usize, Cursor<T>)>,
    /// The version of the set of attached shards at that time; [`NEVER`](SetVersion::NEVER) if no shard is visited.
    version: SetVersion,
    visits: Visits,
    /// The share of the shards that it drains; all if there is none.
    share: Option<usize>,
    /// The shard to which aborted items return: asked at each pop.
    common: NonNull<Shard<T>>,
    shards: Arc<Shards<T>>,
}

// SAFETY: as for `Endpoint`: the shards contain items of type T.
unsafe impl<T: Send> Send for Intake<T> {}

/// Receives the items of an intake.
pub(crate) trait Receive<T> {
    fn receive(&mut self, entry: Entry<T>);
}

impl<T> Receive<T> for Vec<Entry<T>> {
    fn receive(&mut self, entry: Entry<T>) {
        self.push(entry);
    }
}

/// Passes each item on.
struct PassOn<'r, R>(&'r mut R);

impl<T> Intake<T> {
    pub(crate) fn new(shards: Arc<Shards<T>>, share: Option<usize>) -> Self {
        Self {
            visited: Vec::new(),
            version: SetVersion::NEVER,
            visits: Visits::default(),
            share,
            common: NonNull::from(shards.common()),
            shards,
        }
    }

    /// Whether it drains the common shard.
    #[inline]
    pub(crate) fn drains_common(&self) -> bool {
        self.share.unwrap_or(0) == 0
    }

    /// Whether there are returned items.
    #[inline]
    pub(crate) fn has_returned(&self) -> bool {
        self.returned().has_runs()
    }

    #[inline]
    fn returned<'a>(&self) -> &'a Front<T> {
        // SAFETY: shards are type-stable, and the intake keeps its queue alive.
        unsafe { self.common.as_ref() }.front()
    }

    /// Takes all returned items: the latest transaction first, the items of each in order.
    #[cold]
    #[inline(never)]
    pub(crate) fn take_returned(&mut self, into: &mut Vec<Entry<T>>) {
        let front = self.returned();
        while front.has_runs() && front.take(into, usize::MAX) > 0 {}
    }

    /// Passes the pushed items that are visible now to `receiver`.
    #[inline(always)] // the pop of an order
    pub(crate) fn take_arrived(&mut self, receiver: &mut impl Receive<T>) {
        if !self.shards.attached().is_at(&self.version) {
            self.find_shards();
        }
        let mut empty = self.visited.len();
        for (_, shard) in &mut self.visited {
            // Also behind a closed front: whoever closes it may not have seen the items yet.
            let backlog = if planted!("intake.skips-closed") {
                shard.backlog()
            } else {
                shard.published()
            };
            if backlog > 0 {
                empty -= 1;
                drain(shard, backlog, receiver);
            }
        }
        self.visits.count(&self.shards, empty);
    }

    /// Visits the attached shards, and leaves the others.
    #[cold]
    fn find_shards(&mut self) {
        let Self {
            visited, shards, ..
        } = self;
        // First, so that the next call finds concurrent changes.
        self.version = shards.attached().version();
        let mut known = std::mem::take(visited).into_iter().peekable();
        for number in shards.attached().from(0) {
            if self.share.is_some_and(|share| share != share_of(number)) {
                continue;
            }
            while let Some((_, mut gone)) = known.next_if(|known| known.0 < number) {
                gone.flush();
            }
            let shard = known.next_if(|known| known.0 == number);
            visited.push(shard.unwrap_or_else(|| (number, shards.cursor(number))));
        }
        known.for_each(|(_, mut gone)| gone.flush());
    }

    /// Drains only the shards of this share from now on.
    pub(crate) fn narrow(&mut self, share: usize) {
        self.share = Some(share);
        self.version = SetVersion::NEVER;
    }

    /// Leaves all shards, so that their memory can be reclaimed.
    pub(crate) fn leave(&mut self) {
        self.version = SetVersion::NEVER;
        self.visited
            .drain(..)
            .for_each(|(_, mut shard)| shard.flush());
    }
}

/// Takes up to `most` items from the head of a shard.
#[inline(never)]
fn drain<T>(shard: &mut Cursor<T>, most: u64, receiver: &mut impl Receive<T>) {
    let mut sink = PassOn(receiver);
    let mut left = usize::try_from(most).unwrap_or(usize::MAX);
    let backoff = Backoff::new();
    while left > 0 {
        match shard.take_pushed(&mut sink, left) {
            Take::Got(count) => left -= count,
            Take::Spent => shard.enter(),
            Take::Lost => backoff.spin(),
            // Not behind returned items, which the caller takes first. A front that was closed may be open again by now.
            Take::Returned if !shard.front().has_runs() && shard.attach_if_ready() => {}
            Take::Empty | Take::Returned => break,
        }
    }
}

impl<T> Drop for Intake<T> {
    fn drop(&mut self) {
        self.leave();
    }
}

impl<T, R: Receive<T>> Sink<T> for PassOn<'_, R> {
    #[inline]
    fn reserve(&mut self, wanted: usize, _home: Home) -> usize {
        wanted
    }

    #[inline(always)] // for each item
    unsafe fn accept(&mut self, item: T, delivery: DeliveryMeta) {
        self.0.receive(Entry { item, delivery });
    }
}
