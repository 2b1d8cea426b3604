//! Processes that are forked while threads use a queue: the parent goes on.

#![cfg(target_os = "linux")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::common::ends;
use requeue::Queue;

const FORKS: usize = 20;

/// Forks a process that ends at once, and waits for its end.
fn fork() {
    // SAFETY: the child calls nothing but `_exit`, which is safe in a copy of a process with several threads.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::_exit(0);
        }
        assert!(child > 0, "the process is forked");
        assert_eq!(libc::waitpid(child, std::ptr::null_mut(), 0), child);
    }
}

#[test]
fn a_fork_leaves_the_queue_of_the_parent_alone() {
    ends(|| {
        let queue = Queue::bounded(16);
        let is_over = AtomicBool::new(false);
        let (pushed, popped) = thread::scope(|scope| {
            let consumer = scope.spawn(|| queue.iter().count());
            let producer = scope.spawn(|| {
                let mut handle = queue.handle();
                let mut pushes = 0..;
                while !is_over.load(Ordering::Relaxed) {
                    handle.push_blocking(pushes.start).unwrap();
                    pushes.next();
                }
                pushes.start
            });
            (0..FORKS).for_each(|_| fork());
            is_over.store(true, Ordering::Relaxed);
            let pushed: usize = producer.join().unwrap();
            queue.close();
            (pushed, consumer.join().unwrap())
        });
        assert_eq!(pushed, popped);
        queue.stats().check().unwrap();
    });
}
