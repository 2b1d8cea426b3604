//! Items with weights: pushes that wait for several permits.

use super::{large_model, warm};
use loom::thread;
use requeue::{Budget, Builder, Queue};

/// Where an item weighs as much as it says, except for those of [`warm`], which weigh nothing.
fn weighed(limit: usize) -> Builder<u32> {
    let builder = Queue::builder().weigh(|item: &u32| *item as usize % 100);
    builder.capacity(limit)
}

#[test]
fn a_heavy_sleeper_against_two_pops() {
    large_model(|| {
        let queue = weighed(2).build();
        let (mut pusher, mut popper) = (warm(&queue), warm(&queue));
        popper.push_batch([1, 1]).unwrap();
        let other = thread::spawn(move || {
            pusher.push_blocking(2).unwrap();
            pusher
        });
        assert_eq!(popper.pop(), Ok(1));
        assert_eq!(popper.pop(), Ok(1));
        let pusher = other.join().unwrap();
        assert_eq!((popper.pop(), queue.weight()), (Ok(2), 0));
        drop((pusher, popper));
    });
}

/// The commit gives back what its staged item needs less.
#[test]
fn a_heavy_sleeper_against_a_commit() {
    large_model(|| {
        let queue = weighed(3).build();
        let (mut pusher, mut worker) = (warm(&queue), warm(&queue));
        worker.push(3).unwrap();
        let tx = worker.begin();
        assert!(tx.pop().is_ok());
        tx.push(1).unwrap();
        let other = thread::spawn(move || {
            pusher.push_blocking(2).unwrap();
            pusher
        });
        drop(tx.commit());
        let pusher = other.join().unwrap();
        assert_eq!((queue.weight(), queue.is_full()), (3, true));
        drop((pusher, worker));
    });
}

#[test]
fn a_sleeper_against_the_drop_of_another_queue_of_its_budget() {
    large_model(|| {
        let budget = Budget::new(2);
        let (queue, other) = (weighed(1).budget(&budget), weighed(1).budget(&budget));
        let (queue, other) = (queue.build(), other.build());
        let mut pusher = warm(&queue);
        other.push(1).unwrap();
        let thread = thread::spawn(move || {
            pusher.push_blocking(2).unwrap();
            pusher
        });
        drop(other);
        let pusher = thread.join().unwrap();
        assert_eq!(budget.free(), 0);
        drop(pusher);
    });
}

/// A late push that is taken back gives its permits back.
#[test]
fn a_heavy_push_against_a_close() {
    large_model(|| {
        let budget = Budget::new(2);
        let queue = weighed(1).budget(&budget).build();
        let mut pusher = warm(&queue);
        let other = thread::spawn(move || (pusher.push(2), pusher));
        queue.close();
        let (pushed, pusher) = other.join().unwrap();
        let weight = 2 * usize::from(pushed.is_ok());
        let other = weighed(1).budget(&budget).build();
        let fit = [1, 101, 201].map(|item| other.push(item).is_ok());
        let room = fit.into_iter().filter(|fits| *fits).count();
        assert_eq!((queue.weight(), room), (weight, 2 - weight));
        drop(pusher);
    });
}
