//! A consumer's cursor on one shard: its cached view of the shard.

use crate::raw::memory::{reclaim, Segment};
use crate::raw::shard::front::{Front, Head};
use crate::raw::shard::run::Run;
use crate::raw::shard::sink::Sink;
use crate::raw::shard::Shard;
use crate::sync::Backoff;
use std::cell::Cell;
use std::ptr::NonNull;

/// The result of one attempt to take items from a shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::raw) enum Take {
    /// The number of items taken, at least one.
    Got(usize),
    /// No item was visible.
    Empty,
    /// Another consumer was faster.
    Lost,
    /// The entered segment is exhausted, and there may be another one; or it is time to compare shards.
    Spent,
    /// No items were taken, because returned runs come first.
    Returned,
}

/// A consumer's cached view of one shard.
///
/// The cached limit may be stale, and the segment reclaimed: a successful claim proves both valid,
/// because an unclaimed position below an old tail is published and keeps its segment alive; and it is the right
/// segment, since the directory's entry is written before its positions are published, and never again. A failed claim has
/// read nothing. Positions are 64-bit and never used twice, so the CAS has no ABA problem. The
/// head is not loaded before the claim: it is where the consumer left it, unless others take from
/// this shard too or abort, and then the claim fails. It never moves back, so if it was at or
/// beyond a tail it still is.
pub(in crate::raw) struct Cursor<T> {
    shard: NonNull<Shard<T>>,
    /// The head that was last seen: after the consumer's last claim, or by a failed claim.
    head: Head,
    /// The start of the positions up to `head` that this consumer has claimed and moved out, but not yet counted.
    since: Head,
    /// Positions before it were published when it was loaded, and lie before `stop`.
    limit: Head,
    /// The end of `segment`.
    end: Head,
    /// Where the consumer compares shards again: at `end` or before it.
    stop: Head,
    /// The entered segment. Set before `limit` is.
    segment: Option<Segment<T>>,
    /// The number of positions of `segment` before `since` that were claimed, moved out and not yet counted.
    finished: u64,
    /// Whether something is noted of the items beside them.
    timed: bool,
    /// After how many positions the consumer compares shards again.
    stickiness: u32,
}

impl<T> Cursor<T> {
    pub(in crate::raw) fn new(shard: &Shard<T>, timed: bool, stickiness: u32) -> Self {
        let head = shard.front().head();
        Self {
            shard: NonNull::from(shard),
            head,
            since: head,
            limit: Head::first_at(0),
            end: Head::first_at(0),
            stop: Head::first_at(0),
            segment: None,
            finished: 0,
            timed,
            stickiness,
        }
    }

    #[inline]
    pub(in crate::raw) fn shard<'a>(&self) -> &'a Shard<T> {
        // SAFETY: shards are type-stable, and a consumer does not outlive its queue.
        unsafe { self.shard.as_ref() }
    }

    /// The number of published positions from the last seen head on; 0 if the shard is detached.
    #[inline]
    pub(in crate::raw) fn backlog(&self) -> u64 {
        if self.front().is_detached() {
            return 0;
        }
        self.published()
    }

    /// The same, even if the front is closed.
    #[inline]
    pub(in crate::raw) fn published(&self) -> u64 {
        self.shard().tail().saturating_sub(self.head.position())
    }

    #[inline]
    pub(in crate::raw) fn front<'a>(&self) -> &'a Front<T> {
        self.shard().front()
    }

    /// Whether the items have times, so that they are not taken by [`Cursor::take_next`].
    #[inline]
    pub(in crate::raw) fn is_timed(&self) -> bool {
        self.timed
    }

    /// Takes the item at the head if [nothing else has to be done](Cursor::claim_next).
    #[inline(always)] // the pop
    pub(in crate::raw) fn take_next(&mut self) -> Option<T> {
        let position = self.claim_next()?;
        // SAFETY: the head was before the end of a segment, so one was entered. The claim acquired this position of it,
        // which is published, and proved that it is alive until the position is counted as finished.
        Some(unsafe { self.segment.unwrap_unchecked().slot(position).take() })
    }

    /// The rank of the item that was [taken](Cursor::take_next) last.
    #[inline]
    pub(in crate::raw) fn last_rank(&self) -> u64 {
        Head::rank(self.head.position() - 1)
    }

    /// Whether certainly no item is visible: no joint has to be asked, and no run is linked.
    #[inline]
    pub(in crate::raw) fn looks_empty(&self) -> bool {
        let is_at_tail = |tail| self.head.position() >= tail;
        let shard = self.shard();
        shard.front().is_clear() && shard.tail_without_joint().is_some_and(is_at_tail)
    }

    /// Claims the item at the head if it is visible and nothing else has to be done: no returned item comes first,
    /// and it is not the last one before the consumer compares shards. Returns its position.
    ///
    /// This path calls nothing, so that it needs no stack. `None`: [`Cursor::take`] decides.
    #[inline(always)] // the pop
    fn claim_next(&mut self) -> Option<u64> {
        let (shard, head) = (self.shard(), self.head);
        let next = head.after(1);
        if next >= self.stop || !shard.front().is_clear() {
            return None;
        }
        if head >= self.limit {
            let tail = Head::first_at(shard.tail_without_joint()?);
            if head >= tail {
                return None;
            }
            if next < tail {
                self.limit = tail.min(self.stop);
            }
        }
        if let Err(now) = shard.front().claim(head, 1) {
            self.set_head(now);
            return None;
        }
        self.head = next;
        Some(head.position())
    }

    /// Moves up to `most` items of a returned run or from the head into the sink.
    pub(in crate::raw) fn take<S: Sink<T>>(&mut self, sink: &mut S, most: usize) -> Take {
        let take = self.take_pushed(sink, most);
        if take != Take::Returned {
            return take;
        }
        match self.front().take(sink, most) {
            0 if self.front().is_detached() && !self.attach_if_ready() => {
                self.flush();
                Take::Empty
            }
            0 => self.take_behind(sink, most),
            count => Take::Got(count),
        }
    }

    /// Takes items from the head after the runs were exhausted, or only bookmarks are left of them.
    #[cold]
    fn take_behind<S: Sink<T>>(&mut self, sink: &mut S, most: usize) -> Take {
        match self.take_if(sink, most, Front::is_passable) {
            Take::Returned => Take::Lost,
            take => take,
        }
    }

    /// Attaches a detached shard if an item is in it.
    pub(in crate::raw) fn attach_if_ready(&self) -> bool {
        let ready = self.shard().backlog() > 0;
        if ready {
            self.front().attach();
        }
        ready
    }

    /// Retries until items were taken or none is visible. After `quota` positions the consumer compares shards again.
    pub(in crate::raw) fn take_retrying<S: Sink<T>>(
        &mut self,
        sink: &mut S,
        most: usize,
        quota: u32,
    ) -> Option<usize> {
        let backoff = Backoff::new();
        loop {
            match self.take(sink, most) {
                Take::Got(count) => return Some(count),
                Take::Empty => return None,
                Take::Spent => self.enter_for(quota),
                Take::Lost | Take::Returned => backoff.spin(),
            }
        }
    }

    /// Moves up to `most` items from the head into the sink, unless returned ones come first.
    ///
    /// Claims from the last seen head on; the claim is lost if the head has moved since.
    #[inline(always)] // the pop
    pub(in crate::raw) fn take_pushed<S: Sink<T>>(&mut self, sink: &mut S, most: usize) -> Take {
        self.take_if(sink, most, Front::is_clear)
    }

    /// Same as [`Cursor::take_pushed`], if the front is `passable`.
    #[inline(always)] // the pop
    pub(in crate::raw) fn take_if<S: Sink<T>>(
        &mut self,
        sink: &mut S,
        most: usize,
        passable: impl Fn(&Front<T>) -> bool,
    ) -> Take {
        let (first, count) = match self.claim(sink, most, passable) {
            Ok(claimed) => claimed,
            Err(why) => return why,
        };
        if S::RANKS {
            sink.note_rank(Head::rank(first));
        }
        // SAFETY: the head was before the end of a segment, so one was entered. The claim acquired these
        // positions of it, which are published, and proved that it is alive, as its times are. The sink granted room.
        unsafe {
            if self.timed {
                self.accept_timed(first, count, sink);
            } else {
                sink.accept_all(self.segment.unwrap_unchecked().take(first, count));
            }
        }
        self.flush_if_exhausted();
        Take::Got(count)
    }

    /// Moves claimed items with their times into the sink.
    ///
    /// # Safety
    ///
    /// As for [`Segment::take`], a segment was entered, and the sink has granted room.
    #[inline(never)] // apart from the items without times, which most queues have
    unsafe fn accept_timed<S: Sink<T>>(&self, first: u64, count: usize, sink: &mut S) {
        // SAFETY: by contract.
        unsafe {
            let segment = self.segment.unwrap_unchecked();
            let items = segment.take(first, count);
            for (position, item) in (first..).zip(items) {
                sink.accept(item, segment.delivery(position));
            }
        }
    }

    /// Moves the next item into the sink if it was pushed at `until` or before. Otherwise returns the time of its push, if it is
    /// known and there is one.
    ///
    /// A claim at the head proves that the time read before is that of the claimed item: the head has not moved since.
    pub(in crate::raw) fn take_old<S: Sink<T>>(
        &mut self,
        sink: &mut S,
        until: u64,
    ) -> Result<(), Option<u64>> {
        let front = self.front();
        if front.has_runs() {
            let next = Cell::new(None);
            let wanted = |run: &Run<T>, cursor| {
                next.set(run.next_since(cursor));
                next.get().is_some_and(|since| since <= until)
            };
            if front.take_if(sink, 1, wanted) > 0 {
                return Ok(());
            }
            if let Some(since) = next.get() {
                return Err(Some(since));
            }
        }
        let backoff = Backoff::new();
        while let Some((head, since)) = self.shard().time_at_head() {
            if since > until {
                return Err(Some(since));
            }
            self.set_head(head);
            match self.take_if(sink, 1, Front::is_passable) {
                Take::Got(_) => return Ok(()),
                Take::Spent => self.enter(),
                Take::Lost => backoff.spin(),
                // Whoever has put runs before the head, or detaches the shard, has said so.
                Take::Empty | Take::Returned => break,
            }
        }
        Err(None)
    }

    /// Claims up to `most` positions at the head, for which the sink has room. Returns the first one and their number.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // 64-bit only
    fn claim<S: Sink<T>>(
        &mut self,
        sink: &mut S,
        most: usize,
        passable: impl Fn(&Front<T>) -> bool,
    ) -> Result<(u64, usize), Take> {
        if !passable(self.front()) {
            return Err(Take::Returned);
        }
        let mut limit = self.limit;
        if self.head >= limit {
            limit = self.renew()?;
        }
        let front = self.front();
        let available = self.head.until(limit);
        let count = sink.reserve(most.min(available as usize), front.home());
        let first = self.head.position();
        match front.claim(self.head, count as u64) {
            Ok(after) => self.head = after,
            Err(now) => {
                self.set_head(now);
                return Err(Take::Lost);
            }
        }
        Ok((first, count))
    }

    /// Counts the moved out positions if the segment is exhausted.
    #[inline(always)] // the pop
    fn flush_if_exhausted(&mut self) {
        if self.head >= self.end {
            self.flush();
        }
    }

    /// Loads the current limit, above the head. It is cached if there is more than one item before it.
    #[inline(always)] // the pop
    fn renew(&mut self) -> Result<Head, Take> {
        let tail = Head::first_at(self.shard().tail());
        if self.head >= tail {
            self.flush();
            return Err(Take::Empty);
        }
        if self.head >= self.stop {
            return Err(Take::Spent);
        }
        let limit = tail.min(self.stop);
        if limit > self.head.after(1) {
            self.limit = limit;
        }
        Ok(limit)
    }

    /// Enters the segment of the head, after [`Take::Spent`], until shards are compared.
    pub(in crate::raw) fn enter(&mut self) {
        self.enter_for(self.stickiness);
    }

    /// Enters the segment of the head for at most `most` positions.
    pub(in crate::raw) fn enter_for(&mut self, most: u32) {
        self.set_head(self.front().head());
        if self.head >= self.end {
            self.flush();
            self.find_segment();
        }
        let stop = self.head.position() + u64::from(most);
        self.stop = self.end.min(Head::first_at(stop));
        self.limit = self.limit.min(self.stop);
    }

    /// Makes the next attempt end with [`Take::Spent`], unless the shard is empty or returned items come first.
    pub(in crate::raw) fn stop(&mut self) {
        // Without the count of aborts, which may wrap before the next attempt.
        let here = Head::first_at(self.head.position());
        (self.stop, self.limit) = (here, here);
    }

    /// Finds the segment of the head.
    fn find_segment(&mut self) {
        let position = self.head.position();
        if position >= self.shard().tail() {
            return;
        }
        let found = self.shard().directory().find(position, &reclaim::pin());
        if let Some((segment, end)) = found {
            self.segment = Some(segment);
            self.end = Head::first_at(end);
        }
    }

    /// Continues from `head`, to which other threads may have moved the head of the shard.
    fn set_head(&mut self, head: Head) {
        self.finished += self.since.until(self.head);
        self.head = head;
        self.since = head;
    }

    /// Counts the finished positions in the segment, which may be reclaimed then.
    ///
    /// Called when its last position was taken, when the shard is found empty, and when it is left: once per visit, so an idle
    /// consumer holds back one segment at most.
    #[cold]
    #[inline(never)]
    pub(in crate::raw) fn flush(&mut self) {
        self.set_head(self.head);
        let finished = std::mem::take(&mut self.finished);
        if let Some(segment) = self.segment.filter(|_| finished > 0) {
            // SAFETY: these positions were claimed and moved out, and all of them are in this
            // segment: entering another one flushes first.
            unsafe { self.shard().finish(segment, finished) };
        }
    }
}
