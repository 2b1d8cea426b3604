//! Handles that are idle while others look for items: what they do next is seen.

use requeue::{commit_all, Handle, Queue};

const HANDLES: u32 = 300;

/// A queue with handles that have all pushed once, and have been idle while another one popped in vain.
fn idle(queue: &Queue<u32>) -> Vec<Handle<u32>> {
    let mut handles: Vec<_> = (0..HANDLES).map(|_| queue.handle()).collect();
    for handle in &mut handles {
        handle.push(0).unwrap();
    }
    look_in_vain(queue);
    handles
}

/// Pops all items, and then often enough in vain.
fn look_in_vain(queue: &Queue<u32>) {
    let mut popper = queue.handle();
    while popper.pop().is_ok() {}
    for _ in 0..100 {
        assert!(popper.pop().is_err());
    }
}

#[test]
fn a_push_of_an_idle_handle_is_found() {
    let queue = Queue::unbounded();
    let mut handles = idle(&queue);
    for round in 0..3 {
        for (item, handle) in (0..).zip(&mut handles) {
            handle.push(item).unwrap();
            assert!(!queue.is_empty());
            assert_eq!(queue.len(), 1);
            assert_eq!(queue.pop(), Ok(item), "round {round}");
        }
        look_in_vain(&queue);
    }
}

#[test]
fn a_commit_of_an_idle_handle_is_found() {
    let (queue, other) = (Queue::unbounded(), Queue::<u32>::unbounded());
    let mut handles = idle(&queue);
    let mut others = idle(&other);
    for (item, (handle, alone)) in (1..).zip(handles.iter_mut().zip(&mut others)) {
        let tx = handle.begin();
        tx.push(item).unwrap();
        match item % 3 {
            0 => drop(tx.commit()),
            1 => drop(commit_all((tx, alone.begin()))),
            _ => {
                let both = alone.begin();
                both.push(item).unwrap();
                drop(commit_all((tx, both)));
                assert_eq!(other.pop(), Ok(item));
            }
        }
        assert_eq!(queue.pop(), Ok(item));
        assert!(queue.is_empty() && other.is_empty());
    }
}

#[test]
fn items_returned_to_an_idle_handle_precede_its_next_push() {
    let queue = Queue::unbounded();
    let mut handles = idle(&queue);
    let mut holder = queue.handle();
    handles[200].push_batch([1, 2, 3]).unwrap();
    let tx = holder.begin();
    assert_eq!(tx.pop_batch(3).len(), 3);
    look_in_vain(&queue);
    tx.abort();
    assert_eq!(queue.len(), 3);
    handles[200].push(4).unwrap();
    let order: Vec<_> = std::iter::from_fn(|| queue.pop().ok()).collect();
    assert_eq!(order, [1, 2, 3, 4]);
}

#[test]
fn an_idle_queue_is_closed_and_drained() {
    let queue = Queue::unbounded();
    let mut handles = idle(&queue);
    handles[100].push(1).unwrap();
    queue.close();
    assert!(handles[150].push(2).is_err());
    assert_eq!(queue.pop(), Ok(1));
    assert_eq!(queue.pop(), Err(requeue::PopError::Closed));
}

/// Threads whose handles are idle now and then, while others look in vain.
#[test]
fn threads_lose_nothing() {
    const THREADS: u32 = 3;
    const ITEMS: u32 = 3_000;
    let queue = Queue::unbounded();
    let _idle = idle(&queue);
    let work = |thread: u32| {
        let (mut pusher, mut popper) = (queue.handle(), queue.handle());
        let mut items = Vec::new();
        for item in 0..ITEMS {
            pusher.push(thread * ITEMS + item).unwrap();
            items.extend(popper.pop());
            items.extend(popper.pop());
        }
        items
    };
    let work = &work;
    let mut items = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || work(thread)))
            .collect();
        let items = threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap());
        items.collect::<Vec<_>>()
    });
    items.extend(std::iter::from_fn(|| queue.pop().ok()));
    items.sort_unstable();
    assert!(items.into_iter().eq(0..THREADS * ITEMS));
}
