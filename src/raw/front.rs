//! The front of a shard: its head, and the runs that aborts put before it.
//!
//! Returned runs form a stack, the latest abort on top. A run is the items that one transaction took
//! from this shard, in order; they are claimed from the first on, by moving a cursor. An exhausted
//! run is unlinked when it is on top. Claimants are pinned from the load of the top until the items
//! are moved out, so a block may be retired as soon as all its runs are unlinked.
//!
//! A consumer reads the head first, then the stack, then claims at the head. An abort first links
//! its runs and then increments the count of aborts in the head, so that a claim which missed the
//! runs fails: no item overtakes one that was given back before the claim.
//!
//! The front of a retired shard is *closed*: no run can be linked there, and aborts go to the
//! injector instead. Such runs keep their home, so that items of a shard that one transaction takes
//! both here and there are given back as one chain.
//!
//! A strict Empty needs `emptied`, because a run that is linked and exhausted between two checks would
//! leave no other trace. It is incremented *before* the claim of a run's last item; see `strict.rs`.

use super::block::Block;
use super::reclaim::{self, Pin};
use super::run::Run;
use super::sink::Sink;
use crate::sync::{planted, step, weak, AtomicPtr, AtomicU64, Ordering, SMALL};
use std::iter;
use std::ptr::{self, NonNull};

/// The head and the returned runs of one shard, on one cache line: a claim reads no other.
pub(super) struct Front<T> {
    head: AtomicU64,
    top: AtomicPtr<Run<T>>,
    emptied: AtomicU64,
}

/// A shard's head: `position << 8 | aborts`, the position of the oldest unclaimed item and a count.
///
/// 56 bits of position last for eleven years at 200 million items per second and shard. The 8-bit
/// count only has to differ between a consumer's load of the head and its claim.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Head(u64);

impl Head {
    const BITS: u32 = 8;

    /// The first head at a position: the least of all heads there.
    #[inline]
    pub(super) fn first_at(position: u64) -> Self {
        Self(position << Self::BITS)
    }

    #[inline]
    pub(super) fn position(self) -> u64 {
        self.0 >> Self::BITS
    }

    /// The head after a claim of `count` positions.
    #[inline]
    pub(super) fn after(self, count: u64) -> Self {
        Self(self.0 + (count << Self::BITS))
    }

    /// The number of positions between this head and a later one.
    #[inline]
    pub(super) fn until(self, later: Self) -> u64 {
        later.position() - self.position()
    }

    /// The head after an abort.
    fn after_abort(self) -> Self {
        let count = self.0.wrapping_add(1) & ((1 << Self::BITS) - 1);
        Self(Self::first_at(self.position()).0 | count)
    }
}

impl<T> Front<T> {
    pub(super) fn new() -> Self {
        Self {
            head: AtomicU64::new(0),
            top: AtomicPtr::new(ptr::null_mut()),
            emptied: AtomicU64::new(0),
        }
    }

    #[inline]
    pub(super) fn head(&self) -> Head {
        // ORDERING: Acquire; pairs with `front.claim`: a thread that sees an item claimed sees what the
        // claimant saw, which a strict Empty relies on; and with `front.count-abort`.
        Head(self.head.load(weak!("front.head", Acquire)))
    }

    /// Claims the next `count` positions and returns the head after them. An error is the present head.
    #[inline]
    pub(super) fn claim(&self, from: Head, count: u64) -> Result<Head, Head> {
        let to = from.after(count);
        // ORDERING: AcqRel; Release pairs with `front.head`, and keeps the load of the runs before the
        // claim. Acquire, on failure too, pairs with `front.claim` and `front.count-abort`.
        let claim = weak!("front.claim", AcqRel);
        let failed = weak!("front.claim-failed", Acquire);
        self.head
            .compare_exchange(from.0, to.0, claim, failed)
            .or_else(|now| planted!("front.claims-anyway").then_some(now).ok_or(now))
            .map_or_else(|now| Err(Head(now)), |_| Ok(to))
    }

    /// Whether no run is linked, not even an exhausted one, and the front is not closed.
    #[inline]
    pub(super) fn is_clear(&self) -> bool {
        // ORDERING: Acquire; pairs with `front.link` and `front.unlink`.
        self.top.load(weak!("front.is-clear", Acquire)).is_null()
    }

    /// The number of attempts to claim the last item of a run.
    #[inline]
    pub(super) fn emptied(&self) -> u64 {
        // ORDERING: Acquire; pairs with `front.step-emptied`: a thread that sees the increment finds the run
        // linked. An increment not seen here is seen after a load that shows its run exhausted.
        self.emptied.load(weak!("front.emptied", Acquire))
    }

    /// Puts a chain of runs before the head. Returns false if the front is closed.
    ///
    /// # Safety
    ///
    /// `first` to `last` are linked by their `next`; their blocks are complete, and the caller gives them
    /// up: it does not access them afterwards if this returns true.
    pub(super) unsafe fn link(&self, first: NonNull<Run<T>>, last: NonNull<Run<T>>) -> bool {
        // ORDERING: Relaxed; the CAS below checks it.
        let mut top = self.top.load(Ordering::Relaxed);
        while top != closed() {
            // SAFETY: the runs are not shared yet.
            unsafe { last.as_ref() }.set_next(top);
            // ORDERING: AcqRel. Release pairs with `front.is-clear`, `front.take` and `front.runs`: the
            // block's contents. Acquire pairs with `front.reopen`: walks that follow find the shard.
            // Relaxed on failure, as above.
            match self.top.compare_exchange_weak(
                top,
                first.as_ptr(),
                weak!("front.link", AcqRel),
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    step!("front.counts-no-abort", self.count_abort());
                    return true;
                }
                Err(now) => top = now,
            }
        }
        false
    }

    /// Closes the front unless a returned item is ready here. Returns whether it is closed.
    pub(super) fn close(&self) -> bool {
        let pin = reclaim::pin();
        loop {
            // ORDERING: Acquire; pairs with `front.link`, and `front.unlink`: a thread that finds the shard
            // retired sees the runs exhausted.
            let top = self.top.load(weak!("front.close", Acquire));
            // SAFETY: reached under the pin.
            match unsafe { run_at(top) } {
                Some(run) if run.cursor().left() == 0 => self.unlink(top, &pin),
                Some(_) => return false,
                None => {}
            }
            // ORDERING: Relaxed, both; the value is never dereferenced, and the retirement publishes what
            // the load above has seen.
            let closing = self.top.compare_exchange(
                ptr::null_mut(),
                closed(),
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            match closing {
                Ok(_) => return true,
                Err(now) if now == closed() => return true,
                Err(_) => {}
            }
        }
    }

    /// Opens a closed front. The caller has acquired the shard, which is in use.
    pub(super) fn reopen(&self) {
        // The models skip this check, as in `RecordPool::begin_use`.
        if SMALL || self.is_closed() {
            // ORDERING: Release; pairs with `front.link`: a thread that links a run sees the shard in use.
            // Relaxed on failure: it is open.
            let _ = self.top.compare_exchange(
                closed(),
                ptr::null_mut(),
                weak!("front.reopen", Release),
                Ordering::Relaxed,
            );
        }
    }

    /// Whether the front is closed: its shard is then empty.
    pub(super) fn is_closed(&self) -> bool {
        // ORDERING: Acquire; pairs with `front.link` and `front.unlink`.
        self.top.load(weak!("front.is-closed", Acquire)) == closed()
    }

    /// Makes claims fail that read the runs earlier.
    fn count_abort(&self) {
        // ORDERING: Release; pairs with `front.head` and `front.claim-failed`: a thread that sees the
        // increment, or fails because of it, sees the runs. Relaxed on failure and before: the CAS checks it.
        let release = weak!("front.count-abort", Release);
        let counted = self.head.fetch_update(release, Ordering::Relaxed, |head| {
            Some(Head(head).after_abort().0)
        });
        debug_assert!(counted.is_ok());
    }

    /// Moves up to `most` items of one run into the sink, and returns their number: 0 if there are none.
    #[cold]
    pub(super) fn take<S: Sink<T>>(&self, sink: &mut S, most: usize) -> usize {
        let pin = reclaim::pin();
        loop {
            // ORDERING: Acquire; pairs with `front.link`.
            let top = self.top.load(weak!("front.take", Acquire));
            // SAFETY: reached under the pin.
            let Some(run) = (unsafe { run_at(top) }) else {
                return 0;
            };
            let cursor = run.cursor();
            if cursor.left() == 0 {
                self.unlink(top, &pin);
                continue;
            }
            let room = sink.reserve(most.min(cursor.left()), run.home().unwrap_or(self));
            let after = run.advance(cursor, room);
            if after.left() == 0 {
                // ORDERING: Release; pairs with `front.emptied`. The Release of `run.claim` keeps the increment
                // before that claim.
                let release = weak!("front.step-emptied", Release);
                step!("front.empties-unseen", self.emptied.fetch_add(1, release));
            }
            if !run.claim(cursor, after) {
                continue;
            }
            // SAFETY: these items were claimed; the sink granted `room`.
            unsafe { run.move_out(cursor, room, sink) };
            if after.left() == 0 {
                self.unlink(top, &pin);
            }
            return room;
        }
    }

    /// Unlinks the exhausted run at `top`, unless it is no longer on top.
    fn unlink(&self, top: *mut Run<T>, pin: &Pin) {
        // SAFETY: a run reached under the pin is not null and not freed.
        let run = unsafe { &*top };
        // ORDERING: AcqRel. Acquire pairs with `front.link` for the successor; Release pairs with
        // `front.is-clear` and `front.close`: the run is exhausted. Relaxed on failure: another thread has
        // unlinked it, or a newer run is on top of it.
        let unlink = weak!("front.unlink", AcqRel);
        let unlinked = self
            .top
            .compare_exchange(top, run.next(), unlink, Ordering::Relaxed);
        if unlinked.is_ok() {
            // SAFETY: this was the only link to the run, and this thread is pinned.
            unsafe { Block::release(run.block(), pin) };
        }
    }

    /// The number of returned items.
    pub(super) fn ready(&self) -> usize {
        let pin = reclaim::pin();
        self.runs(&pin).map(|run| run.cursor().left()).sum()
    }

    /// The earliest time of the returned items.
    pub(super) fn oldest(&self) -> Option<u64> {
        let pin = reclaim::pin();
        self.runs(&pin).filter_map(Run::oldest).min()
    }

    /// The linked runs.
    fn runs<'p>(&'p self, _pin: &'p Pin) -> impl Iterator<Item = &'p Run<T>> {
        // ORDERING: Acquire; pairs with `front.link`.
        let first = self.top.load(weak!("front.runs", Acquire));
        // SAFETY: reached under the pin; a run's successors are unlinked after it.
        let run = |at: *mut Run<T>| unsafe { run_at::<'p, T>(at) };
        iter::successors(run(first), move |at| run(at.next()))
    }

    /// Whether there are no returned items.
    #[inline]
    pub(super) fn is_exhausted(&self) -> bool {
        self.is_clear() || self.ready() == 0
    }
}

/// The top of a closed front.
fn closed<T>() -> *mut Run<T> {
    ptr::null_mut::<u8>().wrapping_add(1).cast()
}

/// The run at `at`, if there is one.
///
/// # Safety
///
/// `at` is null, or [`closed`], or a run that is not freed during `'p`.
unsafe fn run_at<'p, T>(at: *mut Run<T>) -> Option<&'p Run<T>> {
    if at == closed() {
        return None;
    }
    // SAFETY: by contract.
    unsafe { at.as_ref() }
}
