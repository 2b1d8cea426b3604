//! Bookmarks: items of a shard are visited in their place, a part at a time.
//!
//! A *bookmark* is a run that is linked before its items are in it. It keeps their place in the stack of returned runs:
//! nobody claims them, and nobody unlinks the run. A visit to a shard goes through it with one bookmark after the other:
//!
//! | step | what others see |
//! |---|---|
//! | 1. links a bookmark on top | nothing new |
//! | 2. moves the next items, of the first run below it, or at the head, into the bookmark | these items are held |
//! | 3. calls the visitor | the same; pops pass over the bookmark |
//! | 4. inserts the next bookmark below it | nothing new |
//! | 5. makes the bookmark a common run, and counts that as an abort | the items are at their place again |
//!
//! and goes on with 2. So the items above the bookmark were visited, and those below it and at the head were not. Pops
//! that come meanwhile take the former first. What an abort returns meanwhile is above too.
//!
//! A bookmark is unlinked by nobody else: an exhausted run is unlinked only when it is on top, and a bookmark does not
//! count as exhausted. So the runs below it stay linked too, except those that its maker unlinks: the exhausted ones directly
//! below it, since nobody else changes what follows a bookmark. A pop that finds
//! only bookmarks and exhausted runs goes on at the head; as after an abort, its claim there fails if a bookmark
//! became a run since it looked, because of the count in the head.
//!
//! The visitor may take items out of the bookmark for good, between 3 and 4: that is counted as a commit.
//!
//! For a strict Empty a visit is like a transaction that takes items, and commits some and gives the others back: a claim at the
//! head moves that, the claim of the last item of a run increments `emptied`, and a run that was a bookmark never becomes one again.
//!
//! If several visit a shard at the same time, the order between their parts is unspecified.

use crate::raw::handle::endpoint::Endpoint;
use crate::raw::hold::{fitting, MOST_BYTES};
use crate::raw::memory::{DeliveryMeta, Entry, Row};
use crate::raw::shard::{Block, Cursor, Front, HeldSlot, Home, Run, Sink, Take};
use crate::sync::{Backoff, SMALL};

/// The most items in a bookmark, fewer if they are large.
fn part<T>() -> usize {
    let part = if SMALL { 1 } else { Choice::MOST };
    part.min(fitting::<T>(MOST_BYTES))
}

/// Some of the items that are visited together: a bit for each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Choice(u32);

impl Choice {
    /// How many items can be visited together.
    pub(crate) const MOST: usize = u32::BITS as usize;

    /// Adds the item with this index, if it is `chosen`.
    pub(crate) fn add(&mut self, index: usize, chosen: bool) {
        self.0 |= u32::from(chosen) << index;
    }

    pub(crate) fn has(self, index: usize) -> bool {
        self.0 >> index & 1 == 1
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// A bookmark, which is linked, and the items in it so far.
struct Bookmark<T> {
    block: Block<T>,
    items: usize,
}

impl<T> Bookmark<T> {
    /// A bookmark with room for some of `left` items, at least for one.
    fn new(home: Home, left: usize) -> Self {
        let block = Run::allocate(left.clamp(1, part::<T>()));
        // SAFETY: allocated just now.
        unsafe { Run::of(block) }.begin_bookmark(home);
        Self { block, items: 0 }
    }

    fn run<'b>(&self) -> &'b Run<T> {
        // SAFETY: a bookmark is alive.
        unsafe { Run::of(self.block) }
    }

    /// How many items it has room for.
    fn room(&self) -> usize {
        // SAFETY: as above.
        unsafe { Row::len(self.block) }
    }

    fn slot(&self, index: usize) -> &HeldSlot<T> {
        // SAFETY: a bookmark is alive; the callers have checked that there is room for this index.
        unsafe { Row::get(self.block, index) }
    }
}

/// Accepts items that are not delivered.
impl<T> Sink<T> for Bookmark<T> {
    fn reserve(&mut self, wanted: usize, _home: Home) -> usize {
        wanted.min(self.room() - self.items)
    }

    unsafe fn accept(&mut self, item: T, delivery: DeliveryMeta) {
        // SAFETY: there is room, and only the maker of a bookmark uses its slots.
        unsafe {
            self.slot(self.items).fill(item, delivery.before());
        }
        self.items += 1;
    }
}

/// A visit to the items that are ready in one shard. They count as taken while they are in the bookmark.
pub(crate) struct ShardVisit<'e, T> {
    endpoint: &'e mut Endpoint<T>,
    cursor: Cursor<T>,
    bookmark: Bookmark<T>,
    /// The most items that are still to be visited: those that were ready when it began.
    left: usize,
}

impl<T> Endpoint<T> {
    /// Begins a visit to the next attached shard with items, from number `shard` on, and advances `shard` past it.
    pub(crate) fn visit_shard(&mut self, shard: &mut usize) -> Option<ShardVisit<'_, T>> {
        let ready_in = |number: usize| {
            let ready = self.shards.records.get(number).ready();
            usize::try_from(ready).unwrap_or(usize::MAX)
        };
        let (number, ready) = loop {
            let number = self.shards.attached().from(*shard).next()?;
            *shard = number + 1;
            match ready_in(number) {
                0 => {}
                ready => break (number, ready),
            }
        };
        let front = self.shards.records.get(number).front();
        let bookmark = Bookmark::new(front.home(), ready);
        // SAFETY: a run of its own; the block is given up when the bookmark ends.
        unsafe { front.link(bookmark.run().into(), bookmark.run().into()) };
        // Counted again after the link: what an abort has returned before it is below the bookmark too.
        let left = ready_in(number);
        let cursor = self.shards.cursor(number);
        Some(ShardVisit {
            endpoint: self,
            cursor,
            bookmark,
            left,
        })
    }
}

impl<T> ShardVisit<'_, T> {
    /// The items that are being visited, with their deliveries so far.
    pub(crate) fn items(&self) -> impl Iterator<Item = (&T, DeliveryMeta)> {
        (0..self.bookmark.items).map(|index| {
            let slot = self.bookmark.slot(index);
            // SAFETY: in the bookmark, of which the others take nothing.
            unsafe { (&*slot.item(), slot.delivery()) }
        })
    }

    /// Takes some of the items that are being visited out for good, and counts them as committed. The others move together.
    pub(crate) fn remove(&mut self, gone: Choice) -> Vec<Entry<T>> {
        let Self {
            endpoint, bookmark, ..
        } = self;
        let chosen = (0..bookmark.items).filter(|index| gone.has(*index));
        // SAFETY: the slots are filled, and only the maker of a bookmark uses them.
        let removed: Vec<_> = chosen
            .map(|index| unsafe { bookmark.slot(index).remove() })
            .collect();
        // SAFETY: as above.
        bookmark.items = unsafe { bookmark.run().close_gaps(bookmark.items) };
        endpoint.counters().count_committed(removed.len());
        removed
    }

    /// Goes on to the next items, and returns how many were put back. `None`: none are left; those that were visited
    /// last are put back at the [end](ShardVisit::end).
    pub(crate) fn next_part(&mut self) -> Option<usize> {
        if self.left == 0 {
            return None;
        }
        let back = self.end_part(true);
        let most = self.left.min(self.bookmark.room());
        self.endpoint.counters().count_taken(most);
        let taken = self.fill(most);
        self.endpoint.counters().uncount_taken(most - taken);
        self.left = if taken == most { self.left - taken } else { 0 };
        Some(back)
    }

    /// Puts the items back that are being visited, and returns their number.
    pub(crate) fn end(&mut self) -> usize {
        let back = self.end_part(false);
        let front = self.cursor.front();
        front.unlink_exhausted(); // an empty bookmark, above all
        back
    }

    /// Makes the bookmark a run, after another one was inserted below it.
    fn end_part(&mut self, goes_on: bool) -> usize {
        if goes_on && self.bookmark.items == 0 {
            return 0; // of the first part
        }
        let front = self.cursor.front();
        let next = goes_on.then(|| Bookmark::new(front.home(), self.left));
        if let Some(next) = &next {
            self.bookmark.run().insert_below(next.run().into());
        }
        let items = self.bookmark.items;
        // SAFETY: of this visit, which replaces it or ends.
        unsafe { front.open_bookmark(self.bookmark.run().into(), items) };
        self.endpoint.counters().uncount_taken(items);
        if let Some(next) = next {
            self.bookmark = next;
        }
        items
    }

    /// Moves up to `most` items into the bookmark, which is empty, and returns their number: fewer if no others are there.
    ///
    /// As many as there are, though each run and each segment is a claim of its own: a block for each claim would need a
    /// multiple of the memory of its items.
    fn fill(&mut self, most: usize) -> usize {
        let backoff = Backoff::new();
        while self.bookmark.items < most {
            let wanted = most - self.bookmark.items;
            if self.fill_from_run(wanted).is_some() {
                continue;
            }
            match self.fill_from_head(wanted) {
                Take::Got(_) => {}
                Take::Empty => break,
                Take::Spent => self.cursor.enter(),
                Take::Lost | Take::Returned => backoff.spin(),
            }
        }
        self.bookmark.items
    }

    /// Moves items of the first run below the bookmark that has some; `None` if none has.
    fn fill_from_run(&mut self, most: usize) -> Option<()> {
        let front = self.cursor.front();
        let visit = front.visit();
        loop {
            let bookmark = self.bookmark.run();
            // Nobody else unlinks what is not on top, and what visits leave behind would stay until the items above it leave.
            Front::unlink_below(bookmark, &visit);
            let (run, cursor) = Front::next_below(bookmark, &visit)?;
            let count = self.bookmark.reserve(most.min(cursor.left()), front.home());
            if front.claim_run(run, cursor, cursor.after(count)) {
                // SAFETY: claimed just now, in the visit; there is room.
                unsafe { run.move_out(cursor, count, &mut self.bookmark) };
                Front::unlink_below(bookmark, &visit);
                return Some(());
            }
        }
    }

    /// Moves items at the head, unless a run below the bookmark has some.
    fn fill_from_head(&mut self, most: usize) -> Take {
        let run = self.bookmark.run();
        let passable = |front: &Front<T>| Front::next_below(run, &front.visit()).is_none();
        self.cursor.take_if(&mut self.bookmark, most, passable)
    }
}

impl<T> Drop for ShardVisit<'_, T> {
    fn drop(&mut self) {
        self.cursor.flush();
    }
}
