//! Tests of the common part of all sorting orders, with the simplest one.

use super::lifo::Stacks;
use super::{Dequeued, Engine, Lifo, Sequence, ShardsOf, Shown, Sorted, Unleased, Unsorted};
use crate::raw::{Entry, Shareable, Stored, SHARES};
use crate::{commit_all, Handle, ManualClock, PopError, Queue, ReturnTo};
use std::sync::Arc;
use std::time::Duration;

fn queue() -> Queue<u32, Lifo> {
    Queue::builder().lifo().build()
}

/// Shows all items of an order, putting each part back before the next one; returns the items, and the number of
/// parts.
pub(crate) fn show_all<T: Clone, M>(order: &mut impl Sequence<T, M>) -> (Vec<T>, usize) {
    let (mut visit, mut items, mut parts) = (order.begin_visit(false), Vec::new(), 0);
    let mut more = true;
    while more {
        let mut shown = Vec::new();
        more = order.show(&mut visit, &mut shown);
        assert!(shown.len() <= super::PART);
        items.extend(shown.iter().map(|shown| shown.entry.item.item.clone()));
        while let Some(shown) = shown.pop() {
            order.put_back(&mut visit, shown);
        }
        parts += 1;
    }
    order.end_visit();
    (items, parts)
}

/// Shows all items of a visit, and removes those that are not to be kept; returns these, and how many must be unregistered.
pub(crate) fn remove_some<T, M: Copy, S: Sequence<T, M>>(
    order: &mut S,
    mut visit: S::Visit,
    mut keep: impl FnMut(&T) -> bool,
) -> Vec<(Entry<Stored<T, M>>, u32)> {
    let (mut more, mut removed) = (true, Vec::new());
    while more {
        let mut shown = Vec::new();
        more = order.show(&mut visit, &mut shown);
        let keep = |shown: &Shown<_, _, _>| keep(&shown.entry.item.item);
        let (back, gone): (Vec<_>, Vec<_>) = shown.into_iter().partition(keep);
        for shown in back.into_iter().rev() {
            order.put_back(&mut visit, shown);
        }
        removed.extend(gone.into_iter().map(|Shown { entry, position }| {
            let count = order.remove_shown(entry.item.meta, position);
            (entry, count)
        }));
    }
    order.end_visit();
    removed
}

/// The least timestamp of an order, and the number of parts in which it was searched.
pub(crate) fn oldest<T, M>(order: &mut impl Sequence<T, M>) -> (Option<u64>, usize) {
    let (mut visit, mut least, mut parts) = (order.begin_visit(false), None, 1);
    while order.scan_times(&mut visit, &mut least) {
        parts += 1;
    }
    order.end_visit();
    (least, parts)
}

/// The order of [`Lifo`], which panics if its times are scanned.
#[derive(Clone, Copy, Debug)]
struct Untimed;

struct UntimedItems(Stacks<u32>);

type LifoItem = Entry<Stored<u32, ()>>;
type Visit = <Stacks<u32> as Sequence<u32, ()>>::Visit;
type Position = <Stacks<u32> as Sequence<u32, ()>>::Position;

impl Sequence<u32, ()> for UntimedItems {
    type Visit = Visit;
    type Position = Position;

    fn arrive(&mut self, entry: LifoItem) {
        self.0.arrive(entry);
    }

    fn come_back(&mut self, entry: LifoItem) {
        self.0.come_back(entry);
    }

    fn next(&mut self, for_good: bool) -> Option<Dequeued<u32, ()>> {
        self.0.next(for_good)
    }

    fn take_old(&mut self, _: u64, _: usize, _: &mut Vec<Dequeued<u32, ()>>) -> Option<u64> {
        unreachable!("items of these queues live for ever")
    }

    fn ready(&self) -> usize {
        self.0.ready()
    }

    fn begin_visit(&mut self, all: bool) -> Visit {
        self.0.begin_visit(all)
    }

    fn show(&mut self, visit: &mut Visit, into: &mut Vec<Shown<u32, (), Position>>) -> bool {
        self.0.show(visit, into)
    }

    fn put_back(&mut self, visit: &mut Visit, shown: Shown<u32, (), Position>) {
        self.0.put_back(visit, shown);
    }

    fn scan_times(&mut self, _: &mut Visit, _: &mut Option<u64>) -> bool {
        unreachable!("these queues keep no timestamps")
    }
}

impl Unleased for Untimed {}

impl Engine<u32> for Untimed {
    type Settings = ();
    type Meta = ();
    type Source = Sorted<u32, (), UntimedItems, Unsorted>;

    fn source((): (), shards: &Arc<ShardsOf<u32, Self>>) -> Self::Source {
        Sorted::new(UntimedItems(Stacks::new()), Unsorted, shards)
    }
}

#[test]
fn times_are_not_scanned_if_none_are_kept() {
    let queue = Queue::builder()
        .by::<Untimed>(|()| (), Shareable::proved())
        .build();
    queue.push(1).unwrap();
    assert_eq!((queue.stats().oldest, queue.stats().ready), (None, 1));
    assert!(format!("{queue:?}").contains('1'));
}

#[test]
fn the_order_is_exact() {
    let queue = queue();
    let mut handle = queue.handle();
    for item in 0..100 {
        queue.push(item).unwrap();
        handle.push(100 + item).unwrap();
    }
    let mut newest = queue.handle();
    let mut items = Vec::new();
    assert_eq!(newest.pop_batch(50, &mut items), 50);
    queue.push(1000).unwrap();
    assert_eq!(newest.pop(), Ok(1000));
    newest.pop_batch(1000, &mut items);
    items.sort_unstable();
    assert!(items.into_iter().eq(0..200));
    assert_eq!(newest.pop(), Err(PopError::Empty));
}

#[test]
fn returned_items_come_first_in_their_order() {
    let queue = queue();
    let (mut one, mut other) = (queue.handle(), queue.handle());
    one.push_batch([1, 2, 3]).unwrap();
    let tx = one.begin();
    let items: Vec<u32> = tx.pop_batch(2).map(|item| *item).collect();
    assert_eq!(items, [3, 2]);
    other.push(4).unwrap();
    tx.abort();
    let tx = other.begin();
    let attempts: Vec<_> = tx
        .pop_batch(9)
        .map(|item| (*item, item.attempts()))
        .collect();
    assert_eq!(attempts, [(3, 2), (2, 2), (4, 1), (1, 1)]);
}

#[test]
fn counts_include_the_shards_and_the_partition() {
    let queue = queue();
    let mut handle = queue.handle();
    handle.push_batch([1, 2, 3]).unwrap();
    assert_eq!(handle.pop(), Ok(3));
    queue.push(4).unwrap();
    assert_eq!((queue.len(), queue.is_empty()), (3, false));
    let tx = handle.begin();
    assert_eq!(*tx.pop().unwrap(), 4);
    tx.push(5).unwrap();
    let stats = queue.stats();
    assert_eq!((stats.pushed, stats.ready, stats.held), (4, 2, 1));
    stats.check().unwrap();
    tx.commit();
    queue.stats().check().unwrap();
    let mut seen = Vec::new();
    assert_eq!(queue.peek_each(|item| seen.push(*item)), 3);
    assert_eq!(seen, [5, 2, 1]);
    queue.close();
    assert_eq!(queue.iter().collect::<Vec<_>>(), [5, 2, 1]);
    assert_eq!(queue.pop(), Err(PopError::Closed));
}

#[test]
fn one_commit_spans_queues_of_different_orders() {
    let (sorted, plain) = (queue(), Queue::unbounded());
    let (mut from, mut to) = (sorted.handle(), plain.handle());
    from.push_batch([1, 2]).unwrap();
    let (taking, giving) = (from.begin(), to.begin());
    giving.push(*taking.pop().unwrap()).unwrap();
    taking.push(3).unwrap();
    commit_all((taking, giving));
    assert_eq!(plain.pop(), Ok(2));
    assert_eq!((sorted.pop(), sorted.pop()), (Ok(3), Ok(1)));
}

#[test]
fn a_peek_takes_nothing() {
    let queue = queue();
    let mut handle = queue.handle();
    handle.push_batch([1, 2]).unwrap();
    assert_eq!(handle.peek_with(|item| *item), Ok(2));
    let tx = handle.begin();
    let item = tx.peek().unwrap().take();
    assert_eq!((*item, item.attempts()), (2, 1));
    drop(tx);
    assert_eq!((queue.pop(), queue.pop()), (Ok(2), Ok(1)));
}

/// A queue with partitions that were made when handles had pushed and popped; with the handles, more than there are partitions,
/// each of which has pushed what `items` says before, and as much again afterwards.
fn divided(
    queue: Queue<u32, Lifo>,
    items: impl Fn(u32) -> Vec<u32>,
) -> (Queue<u32, Lifo>, Vec<Handle<u32, Lifo>>) {
    let mut handles: Vec<_> = (0..2 * SHARES).map(|_| queue.handle()).collect();
    for (number, handle) in (0..).zip(&mut handles) {
        handle.push_batch(items(number)).unwrap();
    }
    let items_so_far = queue.len();
    queue.next_due(); // takes them in
    queue.shared().source.divide_now();
    for (number, handle) in (0..).zip(&mut handles) {
        let later = items(number).into_iter().map(|item| item + 1000);
        handle.push_batch(later).unwrap();
    }
    assert_eq!(queue.len(), 2 * items_so_far);
    (queue, handles)
}

#[test]
fn each_handle_of_a_divided_queue_takes_its_newest_items_and_then_all_others() {
    let (queue, mut handles) = divided(queue(), |number| vec![10 * number, 10 * number + 1]);
    let shares = u32::try_from(SHARES).unwrap();
    for (number, handle) in (0..).zip(&mut handles).step_by(SHARES) {
        let mut items = vec![handle.pop().unwrap(), handle.pop().unwrap()];
        // Handles whose number differs by the number of shares share a partition.
        assert!(items
            .iter()
            .all(|item| (item % 1000 / 10) % shares == number % shares));
        assert!(items.iter().all(|item| *item >= 1000));
        handle.push_batch(items.iter().rev().copied()).unwrap();
        assert_eq!([handle.pop().unwrap(), handle.pop().unwrap()], items[..]);
        handle.push_batch(items.drain(..)).unwrap();
    }
    let mut left: Vec<_> = std::iter::from_fn(|| handles[0].pop().ok()).collect();
    let first_old = left.iter().position(|item| *item < 1000).unwrap();
    assert!(
        left[first_old..].iter().all(|item| *item < 1000),
        "what was there before comes last"
    );
    left.sort_unstable();
    left.dedup();
    assert_eq!(left.len(), 4 * 2 * SHARES);
    assert_eq!(
        (queue.pop(), queue.is_empty()),
        (Err(PopError::Empty), true)
    );
    queue.stats().check().unwrap();
}

#[test]
fn what_failed_in_a_divided_queue_comes_first_for_all_or_last() {
    let (queue, mut handles) = divided(queue(), |number| vec![number]);
    let tx = handles[3].begin();
    let failed: Vec<u32> = tx.pop_batch(3).map(|item| *item).collect();
    tx.abort();
    assert_eq!(handles[5].pop(), Ok(failed[0]));
    assert_eq!(handles[6].pop(), Ok(failed[1]));
    queue.take().unwrap().nack_to(ReturnTo::Tail);
    let left: Vec<_> = queue.drain().collect();
    assert_eq!(left.len(), 4 * SHARES - 2);
    assert_eq!(left.last(), Some(&failed[2]));
}

#[test]
fn visits_find_the_items_of_all_partitions() {
    let (queue, mut handles) = divided(queue(), |number| (10 * number..10 * number + 3).collect());
    let all = 3 * 4 * SHARES;
    assert!(handles.iter_mut().all(|handle| handle.pop().is_ok()));
    let left = all - handles.len();
    let mut seen = Vec::new();
    assert_eq!(queue.peek_each(|item| seen.push(*item)), left);
    seen.sort_unstable();
    seen.dedup();
    assert_eq!((seen.len(), queue.stats().ready), (left, left as u64));
    let odd = seen.iter().filter(|item| *item % 2 == 1).count();
    assert_eq!(queue.retain(|item, _| item % 2 == 0), odd);
    let drained: Vec<_> = queue.drain().collect();
    assert_eq!(
        (drained.len(), drained.iter().all(|item| item % 2 == 0)),
        (left - odd, true)
    );
}

#[test]
fn items_of_all_partitions_grow_old_and_expire() {
    let clock = ManualClock::default();
    let queue = Queue::builder()
        .lifo()
        .clock(clock.clone())
        .ttl(Duration::from_secs(10));
    let (queue, mut handles) = divided(queue.build(), |number| vec![number]);
    clock.advance(Duration::from_secs(4));
    assert_eq!(queue.stats().oldest, Some(Duration::from_secs(4)));
    queue.after(Duration::from_secs(3)).push(7).unwrap();
    handles[1].push(8).unwrap();
    clock.advance(Duration::from_secs(6));
    assert_eq!(
        (queue.len(), queue.stats().timed_out),
        (2, 4 * SHARES as u64)
    );
    assert_eq!(handles[1].pop(), Ok(8));
    assert_eq!(handles[1].pop(), Ok(7));
    assert_eq!(queue.pop(), Err(PopError::Empty));
}
