//! The same by hand, for comparison: a heap under a lock.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    due: BinaryHeap<Reverse<(Instant, u64)>>,
    jobs: BTreeMap<u64, Job>,
    next: u64,
    closed: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

pub(crate) struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Pool {
    pub(crate) fn new(threads: usize) -> Self {
        let shared = Arc::<Shared>::default();
        let start = |_| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.work())
        };
        let threads = (0..threads).map(start).collect();
        Self { shared, threads }
    }

    pub(crate) fn execute_after(
        &self,
        delay: Duration,
        job: impl FnOnce() + Send + 'static,
    ) -> u64 {
        let job = Box::new(job);
        let mut state = self.shared.state.lock().unwrap();
        let number = state.next;
        state.next += 1;
        state.due.push(Reverse((Instant::now() + delay, number)));
        state.jobs.insert(number, job);
        drop(state);
        self.shared.changed.notify_one();
        number
    }

    pub(crate) fn cancel(&self, number: u64) {
        let job = self.shared.state.lock().unwrap().jobs.remove(&number);
        drop(job);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.as_mut().unwrap_or_else(|it| it.get_mut()).closed = true;
        drop(state);
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
    }
}

impl Shared {
    fn work(&self) {
        let mut state = self.state.lock().unwrap();
        loop {
            let Some(&Reverse((due, number))) = state.due.peek() else {
                if state.closed {
                    return;
                }
                state = self.changed.wait(state).unwrap();
                continue;
            };
            if !state.jobs.contains_key(&number) {
                state.due.pop(); // cancelled
                continue;
            }
            let left = due.saturating_duration_since(Instant::now());
            if left > Duration::ZERO {
                let waited = self.changed.wait_timeout(state, left);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            state.due.pop();
            let job = state.jobs.remove(&number);
            drop(state);
            if let Some(job) = job {
                job();
            }
            state = self.state.lock().unwrap();
        }
    }
}
