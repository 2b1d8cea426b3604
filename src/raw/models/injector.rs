//! The injector: many producers and many consumers.

use super::*;
use crate::raw::injector::Injector;
use crate::raw::shard::front::Front;

/// Takes one item, if there is one.
fn pop(injector: &Injector<u32>) -> Option<u32> {
    let mut item = None;
    loop {
        match injector.take(injector.entered(), &mut item, 1, Front::is_clear) {
            Take::Got(_) => return item,
            Take::Empty => return None,
            _ => {}
        }
    }
}

type Shared = (Injector<u32>, AtomicU64);

fn push((injector, stamps): &Shared, item: u32) {
    assert_eq!(injector.push(item, 0, stamps, || true), Ok(()));
}

fn shared(items: impl IntoIterator<Item = u32>) -> Arc<Shared> {
    let injector = (Injector::new(false), AtomicU64::new(0));
    items.into_iter().for_each(|item| push(&injector, item));
    Arc::new(injector)
}

#[test]
fn two_producers_get_different_cells() {
    model(|| {
        let injector = shared([]);
        let producer = thread::spawn({
            let injector = Arc::clone(&injector);
            move || push(&injector, 1)
        });
        push(&injector, 2);
        push(&injector, 3);
        producer.join().unwrap();
        let items: Vec<_> = std::iter::from_fn(|| pop(&injector.0)).collect();
        assert!(items.iter().filter(|item| **item > 1).eq([&2, &3]));
        assert_eq!(sorted(items), [1, 2, 3]);
    });
}

#[test]
fn a_stalled_producer_hides_nobody_else() {
    model(|| {
        let injector = shared([]);
        let producer = thread::spawn({
            let injector = Arc::clone(&injector);
            move || push(&injector, 1)
        });
        push(&injector, 2);
        assert!(!injector.0.position_if_empty().is_some());
        let first = pop(&injector.0);
        assert!(first.is_some(), "an item was already pushed");
        producer.join().unwrap();
        let items = first.into_iter().chain(pop(&injector.0));
        assert_eq!(sorted(items), [1, 2]);
        assert_eq!(injector.0.pushed(), 2);
        assert!(injector.0.position_if_empty().is_some());
    });
}

#[test]
fn two_consumers_share_the_items() {
    model(|| {
        let injector = shared([1, 2]);
        let consumer = thread::spawn({
            let injector = Arc::clone(&injector);
            move || pop(&injector.0)
        });
        let mine = pop(&injector.0);
        let theirs = consumer.join().unwrap();
        assert_eq!(sorted(mine.into_iter().chain(theirs)), [1, 2]);
    });
}

#[test]
fn nodes_are_appended_and_retired() {
    model(|| {
        let injector = shared([1, 2]);
        let producer = thread::spawn({
            let injector = Arc::clone(&injector);
            move || push(&injector, 3)
        });
        let mut items: Vec<_> = std::iter::from_fn(|| pop(&injector.0)).collect();
        producer.join().unwrap();
        items.extend(std::iter::from_fn(|| pop(&injector.0)));
        assert_eq!(items, [1, 2, 3]);
    });
}

#[test]
fn who_goes_on_to_the_next_node_finds_it_made() {
    model(|| {
        let injector = shared([1, 2]);
        let producer = thread::spawn({
            let injector = Arc::clone(&injector);
            move || push(&injector, 4)
        });
        push(&injector, 3);
        producer.join().unwrap();
        let items: Vec<_> = std::iter::from_fn(|| pop(&injector.0)).collect();
        assert_eq!(items[..2], [1, 2]);
        assert_eq!(sorted(items), [1, 2, 3, 4]);
    });
}
