//! A linked queue of segments: crossbeam's `SegQueue`, except that no segment is freed.

use super::Padded;
use requeue::machine::{fence, AtomicU64, AtomicUsize, Backoff};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

/// Positions of a segment; the last has no slot, and stands while the next segment is linked.
const LAP: usize = 32;
/// Positions count in steps; the lowest bit of the head's says that the segment has a next one.
const STEP: usize = 2;
const HAS_NEXT: usize = 1;
/// States of a slot.
const WRITTEN: usize = 1;
const TAKEN: usize = 2;

#[derive(Default)]
struct Slot {
    value: AtomicU64,
    state: AtomicUsize,
}

#[derive(Default)]
struct Segment {
    next: AtomicUsize,
    slots: [Slot; LAP - 1],
}

#[derive(Default)]
struct End {
    position: AtomicUsize,
    /// The number of the segment.
    segment: AtomicUsize,
}

pub(crate) struct SegmentQueue {
    head: Padded<End>,
    tail: Padded<End>,
    segments: Vec<Segment>,
    /// How many are linked, except the first.
    linked: Padded<AtomicUsize>,
}

impl SegmentQueue {
    /// Room for this number of items, which is never used again.
    pub(crate) fn new(items: usize) -> Self {
        Self {
            head: Padded::default(),
            tail: Padded::default(),
            segments: (0..items / (LAP - 1) + 2)
                .map(|_| Segment::default())
                .collect(),
            linked: Padded::default(),
        }
    }

    pub(crate) fn push(&self, item: u64) {
        let (backoff, end) = (Backoff::new(), &self.tail.0);
        let mut tail = end.position.load(Acquire);
        loop {
            let segment = &self.segments[end.segment.load(Acquire)];
            if offset(tail) == LAP - 1 {
                backoff.spin();
                tail = end.position.load(Acquire);
                continue;
            }
            match end
                .position
                .compare_exchange(tail, tail + STEP, SeqCst, Acquire)
            {
                Ok(_) => {
                    if offset(tail) == LAP - 2 {
                        let next = self.linked.0.fetch_add(1, Relaxed) + 1;
                        end.segment.store(next, Release);
                        end.position.store(tail + 2 * STEP, Release);
                        segment.next.store(next, Release);
                    }
                    let slot = &segment.slots[offset(tail)];
                    slot.value.store(item, Relaxed);
                    slot.state.fetch_or(WRITTEN, Release);
                    return;
                }
                Err(now) => tail = now,
            }
            backoff.spin();
        }
    }

    pub(crate) fn pop(&self) -> Option<u64> {
        let (backoff, end) = (Backoff::new(), &self.head.0);
        let mut head = end.position.load(Acquire);
        loop {
            let segment = &self.segments[end.segment.load(Acquire)];
            if offset(head) == LAP - 1 {
                backoff.spin();
                head = end.position.load(Acquire);
                continue;
            }
            let mut next = head + STEP;
            if head & HAS_NEXT == 0 {
                fence(SeqCst);
                let tail = self.tail.0.position.load(Relaxed);
                if head / STEP == tail / STEP {
                    return None;
                }
                next |= usize::from(head / STEP / LAP != tail / STEP / LAP);
            }
            match end.position.compare_exchange(head, next, SeqCst, Acquire) {
                Ok(_) => return Some(self.take(segment, next)),
                Err(now) => head = now,
            }
            backoff.spin();
        }
    }

    /// Takes the item before a position.
    fn take(&self, segment: &Segment, position: usize) -> u64 {
        let (backoff, offset) = (Backoff::new(), offset(position - STEP));
        if offset == LAP - 2 {
            while segment.next.load(Acquire) == 0 {
                backoff.spin();
            }
            let next = segment.next.load(Acquire);
            let has_next = usize::from(self.segments[next].next.load(Relaxed) != 0);
            self.head.0.segment.store(next, Release);
            let position = (position & !HAS_NEXT) + STEP;
            self.head.0.position.store(position | has_next, Release);
        }
        let slot = &segment.slots[offset];
        while slot.state.load(Acquire) & WRITTEN == 0 {
            backoff.spin();
        }
        let item = slot.value.load(Relaxed);
        slot.state.fetch_or(TAKEN, AcqRel);
        item
    }
}

fn offset(position: usize) -> usize {
    position / STEP % LAP
}
