//! Whether a closed queue is drained, by its counters, while a transaction ends that leaves an item behind.
//!
//! The endpoints are warmed up first, as in `empty.rs`.

use super::*;
use crate::raw::{DeliveryMeta, Entry, Remainder};

/// An endpoint with a shard, whose transaction holds the only item of the queue.
fn holder(shards: &Arc<Shards<u32>>) -> Endpoint<u32> {
    let mut endpoint = Endpoint::new(Arc::clone(shards));
    endpoint.push(1);
    assert!(endpoint.hold());
    endpoint
}

/// Checks whether the queue is drained while `end` puts an item there.
///
/// The check runs on the other thread: loom does not explore a store, after a load of the same word by its thread,
/// ahead of another thread's load that it has run first.
fn never_drained<R>(shards: &Arc<Shards<u32>>, end: impl FnOnce() -> R) {
    let other = thread::spawn({
        let shards = Arc::clone(shards);
        move || {
            let left = shards.left_when_closed(|| true, || true);
            assert_ne!(left, Remainder::Nothing);
        }
    });
    end();
    other.join().unwrap();
}

#[test]
fn never_drained_while_a_transaction_aborts() {
    model(|| {
        let shards = Arc::new(Shards::new(false));
        let mut endpoint = holder(&shards);
        never_drained(&shards, || endpoint.give_back(UNBORROWED));
    });
}

#[test]
fn never_drained_while_an_item_is_put_back() {
    model(|| {
        let shards = Arc::new(Shards::new(false));
        let mut endpoint = Endpoint::new(Arc::clone(&shards));
        endpoint.push(1);
        assert!(endpoint.peek());
        never_drained(&shards, || assert!(endpoint.put_back()));
    });
}

#[test]
fn never_drained_while_a_visit_ends() {
    model(|| {
        let shards = Arc::new(Shards::new(false));
        let mut endpoint = Endpoint::new(Arc::clone(&shards));
        endpoint.push(1);
        let mut visit = endpoint.visit_shard(&mut 0).unwrap();
        visit.next_part();
        never_drained(&shards, || visit.end());
    });
}

#[test]
fn never_drained_while_staged_items_are_committed() {
    model(|| {
        let shards = Arc::new(Shards::new(false));
        let mut endpoint = Endpoint::new(Arc::clone(&shards));
        endpoint.push(100);
        assert_eq!(endpoint.pop(), Some(100));
        endpoint.stage_one(1);
        never_drained(&shards, || endpoint.commit(UNBORROWED));
    });
}

#[test]
fn never_drained_while_a_follow_up_is_committed() {
    model(|| {
        let shards = Arc::new(Shards::new(false));
        let mut endpoint = holder(&shards);
        never_drained(&shards, || {
            endpoint.stage_one(2);
            endpoint.commit(UNBORROWED);
            endpoint.drop_taken(UNBORROWED);
        });
    });
}

#[test]
fn never_drained_while_an_item_is_taken_away() {
    model(|| {
        let shards = Arc::new(Shards::new(false));
        let endpoint = holder(&shards);
        let counters = endpoint.number();
        let other = thread::spawn({
            let shards = Arc::clone(&shards);
            move || {
                let delivery = DeliveryMeta::first(0);
                shards.put_at_head([Entry { item: 1, delivery }]);
                shards.count_expired(counters, 1);
            }
        });
        let left = shards.left_when_closed(|| true, || true);
        assert_ne!(left, Remainder::Nothing);
        other.join().unwrap();
    });
}
