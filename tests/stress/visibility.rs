//! All or nothing, seen by a single consumer: if it has one item of a commit, it finds the others.

use crate::common::rng::Rng;
use crate::harness::{on_all_threads, scaled, together};
use requeue::{commit_all, Handle, Queue};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The number of a commit. It appears in each of [`QUEUES`] queues [`PART`] times.
type Group = usize;
const QUEUES: usize = 3;
const PART: usize = 2;

fn handles(queues: &[Queue<Group>; QUEUES]) -> [Handle<Group>; QUEUES] {
    [0, 1, 2].map(|queue| queues[queue].handle())
}

fn stage_and_commit(handles: &mut [Handle<Group>; QUEUES], group: Group, rng: &mut Rng) {
    if rng.percent(20) {
        let tx = handles[rng.below(QUEUES)].begin();
        tx.push(Group::MAX).unwrap();
    }
    let [a, b, c] = handles;
    let (a, b, c) = (a.begin(), b.begin(), c.begin());
    for _ in 0..PART {
        for tx in [&a, &b, &c] {
            tx.push(group).unwrap();
        }
    }
    if rng.percent(50) {
        commit_all((a, b, c));
    } else {
        commit_all((c, a, b));
    }
}

/// The single consumer: its number of items of each incomplete group.
struct Board<'a> {
    queues: &'a [Queue<Group>; QUEUES],
    handles: [Handle<Group>; QUEUES],
    parts: HashMap<Group, usize>,
    whole: usize,
}

impl<'a> Board<'a> {
    fn new(queues: &'a [Queue<Group>; QUEUES]) -> Self {
        Self {
            queues,
            handles: handles(queues),
            parts: HashMap::new(),
            whole: 0,
        }
    }

    fn see(&mut self, group: Group) {
        assert_ne!(group, Group::MAX, "staged by an aborted transaction");
        let parts = self.parts.entry(group).or_default();
        *parts += 1;
        if *parts == QUEUES * PART {
            self.parts.remove(&group);
            self.whole += 1;
        }
    }

    /// Checks one queue, perhaps in a transaction that is aborted.
    fn check(&mut self, queue: usize, rng: &mut Rng) -> bool {
        if rng.percent(20) {
            let tx = self.handles[queue].begin();
            tx.pop_batch(1 + rng.below(4));
            tx.abort();
        }
        let popped = if rng.percent(50) {
            self.queues[queue].pop()
        } else {
            self.handles[queue].pop()
        };
        popped.map(|group| self.see(group)).is_ok()
    }

    /// Pops each queue until it is empty, until all groups are complete: those seen before must be.
    fn complete(&mut self, rng: &mut Rng) {
        while !self.parts.is_empty() {
            let seen: Vec<Group> = self.parts.keys().copied().collect();
            let first = rng.below(QUEUES);
            for step in 0..QUEUES {
                while self.check((first + step) % QUEUES, rng) {}
            }
            for group in seen {
                let parts = self.parts.get(&group);
                assert_eq!(parts, None, "only a part of commit {group} was found");
            }
        }
    }
}

#[test]
fn a_sole_consumer_finds_all_of_a_commit() {
    on_all_threads(|threads, rng| {
        let queues: [Queue<Group>; QUEUES] = Default::default();
        let (producers, groups) = (threads - 1, scaled(4_000) / threads);
        let pushing = AtomicUsize::new(producers);
        together(threads, rng, |number, rng| {
            if number < producers {
                let mut handles = handles(&queues);
                for group in 0..groups {
                    stage_and_commit(&mut handles, number * groups + group, rng);
                    if rng.percent(50) {
                        thread::yield_now();
                    }
                }
                pushing.fetch_sub(1, Ordering::SeqCst);
                return;
            }
            let mut board = Board::new(&queues);
            loop {
                let last = pushing.load(Ordering::SeqCst) == 0;
                let queue = rng.below(QUEUES);
                if board.check(queue, rng) {
                    board.complete(rng);
                } else if last {
                    break;
                }
            }
            assert_eq!(board.whole, producers * groups);
        });
        assert!(queues.iter().all(Queue::is_empty));
    });
}

/// The consumer waits for the first item of each commit and checks for the last one at once; the producer waits for
/// the consumer. So every commit is observed during its publication.
#[test]
fn the_last_queue_of_a_commit_is_no_later_than_the_first() {
    on_all_threads(|threads, rng| {
        let pairs: Vec<Pair> = (0..threads / 2).map(|_| Pair::default()).collect();
        let rounds = scaled(12_000) / threads;
        together(threads, rng, |number, _| {
            let pair = &pairs[number / 2];
            match number % 2 {
                0 => (0..rounds).for_each(|round| pair.commit(round)),
                _ => (0..rounds).for_each(|round| pair.observe(round)),
            }
        });
    });
}

/// A producer and a consumer of commits over six queues, and their progress.
#[derive(Default)]
struct Pair {
    queues: [Queue<Group>; 6],
    committed: AtomicUsize,
    looked: AtomicUsize,
}

impl Pair {
    #[allow(clippy::many_single_char_names)] // a tuple of six
    fn commit(&self, round: usize) {
        let mut handles = [0, 1, 2, 3, 4, 5].map(|queue| self.queues[queue].handle());
        let [a, b, c, d, e, f] = &mut handles;
        let parts = [a, b, c, d, e, f].map(Handle::begin);
        for part in &parts {
            part.push(round).unwrap();
        }
        let [a, b, c, d, e, f] = parts;
        commit_all((a, b, c, d, e, f));
        self.committed.store(round + 1, Ordering::Release);
        while self.looked.load(Ordering::Acquire) <= round {
            thread::yield_now();
        }
    }

    /// In even rounds from the first queue to the last, in odd ones backwards.
    fn observe(&self, round: usize) {
        let order = match round % 2 {
            0 => [0, 5, 1, 2, 3, 4],
            _ => [5, 0, 4, 3, 2, 1],
        };
        let [first, rest @ ..] = order.map(|queue| &self.queues[queue]);
        let whole =
            self.wait_for(first, round) && rest.iter().all(|queue| queue.pop() == Ok(round));
        let looked = if whole { round + 1 } else { usize::MAX };
        self.looked.store(looked, Ordering::Release);
        assert!(whole, "only a part of commit {round} was found");
    }

    /// Pops the item of this round as soon as it is ready; false if it does not arrive.
    fn wait_for(&self, first: &Queue<Group>, round: usize) -> bool {
        for attempt in 1.. {
            let late = self.committed.load(Ordering::Acquire) > round;
            match first.pop() {
                Ok(group) => return group == round,
                Err(_) if late => break,
                Err(_) if attempt % 64 == 0 => thread::yield_now(),
                Err(_) => {}
            }
        }
        false
    }
}
