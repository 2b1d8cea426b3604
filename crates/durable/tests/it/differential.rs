//! Random operations on a durable queue and on a model in memory, with restarts and crashes.
//!
//! A crash is a copy of the directory while a transaction is open: the next store opens the copy. `DURABLE_DIFFERENTIAL`
//! sets how many sequences each test runs.

use super::model::{Death, Item, Model, MAX_ATTEMPTS};
use super::random::Random;
use super::{directory, options};
use requeue::{ByKey, ByPriority, Fifo, ManualClock, Reason};
use requeue_durable::{
    Cause, Durability, DurableQueue, Handle, Order, PopError, Store, Ticket, Transaction,
};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

const KEYS: u64 = 4;
const STEPS: usize = 60;
const HOUR: Durability = Durability::Buffered {
    at_most: Duration::from_secs(3600),
};

/// How an order is tested.
trait Tested: Order<u64> {
    fn build(store: &Store, clock: ManualClock, memory: Option<usize>) -> DurableQueue<u64, Self>;

    /// Pushes an item with a random place; returns its class, its lane, the delay until it is due, and its ticket.
    fn push(
        tx: &Transaction<'_, u64, Self>,
        _: &mut Random,
        value: u64,
    ) -> (u16, u64, u64, Option<Ticket>) {
        tx.push(value).unwrap();
        (0, Self::lane(value), 0, None)
    }

    /// Uses the ticket of a random item.
    fn use_ticket(_: &mut Run<Self>) {}

    fn lane(value: u64) -> u64;

    /// The lane of an item after a restart.
    fn lane_again(lane: u64) -> u64 {
        lane
    }
}

macro_rules! build {
    ($($order:ident $($by:expr)?)?) => {
        fn build(store: &Store, clock: ManualClock, memory: Option<usize>) -> DurableQueue<u64, Self> {
            let builder = store.builder("numbers")$(.$order($($by)?))?;
            let builder = builder.max_attempts(MAX_ATTEMPTS).clock(clock).reopened();
            match memory {
                Some(bytes) => builder.memory(bytes).build(),
                None => builder.build(),
            }
            .unwrap()
        }
    };
}

/// Items of this handle are in order, and those of the time before the restart.
impl Tested for Fifo {
    build!();

    fn lane(_: u64) -> u64 {
        1
    }

    fn lane_again(_: u64) -> u64 {
        0
    }
}

impl Tested for ByKey<u64, u64> {
    build!(fair_by | value | value % KEYS);

    fn lane(value: u64) -> u64 {
        value % KEYS
    }
}

impl Tested for ByPriority {
    build!(by_priority);

    fn push(
        tx: &Transaction<'_, u64, Self>,
        random: &mut Random,
        value: u64,
    ) -> (u16, u64, u64, Option<Ticket>) {
        let priority = random.pick(&[1, 2, 5_000]);
        let view = tx.priority(priority);
        let delay = random.pick(&[0, 0, 0, 7, 30]);
        let ticket = match delay {
            0 => view.push(value),
            _ => view.after(Duration::from_millis(delay)).push(value),
        };
        (priority, 0, delay, Some(ticket.unwrap()))
    }

    fn use_ticket(run: &mut Run<Self>) {
        if run.tickets.is_empty() {
            return;
        }
        let (value, ticket) = run.random.pick(&run.tickets);
        let queue = run.handle().queue().clone();
        if run.random.below(2) == 0 {
            let cancelled = queue.cancel(ticket).unwrap();
            assert!(cancelled.is_none_or(|item| item == value));
            run.model.remove(value, cancelled.is_some());
        } else {
            let priority = run.random.pick(&[1, 3]);
            let moved = queue.reprioritize(ticket, priority).unwrap();
            run.model.reprioritize(value, priority, moved);
        }
    }

    fn lane(_: u64) -> u64 {
        0
    }
}

/// The queue under test, its model, and the clocks of both.
struct Run<O: Tested> {
    random: Random,
    directory: TempDir,
    handle: Option<Handle<u64, O>>,
    store: Option<Store>,
    model: Model,
    clock: ManualClock,
    wall: Arc<Mutex<SystemTime>>,
    next: u64,
    memory: Option<usize>,
    /// The tickets of all items.
    tickets: Vec<(u64, Ticket)>,
}

impl<O: Tested> Run<O> {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let memory = random.pick(&[None, Some(100)]);
        let mut run = Self {
            random,
            directory: directory(),
            handle: None,
            store: None,
            model: Model::default(),
            clock: ManualClock::new(),
            wall: Arc::new(Mutex::new(UNIX_EPOCH + Duration::from_secs(1_000_000))),
            next: 0,
            memory,
            tickets: Vec::new(),
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
        let queue = O::build(&store, self.clock.clone(), self.memory);
        self.handle = Some(queue.handle());
        self.store = Some(store);
    }

    fn close(&mut self) {
        (self.handle, self.store) = (None, None);
    }

    fn handle(&mut self) -> &mut Handle<u64, O> {
        self.handle.as_mut().unwrap()
    }

    fn step(&mut self) {
        match self.random.below(14) {
            0..=6 => self.transaction(),
            7 => self.pop_one(),
            8 => self.advance(),
            9 => self.requeue_letters(),
            10 => {
                self.close();
                self.restarted();
                self.open();
            }
            11 | 12 => O::use_ticket(self),
            _ => {
                let closed = self.handle().queue().close().unwrap();
                assert!(closed || self.model.closed);
                self.model.closed = true;
            }
        }
        self.compare();
    }

    fn restarted(&mut self) {
        self.model.restart(O::lane_again);
        self.model.closed = false;
    }

    fn pop_one(&mut self) {
        match self.handle().pop() {
            Ok(value) => drop(self.model.take(value)),
            Err(PopError::Empty | PopError::Closed) => self.model.check_empty(),
            Err(error) => panic!("{error}"),
        }
    }

    fn advance(&mut self) {
        let step = Duration::from_millis(self.random.pick(&[1, 10, 40]));
        self.clock.advance(step);
        *self.wall.lock().unwrap() += step;
        self.model.now += u64::try_from(step.as_millis()).unwrap();
    }

    fn requeue_letters(&mut self) {
        let letters = self.handle().queue().dead_letters();
        if self.model.closed || letters.is_empty() {
            return;
        }
        let letter = letters.oldest().unwrap().unwrap();
        letters.requeue(letter.id()).unwrap();
        self.model.requeue(letter.item);
        self.tickets.retain(|(value, _)| *value != letter.item);
    }

    /// A transaction with some operations, which commits, aborts, or is open in a crash.
    fn transaction(&mut self) {
        let mut handle = self.handle.take().unwrap();
        let tx = handle.begin();
        let (mut held, mut staged) = (Vec::new(), Vec::new());
        for _ in 0..self.random.below(6) {
            self.operation(&tx, &mut held, &mut staged);
        }
        assert_eq!((tx.held(), tx.staged()), (held.len(), staged.len()));
        match self.random.below(8) {
            0..=3 => {
                let durability = self.random.pick(&[Durability::Synced, HOUR]);
                let taken: Vec<_> = tx.commit_with(durability).unwrap().collect();
                let expected: Vec<_> = held.iter().map(|item| item.value).collect();
                assert_eq!(taken, expected);
                self.model.push(staged);
            }
            4 => {
                let taken = futures::executor::block_on(tx.commit_async()).unwrap();
                assert_eq!(taken.len(), held.len());
                self.model.push(staged);
            }
            5 | 6 => {
                tx.abort();
                self.model.give_back(held, Death::Aborted);
            }
            _ => {
                self.store.as_ref().unwrap().flush().unwrap();
                let copy = directory();
                copy_all(self.directory.path(), copy.path());
                drop(tx);
                drop(handle);
                self.close();
                self.directory = copy;
                self.model.give_back(held, Death::Crashed);
                self.restarted();
                return self.open();
            }
        }
        self.handle = Some(handle);
    }

    fn operation(
        &mut self,
        tx: &Transaction<'_, u64, O>,
        held: &mut Vec<Item>,
        staged: &mut Vec<Item>,
    ) {
        match self.random.below(10) {
            0..=3 if self.model.closed && held.is_empty() => {
                assert!(tx.push(0).unwrap_err().is_closed());
            }
            0..=3 => {
                self.next += 1;
                let (class, lane, delay, ticket) = O::push(tx, &mut self.random, self.next);
                self.tickets
                    .extend(ticket.map(|ticket| (self.next, ticket)));
                let due = (delay > 0).then(|| self.model.now + delay);
                staged.push(Item::new(self.next, class, lane, due));
            }
            4..=7 => match tx.pop() {
                Ok(item) => {
                    let expected = self.model.take(*item);
                    assert_eq!(item.attempts(), expected.attempts, "of {item}");
                    held.push(expected);
                }
                Err(PopError::Empty | PopError::Closed) => self.model.check_empty(),
                Err(error) => panic!("{error}"),
            },
            8 => match tx.peek() {
                Ok(peek) => self.model.check_next(*peek),
                Err(_) => self.model.check_empty(),
            },
            _ => {
                let Ok(item) = tx.pop() else { return };
                let taken = self.model.take(*item);
                if self.random.below(5) < 2 {
                    tx.fail(item, "no good").unwrap();
                    self.model.bury(taken, Death::Failed);
                } else {
                    let delay = self.random.pick(&[5, 25]);
                    tx.retry_after(item, Duration::from_millis(delay)).unwrap();
                    self.model.retry(taken, delay);
                }
            }
        }
    }

    /// Compares what can be seen without a pop.
    fn compare(&mut self) {
        let queue = self.handle().queue().clone();
        assert_eq!(queue.len(), self.model.ready());
        let mut letters: Vec<_> = queue
            .dead_letters()
            .all()
            .unwrap()
            .into_iter()
            .map(|letter| {
                let death = match letter.reason {
                    Cause::Crashed => Death::Crashed,
                    Cause::Failed(Reason::Failed) => Death::Failed,
                    Cause::Failed(Reason::Retried) => Death::Retried,
                    Cause::Failed(Reason::Aborted) => Death::Aborted,
                    other => panic!("{other:?}"),
                };
                assert_eq!(
                    letter.error.is_some(),
                    matches!(death, Death::Failed | Death::Crashed)
                );
                (letter.item, letter.attempts, death)
            })
            .collect();
        letters.sort_unstable();
        assert_eq!(letters, self.model.letters());
    }

    /// Everything is there, once.
    fn finish(&mut self) {
        self.clock.advance(Duration::from_secs(1));
        *self.wall.lock().unwrap() += Duration::from_secs(1);
        self.model.now += 1_000;
        while self.model.ready() > 0 {
            self.pop_one();
        }
        self.pop_one();
    }
}

fn copy_all(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir_all(&to).unwrap();
            copy_all(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn run<O: Tested>() {
    let sequences = std::env::var("DURABLE_DIFFERENTIAL").map_or(3, |count| count.parse().unwrap());
    for seed in 0..sequences {
        eprintln!("seed {seed}");
        let mut run = Run::<O>::new(seed);
        for _ in 0..STEPS {
            run.step();
        }
        run.finish();
    }
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
