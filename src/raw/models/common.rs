//! The common shard: many producers and many consumers.

use super::*;
use crate::raw::common::Common;

/// Takes one item, if there is one.
fn pop(common: &Common<u32>) -> Option<u32> {
    let mut item = None;
    loop {
        match common.take(common.entered(), &mut item, 1) {
            Take::Got(_) => return item,
            Take::Empty => return None,
            _ => {}
        }
    }
}

type Shared = (Common<u32>, AtomicU64);

fn push((common, stamps): &Shared, item: u32) {
    assert_eq!(common.push(item, 0, stamps, || true), Ok(()));
}

fn shared(items: impl IntoIterator<Item = u32>) -> Arc<Shared> {
    let common = (Common::new(false), AtomicU64::new(0));
    items.into_iter().for_each(|item| push(&common, item));
    Arc::new(common)
}

#[test]
fn two_producers_get_different_cells() {
    model(|| {
        let common = shared([]);
        let producer = thread::spawn({
            let common = Arc::clone(&common);
            move || push(&common, 1)
        });
        push(&common, 2);
        push(&common, 3);
        producer.join().unwrap();
        let items: Vec<_> = std::iter::from_fn(|| pop(&common.0)).collect();
        assert!(items.iter().filter(|item| **item > 1).eq([&2, &3]));
        assert_eq!(sorted(items), [1, 2, 3]);
    });
}

#[test]
fn a_stalled_producer_hides_nobody_else() {
    model(|| {
        let common = shared([]);
        let producer = thread::spawn({
            let common = Arc::clone(&common);
            move || push(&common, 1)
        });
        push(&common, 2);
        assert!(!common.0.position_if_empty().is_some());
        let first = pop(&common.0);
        assert!(first.is_some(), "an item was pushed before");
        producer.join().unwrap();
        let items = first.into_iter().chain(pop(&common.0));
        assert_eq!(sorted(items), [1, 2]);
        assert_eq!(common.0.pushed(), 2);
        assert!(common.0.position_if_empty().is_some());
    });
}

#[test]
fn two_consumers_share_the_items() {
    model(|| {
        let common = shared([1, 2]);
        let consumer = thread::spawn({
            let common = Arc::clone(&common);
            move || pop(&common.0)
        });
        let mine = pop(&common.0);
        let theirs = consumer.join().unwrap();
        assert_eq!(sorted(mine.into_iter().chain(theirs)), [1, 2]);
    });
}

#[test]
fn nodes_are_appended_and_retired() {
    model(|| {
        let common = shared([1, 2]);
        let producer = thread::spawn({
            let common = Arc::clone(&common);
            move || push(&common, 3)
        });
        let mut items: Vec<_> = std::iter::from_fn(|| pop(&common.0)).collect();
        producer.join().unwrap();
        items.extend(std::iter::from_fn(|| pop(&common.0)));
        assert_eq!(items, [1, 2, 3]);
    });
}

#[test]
fn who_goes_on_to_the_next_node_finds_it_made() {
    model(|| {
        let common = shared([1, 2]);
        let producer = thread::spawn({
            let common = Arc::clone(&common);
            move || push(&common, 4)
        });
        push(&common, 3);
        producer.join().unwrap();
        let items: Vec<_> = std::iter::from_fn(|| pop(&common.0)).collect();
        assert_eq!(items[..2], [1, 2]);
        assert_eq!(sorted(items), [1, 2, 3, 4]);
    });
}
