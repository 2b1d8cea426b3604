//! A queue for each producer, from which consumers take by optimistic counts: moodycamel's `ConcurrentQueue`, with tokens
//! on both sides. No block is used again.

use requeue::machine::{AtomicU64, AtomicU8, AtomicUsize};
use std::rc::Rc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// Slots of a block, and items that a consumer takes from a producer before it goes to the next.
const BLOCK: usize = 32;
const QUOTA: usize = 256;

#[derive(Default)]
struct Block {
    values: [AtomicU64; BLOCK],
    is_empty: [AtomicU8; BLOCK],
}

/// As there, all of these share lines.
struct SubQueue {
    tail: AtomicUsize,
    head: AtomicUsize,
    optimistic: AtomicUsize,
    overcommit: AtomicUsize,
    blocks: Vec<Block>,
}

pub(crate) struct PerProducer(Vec<SubQueue>);

impl PerProducer {
    /// Room for this number of items of each producer.
    pub(crate) fn new(producers: usize, items: usize) -> Rc<Self> {
        let queue = |_| SubQueue {
            tail: AtomicUsize::new(0),
            head: AtomicUsize::new(0),
            optimistic: AtomicUsize::new(0),
            overcommit: AtomicUsize::new(0),
            blocks: (0..=items / BLOCK).map(|_| Block::default()).collect(),
        };
        Rc::new(Self((0..producers).map(queue).collect()))
    }
}

impl SubQueue {
    fn pop(&self) -> Option<u64> {
        let overcommit = self.overcommit.load(Relaxed);
        let seems_filled = |count, tail| count < tail + overcommit;
        if !seems_filled(self.optimistic.load(Relaxed), self.tail.load(Relaxed)) {
            return None;
        }
        let count = self.optimistic.fetch_add(1, Relaxed);
        if !seems_filled(count, self.tail.load(Acquire)) {
            self.overcommit.fetch_add(1, Release);
            return None;
        }
        let index = self.head.fetch_add(1, AcqRel);
        let block = &self.blocks[index / BLOCK];
        let item = block.values[index % BLOCK].load(Relaxed);
        block.is_empty[index % BLOCK].store(1, Release);
        Some(item)
    }
}

pub(crate) struct Producer {
    queue: Rc<PerProducer>,
    number: usize,
    next: usize,
}

impl Producer {
    pub(crate) fn new(queue: &Rc<PerProducer>, number: usize) -> Self {
        Self {
            queue: Rc::clone(queue),
            number,
            next: 0,
        }
    }

    pub(crate) fn push(&mut self, item: u64) {
        let queue = &self.queue.0[self.number];
        queue.blocks[self.next / BLOCK].values[self.next % BLOCK].store(item, Relaxed);
        self.next += 1;
        queue.tail.store(self.next, Release);
    }
}

pub(crate) struct Consumer {
    queue: Rc<PerProducer>,
    /// The sub-queue from which it takes, and how many it has taken.
    number: usize,
    taken: usize,
}

impl Consumer {
    pub(crate) fn new(queue: &Rc<PerProducer>, number: usize) -> Self {
        Self {
            queue: Rc::clone(queue),
            number,
            taken: 0,
        }
    }

    pub(crate) fn pop(&mut self) -> Option<u64> {
        let queues = &self.queue.0;
        let begin = self.number + usize::from(self.taken >= QUOTA);
        let mut order = (0..queues.len()).map(|step| (begin + step) % queues.len());
        let (number, item) = order.find_map(|number| Some((number, queues[number].pop()?)))?;
        self.taken = if number == self.number {
            self.taken + 1
        } else {
            1
        };
        if self.taken > QUOTA {
            self.taken = 1;
        }
        self.number = number;
        Some(item)
    }
}
