//! Futures that are cancelled at random: no item is lost, and no waiter sleeps while its condition holds.
//!
//! The cancelling threads never block. After each round all of them stop, and the threads that do not cancel must
//! make progress by the wake-ups so far.

use crate::common::futures::Task;
use crate::common::rng::Rng;
use crate::common::PATIENCE;
use crate::harness::{on_all_threads, scaled};
use requeue::{Handle, PopError, PushError, Queue};
use std::future::Future;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Barrier};
use std::task::Poll;
use std::thread::{self, JoinHandle};

/// Number of futures that each test cancels.
const CANCELLED: usize = 7_000;
const PATIENT: usize = 3;

/// The state shared by all threads of a test.
struct Storm {
    queue: Queue<usize>,
    /// Number of items created, pushed or not.
    items: AtomicUsize,
    pushed: AtomicUsize,
    popped: AtomicUsize,
    cancelled: AtomicUsize,
    round: Barrier,
    over: AtomicBool,
}

impl Storm {
    fn item(&self) -> usize {
        self.items.fetch_add(1, SeqCst)
    }

    /// The output of the future, unless it is cancelled before.
    fn run<F: Future + Unpin>(&self, future: F, rng: &mut Rng) -> Option<F::Output> {
        let mut task = Task::new(future);
        for _ in 0..rng.below(4) {
            if let Poll::Ready(output) = task.poll() {
                return Some(output);
            }
            if rng.percent(50) {
                thread::yield_now();
            }
        }
        self.cancelled.fetch_add(1, SeqCst);
        if rng.percent(20) {
            task.forget();
        }
        None
    }
}

/// A thread that cancels, and the items that it has pushed and popped.
struct Canceller {
    storm: Arc<Storm>,
    rng: Rng,
    handle: Handle<usize>,
    pushed: Vec<usize>,
    popped: Vec<usize>,
}

impl Canceller {
    fn new(storm: Arc<Storm>, rng: Rng) -> Self {
        Self {
            handle: storm.queue.handle(),
            storm,
            rng,
            pushed: Vec::new(),
            popped: Vec::new(),
        }
    }

    fn pop(&mut self) {
        let Self { storm, rng, .. } = self;
        let popped = storm.run(self.handle.pop_async(), rng);
        self.popped.extend(popped.map(|item| item.expect("open")));
    }

    fn push(&mut self) {
        let Self { storm, rng, .. } = self;
        let item = storm.item();
        let pushed = storm.run(self.handle.push_async(item), rng);
        self.pushed.extend(pushed.map(|done| {
            done.expect("open");
            item
        }));
    }

    fn push_batch(&mut self) {
        let items = [self.storm.item(), self.storm.item()];
        let mut task = Task::new(self.handle.push_batch_async(items));
        match task.poll() {
            Poll::Ready(Ok(_)) => self.pushed.extend(items),
            Poll::Ready(Err(refused)) => assert_eq!(refused, PushError::Full(items.to_vec())),
            Poll::Pending => drop(self.storm.cancelled.fetch_add(1, SeqCst)),
        }
    }

    /// A transaction with any kind of end, whose last future is cancelled or not.
    fn transaction(&mut self) {
        let Self { storm, rng, .. } = self;
        let mut staged = Vec::new();
        let tx = self.handle.begin();
        tx.pop_batch(rng.below(2));
        let item = storm.item();
        if rng.percent(30) && tx.push(item).is_ok() {
            staged.push(item);
        }
        if rng.percent(50) {
            storm.run(tx.pop_async(), rng);
        } else {
            let item = storm.item();
            // `None`: cancelled; `Full`: more than the capacity.
            if let Some(Ok(())) = storm.run(tx.push_async(item), rng) {
                staged.push(item);
            }
        }
        match rng.below(4) {
            0 => drop(tx),
            1 => mem::forget(tx),
            _ => {
                self.popped.extend(tx.commit());
                self.pushed.append(&mut staged);
            }
        }
    }

    fn act(&mut self) {
        match self.rng.below(6) {
            0 | 1 => self.pop(),
            2 => self.push(),
            3 => self.push_batch(),
            _ => self.transaction(),
        }
    }

    /// Cancels until the storm is over; returns the pushed and popped items.
    fn go_on(mut self) -> [Vec<usize>; 2] {
        while !self.storm.over.load(SeqCst) {
            let (pushed, popped) = (self.pushed.len(), self.popped.len());
            let most = self.rng.pick(&[1, 4, 40]);
            for _ in 0..=self.rng.below(most) {
                self.act();
            }
            self.handle.begin().abort(); // settles forgotten state
            let storm = &self.storm;
            storm.pushed.fetch_add(self.pushed.len() - pushed, SeqCst);
            storm.popped.fetch_add(self.popped.len() - popped, SeqCst);
            storm.round.wait();
            storm.round.wait();
        }
        [self.pushed, self.popped]
    }
}

/// The cancelling threads; they return their pushed and popped items.
type Cancellers = Vec<JoinHandle<[Vec<usize>; 2]>>;

/// The cancelling threads of a storm. They are not joined if the test fails, since some might sleep forever.
fn start(queue: Queue<usize>, threads: usize, rng: &mut Rng) -> (Arc<Storm>, Cancellers) {
    let storm = Arc::new(Storm {
        queue,
        items: AtomicUsize::new(0),
        pushed: AtomicUsize::new(0),
        popped: AtomicUsize::new(0),
        cancelled: AtomicUsize::new(0),
        round: Barrier::new(threads + 1),
        over: AtomicBool::new(false),
    });
    let cancellers = (0..threads).map(|_| {
        let canceller = Canceller::new(Arc::clone(&storm), rng.fork());
        thread::spawn(|| canceller.go_on())
    });
    let cancellers = cancellers.collect();
    (storm, cancellers)
}

/// Runs rounds until enough futures were cancelled; `check` is called after each.
fn rounds(storm: &Storm, mut check: impl FnMut()) {
    while !storm.over.load(SeqCst) {
        storm.round.wait();
        check();
        let enough = storm.cancelled.load(SeqCst) >= scaled(CANCELLED) / 4;
        storm.over.store(enough, SeqCst);
        storm.round.wait();
    }
}

/// Checks that exactly the pushed items were popped, each once.
fn assert_conserved(cancellers: Cancellers, mut pushed: Vec<usize>, mut popped: Vec<usize>) {
    for canceller in cancellers {
        let [more_pushed, more_popped] = canceller.join().unwrap();
        pushed.extend(more_pushed);
        popped.extend(more_popped);
    }
    pushed.sort_unstable();
    popped.sort_unstable();
    assert!(pushed == popped, "not what was pushed was popped");
}

/// The next number sent by a thread that does not cancel.
fn receive(receiver: &Receiver<usize>) -> usize {
    let next = receiver.recv_timeout(PATIENCE);
    next.expect("somebody sleeps beside what it waits for")
}

/// Pops until the end, cycling through all forms, and sends each item.
fn pop_patiently(queue: &Queue<usize>, sender: &Sender<usize>) {
    let mut handle = queue.handle();
    for round in 0.. {
        let popped = if round % 2 == 0 {
            handle.pop_blocking()
        } else {
            handle.transact(|tx| tx.pop_blocking().map(|item| *item))
        };
        match popped {
            Ok(item) => sender.send(item).expect("the test goes on"),
            Err(PopError::Closed) => break,
            Err(PopError::Empty) => panic!("a pop that waits said Empty"),
        }
    }
}

fn patient_poppers(queue: &Queue<usize>, threads: usize, rng: &mut Rng) {
    let (storm, cancellers) = start(queue.clone(), threads, rng);
    let (sender, receiver) = channel();
    for _ in 0..PATIENT {
        let (queue, sender) = (queue.clone(), sender.clone());
        thread::spawn(move || pop_patiently(&queue, &sender));
    }
    let mut popped = Vec::new();
    rounds(&storm, || {
        while popped.len() + storm.popped.load(SeqCst) < storm.pushed.load(SeqCst) {
            popped.push(receive(&receiver));
        }
    });
    queue.close();
    drop(sender);
    let end = receiver.recv_timeout(PATIENCE);
    assert_eq!(end, Err(RecvTimeoutError::Disconnected));
    assert_conserved(cancellers, Vec::new(), popped);
}

#[test]
fn no_waiter_sleeps_while_an_unbounded_queue_has_items() {
    on_all_threads(|threads, rng| patient_poppers(&Queue::unbounded(), threads, rng));
}

#[test]
fn no_waiter_sleeps_while_a_bounded_queue_has_items() {
    on_all_threads(|threads, rng| {
        let queue = Queue::bounded(1 + rng.below(4));
        patient_poppers(&queue, threads, rng);
    });
}

/// Pushes as many items as requested, cycling through all forms, and sends each.
fn push_patiently(storm: &Storm, requested: &Receiver<usize>, sender: &Sender<usize>) {
    let mut handle = storm.queue.handle();
    for round in requested.iter().flat_map(|count| 0..count) {
        let item = storm.item();
        let pushed = match round % 3 {
            0 => handle.push_blocking(item),
            1 => handle.transact(|tx| tx.push_blocking(item)),
            _ => handle
                .push_batch_blocking([item])
                .map(drop)
                .map_err(|_| PushError::Full(item)),
        };
        pushed.expect("the queue is open and has room for one");
        sender.send(item).expect("the test goes on");
    }
}

#[test]
fn no_waiter_sleeps_while_there_is_room() {
    on_all_threads(|threads, rng| {
        let capacity = 1 + rng.below(4);
        let queue = Queue::bounded(capacity);
        let (storm, cancellers) = start(queue.clone(), threads, rng);
        let (sender, receiver) = channel();
        let patient: Vec<_> = (0..PATIENT)
            .map(|_| {
                let (ask, requested) = channel();
                let (storm, sender) = (Arc::clone(&storm), sender.clone());
                thread::spawn(move || push_patiently(&storm, &requested, &sender));
                ask
            })
            .collect();
        let (mut pushed, mut popped) = (Vec::new(), Vec::new());
        let mut requested = 0;
        rounds(&storm, || {
            loop {
                while pushed.len() < requested && queue.len() < capacity {
                    pushed.push(receive(&receiver));
                }
                if pushed.len() == requested {
                    break;
                }
                popped.extend(queue.pop().ok());
            }
            for ask in &patient {
                let count = rng.below(4);
                ask.send(count).expect("the thread waits");
                requested += count;
            }
        });
        drop((patient, sender));
        loop {
            popped.extend(std::iter::from_fn(|| queue.pop().ok()));
            if pushed.len() == requested {
                break;
            }
            pushed.push(receive(&receiver));
        }
        assert_conserved(cancellers, pushed, popped);
    });
}
