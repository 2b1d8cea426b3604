//! Times of items, against pops and against queries for the oldest item.

use super::*;
use crate::raw::memory::entry::DeliveryMeta;
use crate::raw::registry::shards::COMMON;
use crate::raw::shard::run::Home;
use crate::raw::shard::sink::Sink;

/// A sink that checks that each item has its own time.
struct Checked(Vec<u32>);

impl Sink<u32> for Checked {
    fn reserve(&mut self, _wanted: usize, _home: Home) -> usize {
        1
    }

    unsafe fn accept(&mut self, item: u32, delivery: DeliveryMeta) {
        assert_eq!(delivery, DeliveryMeta::first(time_of(item)));
        self.0.push(item);
    }
}

fn time_of(item: u32) -> u64 {
    u64::from(item) * 10
}

/// A shard with times, and its producer.
fn timed(items: impl IntoIterator<Item = u32>) -> (Arc<Shard<u32>>, Pusher) {
    let (shard, mut pusher) = filled([]);
    pusher.timed = true;
    items
        .into_iter()
        .for_each(|item| push_at(&mut pusher, item));
    (shard, pusher)
}

fn push_at(pusher: &mut Pusher, item: u32) {
    if pusher.producer.is_full() {
        pusher
            .producer
            .open(&pusher.shard, &pusher.stamps, Notes::timed(pusher.timed));
    }
    let delivery = DeliveryMeta::after(0, time_of(item));
    pusher.producer.note(delivery);
    pusher.push(item);
}

/// A consumer of items with times.
fn popper_of(shard: &Arc<Shard<u32>>) -> Popper {
    Popper::of(shard, true, u32::MAX)
}

/// Takes up to `most` items.
fn pop_up_to(popper: &mut Popper, most: usize) -> Vec<u32> {
    let mut items = Checked(Vec::new());
    while items.0.len() < most {
        match popper.cursor.take_pushed(&mut items, 1) {
            Take::Spent => popper.cursor.enter(),
            Take::Empty => break,
            _ => {}
        }
    }
    items.0
}

/// Takes items until none is visible in the shard.
fn drain(popper: &mut Popper) -> Vec<u32> {
    pop_up_to(popper, usize::MAX)
}

#[test]
fn a_popped_item_has_the_time_of_its_push() {
    model(|| {
        let (shard, mut pusher) = timed([1]);
        let producer = thread::spawn(move || (2..5).for_each(|item| push_at(&mut pusher, item)));
        let mut popper = popper_of(&shard);
        let mut items = drain(&mut popper);
        producer.join().unwrap();
        items.extend(drain(&mut popper));
        assert_eq!(items, [1, 2, 3, 4]);
    });
}

#[test]
fn two_claimants_find_times_of_a_page_that_is_retired() {
    model(|| {
        let (shard, pusher) = timed(1..6);
        let mut popper = popper_of(&shard);
        assert_eq!(pop_up_to(&mut popper, 3), [1, 2, 3]);
        let late = thread::spawn({
            let mut popper = popper_of(&shard);
            move || pop_up_to(&mut popper, 1)
        });
        let mine = drain(&mut popper);
        let theirs = late.join().unwrap();
        assert_eq!(sorted(mine.into_iter().chain(theirs)), [4, 5]);
        drop(pusher);
    });
}

#[test]
fn the_oldest_is_an_item_that_was_there() {
    model(|| {
        let (shard, mut pusher) = timed(1..4);
        let popper = thread::spawn({
            let mut popper = popper_of(&shard);
            move || drain(&mut popper)
        });
        let first = shard.oldest();
        push_at(&mut pusher, 4);
        let second = shard.oldest();
        assert!(first.map_or(true, |since| (time_of(1)..time_of(4)).contains(&since)));
        assert!(second.map_or(true, |since| (time_of(1)..=time_of(4)).contains(&since)));
        assert!(first <= second || second.is_none());
        popper.join().unwrap();
    });
}

#[test]
fn the_oldest_is_looked_for_in_a_run_that_is_used_up() {
    model(|| {
        let (shard, pusher) = timed([1, 2]);
        let mut popper = popper_of(&shard);
        let mut hold = Hold::new();
        while hold.len() < 2 {
            if let Take::Spent = popper.cursor.take_pushed(&mut hold, 2) {
                popper.cursor.enter();
            }
        }
        let aborter = thread::spawn({
            let shard = Arc::clone(&shard);
            move || {
                hold.give_back();
                let mut item = None;
                while shard.front().take(&mut item, 1) > 0 {}
                assert_eq!(item, Some(2));
            }
        });
        let oldest = shard.oldest();
        assert!([None, Some(time_of(1)), Some(time_of(2))].contains(&oldest));
        aborter.join().unwrap();
        assert_eq!(shard.oldest(), None);
        drop(pusher);
    });
}

#[test]
fn an_item_of_the_common_shard_has_the_time_of_its_push() {
    model(|| {
        let shards = Arc::new(Shards::new(true));
        let push = |shards: &Shards<u32>, item| {
            assert_eq!(shards.push(item, time_of(item), || true), Ok(()));
        };
        push(&shards, 1);
        let producer = thread::spawn({
            let shards = Arc::clone(&shards);
            move || push(&shards, 2)
        });
        push(&shards, 3);
        assert_eq!(shards.oldest(), Some(time_of(1)));
        let (mut items, mut cursor) = (Checked(Vec::new()), shards.cursor(COMMON));
        while cursor.take_retrying(&mut items, 1, 1).is_some() {}
        producer.join().unwrap();
        while cursor.take_retrying(&mut items, 1, 1).is_some() {}
        cursor.flush();
        assert_eq!(sorted(items.0), [1, 2, 3]);
        assert_eq!(shards.oldest(), None);
    });
}
