//! Tokens are taken and put back, by transactions of which some are aborted: none is lost or duplicated, and there
//! are always more than the threads can hold, so no pop ever returns `Empty`.

use crate::common::rng::Rng;
use crate::harness::{on_all_threads, scaled, together};
use requeue::{commit_all, Item, Queue, Transaction};
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximal number of tokens per transaction.
const HAND: usize = 4;

/// The tokens that are held.
struct Table(Vec<AtomicBool>);

impl Table {
    fn new(tokens: usize) -> Self {
        Self((0..tokens).map(|_| AtomicBool::new(false)).collect())
    }

    fn take(&self, tokens: &[usize]) {
        for &token in tokens {
            let held = self.0[token].swap(true, Ordering::Relaxed);
            assert!(!held, "token {token} is held twice");
        }
    }

    fn put(&self, tokens: &[usize]) {
        for &token in tokens {
            self.0[token].store(false, Ordering::Relaxed);
        }
    }
}

/// Takes some tokens, at least one.
fn take(tx: &Transaction<'_, usize>, table: &Table, rng: &mut Rng) -> Vec<usize> {
    let most = 1 + rng.below(HAND);
    let items: Vec<Item<usize>> = match rng.below(2) {
        0 => tx.pop_batch(most).collect(),
        _ => (0..most).map_while(|_| tx.pop().ok()).collect(),
    };
    assert!(!items.is_empty(), "there are always tokens left");
    let tokens: Vec<usize> = items.iter().map(|item| **item).collect();
    table.take(&tokens);
    tokens
}

fn push(tx: &Transaction<'_, usize>, tokens: &[usize]) {
    for &token in tokens {
        tx.push(token).unwrap();
    }
}

/// Ends a transaction; the tokens can be taken again as soon as it ends.
fn end(tx: Transaction<'_, usize>, tokens: &[usize], table: &Table, rng: &mut Rng) {
    table.put(tokens);
    match rng.below(5) {
        0 => tx.abort(),
        1 => drop(tx),
        2 => mem::forget(tx),
        _ => drop(tx.commit()),
    }
}

fn assert_all_there(queues: &[Queue<usize>], tokens: usize) {
    let ready: usize = queues.iter().map(Queue::len).sum();
    assert_eq!(ready, tokens);
    let drain = |queue| std::iter::from_fn(move || Queue::pop(queue).ok());
    let mut left: Vec<usize> = queues.iter().flat_map(drain).collect();
    left.sort_unstable();
    assert!(left.into_iter().eq(0..tokens));
}

#[test]
fn in_one_queue() {
    on_all_threads(|threads, rng| {
        let queue = Queue::unbounded();
        let tokens = threads * HAND + 1;
        queue.handle().push_batch(0..tokens).unwrap();
        let table = Table::new(tokens);
        let share = scaled(30_000) / threads;
        together(threads, rng, |_, rng| {
            let mut handle = queue.handle();
            for _ in 0..share {
                if rng.percent(5) {
                    handle = queue.handle();
                }
                let tx = handle.begin();
                let taken = take(&tx, &table, rng);
                push(&tx, &taken);
                end(tx, &taken, &table, rng);
            }
        });
        assert_all_there(&[queue], tokens);
    });
}

/// Each transaction swaps tokens of two queues, and neither queue can run empty.
#[test]
fn between_two_queues() {
    on_all_threads(|threads, rng| {
        let queues = [Queue::unbounded(), Queue::unbounded()];
        let each = threads * HAND + 1;
        for (queue, first) in queues.iter().zip([0, each]) {
            queue.handle().push_batch(first..first + each).unwrap();
        }
        let table = Table::new(2 * each);
        let share = scaled(15_000) / threads;
        together(threads, rng, |number, rng| {
            let [mut a, mut b] = [number % 2, 1 - number % 2].map(|place| queues[place].handle());
            for _ in 0..share {
                let (left, right) = (a.begin(), b.begin());
                let mut go = take(&left, &table, rng);
                let mut come = take(&right, &table, rng);
                let swapped = go.len().min(come.len());
                go[..swapped].swap_with_slice(&mut come[..swapped]);
                push(&left, &go);
                push(&right, &come);
                table.put(&go);
                table.put(&come);
                if rng.percent(60) {
                    commit_all((left, right));
                }
            }
        });
        assert_all_there(&queues, 2 * each);
    });
}
