//! Random calls of a queue with unique keys, next to a sequential model of the keys.

use crate::common::rng::Rng;
use requeue::{
    Builder, Delivery, DuplicateOf, ManualClock, OnDuplicate, Order, OwnedTransaction, PushError,
    Queue, Unleased,
};
use std::collections::BTreeMap;
use std::time::Duration;

const KEYS: u32 = 8;
const WINDOW: u32 = 5;

/// What the item with a key is.
#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    Queued(u32),
    Held,
    Staged(usize),
    /// Until this time.
    Recent(u32),
}

struct Model {
    keys: BTreeMap<u32, State>,
    /// What follows the items with these keys.
    next: BTreeMap<u32, u32>,
    rule: OnDuplicate,
    window: u32,
    now: u32,
}

impl Model {
    /// What a push of this key is a duplicate of.
    fn taken(&self, key: u32, by: Option<usize>) -> Option<DuplicateOf> {
        match self.keys.get(&key)? {
            State::Queued(_) => Some(DuplicateOf::Queued),
            State::Held => Some(DuplicateOf::Held),
            State::Staged(other) if Some(*other) == by => Some(DuplicateOf::SameTransaction),
            State::Staged(_) => Some(DuplicateOf::Staged),
            State::Recent(until) => (self.now < *until).then_some(DuplicateOf::Recent),
        }
    }

    /// The result of the push of one item.
    fn push(&mut self, item: u32) -> Result<(), PushError<u32>> {
        let key = item % KEYS;
        let Some(of) = self.taken(key, None) else {
            self.keys.insert(key, State::Queued(item));
            return Ok(());
        };
        let is_followed = self.next.contains_key(&key);
        match (self.rule, self.keys.get_mut(&key)) {
            (OnDuplicate::Follow, Some(state)) if is_followed || *state == State::Held => {
                self.next.insert(key, item);
            }
            (OnDuplicate::Replace | OnDuplicate::Follow, Some(State::Queued(value))) => {
                *value = item;
            }
            _ => return Err(PushError::Duplicate(item, of)),
        }
        Ok(())
    }

    /// What refuses a batch.
    fn batch(&self, items: &[u32], by: Option<usize>) -> Option<DuplicateOf> {
        let keys: Vec<_> = items.iter().map(|item| item % KEYS).collect();
        let refusal = |(nth, key): (usize, &u32)| {
            let own = || {
                keys[..nth]
                    .contains(key)
                    .then_some(DuplicateOf::SameTransaction)
            };
            self.taken(*key, by).or_else(own)
        };
        keys.iter().enumerate().find_map(refusal)
    }

    fn enter(&mut self, items: &[u32], state: impl Fn(u32) -> State) {
        for item in items {
            self.keys.insert(item % KEYS, state(*item));
        }
    }

    /// The item was taken.
    fn take(&mut self, item: u32) {
        let state = self.keys.insert(item % KEYS, State::Held);
        assert_eq!(state, Some(State::Queued(item)));
    }

    fn put_back(&mut self, item: u32) {
        let state = self.keys.insert(item % KEYS, State::Queued(item));
        assert_eq!(state, Some(State::Held));
    }

    fn end(&mut self, item: u32) {
        let key = item % KEYS;
        assert_eq!(self.keys.remove(&key), Some(State::Held));
        if let Some(next) = self.next.remove(&key) {
            self.keys.insert(key, State::Queued(next));
        } else if self.window > 0 {
            let until = self.now + self.window;
            self.keys.insert(key, State::Recent(until));
        }
    }

    fn count(&self, is: impl Fn(&State) -> bool) -> usize {
        self.keys.values().filter(|state| is(state)).count()
    }
}

/// A transaction, with what it holds and has staged.
type Tx<O> = (OwnedTransaction<u32, O>, Vec<u32>, Vec<u32>);

struct Run<O: Order<u32>> {
    queue: Queue<u32, O>,
    clock: ManualClock,
    model: Model,
    rng: Rng,
    /// So that values differ.
    version: u32,
    txs: Vec<Tx<O>>,
    jobs: Vec<Delivery<u32, O>>,
}

impl<O: Order<u32> + Unleased> Run<O> {
    fn item(&mut self) -> u32 {
        self.version += 1;
        self.version * KEYS + u32::try_from(self.rng.below(KEYS as usize)).unwrap()
    }

    fn items(&mut self) -> Vec<u32> {
        (0..=self.rng.below(3)).map(|_| self.item()).collect()
    }

    fn step(&mut self) {
        match self.rng.below(12) {
            0..=3 => {
                let item = self.item();
                assert_eq!(self.queue.push(item), self.model.push(item));
            }
            4 => self.push_batch(),
            5 | 6 => self.use_transaction(),
            7 => self.end_transaction(),
            8 => {
                if let Ok(item) = self.queue.pop() {
                    self.model.take(item);
                    self.model.end(item);
                }
            }
            9 => self.deliver(),
            10 => {
                let key = u32::try_from(self.rng.below(KEYS as usize)).unwrap();
                if self.model.next.contains_key(&key) {
                    return; // what follows may be removed too, or not
                }
                let removed = self.queue.retain(|item, _| item % KEYS != key);
                let queued = matches!(self.model.keys.get(&key), Some(State::Queued(_)));
                assert_eq!(removed, usize::from(queued));
                if queued {
                    self.model.keys.remove(&key);
                }
            }
            _ => {
                self.clock.advance(Duration::from_secs(1));
                self.model.now += 1;
            }
        }
        let queued = self.model.count(|state| matches!(state, State::Queued(_)));
        let next = self.model.next.len();
        let stats = self.queue.stats();
        stats.check().unwrap();
        assert_eq!((stats.ready, stats.delayed), (queued as u64, next as u64));
    }

    fn push_batch(&mut self) {
        let items = self.items();
        let refusal = self.model.batch(&items, None);
        match self.queue.push_batch(items.clone()) {
            Ok(count) => {
                assert_eq!((count, refusal), (items.len(), None));
                self.model.enter(&items, State::Queued);
            }
            Err(refused) => self.check_refused(&refused, &items, refusal, None),
        }
    }

    /// Where there may be no room, other items are checked before those of the batch.
    fn check_refused(
        &self,
        refused: &PushError<Vec<u32>>,
        items: &[u32],
        refusal: Option<DuplicateOf>,
        by: Option<usize>,
    ) {
        let mut others = items
            .iter()
            .filter_map(|item| self.model.taken(item % KEYS, by));
        let first = others.next().filter(|_| self.queue.capacity().is_some());
        let of = first.or(refusal).unwrap();
        assert_eq!(*refused, PushError::Duplicate(items.to_vec(), of));
    }

    fn use_transaction(&mut self) {
        let nth = self.rng.below(3);
        if nth >= self.txs.len() {
            self.txs
                .push((self.queue.begin_owned(), Vec::new(), Vec::new()));
            return;
        }
        let (items, by) = (self.items(), nth);
        let (tx, held, staged) = &mut self.txs[nth];
        if self.rng.percent(50) {
            if let Ok(item) = tx.pop() {
                self.model.take(*item);
                held.push(*item);
            }
            return;
        }
        let refusal = self.model.batch(&items, Some(by));
        match tx.push_batch(items.clone()) {
            Ok(_) => {
                assert_eq!(refusal, None);
                self.model.enter(&items, |_| State::Staged(by));
                staged.extend(items);
            }
            Err(refused) => self.check_refused(&refused, &items, refusal, Some(by)),
        }
    }

    /// Ends the last transaction, so that the numbers of the others stay.
    fn end_transaction(&mut self) {
        let Some((tx, held, staged)) = self.txs.pop() else {
            return;
        };
        if self.rng.percent(50) {
            drop(tx.commit());
            for item in held {
                self.model.end(item);
            }
            self.model.enter(&staged, State::Queued);
        } else {
            tx.abort();
            for item in held {
                self.model.put_back(item);
            }
            for item in &staged {
                self.model.keys.remove(&(item % KEYS));
            }
        }
    }

    fn deliver(&mut self) {
        if self.jobs.len() < 2 {
            if let Ok(job) = self.queue.take() {
                self.model.take(*job);
                self.jobs.push(job);
            }
            return;
        }
        let job = self.jobs.swap_remove(self.rng.below(2));
        let item = *job;
        if self.rng.percent(50) {
            job.ack();
            self.model.end(item);
        } else {
            job.release();
            self.model.put_back(item);
        }
    }
}

fn run<O: Order<u32> + Unleased>(seed: u64, order: impl Fn(Builder<u32>) -> Queue<u32, O>) {
    let mut rng = Rng::new(seed);
    let rule = rng.pick(&[
        OnDuplicate::Refuse,
        OnDuplicate::Replace,
        OnDuplicate::Follow,
    ]);
    let (clock, window) = (ManualClock::new(), rng.pick(&[0, WINDOW]));
    let builder = Queue::builder()
        .clock(clock.clone())
        .unique_by(|item| item % KEYS)
        .unique_for(Duration::from_secs(window.into()))
        .on_duplicate(rule);
    let builder = if rng.percent(50) {
        builder.capacity(100)
    } else {
        builder
    };
    let mut run = Run {
        queue: order(builder),
        clock,
        model: Model {
            keys: BTreeMap::new(),
            next: BTreeMap::new(),
            rule,
            window,
            now: 0,
        },
        rng,
        version: 0,
        txs: Vec::new(),
        jobs: Vec::new(),
    };
    for _ in 0..300 {
        run.step();
    }
}

#[test]
fn keys_are_those_of_the_model() {
    let cases = std::env::var("REQUEUE_CASES").map_or(40, |cases| cases.parse().unwrap());
    for seed in 0..cases {
        run(seed, Builder::build);
        run(seed, |it| it.lifo().build());
        run(seed, |it| it.fair_by(|item| item % 3).build());
        run(seed, |it| it.by_priority().build());
    }
}
