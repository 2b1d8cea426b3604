//! A queue in memory, as simple as possible: what the differential test expects.

use std::collections::{BTreeMap, VecDeque};

/// How often an item is delivered.
pub(crate) const MAX_ATTEMPTS: u32 = 4;

/// An item, and where it belongs: to the items of a priority, and among them to a lane, whose items are in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub(crate) value: u64,
    class: u16,
    lane: u64,
    pub(crate) attempts: u32,
    /// When it is due. Items that had to wait, or were moved, are in no order.
    due: Option<u64>,
    /// Whether it waits for a retry.
    retried: bool,
}

/// Why an item is dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Death {
    Aborted,
    Retried,
    Failed,
    Crashed,
}

#[derive(Default)]
pub(crate) struct Model {
    pub(crate) now: u64,
    pub(crate) closed: bool,
    lanes: BTreeMap<(u16, u64), VecDeque<Item>>,
    loose: Vec<Item>,
    dead: Vec<(Item, Death)>,
}

impl Item {
    pub(crate) fn new(value: u64, class: u16, lane: u64, due: Option<u64>) -> Self {
        Self {
            value,
            class,
            lane,
            attempts: 0,
            due,
            retried: false,
        }
    }
}

impl Model {
    fn is_ready(&self, item: &Item) -> bool {
        item.due.is_none_or(|due| due <= self.now)
    }

    /// The items that the next pop may return.
    fn next(&self) -> Vec<Item> {
        let heads = self.lanes.values().filter_map(VecDeque::front);
        let due = self.loose.iter().filter(|item| self.is_ready(item));
        let all: Vec<Item> = heads.chain(due).copied().collect();
        let first = all.iter().map(|item| item.class).min();
        all.into_iter()
            .filter(|item| Some(item.class) == first)
            .collect()
    }

    #[track_caller]
    pub(crate) fn check_next(&self, value: u64) {
        let next = self.next();
        assert!(
            next.iter().any(|item| item.value == value),
            "{value} came, not one of {next:?}"
        );
    }

    #[track_caller]
    pub(crate) fn check_empty(&self) {
        assert!(self.next().is_empty(), "ready are {:?}", self.next());
    }

    /// A pop that returned an item.
    #[track_caller]
    pub(crate) fn take(&mut self, value: u64) -> Item {
        self.check_next(value);
        let in_lane = |lane: &&mut VecDeque<Item>| lane.front().is_some_and(|i| i.value == value);
        let lane = self.lanes.values_mut().find(in_lane);
        let mut item = if let Some(lane) = lane {
            lane.pop_front().unwrap()
        } else {
            let at = self.loose.iter().position(|item| item.value == value);
            self.loose.remove(at.unwrap())
        };
        (item.attempts, item.retried) = (item.attempts + 1, false);
        item
    }

    /// A commit of pushed items.
    pub(crate) fn push(&mut self, items: Vec<Item>) {
        for item in items {
            match item.due {
                Some(_) => self.loose.push(item),
                None => self.lane(&item).push_back(item),
            }
        }
    }

    fn lane(&mut self, item: &Item) -> &mut VecDeque<Item> {
        self.lanes.entry((item.class, item.lane)).or_default()
    }

    /// The end of a transaction that did not commit.
    pub(crate) fn give_back(&mut self, held: Vec<Item>, death: Death) {
        for item in held.into_iter().rev() {
            if item.attempts >= MAX_ATTEMPTS {
                self.dead.push((item, death));
            } else if item.due.is_some() {
                self.loose.push(item);
            } else {
                self.lane(&item).push_front(item);
            }
        }
    }

    pub(crate) fn bury(&mut self, item: Item, death: Death) {
        self.dead.push((item, death));
    }

    pub(crate) fn retry(&mut self, mut item: Item, delay: u64) {
        if item.attempts >= MAX_ATTEMPTS {
            return self.bury(item, Death::Retried);
        }
        (item.due, item.retried) = (Some(self.now + delay), true);
        self.loose.push(item);
    }

    /// An item was removed by its ticket, or not, which may depend on whether its retry was noticed to be due.
    #[track_caller]
    pub(crate) fn remove(&mut self, value: u64, removed: bool) -> Option<Item> {
        for lane in self.lanes.values_mut() {
            if let Some(at) = lane.iter().position(|item| item.value == value) {
                assert!(removed, "{value} is there");
                return lane.remove(at);
            }
        }
        let found = self.loose.iter().position(|item| item.value == value);
        let waits = |at: usize| self.loose[at].retried && !self.is_ready(&self.loose[at]);
        if found.is_none_or(waits) {
            assert!(!removed, "{value} is not there");
            return None;
        }
        let at = found.filter(|at| removed || !self.loose[*at].retried)?;
        assert!(removed, "{value} is there");
        Some(self.loose.remove(at))
    }

    #[track_caller]
    pub(crate) fn reprioritize(&mut self, value: u64, priority: u16, moved: bool) {
        if let Some(mut item) = self.remove(value, moved) {
            item.class = priority;
            item.due = item.due.or(Some(self.now));
            self.loose.push(item);
        }
    }

    /// A dead letter is pushed again, by another handle.
    pub(crate) fn requeue(&mut self, value: u64) {
        let at = self.dead.iter().position(|(item, _)| item.value == value);
        let (mut item, _) = self.dead.remove(at.unwrap());
        item.attempts = 0;
        item.due = Some(item.due.unwrap_or_default().min(self.now));
        self.loose.push(item);
    }

    /// Another process: all items that are ready are of the same handle.
    pub(crate) fn restart(&mut self, lane_again: impl Fn(u64) -> u64) {
        let lanes = std::mem::take(&mut self.lanes);
        let mut items: Vec<Item> = lanes.into_values().flatten().collect();
        // What was delivered before is at the head.
        items.sort_by_key(|item| (item.attempts == 0, item.value));
        for mut item in items {
            item.lane = lane_again(item.lane);
            self.lane(&item).push_back(item);
        }
    }

    /// How many items are ready.
    pub(crate) fn ready(&self) -> usize {
        let due = self.loose.iter().filter(|item| self.is_ready(item));
        self.lanes.values().map(VecDeque::len).sum::<usize>() + due.count()
    }

    pub(crate) fn letters(&self) -> Vec<(u64, u32, Death)> {
        let letter = |(item, death): &(Item, Death)| (item.value, item.attempts, *death);
        let mut letters: Vec<_> = self.dead.iter().map(letter).collect();
        letters.sort_unstable();
        letters
    }
}
