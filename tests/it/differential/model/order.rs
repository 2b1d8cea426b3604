//! The sequential model of one queue.

use super::disciplines::Key;
use super::failures::{Delayed, Letter};
use super::item::{Mark, Source};
use super::settings::{Settings, Ticks};
use super::stock::{Card, Stock};
use super::waits::Waiters;
use super::work::Work;
use requeue::PriorityQueue;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// The items of a queue, their possible orders, and the counts.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) settings: Settings,
    /// The injector.
    pub(super) injector: Source,
    pub(super) stock: Stock,
    /// Number of items of each key, wherever they are.
    pub(super) keys: BTreeMap<Key, usize>,
    pub(super) facts: HashMap<Mark, Fact>,
    /// In the order of their arrival.
    pub(super) delayed: Vec<Delayed>,
    pub(crate) letters: VecDeque<Letter>,
    /// The dead letters that were passed to the callback since the last check.
    pub(crate) spilled: Vec<Mark>,
    /// Whether pops check for returned items.
    pub(crate) checks_returned: bool,
    pub(crate) now: Ticks,
    pub(crate) closed: bool,
    /// The handles, by the number of their counters, and their transactions.
    pub(super) by_number: BTreeMap<usize, Source>,
    pub(super) open: HashMap<Source, Work>,
    /// Number of items that transactions have taken.
    pub(super) holds: usize,
    pub(crate) poppers: Waiters,
    pub(crate) pushers: Waiters,
    pub(crate) pushed: usize,
    pub(crate) held: usize,
    pub(crate) committed: usize,
    pub(crate) aborted: usize,
    pub(crate) expired: usize,
    pub(crate) dead: usize,
}

/// The facts about an item.
#[derive(Debug)]
pub(super) struct Fact {
    /// The source of the item, to whose queue it belongs or returns.
    pub(super) shard: Source,
    /// Deliveries that count.
    pub(super) failures: u32,
    /// Number of changes made by holders of the item.
    pub(super) changes: u32,
    /// The time of the first push.
    pub(super) since: Ticks,
    pub(super) wished: Wished,
}

/// The arguments of the push of an item.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wished {
    pub(crate) priority: u16,
    pub(crate) due: Option<Ticks>,
    /// Whether its ticket is valid.
    pub(crate) ticket: bool,
}

impl Default for Wished {
    fn default() -> Self {
        Self {
            priority: PriorityQueue::<()>::DEFAULT_PRIORITY,
            due: None,
            ticket: false,
        }
    }
}

impl Order {
    pub(crate) fn new(settings: Settings, injector: Source) -> Self {
        Self {
            injector,
            stock: Stock::new(&settings, injector),
            keys: BTreeMap::new(),
            facts: HashMap::new(),
            delayed: Vec::new(),
            letters: VecDeque::new(),
            spilled: Vec::new(),
            checks_returned: settings.checks_returned(),
            settings,
            now: 0,
            closed: false,
            by_number: BTreeMap::new(),
            open: HashMap::new(),
            holds: 0,
            poppers: Waiters::default(),
            pushers: Waiters::default(),
            pushed: 0,
            held: 0,
            committed: 0,
            aborted: 0,
            expired: 0,
            dead: 0,
        }
    }

    pub(crate) fn ready(&self) -> usize {
        self.stock.ready()
    }

    /// Items that wait for a time, or for the end of another item.
    pub(crate) fn waiting(&self) -> usize {
        self.delayed.len() + self.stock.waiting()
    }

    pub(super) fn fact(&self, mark: Mark) -> &Fact {
        self.facts.get(&mark).expect("an item of this queue")
    }

    pub(super) fn fact_mut(&mut self, mark: Mark) -> &mut Fact {
        self.facts.get_mut(&mark).expect("an item of this queue")
    }

    /// Number of changes of an item.
    pub(crate) fn changes(&self, mark: Mark) -> u32 {
        self.fact(mark).changes
    }

    /// An item is created for a push.
    pub(super) fn make(&mut self, mark: Mark) {
        self.make_with(mark, Wished::default());
    }

    /// An item is created for a push with these arguments.
    pub(super) fn make_with(&mut self, mark: Mark, wished: Wished) {
        let fact = Fact {
            shard: mark.source,
            failures: 0,
            changes: 0,
            since: self.now,
            wished,
        };
        self.facts.entry(mark).or_insert(fact);
    }

    /// Items become ready, or wait for their time.
    pub(crate) fn push(&mut self, marks: &[Mark]) {
        for &mark in marks {
            self.make(mark);
            self.enrol(mark);
        }
        self.publish(marks);
    }

    /// Pushed items become visible.
    pub(crate) fn publish(&mut self, marks: &[Mark]) {
        self.pushed += marks.len();
        for &mark in marks {
            let shard = self.fact(mark).shard;
            let number = self.number_shard(shard);
            let card = self.card(mark);
            self.stock.push(card, shard, number);
        }
    }

    /// Takes an item, and returns the item that followed it.
    pub(super) fn take(&mut self, mark: Mark) -> Option<Mark> {
        let shard = self.fact(mark).shard;
        self.held += 1;
        self.stock.take(mark, shard, self.checks_returned)
    }

    /// A pop takes an item. Returns the number of the attempt.
    pub(crate) fn hold(&mut self, mark: Mark) -> u32 {
        self.take(mark);
        self.fact(mark).failures + 1
    }

    /// Held items are gone for good.
    pub(crate) fn commit(&mut self, held: &[Mark]) {
        self.held -= held.len();
        self.committed += held.len();
        for &mark in held {
            self.stock.leave(mark);
            self.strike(mark);
        }
    }

    /// Checks a snapshot: the ready items are visited in this order and put back.
    pub(crate) fn visit(&mut self, marks: &[Mark]) {
        assert_eq!(marks.len(), self.ready(), "items in the snapshot");
        if let Stock::Sorted(sorted) = &self.stock {
            let (mut seen, mut ready) = (marks.to_vec(), sorted.ready_items());
            seen.sort();
            ready.sort();
            assert_eq!(seen, ready, "the items in the snapshot");
            return;
        }
        for &mark in marks {
            self.take(mark);
        }
        self.held -= marks.len();
        self.give_back(marks);
    }

    /// Items are returned to their queue, in this order.
    pub(super) fn give_back(&mut self, marks: &[Mark]) {
        let mut runs = BTreeMap::<Source, Vec<Card>>::new();
        for &mark in marks {
            let shard = self.stock.home(self.fact(mark).shard);
            runs.entry(shard).or_default().push(self.card(mark));
        }
        for (source, run) in runs {
            self.stock.give_back(source, run);
        }
    }

    /// The facts that determine the order of an item.
    pub(super) fn card(&self, mark: Mark) -> Card {
        let Fact { since, wished, .. } = *self.fact(mark);
        Card {
            mark,
            key: self.settings.key_of(mark),
            priority: wished.priority,
            due: wished.due,
            since,
        }
    }
}
