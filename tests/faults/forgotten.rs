//! `mem::forget` of everything: others go on, and the queue is dropped.

use std::future::Future;
use std::mem;

use crate::bell::Bell;
use crate::common::futures::Task;
use crate::common::{assert_at_rest, drain, ends, Ledger, Tracked};
use crate::orders::{self, Visitor};
use crate::plan::{Call, Fault, Plan};
use crate::probes::Probe;
use crate::tour::{play, Step, Tour, Traits, Worker};
use requeue::{commit_all, hold_any_async, pop_any_async, Builder, Job, Order, Queue, Workers};
use std::time::Duration;

/// Steps after which the next use of the handle undoes all that was forgotten, as an abort does.
fn undone<O: Order<Probe>>() -> Vec<Step<O>> {
    vec![
        some,
        |tour, worker| {
            let tx = worker.begin();
            mem::forget((tx.pop(), tx.pop_batch(1)));
            tour.stage(&tx);
            mem::forget(tx);
        },
        some,
        |_, worker| {
            let tx = worker.begin();
            mem::forget(tx.peek());
            mem::forget(tx);
        },
        |tour, worker| {
            let tx = worker.begin();
            let _ = tx.peek().map(requeue::Peek::take);
            tour.commit(tx.held(), [], || tx.try_commit());
        },
        forgets_waits_for_items,
        forgets_waits_of_transactions,
        some,
        |tour, _| {
            let mut drain = tour.queue.drain();
            tour.ledger.deliver(drain.next());
            mem::forget((drain, tour.queue.iter(), tour.queue.dead_letters()));
        },
        |tour, _| {
            let tx = tour.queue.begin_owned();
            drop(tx.pop());
            drop(tx);
            mem::forget((tour.queue.stats(), tour.queue.held(), tour.queue.pace()));
        },
    ]
}

fn some<O: Order<Probe>>(tour: &Tour<O>, worker: &mut Worker<O>) {
    (0..3).for_each(|_| _ = tour.ledger.push(|item| worker.push(item)));
}

fn forgets_waits_for_items<O: Order<Probe>>(tour: &Tour<O>, worker: &mut Worker<O>) {
    tour.drain();
    let bell = Bell::new(&tour.plan);
    let mut pop = worker.pop_async();
    assert!(bell.poll(&mut pop).is_pending());
    mem::forget(pop);
    let mut items = Vec::new();
    let mut pop = worker.pop_batch_async(1, 2, &mut items);
    assert!(bell.poll(&mut pop).is_pending());
    mem::forget(pop);
    assert!(items.is_empty());
    let mut workers = [worker];
    let mut pop = Box::pin(pop_any_async(&mut workers));
    assert!(bell.poll(&mut pop).is_pending());
    leak(tour, pop);
}

/// Leaks a future in memory of its own, which keeps the waker of a bell.
fn leak<O: Order<Probe>>(tour: &Tour<O>, future: impl Future) {
    mem::forget(future);
    tour.plan.count_alive(-1);
}

fn forgets_waits_of_transactions<O: Order<Probe>>(tour: &Tour<O>, worker: &mut Worker<O>) {
    tour.drain();
    let bell = Bell::new(&tour.plan);
    let tx = worker.begin();
    let mut hold = Box::pin(hold_any_async([&tx]));
    assert!(bell.poll(&mut hold).is_pending());
    leak(tour, hold);
    drop(tx);
    let tx = worker.begin();
    let mut pop = tx.pop_async();
    assert!(bell.poll(&mut pop).is_pending());
    mem::forget(pop);
    tour.ledger.push(|item| tour.queue.push(item));
    mem::forget(tx);
}

/// Takes all steps on a queue of each order, and leaks nothing but the futures' own memory.
struct Undone;

impl Visitor for Undone {
    fn visit<O: Order<Probe> + 'static>(
        self,
        order: &str,
        build: fn() -> Builder<Probe, O>,
        traits: Traits,
        _: &[Step<O>],
    ) {
        let plan = Plan::new(Call::Body, u64::MAX, Fault::Panic);
        play(build, traits, &plan, &undone(), order);
    }
}

#[test]
fn the_next_use_of_a_handle_undoes_what_was_forgotten() {
    orders::plain(Undone);
    orders::weighed(Undone);
    orders::of_key(Undone);
    orders::serial(Undone);
    orders::of_priority(Undone);
    orders::leased_plain(Undone);
    orders::leased_of_key(Undone);
    orders::leased_of_priority(Undone);
}

/// Items that are leaked with their owner; a queue of ten has room for the others.
type Leak = fn(&Queue<Tracked>, &Ledger);

const POPPED: &str = "items that were popped";

/// Leaks of what owns its handle: nobody can use the handle again. Each leaks two items, which stay held or staged.
const LEAKS: [(&str, Leak); 6] = [
    ("an owned transaction that holds", |queue, _| {
        let tx = queue.begin_owned();
        assert_eq!(tx.pop_batch(2).len(), 2);
        mem::forget(tx);
    }),
    ("an owned transaction that has staged", |queue, ledger| {
        let tx = queue.begin_owned();
        tx.push_batch((5..7).map(|id| ledger.item(id))).unwrap();
        mem::forget(tx);
    }),
    ("what an owned transaction has committed", |queue, _| {
        let tx = queue.begin_owned();
        assert_eq!(tx.pop_batch(2).len(), 2);
        mem::forget(tx.commit());
    }),
    ("a handle with a forgotten transaction", |queue, _| {
        let mut handle = queue.handle();
        let tx = handle.begin();
        assert_eq!(tx.pop_batch(2).len(), 2);
        mem::forget(tx);
        mem::forget(handle);
    }),
    ("what several transactions have committed", |queue, _| {
        let (a, b) = (queue.begin_owned(), queue.begin_owned());
        assert!(a.pop().is_ok() && b.pop().is_ok());
        mem::forget(commit_all((a, b)));
    }),
    (POPPED, |queue, _| {
        mem::forget((queue.pop().ok(), queue.handle().pop().ok()));
    }),
];

/// Others push and pop, wait and are woken. The queue is dropped unless a handle was leaked, and no item twice.
#[test]
fn a_leaked_handle_harms_no_other() {
    for (name, leak) in LEAKS {
        ends(move || {
            let ledger = Ledger::new(10);
            let queue = Queue::bounded(10);
            queue.push_batch((0..5).map(|id| ledger.item(id))).unwrap();
            leak(&queue, &ledger);
            queue.stats().check().unwrap();
            let popped = drain(&queue).len();
            let waiter = {
                let queue = queue.clone();
                std::thread::spawn(move || queue.pop_blocking().map(|item| item.id))
            };
            queue.push(ledger.item(7)).unwrap();
            assert_eq!(waiter.join().unwrap(), Ok(7), "{name}");
            queue.push_batch((8..10).map(|id| ledger.item(id))).unwrap();
            assert!(queue.push_timeout(ledger.item(0), Duration::ZERO).is_ok());
            let idle = queue.wait_idle_timeout(Duration::ZERO);
            assert!(!idle, "{name}");
            drop(queue);
            let dropped: usize = ledger.drops().iter().sum();
            // A handle keeps its queue alive, and so the three items that are left in it.
            let left = if name == POPPED { 3 } else { 0 };
            assert_eq!(dropped, popped + 1 + left, "{name}");
        });
    }
}

/// Pools, outcomes, jobs and senders.
#[test]
fn pools_and_outcomes_can_be_forgotten() {
    ends(|| {
        let queue = Queue::<Job>::unbounded();
        mem::forget(Workers::builder(&queue).threads(1).run_jobs());
        mem::forget(queue.submit(|| 1).unwrap());
        assert_eq!(queue.submit(|| 2).unwrap().wait().unwrap(), 2);
        let (job, outcome) = Job::new(|| 3);
        mem::forget(job);
        assert!(outcome.wait_timeout(Duration::ZERO).is_err());
        queue.close();
        queue.wait_idle();
        let (sender, receiver) = requeue::channel::unbounded();
        sender.push(1).unwrap();
        mem::forget(sender);
        assert_eq!(receiver.pop(), Ok(1));
        mem::forget(receiver.iter());
        assert!(!receiver.queue().is_closed());
    });
}

/// A push that waits for room, a batch that gathers it, and a sink: their items are leaked, their room is not.
#[test]
fn forgotten_pushes_leak_their_items_and_no_room() {
    let queue = Queue::bounded(3);
    queue.push_batch([1, 2]).unwrap();
    let mut handle = queue.handle();
    Task::waiting(handle.push_batch_async([3, 4])).forget();
    assert_eq!(handle.push(3), Ok(()));
    Task::waiting(queue.push_async(4)).forget();
    assert_eq!(drain(&queue).iter().sum::<i32>(), 6);
    assert_at_rest(&queue, 0, 0);
    queue.push_batch([5, 6, 7]).unwrap();
    assert!(queue.is_full());
}
