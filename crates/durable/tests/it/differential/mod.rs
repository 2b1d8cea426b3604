//! Random operations on two durable queues of a store and on models in memory, with restarts and crashes.
//!
//! A crash is a copy of the directory while transactions are open: the next store opens the copy.

mod model;
mod open;
mod orders;
mod round;

use super::random::{cases, Random};
use super::{directory, options};
use model::{Death, Model};
use orders::{Tested, KEYS};
use requeue::{ByKey, ByPriority, Fifo, Leased, ManualClock, Reason};
use requeue_durable::{
    Cause, DeadLetter, Durability, DurableQueue, Handle, PopError, Store, Ticket,
};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

const STEPS: usize = 60;
const NAMES: [&str; 2] = ["left", "right"];
const HANDLES: usize = 2;
const HOUR: Durability = Durability::Buffered {
    at_most: Duration::from_secs(3600),
};

/// A queue under test, its handles with their numbers, and its model.
struct Side<O: Tested> {
    queue: Option<DurableQueue<u64, O>>,
    handles: Vec<(u64, Handle<u64, O>)>,
    model: Model,
    /// The tickets of all items.
    tickets: Vec<(u64, Ticket)>,
}

/// The store under test, and its clocks.
struct Run<O: Tested> {
    random: Random,
    directory: TempDir,
    store: Option<Store>,
    sides: [Side<O>; 2],
    clock: ManualClock,
    wall: Arc<Mutex<SystemTime>>,
    memory: Option<usize>,
    /// Whether the items have unique keys, and weights.
    keyed: bool,
    /// The last item.
    last: u64,
    /// How many handles there were.
    handles: u64,
}

impl<O: Tested> Side<O> {
    fn new() -> Self {
        Self {
            queue: None,
            handles: Vec::new(),
            model: Model::new(O::TERM),
            tickets: Vec::new(),
        }
    }

    fn queue(&self) -> &DurableQueue<u64, O> {
        self.queue.as_ref().unwrap()
    }

    fn pop(&mut self) {
        match self.queue().pop() {
            Ok(value) => drop(self.model.take(value)),
            Err(PopError::Empty | PopError::Closed) => self.model.check_empty(),
            Err(error) => panic!("{error}"),
        }
    }

    fn retain(&mut self, random: &mut Random) {
        let part = random.pick(&[2, 5]);
        let keep = |value| value % part > 0;
        let removed = self.queue().retain(|value, _| keep(*value)).unwrap();
        assert_eq!(removed, self.model.retain(keep));
    }

    fn close(&mut self) {
        let closed = self.queue().close().unwrap();
        assert!(closed || self.model.closed);
        self.model.closed = true;
    }

    /// Pushes a dead letter again, or all of them, or removes one.
    fn use_letters(&mut self, random: &mut Random) {
        let letters = self.queue().dead_letters();
        let Some(oldest) = letters.oldest().unwrap() else {
            return;
        };
        if random.percent(20) {
            let removed = letters.remove(oldest.id()).unwrap().unwrap();
            assert_eq!(removed.item, oldest.item);
            self.model.discard(oldest.item);
        } else if self.model.closed {
            assert!(letters.requeue(oldest.id()).unwrap_err().is_closed());
        } else if random.percent(50) {
            assert!(letters.requeue(oldest.id()).unwrap());
            self.requeued(oldest.item);
        } else {
            let all = letters.all().unwrap();
            assert_eq!(letters.requeue_all().unwrap(), all.len());
            for letter in all {
                self.requeued(letter.item);
            }
        }
    }

    fn requeued(&mut self, value: u64) {
        self.model.requeue(value);
        self.tickets.retain(|(known, _)| *known != value);
    }

    /// Compares what can be seen without a pop.
    fn compare(&self) {
        assert_eq!(self.queue().len(), self.model.ready());
        let letters = self.queue().dead_letters().all().unwrap();
        let mut letters: Vec<_> = letters
            .iter()
            .map(|letter| (letter.item, letter.attempts, death(letter)))
            .collect();
        letters.sort_unstable();
        assert_eq!(letters, self.model.letters());
    }
}

fn death(letter: &DeadLetter<u64>) -> Death {
    let death = match letter.reason {
        Cause::Crashed => Death::Crashed,
        Cause::Failed(Reason::Failed) => Death::Failed,
        Cause::Failed(Reason::Retried) => Death::Retried,
        Cause::Failed(Reason::Aborted) => Death::Aborted,
        Cause::Failed(Reason::Expired) => Death::Expired,
        other => panic!("{other:?}"),
    };
    let has_error = matches!(death, Death::Failed | Death::Crashed);
    assert_eq!(letter.error.is_some(), has_error);
    death
}

impl<O: Tested> Run<O> {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let memory = random.pick(&[None, Some(100)]);
        let mut run = Self {
            random,
            directory: directory(),
            store: None,
            sides: [Side::new(), Side::new()],
            clock: ManualClock::new(),
            wall: Arc::new(Mutex::new(UNIX_EPOCH + Duration::from_secs(1_000_000))),
            memory,
            keyed: false,
            last: 0,
            handles: 0,
        };
        run.open();
        run
    }

    fn open(&mut self) {
        let wall = Arc::clone(&self.wall);
        let durability = self.random.pick(&[Durability::Synced, HOUR, HOUR]);
        let store = options()
            .durability(durability)
            .wall_clock(move || *wall.lock().unwrap())
            .open(self.directory.path())
            .unwrap();
        self.keyed = self.random.percent(70);
        for (side, name) in self.sides.iter_mut().zip(NAMES) {
            let queue = O::build(&store, name, self.clock.clone(), self.memory, self.keyed);
            for _ in 0..HANDLES {
                self.handles += 1;
                let name = self.handles.to_string();
                side.handles.push((self.handles, queue.named_handle(name)));
            }
            side.queue = Some(queue);
        }
        self.store = Some(store);
    }

    fn close(&mut self) {
        for side in &mut self.sides {
            side.handles.clear();
            side.queue = None;
        }
        self.store = None;
    }

    /// The same directory, or another one, after all transactions have ended.
    fn restart(&mut self) {
        self.close();
        let keyed = self.keyed;
        self.open();
        // With weights it has no pages. Items from a time without pages come before the others.
        let in_order = keyed == self.keyed;
        for side in &mut self.sides {
            side.model.restart(|lane| lane % KEYS, in_order);
            side.model.closed = false;
        }
    }

    fn step(&mut self) {
        let side = &mut self.sides[self.random.below(2)];
        match self.random.below(16) {
            0..=7 => self.round(),
            8 => side.pop(),
            9 => self.advance(),
            10 => side.use_letters(&mut self.random),
            11 => self.store.as_ref().unwrap().flush().unwrap(),
            12 => self.restart(),
            13 | 14 => O::use_ticket(&mut self.random, side),
            _ => side.close(),
        }
        self.compare();
    }

    fn advance(&mut self) {
        let step = self.random.pick(&[1, 10, 40]);
        self.advance_by(step);
    }

    fn advance_by(&mut self, millis: u64) {
        let step = Duration::from_millis(millis);
        self.clock.advance(step);
        *self.wall.lock().unwrap() += step;
        for side in &mut self.sides {
            side.model.now += millis;
        }
    }

    fn compare(&self) {
        self.sides.iter().for_each(Side::compare);
    }

    /// Everything is there, once.
    fn finish(&mut self) {
        self.advance_by(1_000);
        for side in &mut self.sides {
            while side.model.ready() > 0 {
                side.pop();
            }
            side.pop();
        }
    }
}

fn run<O: Tested>() {
    cases(3, |seed| {
        let mut run = Run::<O>::new(seed);
        for _ in 0..STEPS {
            run.step();
        }
        run.finish();
    });
}

#[test]
fn first_in_first_out() {
    run::<Fifo>();
}

#[test]
fn fair() {
    run::<ByKey<u64, u64>>();
}

#[test]
fn by_priority() {
    run::<ByPriority>();
}

#[test]
fn leased() {
    run::<Leased<Fifo>>();
}

#[test]
fn fair_and_leased() {
    run::<Leased<ByKey<u64, u64>>>();
}

#[test]
fn by_priority_and_leased() {
    run::<Leased<ByPriority>>();
}
