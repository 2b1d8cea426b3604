//! A consumer's cursor on one shard: what it has cached of it.

use super::entry::DeliveryMeta;
use super::front::Head;
use super::reclaim;
use super::segment::{number, offset, Segment};
use super::shard::Shard;
use super::sink::Sink;
use std::ptr::NonNull;

/// What one attempt to take from a shard gave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Take {
    /// So many items, at least one.
    Got(usize),
    /// Nothing was visible.
    Empty,
    /// Another consumer was faster.
    Lost,
    /// The segment that was entered is used up; there may be another one.
    Spent,
    /// Nothing yet: returned runs come first.
    Returned,
}

/// A consumer's cached view of one shard.
///
/// The cached limit may be old, and the segment dead: a successful claim proves both good enough,
/// because an unclaimed position below an old tail is published and keeps its segment alive. The
/// head is not read before the claim: it stands where the consumer left it, unless others take from
/// this shard too or abort, and then the failed claim tells. It never moves back, so if it was at or
/// beyond a tail it still is.
pub(super) struct Cursor<T> {
    shard: NonNull<Shard<T>>,
    /// Where the head was last seen: after our last claim, or where a lost one found it.
    head: Head,
    /// Positions from here to `head` were claimed by us, moved out, and not yet counted.
    since: Head,
    /// Positions before it were published when it was read, and lie in or before `segment`.
    limit: Head,
    /// The end of `segment`.
    end: Head,
    /// Entered before the limit is first set.
    segment: Option<Segment<T>>,
    /// Positions of `segment` before those, likewise.
    finished: u64,
}

impl<T> Cursor<T> {
    pub(super) fn new(shard: &Shard<T>) -> Self {
        let head = shard.front().head();
        Self {
            shard: NonNull::from(shard),
            head,
            since: head,
            limit: Head::first_at(0),
            end: Head::first_at(0),
            segment: None,
            finished: 0,
        }
    }

    #[inline]
    pub(super) fn shard<'a>(&self) -> &'a Shard<T> {
        // SAFETY: shards are type-stable, and a consumer does not outlive its queue.
        unsafe { self.shard.as_ref() }
    }

    /// How many positions were published from where the head was last seen on.
    #[inline]
    pub(super) fn backlog(&self) -> u64 {
        self.shard().tail().saturating_sub(self.head.position())
    }

    /// Moves up to `most` items from the head into the sink, unless returned ones come first.
    ///
    /// Claims from where the head was last seen on; lost if it has moved since.
    #[inline(always)]
    #[allow(clippy::inline_always)] // the pop
    pub(super) fn take<S: Sink<T>>(&mut self, sink: &mut S, most: usize) -> Take {
        let (first, count) = match self.claim(sink, most) {
            Ok(claimed) => claimed,
            Err(why) => return why,
        };
        // SAFETY: the head was before the end of a segment, so one was entered. The claim gave us these
        // positions of it, which are published, and proved that it is alive. The sink granted room.
        unsafe {
            let segment = self.segment.unwrap_unchecked();
            sink.accept_all(segment.take(first, count));
        }
        self.leave_if_used_up();
        Take::Got(count)
    }

    /// Moves items with their times, as [`Cursor::take`] does without.
    pub(super) fn take_timed<S: Sink<T>>(&mut self, sink: &mut S, most: usize) -> Take {
        let (first, count) = match self.claim(sink, most) {
            Ok(claimed) => claimed,
            Err(why) => return why,
        };
        // SAFETY: as in `take`. The times are alive as long as the segment.
        unsafe {
            let segment = self.segment.unwrap_unchecked();
            let items = segment.take(first, count);
            for (index, item) in (offset::<T>(first)..).zip(items) {
                sink.accept(item, DeliveryMeta::first(segment.times().get(index)));
            }
        }
        self.leave_if_used_up();
        Take::Got(count)
    }

    /// Claims up to `most` positions at the head, for which the sink has room: the first and how many.
    #[inline(always)]
    #[allow(clippy::inline_always, clippy::cast_possible_truncation)] // the pop; 64-bit only
    fn claim<S: Sink<T>>(&mut self, sink: &mut S, most: usize) -> Result<(u64, usize), Take> {
        if !self.shard().front().is_clear() {
            return Err(Take::Returned);
        }
        let mut limit = self.limit;
        if self.head >= limit {
            limit = self.renew()?;
        }
        let front = self.shard().front();
        let in_line = self.head.until(limit);
        let count = sink.reserve(most.min(in_line as usize), front);
        let first = self.head.position();
        match front.claim(self.head, count as u64) {
            Ok(after) => self.head = after,
            Err(now) => {
                self.find_head_at(now);
                return Err(Take::Lost);
            }
        }
        Ok((first, count))
    }

    /// Counts what was moved out, after the last position of the segment.
    #[inline(always)]
    #[allow(clippy::inline_always)] // the pop
    fn leave_if_used_up(&mut self) {
        if self.head >= self.end {
            self.flush();
        }
    }

    /// The limit as it is now, above the head; kept if there is more than one item before it.
    #[inline(always)]
    #[allow(clippy::inline_always)] // the pop
    fn renew(&mut self) -> Result<Head, Take> {
        let tail = Head::first_at(self.shard().tail());
        if self.head >= tail {
            self.flush();
            return Err(Take::Empty);
        }
        if self.head >= self.end {
            return Err(Take::Spent);
        }
        let limit = tail.min(self.end);
        if limit > self.head.after(1) {
            self.limit = limit;
        }
        Ok(limit)
    }

    /// Enters the segment of the head, after [`Take::Spent`].
    pub(super) fn enter(&mut self) {
        self.flush();
        self.find_head_at(self.shard().front().head());
        let position = self.head.position();
        if position >= self.shard().tail() {
            return;
        }
        let number = number::<T>(position);
        let found = self.shard().directory().find(number, &reclaim::pin());
        if let Some((segment, _)) = found {
            self.segment = Some(segment);
            self.end = Head::first_at((number + 1) * Segment::<T>::LEN as u64);
        }
    }

    /// Goes on from `head`, where others have moved it.
    fn find_head_at(&mut self, head: Head) {
        self.finished += self.since.until(self.head);
        self.head = head;
        self.since = head;
    }

    /// Counts the finished positions in the segment, which may be the last that it waited for.
    #[cold]
    #[inline(never)]
    pub(super) fn flush(&mut self) {
        self.find_head_at(self.head);
        let finished = std::mem::take(&mut self.finished);
        if let Some(segment) = self.segment.filter(|_| finished > 0) {
            // SAFETY: these positions were claimed in `take` and moved out, all of them in this
            // segment: entering another one flushes first.
            unsafe { self.shard().finish(segment, finished) };
        }
    }
}
