//! Detaching: idle shards leave the set of shards that walks visit (`attached.rs`), until they are used again.
//!
//! A shard that was never used is detached. One that its owner leaves empty becomes so at once; idle shards of living owners do
//! when a consumer has visited as many empty ones as that costs, if the system has heavy barriers: without, the owner's side
//! would pay a full one per push. It pays a load and a branch.
//!
//! A detached shard is empty. It may have an owner, who does not know; so its next push attaches it, and takes effect then:
//!
//! | owner, pushing | whoever detaches | whoever sees an item |
//! |---|---|---|
//! | | 1. reads the set | |
//! | | 2. sets the idle mark, closes the front | |
//! | stores the tail | | reads the tail |
//! | *light barrier* | 3. *heavy barrier* | *light barrier* |
//! | if marked as idle: takes the mark off, | 4. if the head is at the tail: | if the front is closed: |
//! | adds the shard to the set, opens the front | 5. steps the count in the head, by CAS | adds the shard to the set, opens the front |
//! | | 6. removes the shard from the set, by CAS | |
//!
//! 4 to 6 fail if the shard is not idle after all, and then the front is opened again. The set is read first: if
//! anybody adds the shard after that, 6 fails; if before, what was done before the addition is seen at 4.
//!
//! - *An owner that has pushed has attached the shard.* Either it sees the mark, or its tail is seen at 4. It takes the
//!   mark off before it adds the shard. If the addition comes after 1, 6 fails. If it comes before 1, the tail is seen
//!   at 4, and the missing mark at 2, which sets it again; or another thread has set it again before 2.
//! - *Whoever relies on an item has attached the shard.* A thread that sees an item, which is not seen at 4, sees the
//!   front closed. A consumer checks the front before it reads the tail, and passes no barrier; but its claim fails
//!   because of 5, as it does because of an abort (`front.rs`), and afterwards it sees the front closed. So no item of
//!   a batch is delivered while the others are in a shard that walks do not visit.
//! - *Nothing is returned to a detached shard.* An abort that finds the front closed adds the shard, and then replaces
//!   that very marker by its runs. The marker is the count of changes of what was read at 1: if the shard was attached
//!   and closed again in between, there is another marker, or 6 fails because of the addition. For the same reason it
//!   does no harm that a thread opens what another one has closed with the same marker.
//! - *A commit over several queues* puts its record where the mark would be: a shard that had the mark is attached
//!   before the commit, and none is marked until the record is cleared.
//! - *Nobody waits.* A closed front with items behind it is opened by the first thread that finds them.
//!
//! An owner that releases its shard detaches it alone, without barriers: nobody else pushes. Then it frees the memory.
//! If others detach the shard just before it is released, either they find it free, or the owner finds it detached when
//! it has released it, by a full barrier on both sides; who finds that frees the memory. If they only tried to, the shard
//! is left to the next walk that meets it.
//!
//! Like the count of aborts, the one in the head has eight bits. A consumer that has read the front before 2 and
//! stalls until the same shard was detached 128 times and attached by 128 aborts, without a claim at its head, could
//! take an item of the next push before walks find the shard.

use crate::raw::memory::Seen;
use crate::raw::registry::shards::Shards;
use crate::sync::{barrier, planted, Ordering, SMALL};

/// A visit of this number of empty shards, or of fewer, does not count.
const MIN_EMPTY_SHARDS: usize = 1;

/// Visits of empty shards after which idle ones are detached: they cost about as much as that does. The models of loom
/// call it themselves.
const MAX_EMPTY_VISITS: usize = match (cfg!(loom), SMALL) {
    (true, _) => usize::MAX,
    (false, true) => 4,
    (false, false) => 2048,
};

/// Counts visits of empty shards, and detaches idle ones when there were many.
#[derive(Default)]
pub(in crate::raw) struct Visits(usize);

impl Visits {
    #[inline]
    pub(in crate::raw) fn count<T>(&mut self, shards: &Shards<T>, empty: usize) {
        if empty > MIN_EMPTY_SHARDS {
            self.add(shards, empty);
        }
    }

    #[cold]
    fn add<T>(&mut self, shards: &Shards<T>, empty: usize) {
        self.0 += empty;
        if self.0 >= MAX_EMPTY_VISITS {
            self.0 = 0;
            shards.detach_idle();
        }
    }
}

/// A shard whose front was closed, and the set as it was seen before.
struct Closed {
    seen: Seen,
    shard: usize,
}

impl<T> Shards<T> {
    /// Detaches the shards that were idle since the last call, whether they have an owner or not. Does nothing while
    /// another thread does it, except in the models, or if the system has no heavy barriers.
    #[cold]
    #[inline(never)]
    pub(in crate::raw) fn detach_idle(&self) {
        if !SMALL && !barrier::is_asymmetric() {
            return;
        }
        let busy = &self.detaching;
        // ORDERING: Relaxed, here and below; it saves work, and nothing depends on it.
        if busy.swap(true, Ordering::Relaxed) && !SMALL {
            return;
        }
        let closed = self.close_idle();
        let passed = !closed.is_empty() && barrier::heavy_for_detach("detach.marked");
        self.remove_closed(&closed, passed);
        // ORDERING: SeqCst, between the removal and the check; pairs with `shards.released`.
        barrier::full("detach.removed");
        for closed in closed {
            self.vacate(closed.shard);
        }
        busy.store(false, Ordering::Relaxed);
    }

    /// Detaches a shard of the caller, or one without an owner that the caller has acquired: false if it is not empty.
    pub(in crate::raw) fn detach_own(&self, shard: usize) -> bool {
        loop {
            let seen = self.attached().see(shard);
            if !seen.has(shard) {
                return true;
            }
            if !self.mark_and_close(seen, shard) {
                return false;
            }
            if self.remove_closed(&[Closed { seen, shard }], true) {
                return true;
            }
            if self.records.get(shard).head_if_idle().is_none() {
                return false;
            }
        }
    }

    /// Marks and closes the shards that were idle since the last call.
    fn close_idle(&self) -> Vec<Closed> {
        let mut closed: Vec<Closed> = Vec::new();
        for shard in self.attached().from(0) {
            let last = closed.last().map(|closed| closed.seen);
            let seen = last.filter(|seen| seen.has(shard));
            let seen = seen.unwrap_or_else(|| self.attached().see(shard));
            let idle = seen.has(shard) && self.records.get(shard).stays_idle();
            if idle && self.mark_and_close(seen, shard) {
                closed.push(Closed { seen, shard });
            }
        }
        closed
    }

    /// Marks a shard as idle, and closes its front.
    fn mark_and_close(&self, seen: Seen, shard: usize) -> bool {
        let record = self.records.get(shard);
        record.mark_idle() && record.front().close(seen.changes())
    }

    /// Removes the closed shards that are still idle from the set, and opens the others. Returns whether all were idle
    /// and are removed.
    fn remove_closed(&self, closed: &[Closed], passed: bool) -> bool {
        let mut all = true;
        // Neighbours that are removed here change what was seen.
        let mut removed: Option<(Seen, Seen)> = None;
        for &Closed { seen, shard } in closed {
            let now = removed.filter(|(before, _)| *before == seen);
            let now = now.map_or(seen, |(_, after)| after);
            let idle = passed && self.is_idle_since_closed(shard);
            let late = planted!("detach.sees-late").then(|| self.attached().see(shard));
            let now = late.unwrap_or(now);
            if let Some(after) = idle.then(|| self.attached().remove(now, shard)).flatten() {
                removed = Some((seen, after));
            } else {
                let front = self.records.get(shard).front();
                front.undo_close(seen.changes());
                all = false;
            }
        }
        all
    }

    /// Whether a closed shard is idle, and claims fail that were begun before it was closed.
    fn is_idle_since_closed(&self, shard: usize) -> bool {
        let record = self.records.get(shard);
        let head = record.head_if_idle();
        head.is_some_and(|head| record.front().count_close(head))
    }
}
