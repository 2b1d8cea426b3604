//! Queues of any order: no pop returns `Empty` while an item is ready.

use super::market::{of_any_order, Kind};
use super::{below, explore, join, one_of};
use requeue::{Handle, Queue};
use shuttle::thread;

/// Takes items that others may need too, and gives each back in some way.
fn borrow_some<O: Kind>(queue: &Queue<u32, O>) {
    let mut handle = queue.handle();
    for _ in 0..3 {
        if below(4) == 0 {
            handle = queue.handle();
        }
        borrow(queue, &mut handle);
    }
}

fn borrow<O: Kind>(queue: &Queue<u32, O>, handle: &mut Handle<u32, O>) {
    const READY: &str = "an item is ready at any time";
    match below(5) {
        0 => handle.peek_with(|_| thread::yield_now()).expect(READY),
        1 => {
            let tx = handle.begin();
            let item = *tx.pop().expect(READY);
            tx.push(item).unwrap();
            tx.commit();
        }
        2 => {
            let tx = handle.begin();
            assert_eq!(tx.pop_batch(1).len(), 1, "{READY}");
        }
        3 => assert!(!queue.is_empty(), "{READY}"),
        _ => {
            let tx = handle.begin();
            tx.pop().expect(READY);
            tx.abort();
        }
    }
}

#[test]
fn with_more_items_than_holders_no_pop_returns_empty() {
    explore(|| of_any_order!(borrow_from_a_queue));
}

fn borrow_from_a_queue<O: Kind>() {
    let queue = O::queue(None, None);
    let threads = one_of(&[2, 3]);
    let items = u32::try_from(threads).unwrap();
    queue.handle().push_batch(0..items).unwrap();
    let borrowers = (0..threads).map(|_| {
        let queue = queue.clone();
        thread::spawn(move || borrow_some(&queue))
    });
    join(borrowers.collect());
    assert_eq!(queue.len(), threads);
    queue.stats().check().unwrap();
    queue.close();
    let mut left: Vec<_> = queue.iter().collect();
    left.sort_unstable();
    assert!(left.into_iter().eq(0..items));
}
