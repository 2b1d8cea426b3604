//! The plain model of one queue.

use super::disciplines::Key;
use super::failures::{Delayed, Letter};
use super::item::{Mark, Source};
use super::settings::{Settings, Ticks};
use super::stock::{Card, Stock};
use super::waits::Waiters;
use super::work::Work;
use requeue::PriorityQueue;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// What is in a queue, in which order it may leave, and the counts.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) settings: Settings,
    /// The source of the pushes without a handle.
    pub(super) common: Source,
    pub(super) stock: Stock,
    /// How many items of each key are somewhere.
    pub(super) keys: BTreeMap<Key, usize>,
    pub(super) facts: HashMap<Mark, Fact>,
    /// In the order in which they came.
    pub(super) delayed: Vec<Delayed>,
    pub(crate) letters: VecDeque<Letter>,
    /// The letters that were handed over, since this was looked at.
    pub(crate) spilled: Vec<Mark>,
    /// Whether pops look for what was put back.
    pub(crate) attended: bool,
    pub(crate) now: Ticks,
    pub(crate) closed: bool,
    /// The handles, by the number of their number, and their transactions.
    pub(super) by_number: BTreeMap<usize, Source>,
    pub(super) open: HashMap<Source, Work>,
    /// How often a transaction has taken an item.
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

/// What is known of an item.
#[derive(Debug)]
pub(super) struct Fact {
    /// Whose line it is in, or comes back to.
    pub(super) shard: Source,
    /// Deliveries that count.
    pub(super) failures: u32,
    /// How often it was changed by those who held it.
    pub(super) changes: u32,
    /// When it was pushed first.
    pub(super) since: Ticks,
    pub(super) wished: Wished,
}

/// What was said of an item when it was pushed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wished {
    pub(crate) priority: u16,
    pub(crate) due: Option<Ticks>,
    /// Whether its ticket is good for anything.
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
    pub(crate) fn new(settings: Settings, common: Source) -> Self {
        Self {
            common,
            stock: Stock::new(&settings, common),
            keys: BTreeMap::new(),
            facts: HashMap::new(),
            delayed: Vec::new(),
            letters: VecDeque::new(),
            spilled: Vec::new(),
            attended: settings.is_attended(),
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

    /// What is out of the way until a time comes, or another item is gone.
    pub(crate) fn waiting(&self) -> usize {
        self.delayed.len() + self.stock.waiting()
    }

    pub(super) fn fact(&self, mark: Mark) -> &Fact {
        self.facts.get(&mark).expect("an item of this queue")
    }

    pub(super) fn fact_mut(&mut self, mark: Mark) -> &mut Fact {
        self.facts.get_mut(&mark).expect("an item of this queue")
    }

    /// How often an item was changed.
    pub(crate) fn changes(&self, mark: Mark) -> u32 {
        self.fact(mark).changes
    }

    /// An item is made, that is to be pushed.
    pub(super) fn make(&mut self, mark: Mark) {
        self.make_with(mark, Wished::default());
    }

    /// An item is made that is to be pushed so.
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

    /// What was pushed is visible.
    pub(crate) fn publish(&mut self, marks: &[Mark]) {
        self.pushed += marks.len();
        for &mark in marks {
            let shard = self.fact(mark).shard;
            let number = self.number_shard(shard);
            let card = self.card(mark);
            self.stock.push(card, shard, number);
        }
    }

    /// Takes an item, and says which one follows where it was.
    pub(super) fn take(&mut self, mark: Mark) -> Option<Mark> {
        let shard = self.fact(mark).shard;
        self.held += 1;
        self.stock.take(mark, shard, self.attended)
    }

    /// A pop takes an item. Returns which attempt this is.
    pub(crate) fn hold(&mut self, mark: Mark) -> u32 {
        self.take(mark);
        self.fact(mark).failures + 1
    }

    /// What was held is gone for good.
    pub(crate) fn commit(&mut self, held: &[Mark]) {
        self.held -= held.len();
        self.committed += held.len();
        for &mark in held {
            self.stock.leave(mark);
            self.strike(mark);
        }
    }

    /// Shows all ready items to somebody, who sees them in this order and puts them back.
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

    /// Items come back to where they were, in this order.
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

    /// What decides about the order of an item.
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
