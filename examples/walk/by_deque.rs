//! The same with the work-stealing deques of crossbeam, for comparison. A visitor that panics would let the other threads wait forever.

use super::walker::Entry;
use crossbeam_deque::{Steal, Stealer, Worker};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{iter, thread};

pub(crate) fn walk(root: &Path, threads: usize, visit: impl Fn(&Entry) + Sync) {
    let workers: Vec<Worker<Entry>> = iter::repeat_with(Worker::new_lifo).take(threads).collect();
    let stealers: Vec<_> = workers.iter().map(Worker::stealer).collect();
    let (path, is_dir) = (root.to_path_buf(), true);
    workers[0].push(Entry { path, is_dir });
    let open = AtomicUsize::new(1);
    thread::scope(|scope| {
        for own in workers {
            scope.spawn(|| {
                let own = own;
                work(&own, &stealers, &open, &visit);
            });
        }
    });
}

/// `open`: the number of entries that are not visited, or whose directories are not read.
fn work(
    own: &Worker<Entry>,
    others: &[Stealer<Entry>],
    open: &AtomicUsize,
    visit: &impl Fn(&Entry),
) {
    loop {
        let stolen = || others.iter().find_map(|other| steal(other, own));
        if let Some(entry) = own.pop().or_else(stolen) {
            visit(&entry);
            entry.children(|child| {
                open.fetch_add(1, Ordering::Relaxed);
                own.push(child.expect("it can be read"));
            });
            open.fetch_sub(1, Ordering::Release);
        } else if open.load(Ordering::Acquire) == 0 {
            return;
        } else {
            thread::yield_now();
        }
    }
}

fn steal(other: &Stealer<Entry>, own: &Worker<Entry>) -> Option<Entry> {
    loop {
        match other.steal_batch_and_pop(own) {
            Steal::Success(entry) => return Some(entry),
            Steal::Empty => return None,
            Steal::Retry => {}
        }
    }
}
