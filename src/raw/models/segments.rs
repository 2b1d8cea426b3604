//! Segments of different lengths: an item is so large that a short segment has one, and a long one has two, once two
//! items are ready or staged.

use super::*;

/// An item, in its first word.
type Wide = [u32; 5];

fn wide(item: u32) -> Wide {
    [item; 5]
}

/// The items, each of which is whole.
fn numbers(items: impl IntoIterator<Item = Wide>) -> Vec<u32> {
    let number = |item: Wide| {
        assert_eq!(item, wide(item[0]));
        item[0]
    };
    items.into_iter().map(number).collect()
}

#[test]
fn two_claimants_find_segments_of_different_lengths() {
    model(|| {
        // Segments of one, one and two items, on two pages.
        let (shard, pusher) = filled([1, 2, 3, 4].map(wide));
        let other = thread::spawn({
            let mut popper = Popper::new(&shard);
            move || numbers(popper.drain())
        });
        let mine = numbers(Popper::new(&shard).drain());
        let theirs = other.join().unwrap();
        assert!(mine.is_sorted() && theirs.is_sorted());
        assert_eq!(sorted(mine.into_iter().chain(theirs)), [1, 2, 3, 4]);
        drop(pusher);
    });
}

#[test]
fn segments_grow_and_shrink_while_items_are_taken() {
    model(|| {
        let (shard, mut pusher) = filled([1, 2].map(wide));
        let consumer = thread::spawn({
            let mut popper = Popper::new(&shard);
            move || numbers(popper.drain())
        });
        (3..6).for_each(|item| pusher.push(wide(item)));
        let mut items = consumer.join().unwrap();
        items.extend(numbers(Popper::new(&shard).drain()));
        assert_eq!(items, [1, 2, 3, 4, 5]);
    });
}

/// The segments that were opened for the staged items are opened again, with another length if an item was taken meanwhile.
#[test]
fn a_segment_that_was_taken_back_is_opened_with_another_length() {
    model(|| {
        let (shard, mut pusher) = filled([1].map(wide));
        let consumer = thread::spawn({
            let mut popper = Popper::new(&shard);
            move || numbers(popper.drain())
        });
        (10..14).for_each(|item| pusher.stage(wide(item)));
        let undone = std::iter::from_fn(|| pusher.producer.unstage());
        let undone = numbers(undone.map(|entry| entry.item));
        assert_eq!(undone, [13, 12, 11, 10]);
        (2..5).for_each(|item| pusher.stage(wide(item)));
        pusher.publish();
        let mut items = consumer.join().unwrap();
        items.extend(numbers(Popper::new(&shard).drain()));
        assert_eq!(items, [1, 2, 3, 4]);
    });
}

/// The spare is the segment of the first item. A consumer that finishes the long one frees it, unless the producer is faster.
#[test]
fn a_spare_is_freed_or_filled_again() {
    model(|| {
        let (shard, mut pusher) = filled([1, 2, 3, 4].map(wide));
        let mut popper = Popper::new(&shard);
        let mut items: Vec<_> = (0..3).filter_map(|_| popper.pop()).collect();
        let consumer = thread::spawn(move || numbers(popper.drain()));
        pusher.push(wide(5));
        items.extend(consumer.join().unwrap().into_iter().map(wide));
        items.extend(Popper::new(&shard).drain());
        assert_eq!(numbers(items), [1, 2, 3, 4, 5]);
    });
}

#[test]
fn a_spare_is_taken_once() {
    model(|| {
        let (shard, pusher) = filled([1].map(wide));
        assert_eq!(numbers(Popper::new(&shard).drain()), [1]);
        let take = |shard: &Shard<Wide>| {
            let spare = shard.take_spare(0);
            // SAFETY: it belongs to the thread that took it.
            spare.map(|spare| unsafe { spare.free() }).is_some()
        };
        let other = thread::spawn({
            let shard = Arc::clone(&shard);
            move || take(&shard)
        });
        let mine = take(&shard);
        assert_ne!(mine, other.join().unwrap());
        drop(pusher);
    });
}

#[test]
fn the_age_of_the_head_is_that_of_its_part_of_a_segment() {
    model(|| {
        let (shard, pusher) = filled([1, 2, 3, 4].map(wide));
        let consumer = thread::spawn({
            let mut popper = Popper::new(&shard);
            move || numbers(popper.drain())
        });
        // Two parts for each segment: the third one has an item for each.
        let ages = [shard.age(), shard.age()];
        let known = ages.into_iter().flatten().filter(|&age| age != u64::MAX);
        assert!(known.clone().all(|age| [2, 4, 6, 7].contains(&age)));
        assert!(known.is_sorted());
        assert_eq!(consumer.join().unwrap(), [1, 2, 3, 4]);
        drop(pusher);
    });
}
