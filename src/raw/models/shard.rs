//! One shard: its producer against its consumers.

use super::*;

#[test]
fn publish_and_claim() {
    model(|| {
        let (shard, mut pusher) = filled([]);
        let producer = thread::spawn(move || {
            pusher.push(1);
            pusher.stage(2);
            pusher.stage(3);
            pusher.publish();
        });
        let mut popper = Popper::new(&shard);
        let mut items = popper.drain();
        assert_ne!(items.len(), 2, "a commit is seen whole or not at all");
        producer.join().unwrap();
        items.extend(popper.drain());
        assert_eq!(items, [1, 2, 3]);
    });
}

#[test]
fn two_claimants_share_the_items() {
    share_the_items(u32::MAX);
}

#[test]
fn two_claimants_that_compare_shards_after_each_item_share_the_items() {
    share_the_items(1);
}

/// Two claimants enter a segment for this many items.
fn share_the_items(stickiness: u32) {
    model(move || {
        let (shard, pusher) = filled([1, 2, 3]);
        let mut popper = Popper::of(&shard, false, stickiness);
        let other = thread::spawn({
            let mut popper = Popper::of(&shard, false, stickiness);
            move || popper.drain()
        });
        let mine = popper.drain();
        let theirs = other.join().unwrap();
        assert!(mine.is_sorted() && theirs.is_sorted());
        assert_eq!(sorted(mine.into_iter().chain(theirs)), [1, 2, 3]);
        drop(pusher);
    });
}

#[test]
fn a_segment_is_reused_after_its_last_reader() {
    model(|| {
        let (shard, mut pusher) = filled([1, 2]);
        let reader = thread::spawn({
            let mut popper = Popper::new(&shard);
            move || popper.pop()
        });
        let mut popper = Popper::new(&shard);
        let mine = popper.pop();
        drop(popper);
        pusher.push(3);
        pusher.push(4);
        let theirs = reader.join().unwrap();
        assert_eq!(sorted(mine.into_iter().chain(theirs)), [1, 2]);
        assert_eq!(Popper::new(&shard).drain(), [3, 4]);
    });
}

#[test]
fn a_page_is_retired_behind_a_late_reader() {
    model(|| {
        let (shard, pusher) = filled([1, 2, 3, 4, 5]);
        let late = thread::spawn({
            let mut popper = Popper::new(&shard);
            move || popper.pop()
        });
        let mut popper = Popper::new(&shard);
        let mine = popper.drain();
        let theirs = late.join().unwrap();
        assert_eq!(sorted(mine.into_iter().chain(theirs)), [1, 2, 3, 4, 5]);
        drop(pusher);
    });
}

#[test]
fn the_age_of_the_head_is_read_while_pages_are_retired() {
    model(|| {
        let (shard, pusher) = filled([1, 2, 3, 4, 5]);
        let consumer = thread::spawn({
            let mut popper = Popper::new(&shard);
            move || popper.drain()
        });
        let ages = [shard.age(), shard.age()];
        // One tick for each segment of two items.
        let known = ages.into_iter().flatten().filter(|&age| age != u64::MAX);
        assert!(known.clone().all(|age| (2..7).contains(&age)));
        assert!(known.is_sorted());
        assert_eq!(consumer.join().unwrap(), [1, 2, 3, 4, 5]);
        assert_eq!(shard.age(), None);
        drop(pusher);
    });
}

#[test]
fn an_idle_shard_is_vacated_unless_it_is_in_use() {
    model(|| {
        let (shard, mut pusher) = filled([1]);
        let consumer = thread::spawn({
            let mut popper = Popper::new(&shard);
            move || popper.drain()
        });
        pusher.producer.vacate(&shard);
        pusher.push(2);
        let items = consumer.join().unwrap();
        let left = Popper::new(&shard).drain();
        assert_eq!([items, left].concat(), [1, 2]);
        assert_eq!(shard.pushed(), 2);
    });
}

#[test]
fn unstaged_items_leave_no_trace() {
    model(|| {
        let (shard, mut pusher) = filled([1]);
        let consumer = thread::spawn({
            let mut popper = Popper::new(&shard);
            move || popper.drain()
        });
        (10..16).for_each(|item| pusher.stage(item));
        let undone: Vec<_> = std::iter::from_fn(|| pusher.producer.unstage())
            .map(|entry| entry.item)
            .collect();
        assert_eq!(undone, [15, 14, 13, 12, 11, 10]);
        pusher.push(2);
        let items = consumer.join().unwrap();
        let left = Popper::new(&shard).drain();
        assert_eq!([items, left].concat(), [1, 2]);
    });
}
