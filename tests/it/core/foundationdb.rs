//! The queue recipe of `FoundationDB`: a queue that many clients share, one transaction per operation.

use std::sync::Barrier;
use std::thread;

use crate::common::futures::Task;
use crate::common::{drain, filled};
use requeue::{PopError, Queue};

/// The first guarantee of the recipe: the items of a single client are dequeued in the order of their enqueues.
#[test]
fn lone_client_is_first_in_first_out() {
    let queue = Queue::unbounded();
    let mut client = queue.handle();
    let mut dequeued = Vec::new();
    for round in 0..50 {
        client.push(2 * round).unwrap();
        client.push(2 * round + 1).unwrap();
        dequeued.push(client.pop().unwrap());
    }
    dequeued.extend(drain(&queue));
    assert_eq!(dequeued, (0..100).collect::<Vec<_>>());
}

/// The same for a client that uses the queue without a handle.
#[test]
fn lone_client_without_a_handle() {
    let queue = Queue::unbounded();
    (0..100).for_each(|item| queue.push(item).unwrap());
    assert_eq!(drain(&queue), (0..100).collect::<Vec<_>>());
}

/// The recipe dequeues nothing from an empty queue.
#[test]
fn empty_queue() {
    let queue = Queue::<u32>::unbounded();
    assert_eq!(queue.pop(), Err(PopError::Empty));
    assert_eq!(queue.handle().pop(), Err(PopError::Empty));
}

/// Two enqueues open at the same time both commit, whichever ends first.
#[test]
fn interleaved_enqueues_do_not_conflict() {
    let queue = Queue::unbounded();
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let (tx_a, tx_b) = (a.begin(), b.begin());
    tx_a.push("a").unwrap();
    tx_b.push("b").unwrap();
    tx_b.commit();
    assert_eq!(queue.len(), 1);
    tx_a.commit();
    let mut items = drain(&queue);
    items.sort_unstable();
    assert_eq!(items, ["a", "b"]);
}

/// Concurrent enqueues never conflict: every transaction runs once, and each client keeps its order.
#[test]
fn concurrent_enqueues_never_conflict() {
    const CLIENTS: u32 = 8;
    const ITEMS: u32 = 100;
    let queue = Queue::unbounded();
    let start = Barrier::new(CLIENTS as usize);
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (queue, start) = (&queue, &start);
            scope.spawn(move || {
                let mut handle = queue.handle();
                let mut runs = 0;
                start.wait();
                for item in 0..ITEMS {
                    let enqueue = handle.transact(|tx| {
                        runs += 1;
                        tx.push((client, item))
                    });
                    assert_eq!(enqueue, Ok(()));
                }
                assert_eq!(runs, ITEMS);
            });
        }
    });
    let items = drain(&queue);
    for client in 0..CLIENTS {
        let of_client = items.iter().filter(|item| item.0 == client);
        assert!(of_client.map(|item| item.1).eq(0..ITEMS));
    }
}

/// Concurrent dequeuers get distinct items, and every item is dequeued.
#[test]
fn concurrent_dequeuers_get_distinct_items() {
    const CLIENTS: usize = 8;
    const ITEMS: usize = 100;
    let queue = filled(0..CLIENTS * ITEMS);
    let start = Barrier::new(CLIENTS);
    let dequeue = || {
        let mut handle = queue.handle();
        start.wait();
        let own: Vec<_> = (0..ITEMS).map(|_| handle.pop().unwrap()).collect();
        assert!(own.is_sorted());
        own
    };
    let mut dequeued = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(dequeue)).collect();
        let joined = clients.into_iter().map(|client| client.join().unwrap());
        joined.collect::<Vec<_>>().concat()
    });
    dequeued.sort_unstable();
    assert!(dequeued.into_iter().eq(0..CLIENTS * ITEMS));
    assert!(queue.is_empty());
}

/// The recipe under high contention: of 16 dequeuers on 5 items, five get one and the others none.
#[test]
fn more_dequeuers_than_items() {
    let queue = filled(0..5);
    let start = Barrier::new(16);
    let dequeue = || {
        let mut handle = queue.handle();
        start.wait();
        handle.pop()
    };
    let outcomes: Vec<_> = thread::scope(|scope| {
        let clients: Vec<_> = (0..16).map(|_| scope.spawn(dequeue)).collect();
        let joined = clients.into_iter().map(|client| client.join().unwrap());
        joined.collect()
    });
    let mut dequeued: Vec<_> = outcomes.into_iter().flatten().collect();
    dequeued.sort_unstable();
    assert_eq!(dequeued, [0, 1, 2, 3, 4]);
}

/// A dequeue that is not committed leaves its item in its place.
#[test]
fn aborted_dequeue_leaves_the_item() {
    let queue = filled(["first", "second"]);
    let mut client = queue.handle();
    let tx = client.begin();
    assert_eq!(tx.pop().as_deref(), Ok(&"first"));
    tx.abort();
    assert_eq!(drain(&queue), ["first", "second"]);
}

/// An item is dequeued and enqueued into a second queue by one transaction each, joined at commit.
#[test]
fn item_moves_between_two_queues() {
    let (from, to) = (filled([1, 2]), Queue::unbounded());
    let (mut source, mut target) = (from.handle(), to.handle());
    let (tx_from, tx_to) = (source.begin(), target.begin());
    tx_to.push(*tx_from.pop().unwrap()).unwrap();
    requeue::commit_all((tx_from, tx_to));
    assert_eq!(drain(&from), [2]);
    assert_eq!(drain(&to), [1]);
}

/// The high-contention recipe stores the requests of dequeuers and serves them in the order of their arrival; an
/// enqueued item goes to the request that has waited longest.
#[test]
fn waiting_dequeuers_are_served_in_the_order_of_their_arrival() {
    let queue = Queue::unbounded();
    let mut clients: Vec<_> = (0..5).map(|_| queue.handle()).collect();
    let mut requests: Vec<_> = clients
        .iter_mut()
        .map(|client| Task::waiting(client.pop_async()))
        .collect();
    for item in 0..5 {
        queue.push(item).unwrap();
        assert!(requests[item].was_woken());
        assert!(requests[item + 1..].iter().all(|later| !later.was_woken()));
        assert_eq!(requests[item].output(), Ok(item));
    }
}

/// A dequeuer that gives up leaves the wait queue; its item goes to the next one.
#[test]
fn request_of_a_client_that_is_gone() {
    let queue = Queue::unbounded();
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let gone = Task::waiting(a.pop_async());
    let mut next = Task::waiting(b.pop_async());
    queue.push(7).unwrap();
    assert!(gone.was_woken() && !next.was_woken());
    drop(gone);
    assert!(next.was_woken());
    assert_eq!(next.output(), Ok(7));
}
