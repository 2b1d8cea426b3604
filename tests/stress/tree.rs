//! A tree is expanded by jobs that push their children in the transaction that took them.

use crate::common::rng::Rng;
use crate::harness::{on_all_threads, panic_as_planned, scaled, together, unless_planned};
use requeue::{Queue, Transaction};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const CHILDREN: usize = 3;

/// A node by its number, which determines those of its children.
struct Job {
    node: usize,
    /// Number of attempts, stored in the job itself.
    begun: u32,
}

impl Job {
    fn new(node: usize) -> Self {
        Self { node, begun: 0 }
    }

    fn children(&self, nodes: usize) -> impl Iterator<Item = Self> {
        let first = self.node * CHILDREN + 1;
        (first..first + CHILDREN)
            .filter(move |&node| node < nodes)
            .map(Self::new)
    }
}

/// Begins are counted before, ends after: equal counts mean that no job ran in between.
#[derive(Default)]
struct Work {
    begun: AtomicUsize,
    ended: AtomicUsize,
}

impl Work {
    /// Whether no job was ready and none ran at one instant: then no job will ever be ready.
    fn is_over(&self, queue: &Queue<Job>) -> bool {
        let ended = self.ended.load(Ordering::SeqCst);
        let idle = || self.begun.load(Ordering::SeqCst) == ended;
        idle() && queue.is_empty() && idle()
    }
}

/// Takes a job and pushes its children; `None` if there is no job; the node unless the run fails.
fn expand(tx: &Transaction<'_, Job>, nodes: usize, rng: &mut Rng) -> Result<Option<usize>, ()> {
    let Ok(mut job) = tx.pop() else {
        return Ok(None);
    };
    job.begun += 1;
    assert_eq!(job.begun, job.attempts());
    for child in job.children(nodes) {
        tx.push(child).unwrap();
    }
    match rng.below(20) {
        0 => panic_as_planned(),
        1 => Err(()),
        _ => Ok(Some(job.node)),
    }
}

#[test]
fn each_node_is_visited_once() {
    on_all_threads(|threads, rng| {
        let nodes = scaled(12_000);
        let queue = Queue::unbounded();
        queue.push(Job::new(0)).unwrap();
        let visits: Vec<AtomicUsize> = (0..nodes).map(|_| AtomicUsize::new(0)).collect();
        let (work, visited) = (Work::default(), AtomicUsize::new(0));
        // Or all are visited: threads that find nothing are rarely all between two runs if these take long.
        let is_over = || work.is_over(&queue) || visited.load(Ordering::SeqCst) == nodes;
        together(threads, rng, |_, rng| {
            let mut handle = queue.handle();
            while !is_over() {
                work.begun.fetch_add(1, Ordering::SeqCst);
                let outcome = unless_planned(|| handle.transact(|tx| expand(tx, nodes, rng)));
                work.ended.fetch_add(1, Ordering::SeqCst);
                match outcome {
                    Some(Ok(Some(node))) => {
                        visits[node].fetch_add(1, Ordering::SeqCst);
                        visited.fetch_add(1, Ordering::SeqCst);
                    }
                    Some(Ok(None)) => thread::yield_now(),
                    Some(Err(())) | None => {}
                }
            }
        });
        assert!(visits.iter().all(|count| count.load(Ordering::SeqCst) == 1));
        let (stats, nodes) = (queue.stats(), nodes as u64);
        assert_eq!((stats.pushed, stats.committed), (nodes, nodes));
        assert_eq!((stats.ready, stats.held), (0, 0));
    });
}
