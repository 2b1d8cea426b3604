//! The watched queues, each with a producer and a worker pool.

use std::f64::consts::TAU;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use requeue::{Fifo, Handle, Leased, Queue, Stats, WorkerStatus, Workers};

use super::tasks::{Task, Trade};

/// The initial and the maximal load, in percent, and the step per key press.
const LOAD: u32 = 100;
const MOST: u32 = 400;
const CHANGE: u32 = 25;

/// The interval in which a producer pushes.
const STEP: Duration = Duration::from_millis(20);
/// The period of the load.
const WAVE: f64 = 16.0;

/// A queue with its producer and its workers.
pub(crate) struct Shop {
    pub(crate) trade: Trade,
    pub(crate) queue: Queue<Task, Leased<Fifo>>,
    producer: Producer,
    workers: Workers,
    /// The workers that were paused by a key.
    paused: Vec<bool>,
}

impl Shop {
    pub(crate) fn open(trade: Trade) -> Self {
        let queue = trade.queue();
        let workers = Workers::builder(&queue)
            .threads(trade.workers())
            .name(trade.name())
            .run(move |task, _tx| trade.perform(*task, task.attempts()));
        Self {
            trade,
            producer: Producer::start(queue.handle(), trade.rate()),
            workers,
            paused: vec![false; trade.workers()],
            queue,
        }
    }

    pub(crate) fn load(&self) -> u32 {
        self.producer.load.load(Relaxed)
    }

    pub(crate) fn raise_load(&self) {
        self.set_load((self.load() + CHANGE).min(MOST));
    }

    pub(crate) fn lower_load(&self) {
        self.set_load(self.load().saturating_sub(CHANGE));
    }

    fn set_load(&self, percent: u32) {
        self.producer.load.store(percent, Relaxed);
    }

    /// The status of each worker, and whether it was paused.
    pub(crate) fn workers(&self) -> impl Iterator<Item = (WorkerStatus, bool)> + '_ {
        let status = self.workers.status().into_iter();
        status.zip(self.paused.iter().copied())
    }

    /// Pauses a worker, or resumes it if it was paused. Returns true if it is paused now.
    pub(crate) fn toggle(&mut self, worker: usize) -> bool {
        let paused = &mut self.paused[worker];
        *paused = !*paused;
        if *paused {
            self.workers.pause(worker);
        } else {
            self.workers.resume(worker);
        }
        *paused
    }

    /// Stops the producer, waits until the workers have finished their runs, and returns the counts.
    pub(crate) fn close(self) -> Stats {
        self.producer.stop();
        self.workers.stop();
        self.queue.stats()
    }
}

/// A thread that pushes tasks.
struct Producer {
    /// In percent.
    load: Arc<AtomicU32>,
    /// Dropped to stop the thread.
    running: Sender<()>,
    thread: JoinHandle<()>,
}

impl Producer {
    fn start(handle: Handle<Task, Leased<Fifo>>, rate: f64) -> Self {
        let load = Arc::new(AtomicU32::new(LOAD));
        let (running, stopped) = channel();
        let thread = {
            let load = Arc::clone(&load);
            thread::spawn(move || produce(handle, rate, &load, &stopped))
        };
        Self {
            load,
            running,
            thread,
        }
    }

    fn stop(self) {
        drop(self.running);
        self.thread.join().expect("a producer does not panic");
    }
}

/// Pushes until the other end of `stopped` is dropped.
fn produce(
    mut handle: Handle<Task, Leased<Fifo>>,
    rate: f64,
    load: &AtomicU32,
    stopped: &Receiver<()>,
) {
    let start = Instant::now();
    let (mut due, mut number) = (0.0, 0);
    while stopped.recv_timeout(STEP) == Err(RecvTimeoutError::Timeout) {
        let swell = 1.0 + 0.6 * (start.elapsed().as_secs_f64() / WAVE * TAU).sin();
        let load = f64::from(load.load(Relaxed)) / 100.0;
        due += rate * load * swell * STEP.as_secs_f64();
        while due >= 1.0 {
            due -= 1.0;
            number += 1;
            // If the queue is full the task is dropped, like a request to a busy service.
            let _ = handle.push(Task(number));
        }
    }
}
