//! The set of attached shards: additions against removals.

use super::*;
use crate::raw::memory::number_set::NumberSet;
use crate::sync::model::model_of;
use crate::sync::{AtomicBool, Ordering};

fn set(shards: impl IntoIterator<Item = usize>) -> Arc<NumberSet> {
    let set = NumberSet::default();
    shards.into_iter().for_each(|shard| set.add(shard));
    Arc::new(set)
}

/// Adds a shard in another thread, which finds it then.
fn adding(set: &Arc<NumberSet>, shard: usize) -> thread::JoinHandle<()> {
    let set = Arc::clone(set);
    thread::spawn(move || {
        set.add(shard);
        assert!(set.from(0).any(|found| found == shard));
    })
}

#[test]
fn an_added_shard_is_found_while_its_neighbour_is_removed() {
    model(|| {
        let set = set([2]);
        let adder = adding(&set, 3);
        let removed = set.remove(set.see(2), 2).is_some();
        adder.join().unwrap();
        assert_eq!(set.from(0).count(), 2 - usize::from(removed));
    });
}

#[test]
fn a_removal_fails_if_the_shard_was_added_since() {
    model(|| {
        let set = set([0]);
        let seen = set.see(0);
        let adder = adding_only(&set, 0);
        let _ = set.remove(seen, 0);
        adder.join().unwrap();
        assert!(set.has(0));
    });
}

#[test]
fn a_removal_shows_what_came_before() {
    model(|| {
        let (set, came) = (set([0]), Arc::new(AtomicBool::new(false)));
        let seen = set.see(0);
        let remover = thread::spawn({
            let (set, came) = (Arc::clone(&set), Arc::clone(&came));
            move || {
                // ORDERING: Relaxed; published by the removal.
                came.store(true, Ordering::Relaxed);
                assert!(set.remove(seen, 0).is_some());
            }
        });
        // ORDERING: Relaxed; as above.
        assert!(set.has(0) || came.load(Ordering::Relaxed));
        remover.join().unwrap();
    });
}

fn adding_only(set: &Arc<NumberSet>, shard: usize) -> thread::JoinHandle<()> {
    let set = Arc::clone(set);
    thread::spawn(move || set.add(shard))
}

/// The shards are in two words of a group, or in two groups.
#[test]
fn two_who_add_shards_find_them_while_the_words_are_pruned() {
    model_of(1, || {
        let set = set([2]);
        let adders = [3, 4].map(|shard| adding(&set, shard));
        assert!(set.remove(set.see(2), 2).is_some() || set.has(2));
        for adder in adders {
            adder.join().unwrap();
        }
        assert!(set.from(3).eq([3, 4]));
    });
}

/// The shards are in the first bucket.
#[test]
fn a_shard_that_is_found_has_its_bucket() {
    model(|| {
        let set = set([]);
        let adder = adding_only(&set, 2);
        assert!(set.from(0).all(|shard| shard == 2 && set.has(shard)));
        set.add(3);
        adder.join().unwrap();
        assert_eq!(set.from(0).count(), 2);
    });
}
