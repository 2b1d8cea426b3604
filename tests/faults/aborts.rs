//! An abort allocates nothing, whatever becomes of its items.

use std::thread;
use std::time::Duration;

use crate::allocator::allocations_of;
use crate::common::failing::SECOND;
use requeue::{Backoff, Builder, Handle, ManualClock, Order, OwnedTransaction, Pace, Queue};

/// Options that decide what an abort has to do.
fn settings<O: Order<u64>>(builder: &Builder<u64, O>) -> Vec<(&'static str, Builder<u64, O>)> {
    let builder = || builder.clone().clock(ManualClock::new());
    vec![
        ("no options", builder()),
        ("bounded", builder().capacity(2000)),
        ("deaths", builder().max_attempts(1)),
        ("delays", builder().backoff(Backoff::fixed(SECOND))),
        ("timestamps", builder().timestamps()),
        ("a pace", builder().pace(Pace::rate(1, SECOND).burst(2000))),
        ("a limit of held items", builder().max_held(2000)),
        (
            "too many letters",
            builder().max_attempts(1).max_dead_letters(3),
        ),
        (
            "all of it",
            builder()
                .capacity(2000)
                .max_attempts(2)
                .backoff(Backoff::fixed(SECOND))
                .timestamps()
                .max_held(2000),
        ),
    ]
}

/// Numbers of items that fit into one block or segment, and that need several.
const COUNTS: [usize; 4] = [0, 1, 3, 700];
/// Few enough for as many keys: a table from which many keys are removed is replaced by a smaller one.
const FEW: [usize; 3] = [0, 1, 3];

/// Whether an abort may retire the times of a segment in which nothing was published: the reclaimer allocates for that.
fn retires_times(options: &str, staged: usize) -> bool {
    staged > 0 && ["timestamps", "all of it"].contains(&options)
}

/// A queue with `count` items of three shards.
fn filled<O: Order<u64>>(builder: &Builder<u64, O>, count: usize) -> Queue<u64, O> {
    let queue = builder.clone().build();
    let mut handles = [queue.handle(), queue.handle()];
    for (shard, item) in (0..3).cycle().zip(0..count as u64) {
        match handles.get_mut(shard) {
            Some(handle) => handle.push(item).unwrap(),
            None => queue.push(item).unwrap(),
        }
    }
    queue
}

/// The number of allocations of an abort on a thread that has used no queue before.
fn on_new_thread(abort: impl FnOnce() + Send) -> u64 {
    thread::scope(|scope| scope.spawn(|| allocations_of(abort)).join().unwrap())
}

type End<O> = fn(&mut Handle<u64, O>, held: usize, staged: usize) -> u64;

/// The ways to abort. Each returns how often it allocated.
fn ends<O: Order<u64>>() -> [(&'static str, End<O>); 3] {
    [
        ("abort", |handle, held, staged| {
            let tx = handle.begin();
            assert_eq!(tx.pop_batch(held).len(), held);
            (0..staged as u64).for_each(|item| tx.push(item).unwrap());
            on_new_thread(|| tx.abort())
        }),
        ("drop", |handle, held, staged| {
            let tx = handle.begin();
            tx.push_batch(0..staged as u64).unwrap();
            (0..held).for_each(|_| assert!(tx.pop().is_ok()));
            on_new_thread(|| drop(tx))
        }),
        ("forgotten", |handle, held, staged| {
            let tx = handle.begin();
            tx.push_batch(0..staged as u64).unwrap();
            assert_eq!(tx.pop_batch(held).len(), held);
            std::mem::forget(tx);
            on_new_thread(|| drop(handle.begin()))
        }),
    ]
}

fn assert_no_abort_allocates<O: Order<u64>>(
    order: &str,
    builder: &Builder<u64, O>,
    counts: &[usize],
) {
    let pairs = counts
        .iter()
        .flat_map(|held| counts.iter().map(move |staged| (*held, *staged)));
    let pairs: Vec<_> = pairs.collect();
    for (options, builder) in settings(builder) {
        for (name, end) in ends() {
            for &(held, staged) in pairs.iter().filter(|pair| !retires_times(options, pair.1)) {
                let queue = filled(&builder, held);
                let allocations = end(&mut queue.handle(), held, staged);
                assert_eq!(
                    allocations, 0,
                    "{name} of {held} held and {staged} staged items; {order}, {options}"
                );
                queue.stats().check().unwrap();
            }
        }
    }
}

#[test]
fn an_abort_allocates_nothing() {
    let plain = Queue::builder;
    assert_no_abort_allocates("in no order", &plain(), &COUNTS);
    assert_no_abort_allocates("fair", &plain().fair_by(|item| item % 5), &COUNTS);
    let serial = plain().fair_by(|item| *item).serial();
    assert_no_abort_allocates("fair and serial", &serial, &FEW);
    assert_no_abort_allocates("by priority", &plain().by_priority(), &COUNTS);
}

#[test]
fn an_abort_of_leased_items_allocates_nothing() {
    let term = Duration::from_secs(60);
    let plain = Queue::builder;
    assert_no_abort_allocates("leased", &plain().leased(term), &COUNTS);
    let fair = plain().fair_by(|item| item % 5).leased(term);
    assert_no_abort_allocates("leased and fair", &fair, &COUNTS);
    let urgent = plain().by_priority().leased(term);
    assert_no_abort_allocates("leased by priority", &urgent, &COUNTS);
}

/// Also on a thread that has used no queue before, after so many aborts that the handle moves to another shard, and when
/// the handle is the first one that goes back to the pool of the queue.
#[test]
fn an_abort_on_a_new_thread_allocates_nothing() {
    let ends: [fn(OwnedTransaction<u64>); 2] = [OwnedTransaction::abort, drop];
    for end in ends {
        for options in [Queue::builder(), Queue::builder().capacity(100)] {
            let queue = filled(&options, 9);
            for round in 0..40 {
                let tx = queue.begin_owned();
                assert!(tx.pop().is_ok());
                tx.push(round).unwrap();
                assert_eq!(on_new_thread(move || end(tx)), 0, "abort {round}");
            }
            let many: Vec<_> = (0..9).map(|_| queue.begin_owned()).collect();
            assert!(many.iter().all(|tx| tx.pop().is_ok()));
            let abort_all = move || many.into_iter().for_each(end);
            assert_eq!(on_new_thread(abort_all), 0, "several owned transactions");
            assert_eq!(queue.len(), 9);
        }
    }
}

/// An owned transaction returns its handle to the pool of the queue, which has had room for it before.
#[test]
fn an_abort_of_an_owned_transaction_allocates_nothing() {
    let ends: [fn(OwnedTransaction<u64>); 2] = [OwnedTransaction::abort, drop];
    for end in ends {
        for held in COUNTS {
            let queue = filled(&Queue::builder(), held);
            drop(queue.begin_owned());
            let tx = queue.begin_owned();
            assert_eq!(tx.pop_batch(held).len(), held);
            tx.push_batch(0..held as u64).unwrap();
            assert_eq!(allocations_of(|| end(tx)), 0, "{held} held items");
            assert_eq!(queue.len(), held);
        }
    }
}
