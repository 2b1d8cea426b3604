//! The front of a shard: its head, and the runs that aborts put before it.
//!
//! Returned runs form a stack, the latest abort on top. A run is the items that one transaction took
//! from this shard, in order; they are claimed from the first on, by moving a cursor. An exhausted
//! run is unlinked when it is on top. Threads that reach runs are *visitors*: pinned, and counted, from before
//! the load of the top until they use no run any more. A visitor that has unlinked a run and leaves as the last
//! one has the run for itself: those that come later do not reach it. The block of such a run is reused at once; any
//! other one is retired.
//!
//! A consumer reads the head first, then the stack, then claims at the head. An abort first links
//! its runs and then increments the count of aborts in the head, so that a claim which missed the
//! runs fails: no item overtakes one that was given back before the claim.
//!
//! The front of a detached shard is *closed*: see `detach.rs`. An abort attaches the shard before it links its runs
//! there. Each closing has a marker of its own on top, so a link that expects one fails if the shard was attached and
//! detached again since.
//!
//! A strict Empty needs `emptied`, because a run that is linked and exhausted between two checks would
//! leave no other trace. It is incremented *before* the claim of a run's last item; see `strict.rs`.

use crate::raw::memory::{reclaim, NumberSet, OnceBox, Pin};
use crate::raw::shard::returns::Returns;
use crate::raw::shard::run::{Home, Progress, Run};
use crate::raw::shard::sink::Sink;
use crate::sync::{
    barrier, count_visit, planted, start, start_before, step, weak, AtomicPtr, AtomicU64,
    AtomicUsize, Mutex, Ordering,
};
use std::iter;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// The head and the returned runs of one shard, on one cache line: a claim reads no other.
pub(in crate::raw) struct Front<T> {
    head: AtomicU64,
    top: AtomicPtr<Run<T>>,
    emptied: AtomicU64,
    visitors: AtomicUsize,
    /// The place of the shard in the set of attached shards; null before the first owner.
    set: AtomicPtr<NumberSet>,
    shard: AtomicUsize,
    /// Made for the first returned delivery.
    pub(super) returns: OnceBox<Mutex<Returns<T>>>,
}

/// A visit to the runs of a front.
pub(in crate::raw) struct RunVisit<'f> {
    visitors: &'f AtomicUsize,
    pub(super) pin: Pin,
}

impl Drop for RunVisit<'_> {
    #[inline]
    fn drop(&mut self) {
        self.leave();
    }
}

impl RunVisit<'_> {
    /// Ends the visit, but not the pin.
    #[inline]
    pub(in crate::raw) fn end(self) -> VisitEnd {
        let visit = ManuallyDrop::new(self);
        let alone = visit.leave();
        // SAFETY: the visit is not dropped.
        let pin = unsafe { ptr::read(&visit.pin) };
        VisitEnd { alone, pin }
    }

    /// Returns whether this was the only visit.
    #[inline]
    fn leave(&self) -> bool {
        // ORDERING: AcqRel. Release pairs with `front.visit`: a later visitor sees what was unlinked before. Acquire
        // pairs with the Release of the visitors that have left: they use no run any more.
        self.visitors.fetch_sub(1, weak!("front.leave", AcqRel)) == 1
    }
}

/// The end of a visit.
pub(in crate::raw) struct VisitEnd {
    /// Whether no other visitor can reach what this one has unlinked.
    pub(in crate::raw) alone: bool,
    pub(in crate::raw) pin: Pin,
}

/// The first position of a shard, which begins a segment.
pub(in crate::raw) const FIRST: u64 = start_before(1 << (u64::BITS - Head::BITS));

/// A shard's head: `position << 8 | aborts`, the position of the oldest unclaimed item and a count.
///
/// 56 bits of position last for eleven years at 200 million items per second and shard. The 8-bit
/// count only has to differ between a consumer's load of the head and its claim.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::raw) struct Head(u64);

impl Head {
    pub(super) const BITS: u32 = 8;
    const START: Self = Self(FIRST << Self::BITS | start(Self::BITS));

    /// The first head at a position: the least of all heads there.
    #[inline]
    pub(in crate::raw) fn first_at(position: u64) -> Self {
        Self(position << Self::BITS)
    }

    #[inline]
    pub(in crate::raw) fn position(self) -> u64 {
        self.0 >> Self::BITS
    }

    /// The head after a claim of `count` positions.
    #[inline]
    pub(in crate::raw) fn after(self, count: u64) -> Self {
        Self(self.0 + (count << Self::BITS))
    }

    /// The number of positions between this head and a later one.
    #[inline]
    pub(in crate::raw) fn until(self, later: Self) -> u64 {
        later.position() - self.position()
    }

    /// The head after an abort.
    fn after_abort(self) -> Self {
        let count = self.0.wrapping_add(1) & ((1 << Self::BITS) - 1);
        Self(Self::first_at(self.position()).0 | count)
    }
}

impl<T> Front<T> {
    pub(in crate::raw) fn new() -> Self {
        Self {
            head: AtomicU64::new(Head::START.0),
            top: AtomicPtr::new(ptr::null_mut()),
            emptied: AtomicU64::new(start(u64::BITS)),
            visitors: AtomicUsize::new(0),
            set: AtomicPtr::new(ptr::null_mut()),
            shard: AtomicUsize::new(0),
            returns: OnceBox::default(),
        }
    }

    /// Its address, for the items that return here.
    #[inline]
    pub(in crate::raw) fn home(&self) -> Home {
        let this: *const Self = self;
        this.cast()
    }

    /// The front at an address.
    ///
    /// # Safety
    ///
    /// It is that of a front of such items, in a queue that lives as long as `'a`.
    #[inline]
    pub(in crate::raw) unsafe fn at<'a>(home: Home) -> &'a Self {
        // SAFETY: by contract.
        unsafe { &*home.cast() }
    }

    #[inline]
    pub(in crate::raw) fn visit(&self) -> RunVisit<'_> {
        let pin = reclaim::pin();
        // ORDERING: Acquire; pairs with `front.leave`.
        self.visitors.fetch_add(1, weak!("front.visit", Acquire));
        RunVisit {
            visitors: &self.visitors,
            pin,
        }
    }

    #[inline]
    pub(in crate::raw) fn head(&self) -> Head {
        // ORDERING: Acquire; pairs with `front.claim`: a thread that sees an item claimed sees what the
        // claimant saw, which a strict Empty relies on; and with `front.count-abort`.
        Head(self.head.load(weak!("front.head", Acquire)))
    }

    /// Claims the next `count` positions and returns the head after them. An error is the present head.
    #[inline]
    pub(in crate::raw) fn claim(&self, from: Head, count: u64) -> Result<Head, Head> {
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
    pub(in crate::raw) fn is_clear(&self) -> bool {
        // ORDERING: Acquire; pairs with `front.link` and `front.unlink`.
        self.top.load(weak!("front.is-clear", Acquire)).is_null()
    }

    /// Whether a run is linked, be it an exhausted one, as a hint.
    #[inline]
    pub(in crate::raw) fn has_runs(&self) -> bool {
        // ORDERING: Relaxed; a hint.
        let top = self.top.load(Ordering::Relaxed);
        !top.is_null() && !is_marker(top)
    }

    /// The number of attempts to claim the last item of a run.
    #[inline]
    pub(in crate::raw) fn emptied(&self) -> u64 {
        // ORDERING: Acquire; pairs with `front.step-emptied`: a thread that sees the increment finds the run
        // linked. An increment not seen here is seen after a load that shows its run exhausted.
        self.emptied.load(weak!("front.emptied", Acquire))
    }

    /// Puts a chain of runs before the head, and attaches the shard first if it is detached.
    ///
    /// # Safety
    ///
    /// `first` to `last` are linked by their `next`, and the caller gives their blocks up: it does not access them
    /// afterwards.
    pub(in crate::raw) unsafe fn link(&self, first: NonNull<Run<T>>, last: NonNull<Run<T>>) {
        // ORDERING: Acquire; pairs with `front.close`: if the front is closed, the addition to the set comes after
        // the detaching thread has read the set.
        let mut top = self.top.load(weak!("front.link-first", Acquire));
        loop {
            let below = if is_marker(top) {
                step!("front.links-detached", self.add());
                ptr::null_mut()
            } else {
                top
            };
            // SAFETY: the runs are not shared yet.
            unsafe { last.as_ref() }.set_next(below);
            // ORDERING: AcqRel. Release pairs with `front.is-clear`, `front.take` and `front.runs`: the
            // block's contents. Acquire pairs with `front.attach`: walks that follow find the shard.
            // Acquire on failure, as above.
            match self.top.compare_exchange_weak(
                top,
                first.as_ptr(),
                weak!("front.link", AcqRel),
                weak!("front.link-again", Acquire),
            ) {
                Ok(_) => break,
                Err(now) => top = now,
            }
        }
        step!("front.counts-no-abort", self.count_abort());
    }

    /// Makes the front that of a detached shard, which has this number in `set`.
    ///
    /// The caller is the first owner of the shard, which nobody else knows.
    pub(in crate::raw) fn begin_detached(&self, set: &Arc<NumberSet>, shard: usize) {
        // ORDERING: Relaxed, all; published when the owner attaches the shard.
        self.shard.store(shard, Ordering::Relaxed);
        self.set
            .store(Arc::as_ptr(set).cast_mut(), Ordering::Relaxed);
        self.top.store(marker(0), Ordering::Relaxed);
    }

    /// Whether the shard has no place in a set yet.
    pub(in crate::raw) fn is_new(&self) -> bool {
        // ORDERING: Relaxed; asked by the owner.
        self.set.load(Ordering::Relaxed).is_null()
    }

    /// Closes the front with a new `mark` if no returned item is ready here, and nobody else has closed it.
    pub(in crate::raw) fn close(&self, mark: u64) -> bool {
        // ORDERING: Acquire; pairs with `front.link`, and `front.unlink`: a thread that finds the shard
        // detached sees the runs exhausted.
        let mut top = self.top.load(weak!("front.close-first", Acquire));
        while !top.is_null() {
            let visit = self.visit();
            // ORDERING: Acquire; as above.
            top = self.top.load(weak!("front.close-visiting", Acquire));
            // SAFETY: reached in a visit.
            match unsafe { run_at(top) } {
                Some(run) if run.cursor().is_exhausted() => self.retire(run, &visit),
                Some(_) => return false,
                None if is_marker(top) => return false,
                None => break,
            }
        }
        // ORDERING: Release; pairs with `front.link-first`, `front.link-again` and `front.attach-first`: what adds the
        // shard to the set because of the marker does so after the caller has read the set. Relaxed on failure: the
        // shard stays attached.
        self.top
            .compare_exchange(
                ptr::null_mut(),
                marker(mark),
                weak!("front.close", Release),
                Ordering::Relaxed,
            )
            .is_ok()
    }

    /// Makes claims fail that were begun before the front was closed: true unless the head has moved or an abort came.
    pub(in crate::raw) fn count_close(&self, from: Head) -> bool {
        // ORDERING: Release; pairs with `front.head` and `front.claim-failed`: a thread that fails because of it, or
        // sees it, sees the front closed. Relaxed on failure: the shard stays attached.
        let release = weak!("front.count-close", Release);
        planted!("front.counts-no-close", return self.head() == from);
        self.head
            .compare_exchange(from.0, from.after_abort().0, release, Ordering::Relaxed)
            .is_ok()
    }

    /// Undoes a [`close`](Front::close), unless an abort or an attachment has done it.
    pub(in crate::raw) fn undo_close(&self, mark: u64) {
        self.open(marker(mark));
    }

    /// Attaches the shard. Afterwards all walks find it, and all that is published in it can be taken.
    #[cold]
    pub(in crate::raw) fn attach(&self) {
        // ORDERING: Acquire; pairs with `front.close`, as in `link`.
        let top = self.top.load(weak!("front.attach-first", Acquire));
        planted!("front.opens-first", self.open(top));
        self.add();
        self.open(top);
    }

    /// Attaches the shard if it is detached, for a thread that has seen an item in it.
    ///
    /// If the thread that detaches the shard does not see the item, the caller sees the front closed.
    pub(in crate::raw) fn attach_for_item(&self) {
        barrier::light_for_detach("front.sees-item");
        if self.is_detached() {
            self.attach();
        }
    }

    /// Opens the front if it is closed with the marker `top`.
    fn open(&self, top: *mut Run<T>) {
        if is_marker(top) {
            // ORDERING: Release; pairs with `front.is-clear` and `front.link`: a thread that takes an item from here, or
            // links a run, sees the shard attached. Relaxed on failure: another thread has opened it.
            let _ = self.top.compare_exchange(
                top,
                ptr::null_mut(),
                weak!("front.attach", Release),
                Ordering::Relaxed,
            );
        }
    }

    /// Adds the shard to the set of attached shards.
    fn add(&self) {
        // ORDERING: Relaxed, both; the caller owns the shard, or has seen it attached or closed.
        let set = self.set.load(Ordering::Relaxed);
        // SAFETY: the set lives as long as its shards.
        if let Some(set) = unsafe { set.as_ref() } {
            set.add(self.shard.load(Ordering::Relaxed));
        }
    }

    /// Whether the shard is detached, or about to be: it is empty, except for items of a push that has not returned
    /// or because it is not detached after all.
    pub(in crate::raw) fn is_detached(&self) -> bool {
        // ORDERING: Acquire; pairs with `front.link` and `front.unlink`.
        is_marker(self.top.load(weak!("front.is-detached", Acquire)))
    }

    /// Makes claims fail that read the runs earlier, so that nothing pushed since overtakes what an abort has returned.
    ///
    /// A consumer that stalls between its look at the runs and its claim for a multiple of 256 aborts, while nobody claims, can
    /// overtake; nothing is lost then.
    pub(super) fn count_abort(&self) {
        // ORDERING: Release; pairs with `front.head` and `front.claim-failed`: a thread that sees the
        // increment, or fails because of it, sees the runs. Relaxed on failure and before: the CAS checks it.
        let release = weak!("front.count-abort", Release);
        let counted = self.head.fetch_update(release, Ordering::Relaxed, |head| {
            Some(Head(head).after_abort().0)
        });
        debug_assert!(counted.is_ok());
    }

    /// The run on top.
    ///
    /// # Safety
    ///
    /// The caller is a visitor, and its pin does not end during `'p`.
    #[inline]
    pub(in crate::raw) unsafe fn top<'p>(&self) -> Option<&'p Run<T>> {
        // ORDERING: Acquire; pairs with `front.link`.
        let top = self.top.load(weak!("front.take", Acquire));
        // SAFETY: by contract.
        unsafe { run_at(top) }
    }

    /// Moves up to `most` items of one run into the sink, and returns their number: 0 if there are none.
    #[cold]
    pub(in crate::raw) fn take<S: Sink<T>>(&self, sink: &mut S, most: usize) -> usize {
        self.take_if(sink, most, |_, _| true)
    }

    /// Same as [`Front::take`], if the first run with items, and what is left of it, are `wanted`.
    pub(in crate::raw) fn take_if<S: Sink<T>>(
        &self,
        sink: &mut S,
        most: usize,
        wanted: impl Fn(&Run<T>, Progress) -> bool,
    ) -> usize {
        let visit = self.visit();
        loop {
            let Some((run, cursor)) = self.next_run(&visit) else {
                if self.tidy(&visit) {
                    continue;
                }
                return 0;
            };
            if !wanted(run, cursor) {
                return 0;
            }
            let count = sink.reserve(most.min(cursor.left()), self.home());
            let after = cursor.after(count);
            if !self.claim_run(run, cursor, after) {
                continue;
            }
            if S::RANKS {
                sink.note_rank(self.rank_in(run, cursor));
            }
            // SAFETY: these items were claimed; the sink granted room.
            unsafe { run.move_out(cursor, count, sink) };
            if run.rank() != 0 && self.tidy(&visit) {
                self.next_run(&visit);
            }
            if after.left() == 0 && self.unlink(run) {
                let block = run.block();
                let end = visit.end();
                // SAFETY: unlinked just now; and no other visitor can reach it, or the pin keeps it alive.
                unsafe {
                    if end.alone {
                        sink.recycle(block);
                    } else {
                        Run::retire(block, &end.pin);
                    }
                }
            }
            return count;
        }
    }

    /// The first run with items: the one on top, or below bookmarks. Unlinks what is exhausted on top.
    #[inline]
    fn next_run<'v>(&'v self, visit: &'v RunVisit<'_>) -> Option<(&'v Run<T>, Progress)> {
        loop {
            // SAFETY: in the visit.
            let top = unsafe { self.top() }?;
            let cursor = top.cursor();
            if cursor.left() > 0 {
                return Some((top, cursor));
            }
            if !cursor.is_exhausted() {
                return Self::next_below(top, visit);
            }
            self.retire(top, visit);
        }
    }

    /// The first run with items below a bookmark, which is reached in the visit.
    pub(in crate::raw) fn next_below<'v>(
        bookmark: &'v Run<T>,
        visit: &'v RunVisit<'_>,
    ) -> Option<(&'v Run<T>, Progress)> {
        let runs = Self::runs_from(bookmark.next(), visit);
        let mut runs = runs.map(|run| (run, run.cursor()));
        runs.find(|(_, cursor)| cursor.left() > 0)
    }

    /// Unlinks the exhausted runs directly below a bookmark of the caller, which is reached in the visit, and retires them.
    ///
    /// No other thread unlinks these: they are not on top while the bookmark is linked. One that holds such a run, to move
    /// the last item out or to go on to the next run, is pinned, and finds the run unchanged until it is freed.
    pub(in crate::raw) fn unlink_below(bookmark: &Run<T>, visit: &RunVisit<'_>) {
        // SAFETY: below the bookmark, in the visit.
        while let Some(run) = unsafe { run_at(bookmark.next()) } {
            if !run.cursor().is_exhausted() {
                return;
            }
            bookmark.change_next(run.next());
            // SAFETY: unlinked just now.
            unsafe { Run::retire(run.block(), &visit.pin) };
        }
    }

    /// Makes the items of a bookmark available, as an abort does.
    ///
    /// # Safety
    ///
    /// The run is a bookmark of the caller, who does not use it any more.
    pub(in crate::raw) unsafe fn open_bookmark(&self, run: NonNull<Run<T>>, items: usize) {
        // SAFETY: as above.
        unsafe { Run::end_bookmark(run, items) };
        step!("front.opens-unsaid", self.count_abort());
    }

    /// Unlinks what is exhausted on top.
    pub(in crate::raw) fn unlink_exhausted(&self) {
        self.next_run(&self.visit());
    }

    /// Claims the items between two cursors of a run.
    #[inline]
    pub(in crate::raw) fn claim_run(&self, run: &Run<T>, from: Progress, to: Progress) -> bool {
        if to.left() == 0 {
            // ORDERING: Release; pairs with `front.emptied`. The Release of `run.claim` keeps the increment
            // before that claim.
            let release = weak!("front.step-emptied", Release);
            step!("front.empties-unseen", self.emptied.fetch_add(1, release));
        }
        run.claim(from, to)
    }

    /// Unlinks an exhausted run, unless it is no longer on top, and retires it.
    fn retire(&self, run: &Run<T>, visit: &RunVisit<'_>) {
        if self.unlink(run) {
            // SAFETY: unlinked just now.
            unsafe { Run::retire(run.block(), &visit.pin) };
        }
    }

    /// Unlinks an exhausted run, unless it is no longer on top. Returns whether this call did it.
    pub(in crate::raw) fn unlink(&self, run: &Run<T>) -> bool {
        let top: *const Run<T> = run;
        let top = top.cast_mut();
        // ORDERING: AcqRel. Acquire pairs with `front.link` for the successor; Release pairs with
        // `front.is-clear` and `front.close-visiting`: the run is exhausted. Relaxed on failure: another thread has
        // unlinked it, or a newer run is on top of it.
        let unlink = weak!("front.unlink", AcqRel);
        self.top
            .compare_exchange(top, run.next(), unlink, Ordering::Relaxed)
            .is_ok()
    }

    /// The number of returned items.
    pub(in crate::raw) fn ready(&self) -> usize {
        let visit = self.visit();
        self.runs(&visit).map(|run| run.cursor().left()).sum()
    }

    /// The earliest time of the returned items.
    pub(in crate::raw) fn oldest(&self) -> Option<u64> {
        let visit = self.visit();
        self.runs(&visit).filter_map(Run::oldest).min()
    }

    /// The linked runs.
    fn runs<'v>(&'v self, visit: &'v RunVisit<'_>) -> impl Iterator<Item = &'v Run<T>> {
        // ORDERING: Acquire; pairs with `front.link`.
        Self::runs_from(self.top.load(weak!("front.runs", Acquire)), visit)
    }

    /// The linked runs from `first` on, which is reached in the visit.
    fn runs_from<'v>(
        first: *mut Run<T>,
        _visit: &'v RunVisit<'_>,
    ) -> impl Iterator<Item = &'v Run<T>>
    where
        T: 'v,
    {
        // SAFETY: reached in the visit; a run's successors are unlinked after it, or by the maker of a bookmark above them.
        let run = |at: *mut Run<T>| unsafe { run_at::<'v, T>(at) };
        iter::successors(run(first), move |at| run(at.next())).inspect(|_| count_visit())
    }

    /// Whether items may be taken at the head: no returned one comes first, and the front is not closed.
    pub(in crate::raw) fn is_passable(&self) -> bool {
        self.is_clear() || (!self.is_detached() && !self.has_ready())
    }

    /// Whether there are no returned items.
    #[inline]
    pub(in crate::raw) fn is_exhausted(&self) -> bool {
        self.is_clear() || !self.has_ready()
    }

    /// Whether a returned item is ready. The first run with one answers: each pop of some queues asks.
    fn has_ready(&self) -> bool {
        let visit = self.visit();
        let mut runs = self.runs(&visit);
        runs.any(|run| run.cursor().left() > 0)
    }
}

impl<T> Run<T> {
    /// Moves claimed items into the sink.
    ///
    /// # Safety
    ///
    /// The caller claimed `count` items from `cursor` on, while pinned, and moves them out once. The
    /// sink granted room for them.
    pub(in crate::raw) unsafe fn move_out<S: Sink<T>>(
        &self,
        cursor: Progress,
        count: usize,
        sink: &mut S,
    ) {
        for index in cursor.indices(count) {
            let held = self.held(index);
            // SAFETY: claimed by the caller; filled before the link. The sink granted room.
            unsafe { sink.accept(held.take(), held.delivery().again()) };
        }
    }
}

/// The top of a closed front.
fn marker<T>(mark: u64) -> *mut Run<T> {
    #[allow(clippy::cast_possible_truncation)] // 64-bit only
    let odd = (mark as usize) << 1 | 1;
    ptr::null_mut::<u8>().wrapping_add(odd).cast()
}

#[inline]
fn is_marker<T>(top: *mut Run<T>) -> bool {
    top as usize & 1 != 0
}

/// The run at `at`, if there is one.
///
/// # Safety
///
/// `at` is null, or a [`marker`], or a run that is not freed during `'p`.
unsafe fn run_at<'p, T>(at: *mut Run<T>) -> Option<&'p Run<T>> {
    if is_marker(at) {
        return None;
    }
    // SAFETY: by contract.
    unsafe { at.as_ref() }
}
