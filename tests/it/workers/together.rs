//! Workers that commit over several queues.

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use crate::common::{assert_at_rest, drain, ends, filled};
use requeue::{Expired, FairQueue, ManualClock, PriorityQueue, Queue, Workers};

#[test]
fn a_run_commits_to_another_queue() {
    ends(|| {
        let (from, to) = (filled([1, 2, 3]), Queue::unbounded());
        from.close();
        let workers = Workers::builder(&from).threads(2);
        let workers = workers.run_with(&to, |number, _tx, out| out.push(number.to_string()));
        let report = workers.join();
        assert_eq!((report.done, report.failed), (3, 0));
        let mut texts = drain(&to);
        texts.sort();
        assert_eq!(texts, ["1", "2", "3"]);
        assert_at_rest(&from, 0, 0);
    });
}

/// A run that fails an item of the other queue.
#[test]
fn an_item_given_up_of_another_queue_counts() {
    ends(|| {
        let (from, to) = (filled([1, 2]), filled([3]));
        let more = Queue::<u32>::unbounded();
        from.close();
        let workers = Workers::builder(&from).threads(1);
        let workers = workers.run_with((&more, &to), |_, _, (_, out)| {
            out.pop().map_or(Ok(()), |item| out.fail(item, "never"))
        });
        let report = workers.join();
        assert_eq!((report.done, report.given_up), (1, 1));
        assert_eq!(to.dead_letters().len(), 1);
    });
}

#[test]
fn several_others_of_all_orders() {
    ends(|| {
        let from = filled([1, 2]);
        from.close();
        let to = (
            &Queue::unbounded(),
            &PriorityQueue::by_priority(),
            &FairQueue::by(|number: &u32| number % 2),
        );
        let workers = Workers::builder(&from).threads(1);
        let workers = workers.run_with(to, |number, tx, (texts, late, keyed)| {
            texts.push("text").unwrap();
            late.priority(1 + u16::from(*number < 3))
                .push(*number)
                .unwrap();
            keyed.push(*number).unwrap();
            if *number == 1 {
                tx.push(3).unwrap(); // a follow-up item
            }
            Ok::<(), ()>(())
        });
        assert_eq!(workers.join().done, 3);
        assert_eq!(drain(to.0), ["text"; 3]);
        assert_eq!(drain(to.1), [3, 1, 2]);
        assert_eq!(to.2.len(), 3);
    });
}

/// All pushes and pops of a failed run are undone in all queues: the next run finds the same state.
#[test]
fn a_run_that_fails_undoes_all() {
    ends(|| {
        let (from, to) = (filled([1]), filled([10]));
        from.close();
        let workers = Workers::builder(&from).threads(1);
        let workers = workers.run_with(&to, |number, tx, out| {
            assert_eq!(*out.pop().unwrap(), 10);
            assert!(out.pop().is_err(), "nothing else was pushed");
            out.push(11).unwrap();
            match number.attempts() {
                3 => Ok(()),
                attempt => {
                    tx.push(2).unwrap();
                    assert_eq!(attempt, 1, "the second one panics");
                    Err("not now")
                }
            }
        });
        let report = workers.join();
        assert_eq!((report.done, report.failed, report.panicked), (1, 1, 1));
        assert_eq!(drain(&to), [11]);
        assert_at_rest(&from, 0, 0);
        assert_at_rest(&to, 0, 0);
    });
}

/// The deliveries of both queues are given back together if one lease expires.
#[test]
fn a_run_whose_other_lease_is_over_undoes_all() {
    ends(|| {
        let clock = ManualClock::new();
        let term = Duration::from_secs(1);
        let to = Queue::builder().leased(term).clock(clock.clone()).build();
        let from = filled([1]);
        to.push(10).unwrap();
        from.close();
        let (tell, told) = channel();
        let leased = to.clone();
        let workers = Workers::builder(&from)
            .threads(1)
            .on_error(move |failure| tell.send(failure.error.to_string()).unwrap());
        let workers = workers.run_with(&to, move |number, _tx, out| {
            if number.attempts() == 1 {
                out.pop().unwrap();
                clock.advance(term);
                assert_eq!(leased.len(), 1, "it is taken back");
            }
            out.push(20)
        });
        let report = workers.join();
        assert_eq!((report.done, report.failed), (1, 1));
        assert_eq!(told.recv(), Ok(Expired.to_string()));
        assert_eq!(drain(&to), [10, 20]);
    });
}

/// A reader that sees the follow-up of an item does not find the item, and vice versa, at any time and with any
/// failures.
#[test]
fn all_or_nothing_is_seen() {
    const ITEMS: u32 = 200;
    ends(|| {
        let (from, to) = (filled(0..ITEMS), Queue::unbounded());
        from.close();
        let workers = Workers::builder(&from).threads(3);
        let workers = workers.run_with(&to, |number, _tx, out| {
            out.push(*number).unwrap();
            let fails = number.attempts() == 1 && *number % 20 == 0;
            assert!(!fails || *number % 40 != 0, "half of them");
            if fails {
                Err("the other half")
            } else {
                Ok(())
            }
        });
        let moved = thread::spawn(move || {
            let mut moved = Vec::new();
            for number in 0..ITEMS {
                moved.push(to.pop_blocking().unwrap());
                let stats = from.stats();
                assert!(stats.committed > u64::from(number), "{stats:?}");
            }
            assert!(to.pop().is_err());
            moved
        });
        let report = workers.join();
        assert_eq!((report.done, report.failed, report.panicked), (200, 5, 5));
        let mut moved = moved.join().unwrap();
        moved.sort_unstable();
        assert!(moved.into_iter().eq(0..ITEMS));
    });
}

#[test]
fn a_destructor_that_panics_undoes_no_commit() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            assert!(thread::panicking(), "the destructor fails");
        }
    }
    ends(|| {
        let (from, to) = (Queue::unbounded(), Queue::unbounded());
        from.push(Bomb).unwrap();
        from.close();
        let workers = Workers::builder(&from).threads(1);
        let workers = workers.run_with(&to, |_bomb, _tx, out| out.push(1));
        let report = workers.join();
        assert_eq!((report.done, report.panicked), (1, 0));
        assert_eq!(drain(&to), [1]);
    });
}
