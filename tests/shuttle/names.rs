//! Handles with names, created and dropped one after the other with the same counters.

use super::{explore, join};
use requeue::Queue;
use shuttle::thread;

/// Begins and drops handles; while one holds an item it is found by its name.
fn come_and_go(queue: &Queue<u32>, names: [&str; 2]) {
    for name in names {
        let mut handle = queue.named_handle(name);
        let tx = handle.begin();
        if tx.pop().is_ok() {
            let held = queue.held();
            let mut workers = held.iter().map(|held| held.worker.as_deref());
            assert!(workers.any(|worker| worker == Some(name)));
        }
    }
}

#[test]
fn a_handle_keeps_its_name_when_the_one_before_it_ends() {
    explore(|| {
        let queue = Queue::unbounded();
        queue.handle().push_batch([1, 2]).unwrap();
        let visitors = [["a", "b"], ["c", "d"]].map(|names| {
            let queue = queue.clone();
            thread::spawn(move || come_and_go(&queue, names))
        });
        join(visitors.into());
    });
}
