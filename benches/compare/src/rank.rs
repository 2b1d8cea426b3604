//! The rank error of priorities: the number of items popped after an item that they should precede.

use crate::orders::{by_priority, End, LockedHeap, SkipList};
use requeue::{ByPriority, Handle};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;

const CONSUMERS: usize = 2;

/// Prints it for concurrent consumers. The result of a queue in strict order is the error of the stamping.
pub(crate) fn print(items: u16) {
    println!("\nrank error: items of less priority that were popped after one, with {CONSUMERS} consumers");
    println!("{:<24}{:>9}{:>9}", "contender", "mean", "max");
    let ours = by_priority();
    row("requeue", ours(), ours, push_requeue, items);
    let heap = LockedHeap::default();
    row(
        "Mutex, BinaryHeap",
        heap.clone(),
        move || heap.clone(),
        LockedHeap::push_at,
        items,
    );
    let list = SkipList::default();
    row(
        "crossbeam-skiplist",
        list.clone(),
        move || list.clone(),
        SkipList::push_at,
        items,
    );
}

fn push_requeue(end: &mut Handle<u64, ByPriority>, priority: u16) {
    let pushed = end.push_with(priority, None, priority.into());
    pushed.expect("not bounded");
}

#[allow(clippy::cast_precision_loss)]
fn row<E: End>(
    name: &str,
    mut producer: E,
    end: impl Fn() -> E,
    push: impl Fn(&mut E, u16),
    items: u16,
) {
    // A pseudo-random order: 7919 is a prime, and so is the number of items.
    (0..items).for_each(|item| {
        let place = u32::from(item) * 7919 % u32::from(items);
        push(
            &mut producer,
            1 + u16::try_from(place).expect("below the number of items"),
        );
    });
    let (stamp, barrier) = (AtomicUsize::new(0), Barrier::new(CONSUMERS));
    let popped = Mutex::new(vec![0; items.into()]);
    thread::scope(|scope| {
        for mut end in (0..CONSUMERS).map(|_| end()) {
            let (stamp, barrier, popped) = (&stamp, &barrier, &popped);
            scope.spawn(move || {
                barrier.wait();
                let pop = || Some((end.pop()?, stamp.fetch_add(1, Ordering::SeqCst)));
                let own: Vec<_> = std::iter::from_fn(pop).collect();
                let mut popped = popped.lock().unwrap_or_else(PoisonError::into_inner);
                for (item, stamp) in own {
                    popped[stamp] = item;
                }
            });
        }
    });
    let popped = popped.into_inner().unwrap_or_else(PoisonError::into_inner);
    let errors: Vec<_> = (0..popped.len())
        .map(|at| {
            popped[at + 1..]
                .iter()
                .filter(|later| **later < popped[at])
                .count()
        })
        .collect();
    let mean = errors.iter().sum::<usize>() as f64 / errors.len() as f64;
    println!(
        "{name:<24}{mean:>9.2}{:>9}",
        errors.iter().max().unwrap_or(&0)
    );
}
