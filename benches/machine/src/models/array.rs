//! A bounded queue in an array: crossbeam's `ArrayQueue`, after Dmitry Vyukov's.

use super::Padded;
use requeue::machine::{fence, AtomicU64, AtomicUsize, Backoff};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

struct Slot {
    stamp: AtomicUsize,
    value: AtomicU64,
}

/// Positions count places passed; a slot's stamp is the position at which it can be used next.
pub(crate) struct ArrayQueue {
    head: Padded<AtomicUsize>,
    tail: Padded<AtomicUsize>,
    slots: Box<[Slot]>,
}

impl ArrayQueue {
    pub(crate) fn new(capacity: usize) -> Self {
        let slot = |number| Slot {
            stamp: AtomicUsize::new(number),
            value: AtomicU64::new(0),
        };
        Self {
            head: Padded(AtomicUsize::new(0)),
            tail: Padded(AtomicUsize::new(0)),
            slots: (0..capacity).map(slot).collect(),
        }
    }

    pub(crate) fn push(&self, item: u64) -> bool {
        let backoff = Backoff::new();
        let mut tail = self.tail.0.load(Relaxed);
        loop {
            let slot = &self.slots[tail % self.slots.len()];
            let stamp = slot.stamp.load(Acquire);
            if stamp == tail {
                match self
                    .tail
                    .0
                    .compare_exchange(tail, tail + 1, SeqCst, Relaxed)
                {
                    Ok(_) => {
                        slot.value.store(item, Relaxed);
                        slot.stamp.store(tail + 1, Release);
                        return true;
                    }
                    Err(now) => tail = now,
                }
                backoff.spin();
                continue;
            }
            if stamp + self.slots.len() == tail + 1 {
                fence(SeqCst);
                if self.head.0.load(Relaxed) + self.slots.len() == tail {
                    return false;
                }
            }
            backoff.spin();
            tail = self.tail.0.load(Relaxed);
        }
    }

    pub(crate) fn pop(&self) -> Option<u64> {
        let backoff = Backoff::new();
        let mut head = self.head.0.load(Relaxed);
        loop {
            let slot = &self.slots[head % self.slots.len()];
            let stamp = slot.stamp.load(Acquire);
            if stamp == head + 1 {
                match self
                    .head
                    .0
                    .compare_exchange(head, head + 1, SeqCst, Relaxed)
                {
                    Ok(_) => {
                        let item = slot.value.load(Relaxed);
                        slot.stamp.store(head + self.slots.len(), Release);
                        return Some(item);
                    }
                    Err(now) => head = now,
                }
                backoff.spin();
                continue;
            }
            if stamp == head {
                fence(SeqCst);
                if self.tail.0.load(Relaxed) == head {
                    return None;
                }
            }
            backoff.spin();
            head = self.head.0.load(Relaxed);
        }
    }
}
