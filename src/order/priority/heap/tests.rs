//! Tests of the heap against a simple model: after any operations both return the same items in the same order.

use super::*;
use crate::order::priority::DEFAULT_PRIORITY;
use crate::order::tests::{oldest as oldest_of, remove_some, show_all};
use crate::order::Registry;
use crate::raw::{DeliveryMeta, Entry, Stored};
use crate::time::NEVER;
use std::collections::HashSet;
use std::mem;

const STEP: u64 = 100;
const OPERATIONS: usize = 12_000;

/// An item of the model; items are numbered.
#[derive(Clone, Copy, Debug)]
struct Known {
    item: i64,
    priority: u16,
    due: u64,
    /// The number of its arrival, or of when it became ready.
    arrival: i64,
    since: u64,
    meta: PriorityMeta,
}

/// A heap and its model.
struct Pair {
    heap: PriorityHeap<i64>,
    ageing: bool,
    inside: Vec<Known>,
    outside: Vec<Known>,
    /// Items that are not due.
    waiting: Vec<Known>,
    now: u64,
    items: i64,
    arrived: i64,
    returned: i64,
    random: u64,
}

impl Pair {
    fn new(ageing: bool) -> Self {
        let step = ageing.then(|| AgeStep::of(Duration::from_nanos(STEP)));
        Self {
            heap: PriorityHeap::new(Arc::new(DueTimes::new(true)), step),
            ageing,
            inside: Vec::new(),
            outside: Vec::new(),
            waiting: Vec::new(),
            now: 0,
            items: 0,
            arrived: 0,
            returned: 0,
            random: 88_172_645_463_325_252,
        }
    }

    /// A number below `end`, by Marsaglia's 64-bit xorshift.
    fn below(&mut self, end: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % end
    }

    /// An index below `len`.
    fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap()
    }

    fn priority(&mut self) -> u16 {
        const PRIORITIES: [u16; 6] = [0, 1, 5000, 5001, 9999, u16::MAX];
        PRIORITIES[self.index(PRIORITIES.len())]
    }

    fn arrive(&mut self) {
        let known = self.new_item();
        if known.due > 0 {
            self.waiting.push(known);
        } else {
            self.inside.push(known);
            self.heap.arrive(entry(known));
        }
    }

    fn new_item(&mut self) -> Known {
        let mut priority = self.priority();
        let (mut due, since) = (0, self.now + 1);
        let meta = match self.below(3) {
            0 => {
                priority = DEFAULT_PRIORITY;
                PriorityMeta::plain(priority)
            }
            1 => PriorityMeta::ticketed(priority, Ticket::new()),
            _ => {
                due = 1 + self.now + self.below(2000);
                scheduled(&self.heap.times, priority, due)
            }
        };
        self.items += 1;
        self.arrived += 1;
        Known {
            item: self.items,
            priority,
            due,
            arrival: self.arrived,
            since,
            meta,
        }
    }

    /// The index of the next item in the model.
    fn next_place(&self) -> Option<usize> {
        let key = |known: &Known| {
            let priority = u64::from(known.priority);
            let rank = if self.ageing {
                priority * STEP + known.since.max(known.due + 1)
            } else {
                priority
            };
            (rank, known.arrival)
        };
        (0..self.inside.len()).min_by_key(|&place| key(&self.inside[place]))
    }

    fn next(&mut self) {
        let known = self.next_place().map(|place| self.inside.remove(place));
        let entry = self.heap.next(false).map(|dequeued| dequeued.entry);
        assert_eq!(
            entry.as_ref().map(|entry| entry.item.item),
            known.map(|known| known.item)
        );
        if let (Some(mut known), Some(entry)) = (known, entry) {
            known.meta = entry.item.meta;
            assert_eq!(known.meta.priority(), known.priority);
            self.outside.push(known);
        }
    }

    fn come_back(&mut self) {
        for _ in 0..self.below(4) {
            if let Some(mut known) = self.outside.pop() {
                self.returned -= 1;
                known.arrival = self.returned;
                self.inside.push(known);
                self.heap.come_back(entry(known));
            }
        }
    }

    /// Some ticket, most often of an item in the heap, and the item's index in the model.
    fn some_ticket(&mut self) -> Option<(Option<usize>, Ticket)> {
        let from_outside = self.below(4) == 0;
        let count = if from_outside {
            self.outside.len()
        } else {
            self.inside.len()
        };
        let place = self.index(count.max(1));
        let known = if from_outside {
            &self.outside
        } else {
            &self.inside
        };
        let ticket = known.get(place)?.meta.ticket()?;
        Some(((!from_outside).then_some(place), ticket))
    }

    fn cancel(&mut self) {
        let Some((place, ticket)) = self.some_ticket() else {
            return;
        };
        let cancelled = self.heap.cancel(ticket).map(|entry| entry.item.item);
        assert_eq!(cancelled, place.map(|place| self.inside.remove(place).item));
        assert!(self.heap.cancel(ticket).is_none());
    }

    fn reprioritize(&mut self) {
        let priority = self.priority();
        let Some((place, ticket)) = self.some_ticket() else {
            return;
        };
        let found = self.heap.reprioritize(ticket, priority);
        assert_eq!(found, place.is_some());
        if let Some(place) = place {
            self.inside[place].priority = priority;
        }
    }

    /// The new time may have passed, but the item waits until the next advance.
    fn reschedule(&mut self) {
        let due = (self.now + self.below(2000)).saturating_sub(700);
        let Some((place, ticket)) = self.some_ticket() else {
            return;
        };
        let found = self.heap.cancel(ticket);
        assert_eq!(found.is_some(), place.is_some());
        let Some((place, found)) = place.zip(found) else {
            return;
        };
        self.arrived += 1;
        let mut known = self.inside.remove(place);
        known.meta = Registry::<(), _>::reschedule(&self.heap.times, found.item.meta, due);
        (known.due, known.arrival) = (due, self.arrived);
        self.waiting.push(known);
    }

    /// Time passes, and up to three items are pushed if `pushing`.
    fn advance(&mut self, pushing: bool) {
        let mut fresh = Vec::new();
        for _ in 0..self.below(if pushing { 4 } else { 1 }) {
            self.now += self.below(100);
            fresh.push(self.new_item());
        }
        self.now += self.below(100);
        let (fresh, scheduled): (Vec<_>, Vec<_>) =
            fresh.into_iter().partition(|known| known.due == 0);
        self.waiting.extend(scheduled);
        let now = self.now;
        let (mut due, waiting): (Vec<_>, _) = mem::take(&mut self.waiting)
            .into_iter()
            .partition(|known| known.due <= now);
        self.waiting = waiting;
        due.sort_by_key(|known: &Known| (known.due, known.arrival));
        let of = |known: &Known| Due {
            due: known.due,
            entry: entry(*known),
        };
        let arrived = fresh.iter().map(|known| entry(*known));
        self.heap
            .merge(arrived.collect(), due.iter().map(of).collect());
        let mut due = due.into_iter().peekable();
        for known in fresh {
            while let Some(first) = due.next_if(|first| first.due < known.since) {
                self.make_ready(first);
            }
            self.make_ready(known);
        }
        due.for_each(|left| self.make_ready(left));
    }

    fn make_ready(&mut self, mut known: Known) {
        self.arrived += 1;
        known.arrival = self.arrived;
        self.inside.push(known);
    }

    /// Visits some of the items, or all, during other operations.
    fn visit(&mut self) {
        let mut visit = self.heap.begin_visit(false);
        let (mut more, mut seen) = (true, HashSet::new());
        while more {
            let mut shown = Vec::new();
            more = self.heap.show(&mut visit, &mut shown);
            let is_shown = |known: &Known| shown.iter().any(|at| at.entry.item.item == known.item);
            let (aside, inside) = mem::take(&mut self.inside).into_iter().partition(is_shown);
            let mut aside: Vec<Known> = aside;
            self.inside = inside;
            assert!(aside.iter().all(|known| seen.insert(known.item)));
            assert_eq!(aside.len(), shown.len());
            for _ in 0..self.below(8) {
                match self.below(7) {
                    0 => self.arrive(),
                    1..=3 => self.next(),
                    4 => self.cancel(),
                    5 => self.reschedule(),
                    _ => self.reprioritize(),
                }
            }
            let ticket = aside.first().and_then(|known| known.meta.ticket());
            assert!(ticket.map_or(true, |ticket| self.heap.cancel(ticket).is_none()));
            let mut removed = Vec::new();
            while let Some(shown) = shown.pop() {
                if self.below(4) == 0 {
                    removed.push(shown);
                } else {
                    self.heap.put_back(&mut visit, shown);
                }
            }
            for Shown { entry, position } in removed {
                aside.retain(|known| known.item != entry.item.item);
                self.heap.remove_shown(entry.item.meta, position);
            }
            self.inside.extend(aside);
            if self.below(8) == 0 {
                break;
            }
        }
        self.heap.end_visit();
    }

    fn check(&mut self) {
        let items = self.inside.len();
        assert_eq!(self.heap.ready(), items);
        let oldest = self.inside.iter().map(|known| known.since).min();
        assert_eq!(oldest_of(&mut self.heap).0, oldest);
        assert_eq!(self.heap.ready(), items);
        if !self.ageing {
            let (priority, most) = (self.priority(), self.index(20));
            let until = self.inside.iter().filter(|it| it.priority <= priority);
            let count = self.heap.ready_until(priority, most);
            assert_eq!(count, until.count().min(most));
        }
    }
}

fn entry(known: Known) -> Entry<Stored<i64, PriorityMeta>> {
    let item = Stored {
        item: known.item,
        meta: known.meta,
    };
    let (attempts, since) = (1, known.since);
    let delivery = DeliveryMeta { attempts, since };
    Entry { item, delivery }
}

/// The entry of an item with this metadata, without a timestamp.
fn plain(item: usize, meta: PriorityMeta) -> Entry<Stored<usize, PriorityMeta>> {
    let (attempts, since) = (1, 0);
    let delivery = DeliveryMeta { attempts, since };
    let item = Stored { item, meta };
    Entry { item, delivery }
}

fn heap() -> PriorityHeap<usize> {
    PriorityHeap::new(Arc::new(DueTimes::new(true)), None)
}

fn ticketed(priority: u16) -> PriorityMeta {
    PriorityMeta::ticketed(priority, Ticket::new())
}

fn scheduled(times: &DueTimes, priority: u16, due: u64) -> PriorityMeta {
    let ticket = Ticket::new();
    times.note(ticket, due);
    PriorityMeta::scheduled(priority, ticket)
}

fn all(heap: &mut PriorityHeap<usize>) -> Vec<usize> {
    std::iter::from_fn(|| heap.next(false))
        .map(|dequeued| dequeued.entry.item.item)
        .collect()
}

#[test]
#[cfg_attr(miri, ignore = "too many steps for Miri")]
fn a_heap_behaves_like_its_model() {
    for ageing in [false, true] {
        let mut pair = Pair::new(ageing);
        for operation in 0..OPERATIONS {
            // The heap grows half of the time, and shrinks the other half.
            let growing = operation % 4000 < 2000;
            match pair.below(10) {
                0..=3 if growing => pair.arrive(),
                0..=2 => pair.next(),
                3 => pair.come_back(),
                4..=5 => pair.cancel(),
                6 => pair.reprioritize(),
                7 => pair.reschedule(),
                8 if pair.below(4) == 0 => pair.visit(),
                8 => pair.advance(growing),
                _ => {
                    pair.next();
                    pair.arrive();
                }
            }
            pair.check();
        }
        pair.now += 10_000;
        pair.advance(false);
        while pair.heap.ready() > 0 {
            pair.next();
        }
        assert!(pair.inside.is_empty());
    }
}

#[test]
fn only_items_out_of_order_have_ranks() {
    let mut heap = heap();
    let metas: Vec<_> = (0..9).map(|item| ticketed(1 + item % 3)).collect();
    for (item, &meta) in metas.iter().enumerate() {
        heap.arrive(plain(item, meta));
    }
    let out: Vec<_> = (0..5).map(|_| heap.next(false).unwrap().entry).collect();
    for entry in out.into_iter().rev() {
        heap.come_back(entry);
    }
    assert_eq!((heap.ready(), heap.ranked.len()), (9, 0));
    let middle = metas[3].ticket().unwrap();
    for priority in [2, 1, 3, 1] {
        assert!(heap.reprioritize(middle, priority));
        assert_eq!((heap.ready(), heap.ranked.len()), (9, 1));
    }
    assert!(heap.cancel(metas[4].ticket().unwrap()).is_some());
    assert_eq!(all(&mut heap), [0, 3, 6, 1, 7, 2, 5, 8]);
}

#[test]
fn removals_release_their_memory() {
    let mut heap = heap();
    heap.arrive(plain(0, ticketed(1)));
    for _ in 0..10 {
        for item in 1..=1000 {
            heap.arrive(plain(item, ticketed(1)));
        }
        let visit = heap.begin_visit(true);
        let removed = remove_some(&mut heap, visit, |item| *item == 0 || *item == 1000);
        assert_eq!((removed.len(), heap.ranked.len()), (999, 0));
        assert!(heap.levels.items.places() < 2000);
    }
    assert_eq!(heap.ready(), 11);
}

#[test]
fn items_returned_together_keep_their_order() {
    let mut heap = heap();
    for item in 0..6 {
        let meta = ticketed(if item < 3 { 2 } else { 3 });
        heap.arrive(plain(item, meta));
    }
    for _ in 0..2 {
        let mut out: Vec<_> = (0..5).map(|_| heap.next(false).unwrap().entry).collect();
        while let Some(entry) = out.pop() {
            heap.come_back(entry);
        }
    }
    assert_eq!(all(&mut heap), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn times_and_items_are_scanned_in_small_parts() {
    const ITEMS: usize = 10 * SCAN_STEP;
    let mut heap = heap();
    for (item, since) in (0..ITEMS).zip(10..) {
        let mut entry = plain(item, ticketed(u16::try_from(1 + item % 7).unwrap()));
        entry.delivery.since = since;
        heap.arrive(entry);
    }
    let (oldest, parts) = oldest_of(&mut heap);
    assert_eq!(oldest, Some(10));
    assert!(parts >= ITEMS / SCAN_STEP, "{parts}");
    let (mut items, parts) = show_all(&mut heap);
    assert!(!heap.levels.items.has_gaps());
    items.sort_unstable();
    assert!(items.into_iter().eq(0..ITEMS));
    assert!(parts >= ITEMS / PART, "{parts}");
    assert_eq!(heap.ranked.len(), 0, "all are listed again");
    let mut expected: Vec<_> = (0..ITEMS).collect();
    expected.sort_by_key(|item| (item % 7, *item));
    assert_eq!(all(&mut heap), expected);
}

/// Items pushed at known or unknown times, with others due at 10 and at 20.
#[test]
fn due_items_go_before_items_pushed_later() {
    let cases = [
        ([0, 0, 0], [10, 20, 0, 1, 2]),
        ([5, 15, 25], [0, 10, 1, 20, 2]),
        ([10, 20, 30], [10, 0, 20, 1, 2]),
        ([25, 5, 0], [10, 20, 0, 1, 2]),
    ];
    for (times, order) in cases {
        let mut heap = heap();
        let due = [10, 20].map(|due| Due {
            due,
            entry: plain(
                usize::try_from(due).unwrap(),
                PriorityMeta::plain(DEFAULT_PRIORITY),
            ),
        });
        let fresh = times.into_iter().enumerate().map(|(item, time)| {
            let mut entry = plain(item, PriorityMeta::plain(DEFAULT_PRIORITY));
            entry.delivery.since = if time == 0 { 0 } else { time + 1 };
            entry
        });
        heap.merge(fresh.collect(), due.into());
        assert_eq!(heap.ready(), 5);
        assert_eq!(heap.ranked.len(), 0);
        assert_eq!(all(&mut heap), order, "{times:?}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many steps for Miri")]
fn a_heap_releases_its_memory() {
    let mut heap = heap();
    let metas: Vec<_> = (0..10_000).map(|_| ticketed(5)).collect();
    for (item, &meta) in metas.iter().enumerate() {
        heap.arrive(plain(item, meta));
    }
    // This item stays all the time, in a place far behind.
    let last = metas[9_999];
    assert!(heap.reprioritize(last.ticket().unwrap(), u16::MAX));
    for _ in 0..9_999 {
        heap.next(false).unwrap();
    }
    assert!(heap.levels.items.places() <= SLACK + 4);
    assert_eq!(all(&mut heap), [9_999]);
}

#[test]
fn cancelled_items_release_their_memory() {
    let mut heap = heap();
    let metas: Vec<_> = (0..10_000).map(|_| ticketed(5)).collect();
    for (item, &meta) in metas.iter().enumerate() {
        heap.arrive(plain(item, meta));
    }
    // Neither the first nor the last item, so that gaps are left.
    for (item, meta) in metas.iter().enumerate().skip(1).take(9_998) {
        let cancelled = heap.cancel(meta.ticket().unwrap()).unwrap();
        assert_eq!(cancelled.item.item, item);
    }
    assert!(heap.levels.items.places() <= 3 * SLACK);
    assert_eq!(all(&mut heap), [0, 9_999]);
}

#[test]
fn an_item_that_is_ranked_again_and_again_is_ranked_once() {
    let step = AgeStep::of(Duration::from_secs(1));
    let mut heap = PriorityHeap::new(Arc::new(DueTimes::new(true)), Some(step));
    let metas: Vec<_> = (0..100).map(|_| ticketed(9999)).collect();
    for (item, &meta) in metas.iter().enumerate() {
        heap.arrive(plain(item, meta));
    }
    for round in 0..1000_u16 {
        let ticket = metas[usize::from(round) % 100].ticket().unwrap();
        assert!(heap.reprioritize(ticket, 2000 - round));
        assert_eq!(heap.ranked.len(), 100);
    }
    assert_eq!(all(&mut heap), (0..100).rev().collect::<Vec<_>>());
}

#[test]
fn the_longest_step_of_ageing_keeps_priorities_apart() {
    for step in [Duration::MAX, Duration::from_nanos(u64::MAX)] {
        let step = AgeStep::of(step);
        let late = u64::MAX / 2;
        assert!(step.rank(65_534, late) < step.rank(65_535, late));
        assert!(step.rank(65_535, NEVER) > step.rank(65_535, late));
    }
}
