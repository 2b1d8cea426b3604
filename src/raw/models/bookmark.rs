//! Looks at the items of a shard, one at a time: bookmarks.

use super::*;
use crate::raw::handle::bookmark::{Choice, ShardVisit};
use crate::sync::model::large_model;

/// Shards with these items in the first of them, its producer, and an endpoint without a shard.
fn pushed(items: &[u32]) -> (Arc<Shards<u32>>, [Endpoint<u32>; 2]) {
    let shards = Arc::new(Shards::new(false));
    let mut endpoints = [(); 2].map(|()| Endpoint::new(Arc::clone(&shards)));
    items.iter().for_each(|item| endpoints[0].push(*item));
    (shards, endpoints)
}

/// A visit to the first item.
fn first_visit(endpoint: &mut Endpoint<u32>) -> ShardVisit<'_, u32> {
    let mut visit = endpoint.visit_shard(&mut 0).unwrap();
    assert_eq!(visit.next_part(), Some(0));
    visit
}

/// Pops an item of the first shard, if there is one.
fn pop(shards: &Shards<u32>) -> Option<u32> {
    pop_by(&mut shards.cursor(1))
}

fn pop_by(cursor: &mut Cursor<u32>) -> Option<u32> {
    let mut item = None;
    cursor.take_retrying(&mut item, 1, 1);
    cursor.flush();
    item
}

fn pop_all(shards: &Shards<u32>) -> Vec<u32> {
    std::iter::from_fn(|| pop(shards)).collect()
}

#[test]
fn a_pop_finds_the_item_that_is_not_looked_at() {
    model(|| {
        let (shards, [pusher, mut visitor]) = pushed(&[1, 2]);
        let mut visit = first_visit(&mut visitor);
        let popper = thread::spawn({
            let shards = Arc::clone(&shards);
            move || pop(&shards)
        });
        assert_eq!(visit.next_part(), Some(1));
        let seen: Vec<_> = visit.items().map(|(item, _)| *item).collect();
        visit.end();
        drop(visit);
        let popped = popper.join().unwrap();
        // Either of them is always there.
        assert!(popped.is_some());
        assert!(seen == [2] || popped == Some(2));
        assert_eq!(sorted(pop_all(&shards).into_iter().chain(popped)), [1, 2]);
        drop(pusher);
    });
}

#[test]
fn nothing_overtakes_what_was_looked_at() {
    model(|| {
        let (shards, [mut pusher, mut visitor]) = pushed(&[1]);
        let mut cursor = shards.cursor(1);
        cursor.enter(); // the segment of both items
        let mut visit = first_visit(&mut visitor);
        cursor.enter(); // the present head
        let popper = thread::spawn(move || pop_by(&mut cursor));
        assert_eq!(visit.end(), 1);
        drop(visit);
        pusher.push(2);
        assert_ne!(popper.join().unwrap(), Some(2));
    });
}

#[test]
fn items_returned_during_a_visit_come_first() {
    model(|| {
        let (shards, [mut pusher, mut visitor]) = pushed(&[1, 2]);
        assert!(pusher.hold());
        let mut visit = first_visit(&mut visitor);
        let aborter = thread::spawn(move || {
            pusher.abort(UNBORROWED);
            pusher
        });
        visit.next_part();
        visit.end();
        drop(visit);
        let pusher = aborter.join().unwrap();
        assert_eq!(pop_all(&shards), [1, 2]);
        drop(pusher);
    });
}

#[test]
fn two_looks_leave_the_items_there() {
    large_model(|| {
        let (shards, [mut pusher, mut visitor]) = pushed(&[1, 2]);
        let mut mine = first_visit(&mut visitor);
        let other = thread::spawn(move || {
            let mut theirs = first_visit(&mut pusher);
            theirs.next_part();
            theirs.end();
            drop(theirs);
            pusher
        });
        mine.next_part();
        mine.end();
        drop(mine);
        let pusher = other.join().unwrap();
        assert_eq!(sorted(pop_all(&shards)), [1, 2]);
        drop(pusher);
    });
}

#[test]
fn one_item_stays_or_is_popped() {
    model(|| {
        let (shards, [pusher, mut visitor]) = pushed(&[1]);
        let mut visit = first_visit(&mut visitor);
        let popper = thread::spawn({
            let shards = Arc::clone(&shards);
            move || pop(&shards)
        });
        visit.next_part();
        visit.end();
        drop(visit);
        let popped = popper.join().unwrap();
        assert!(popped.is_some() || pop(&shards) == Some(1));
        assert_eq!(pop(&shards), None);
        drop(pusher);
    });
}

/// An item is popped, or removed for good.
#[test]
fn an_item_is_removed_or_popped() {
    model(|| {
        let (shards, [pusher, mut visitor]) = pushed(&[1, 2]);
        let mut visit = first_visit(&mut visitor);
        let popper = thread::spawn({
            let shards = Arc::clone(&shards);
            move || pop(&shards)
        });
        let mut all = Choice::default();
        all.add(0, true);
        let mut removed = visit.remove(all);
        visit.next_part();
        removed.extend(visit.remove(all));
        assert_eq!(visit.end(), 0);
        drop(visit);
        let popped = popper.join().unwrap();
        let removed = removed.into_iter().map(|entry| entry.item);
        assert_eq!(sorted(removed.chain(popped)), [1, 2]);
        assert_eq!(pop_all(&shards), []);
        drop(pusher);
    });
}
