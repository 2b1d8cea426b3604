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
    /// Whether it waits for a retry, or was taken back from a worker.
    retried: bool,
    /// When it was popped, and when its lease expires.
    pub(crate) taken: u64,
    pub(crate) until: u64,
}

/// Why an item is dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Death {
    Aborted,
    Retried,
    Failed,
    Crashed,
    Expired,
}

#[derive(Default)]
pub(crate) struct Model {
    pub(crate) now: u64,
    pub(crate) closed: bool,
    /// How long an item may be held.
    term: Option<u64>,
    lanes: BTreeMap<(u16, u64), Lane>,
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
            taken: 0,
            until: u64::MAX,
        }
    }
}

/// Items in order, except those of transactions that were open at the same time.
#[derive(Default)]
struct Lane {
    /// What transactions gave back, each in the order of its pops. They come first.
    runs: Vec<VecDeque<Item>>,
    fresh: VecDeque<Item>,
}

impl Lane {
    /// The items that may be the next.
    fn heads(&self) -> Vec<Item> {
        if self.runs.is_empty() {
            return self.fresh.front().copied().into_iter().collect();
        }
        let mut heads = Vec::new();
        for run in &self.runs {
            // A transaction may have taken items that were given back against their order. Then either order is right.
            let mut least = u64::MAX;
            for item in run {
                if item.value < least {
                    heads.push(*item);
                }
                least = least.min(item.value);
            }
        }
        heads
    }

    fn remove(&mut self, value: u64) -> Option<Item> {
        let lines = self.runs.iter_mut().chain([&mut self.fresh]);
        let found = lines.into_iter().find_map(|line| {
            let at = line.iter().position(|item| item.value == value)?;
            line.remove(at)
        });
        self.runs.retain(|run| !run.is_empty());
        found
    }

    /// A transaction gives items back. `alone`: no other one holds any.
    fn give_back(&mut self, mut items: VecDeque<Item>, alone: bool) {
        match &mut self.runs[..] {
            [run] if alone => {
                items.append(run);
                *run = items;
            }
            _ => self.runs.push(items),
        }
    }

    fn items(self) -> impl Iterator<Item = Item> {
        self.runs.into_iter().chain([self.fresh]).flatten()
    }

    fn len(&self) -> usize {
        self.runs.iter().map(VecDeque::len).sum::<usize>() + self.fresh.len()
    }
}

impl Model {
    pub(crate) fn new(term: Option<u64>) -> Self {
        Self {
            term,
            ..Self::default()
        }
    }

    fn is_ready(&self, item: &Item) -> bool {
        item.due.is_none_or(|due| due <= self.now)
    }

    /// The items that the next pop may return.
    fn next(&self) -> Vec<Item> {
        let heads = self.lanes.values().flat_map(Lane::heads);
        let due = self.loose.iter().filter(|item| self.is_ready(item));
        let all: Vec<Item> = heads.chain(due.copied()).collect();
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
        let mut lanes = self.lanes.values_mut();
        let mut item = lanes
            .find_map(|lane| lane.remove(value))
            .unwrap_or_else(|| {
                let at = self.loose.iter().position(|item| item.value == value);
                self.loose.remove(at.unwrap())
            });
        item.taken = self.now;
        item.until = self.term.map_or(u64::MAX, |term| self.now + term);
        (item.attempts, item.retried) = (item.attempts + 1, false);
        item
    }

    /// A commit of pushed items.
    pub(crate) fn push(&mut self, items: Vec<Item>) {
        for item in items {
            match item.due {
                Some(_) => self.loose.push(item),
                None => self.lane(&item).fresh.push_back(item),
            }
        }
    }

    fn lane(&mut self, item: &Item) -> &mut Lane {
        self.lanes.entry((item.class, item.lane)).or_default()
    }

    /// The end of a transaction that did not commit. `alone`: no other one holds any.
    pub(crate) fn give_back(&mut self, held: Vec<Item>, death: Death, alone: bool) {
        let mut runs = BTreeMap::<_, VecDeque<Item>>::new();
        for item in held {
            if item.attempts >= MAX_ATTEMPTS {
                self.dead.push((item, death));
            } else if item.due.is_some() {
                self.loose.push(item);
            } else {
                let lane = (item.class, item.lane);
                runs.entry(lane).or_default().push_back(item);
            }
        }
        for (lane, items) in runs {
            self.lanes.entry(lane).or_default().give_back(items, alone);
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

    /// An item was taken back from its worker; returns whether it is ready.
    pub(crate) fn take_back(&mut self, mut item: Item) -> bool {
        if item.attempts >= MAX_ATTEMPTS {
            self.bury(item, Death::Expired);
            return false;
        }
        (item.due, item.retried) = (Some(self.now), true);
        self.loose.push(item);
        true
    }

    /// An item was removed by its ticket, or not, which may depend on whether its retry was noticed to be due.
    #[track_caller]
    pub(crate) fn remove(&mut self, value: u64, removed: bool) -> Option<Item> {
        for lane in self.lanes.values_mut() {
            if let Some(item) = lane.remove(value) {
                assert!(removed, "{value} is there");
                return Some(item);
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

    /// Items that nobody holds are removed; returns how many.
    pub(crate) fn retain(&mut self, keep: impl Fn(u64) -> bool) -> usize {
        let (before, keep) = (self.len(), |item: &Item| keep(item.value));
        for lane in self.lanes.values_mut() {
            lane.fresh.retain(keep);
            lane.runs.iter_mut().for_each(|run| run.retain(keep));
            lane.runs.retain(|run| !run.is_empty());
        }
        self.loose.retain(keep);
        before - self.len()
    }

    fn len(&self) -> usize {
        self.loose.len() + self.lanes.values().map(Lane::len).sum::<usize>()
    }

    /// What is in the queue, and not held.
    pub(crate) fn values(&self) -> impl Iterator<Item = u64> + '_ {
        let lanes = self.lanes.values();
        let in_order = lanes.flat_map(|lane| lane.runs.iter().chain([&lane.fresh]));
        in_order.flatten().chain(&self.loose).map(|item| item.value)
    }

    /// A dead letter is removed.
    pub(crate) fn discard(&mut self, value: u64) -> Item {
        let at = self.dead.iter().position(|(item, _)| item.value == value);
        self.dead.remove(at.unwrap()).0
    }

    /// A dead letter is pushed again, by another handle.
    pub(crate) fn requeue(&mut self, value: u64) {
        let mut item = self.discard(value);
        item.attempts = 0;
        item.due = Some(item.due.unwrap_or_default().min(self.now));
        self.loose.push(item);
    }

    /// Another process: all items that are ready are of the same handle, or in no order.
    pub(crate) fn restart(&mut self, lane_again: impl Fn(u64) -> u64, in_order: bool) {
        let lanes = std::mem::take(&mut self.lanes);
        let mut items: Vec<Item> = lanes.into_values().flat_map(Lane::items).collect();
        // What was delivered before is at the head.
        items.sort_by_key(|item| (item.attempts == 0, item.value));
        for mut item in items {
            if in_order {
                item.lane = lane_again(item.lane);
                self.lane(&item).fresh.push_back(item);
            } else {
                item.due = Some(0);
                self.loose.push(item);
            }
        }
    }

    /// How many items are ready.
    pub(crate) fn ready(&self) -> usize {
        let due = self.loose.iter().filter(|item| self.is_ready(item));
        self.lanes.values().map(Lane::len).sum::<usize>() + due.count()
    }

    pub(crate) fn letters(&self) -> Vec<(u64, u32, Death)> {
        let letter = |(item, death): &(Item, Death)| (item.value, item.attempts, *death);
        let mut letters: Vec<_> = self.dead.iter().map(letter).collect();
        letters.sort_unstable();
        letters
    }
}
