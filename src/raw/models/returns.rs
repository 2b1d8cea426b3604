//! Deliveries that come back one by one: in their order, beside pops and other returns.

use super::*;
use crate::raw::handle::away::{Away, Outstanding};
use crate::raw::registry::counters::Ending;
use crate::sync::model::large_model;

/// Shards with the items 1 to `items` in one of them, which are all out for delivery, and their producer.
fn taken<const N: usize>() -> (Arc<Outstanding<u32>>, [Away<u32>; N], Endpoint<u32>) {
    let shards = Arc::new(Shards::new(false));
    let mut endpoint = Endpoint::new(Arc::clone(&shards));
    (1..=N as u32).for_each(|item| endpoint.push(item));
    let outstanding = Arc::new(Outstanding::new(&shards));
    let away = [(); N].map(|()| endpoint.take_away(&outstanding, true).unwrap());
    (outstanding, away, endpoint)
}

fn give_back(outstanding: &Outstanding<u32>, away: Away<u32>) {
    outstanding.put_back(away);
    outstanding.count_ended(Ending::Aborted);
}

/// Pops an item of the producer's shard, if there is one.
fn pop(endpoint: &Endpoint<u32>) -> impl FnMut() -> Option<u32> + Send + 'static {
    let shards = Arc::clone(&endpoint.shards);
    move || {
        let (mut item, mut cursor) = (None, shards.cursor(1));
        cursor.take_retrying(&mut item, 1, 1);
        cursor.flush();
        item
    }
}

fn pop_all(endpoint: &Endpoint<u32>) -> Vec<u32> {
    std::iter::from_fn(pop(endpoint)).collect()
}

#[test]
fn deliveries_come_back_in_their_order() {
    model(|| {
        let (outstanding, [first, second], endpoint) = taken();
        let other = thread::spawn({
            let outstanding = Arc::clone(&outstanding);
            move || give_back(&outstanding, second)
        });
        give_back(&outstanding, first);
        other.join().unwrap();
        assert_eq!(pop_all(&endpoint), [1, 2]);
    });
}

#[test]
fn deliveries_that_come_back_among_others_are_popped_once() {
    model(|| {
        let (outstanding, [first, second], endpoint) = taken();
        give_back(&outstanding, second);
        let popper = thread::spawn(pop(&endpoint));
        give_back(&outstanding, first);
        let theirs = popper.join().unwrap();
        let mine = pop_all(&endpoint);
        assert!(theirs.is_some() && mine.is_sorted());
        assert_eq!(sorted(mine.into_iter().chain(theirs)), [1, 2]);
        assert!(endpoint.shards.records.get(1).front().is_clear());
    });
}

/// The bookmark ends while another item comes back.
#[test]
fn a_delivery_that_comes_back_while_the_last_one_is_popped_stays() {
    large_model(|| {
        let (outstanding, [first, second], endpoint) = taken();
        give_back(&outstanding, first);
        let other = thread::spawn(move || give_back(&outstanding, second));
        let mut popped: Vec<_> = pop(&endpoint)().into_iter().collect();
        other.join().unwrap();
        popped.extend(pop_all(&endpoint));
        assert_eq!(popped, [1, 2]);
        assert!(endpoint.shards.records.get(1).front().is_clear());
    });
}

/// As after an abort: a consumer that has looked at the head before does not overtake the item.
#[test]
fn a_claim_that_was_begun_before_a_return_fails() {
    model(|| {
        let (outstanding, [first, second], mut endpoint) = taken();
        endpoint.push(3);
        give_back(&outstanding, second);
        let front = endpoint.shards.records.get(1).front();
        let before = front.head();
        give_back(&outstanding, first);
        assert!(front.claim(before, 1).is_err());
        assert_eq!(pop_all(&endpoint), [1, 2, 3]);
    });
}

#[test]
fn a_delivery_is_found_while_another_comes_and_goes_before_it() {
    large_model(|| {
        let (outstanding, [first, second], endpoint) = taken();
        give_back(&outstanding, second);
        let shards = Arc::clone(&endpoint.shards);
        let looker = thread::spawn(move || assert!(!shards.records.get(1).front().is_exhausted()));
        give_back(&outstanding, first);
        assert_eq!(pop(&endpoint)(), Some(1));
        looker.join().unwrap();
        assert_eq!(pop_all(&endpoint), [2]);
    });
}

#[test]
fn never_drained_while_a_delivery_comes_back() {
    model(|| {
        let (outstanding, [first], endpoint) = taken();
        let shards = Arc::clone(&endpoint.shards);
        let looker = thread::spawn(move || {
            let left = shards.left_when_closed(|| true, || true);
            assert_ne!(left, crate::raw::Remainder::Nothing);
        });
        give_back(&outstanding, first);
        looker.join().unwrap();
        assert_eq!(pop_all(&endpoint), [1]);
    });
}
