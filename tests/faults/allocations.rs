//! Allocations that fail, one in each process: the process ends by that, or goes on as if nothing had failed.
//!
//! A child prints what it has done after each step. If it dies, what it has printed must be the beginning of what a
//! child prints whose allocations succeed.

#![cfg(unix)]

use std::env;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};
use std::time::Duration;

use crate::allocator::with_failing;
use crate::amount::faults;
use crate::common::ends;
use crate::common::failing::SECOND;
use crate::common::futures::Task;
use requeue::{
    try_commit_all, Backoff, Builder, Handle, ManualClock, Order, PopError, PushError, Queue,
};

/// Says to a child in which order its queue is.
const ORDER: &str = "REQUEUE_FAULTS_ORDER";
/// Says to a child which of its allocations fails.
const FAILS: &str = "REQUEUE_FAULTS_FAILS";
/// The signal of `abort`, by which the standard library ends a process without memory.
const SIGABRT: i32 = 6;

/// The marks of a line that a child prints after a step, and of its last one.
const STEP: &str = "step ";
const REACHED: &str = "all done, reached: ";

/// Reports a step to the parent. Standard error has no buffer, so nothing is lost if the process dies.
macro_rules! report {
    ($($what:tt)*) => {
        eprintln!("{STEP}{}", format_args!($($what)*))
    };
}

/// A queue with all that needs memory.
fn build<O: Order<u64>>(builder: Builder<u64, O>, clock: &ManualClock) -> Queue<u64, O> {
    builder
        .capacity(800)
        .max_attempts(2)
        .backoff(Backoff::fixed(SECOND))
        .clock(clock.clone())
        .timestamps()
        .name("allocations")
        .build()
}

/// Pops all that is ready; the number of items, and their sum.
fn drained<O: Order<u64>>(handle: &mut Handle<u64, O>) -> (usize, u64) {
    let mut items = Vec::with_capacity(1000);
    handle.pop_batch(1000, &mut items);
    (items.len(), items.iter().sum())
}

fn pushes<O: Order<u64>>(queue: &Queue<u64, O>, handle: &mut Handle<u64, O>) {
    queue.push(1).unwrap();
    report!("pushed without a handle");
    (2..302).for_each(|item| handle.push(item).unwrap());
    report!("pushed by a handle");
    handle.push_batch(302..600).unwrap();
    report!("pushed a batch");
}

fn transactions<O: Order<u64>>(handle: &mut Handle<u64, O>) {
    let tx = handle.begin();
    let sum: u64 = tx.pop_batch(50).map(|item| *item).sum();
    report!("held {} of the sum {sum}", tx.held());
    (1000..1100).for_each(|item| tx.push(item).unwrap());
    report!("staged {}", tx.staged());
    tx.abort();
    report!("aborted");
    let next = handle.begin().peek().map(|item| *item);
    report!("{next:?} is next, as the others are delayed");
}

fn failures<O: Order<u64>>(
    queue: &Queue<u64, O>,
    handle: &mut Handle<u64, O>,
    clock: &ManualClock,
) {
    clock.advance(SECOND);
    let tx = handle.begin();
    let item = tx.pop().unwrap();
    tx.retry_after(item, SECOND).unwrap_or_default();
    let item = tx.pop().unwrap();
    tx.fail(item, "unfit").unwrap_or_default();
    tx.pop().unwrap();
    report!("held {} and put two off", tx.held());
    let taken = tx.try_commit().map(Iterator::count);
    report!(
        "committed {taken:?}, {} are dead",
        queue.dead_letters().len()
    );
    let held = queue.held().len();
    report!("{held} transactions hold items");
    let letters = queue
        .dead_letters()
        .map(|letter| letter.attempts)
        .sum::<u32>();
    report!("letters with {letters} attempts");
}

fn waits<O: Order<u64>>(queue: &Queue<u64, O>, handle: &mut Handle<u64, O>) {
    let (sum, ready) = (drained(handle), queue.len());
    report!("drained {sum:?}, {ready} are left");
    let mut other = queue.handle();
    let mut task = Task::new(other.pop_async());
    report!("a task is {:?}", task.poll());
    queue.push(7).unwrap();
    report!("woken: {}, {:?}", task.was_woken(), task.poll());
    drop(task);
    let filled = (0..1000)
        .take_while(|&item| handle.push(item).is_ok())
        .count();
    report!("the queue is full after {filled}");
    let mut task = Task::new(other.push_async(9));
    report!("a task is {:?}", task.poll());
    report!("popped: {}", queue.pop().is_ok());
    report!("woken: {}, {:?}", task.was_woken(), task.poll());
    drop(task);
    let refused = other.push_batch([1, 2]).map_err(PushError::into_inner);
    report!("{refused:?}");
    report!("drained {:?}", drained(handle));
}

fn owned_and_joint<O: Order<u64>>(queue: &Queue<u64, O>) {
    queue.push_batch(0..40).unwrap();
    let owned: Vec<_> = (0..4).map(|_| queue.begin_owned()).collect();
    let held: usize = owned.iter().map(|tx| tx.pop_batch(5).len()).sum();
    report!("{held} are held by owned transactions");
    let other = Queue::unbounded();
    let joint = other.begin_owned();
    joint.push(1).unwrap();
    let mut owned = owned.into_iter();
    let taken = try_commit_all((owned.next().unwrap(), joint)).map(|(taken, _)| taken.len());
    report!("{taken:?} are committed, {} are elsewhere", other.len());
    drop(owned);
    report!("{} are left", queue.len());
}

/// All steps of a child.
fn play<O: Order<u64>>(builder: Builder<u64, O>) {
    let clock = ManualClock::new();
    let queue = build(builder, &clock);
    let mut handle = queue.named_handle("worker");
    report!("built");
    pushes(&queue, &mut handle);
    transactions(&mut handle);
    failures(&queue, &mut handle, &clock);
    waits(&queue, &mut handle);
    owned_and_joint(&queue);
    clock.advance(10 * SECOND);
    report!("visited {}", queue.peek_each(|_| ()));
    queue.close();
    report!("closed; drained {:?}", drained(&mut handle));
    clock.advance(10 * SECOND);
    report!("drained {:?}", drained(&mut handle));
    report!("{:?}, {:?}", queue.pop(), queue.stats().check());
    assert_eq!(queue.pop(), Err(PopError::Closed));
}

/// Plays with the queue of this order.
fn play_in(order: &str) {
    let (plain, term) = (Queue::builder(), Duration::from_secs(60));
    match order {
        "fair" => play(plain.fair_by(|item| item % 300)),
        "by priority" => play(plain.by_priority()),
        "leased" => play(plain.leased(term)),
        _ => play(plain),
    }
}

#[test]
#[ignore = "it is the part of the children"]
fn in_a_child() {
    let (Ok(order), Ok(fails)) = (env::var(ORDER), env::var(FAILS)) else {
        return;
    };
    let number = fails.parse().expect("the number of an allocation");
    let ((), reached) = with_failing(number, || play_in(&order));
    eprintln!("{REACHED}{reached}");
}

/// Runs this program as a child whose allocation with this number fails.
fn child(order: &'static str, fails: u64) -> Output {
    ends(move || {
        let mut command = Command::new(env::current_exe().expect("the path of this program"));
        command
            .args([
                "--exact",
                "allocations::in_a_child",
                "--nocapture",
                "--ignored",
            ])
            .env(ORDER, order)
            .env(FAILS, fails.to_string())
            .env("RUST_BACKTRACE", "0");
        command.output().expect("a child process")
    })
}

/// The steps that a child has reported.
fn steps(stderr: &str) -> Vec<&str> {
    stderr
        .lines()
        .filter(|line| line.starts_with(STEP))
        .collect()
}

/// Checks the end of a child, and returns whether the allocation was reached.
fn check(output: &Output, expected: &[&str], what: &str) -> bool {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let steps = steps(&stderr);
    let explained = || format!("{what}: {}\n{stderr}", output.status);
    if output.status.success() {
        assert_eq!(steps, expected, "{}", explained());
        return !stderr.contains("all done, reached: false");
    }
    assert_eq!(output.status.signal(), Some(SIGABRT), "{}", explained());
    assert!(stderr.contains("memory allocation of"), "{}", explained());
    assert!(!stderr.contains("panicked"), "{}", explained());
    assert!(expected.starts_with(&steps), "{}", explained());
    true
}

/// Lets each allocation fail in a child of its own.
fn assert_fails_well(order: &'static str) {
    let whole = child(order, u64::MAX / 2);
    assert!(whole.status.success(), "{order}: {whole:?}");
    let stderr = String::from_utf8_lossy(&whole.stderr);
    let expected = steps(&stderr);
    for number in faults(100) {
        let what = format!("{order}, allocation {number}");
        if !check(&child(order, number), &expected, &what) {
            assert!(number > 100, "{what} is not reached");
            return;
        }
    }
}

#[test]
fn a_failed_allocation_in_a_plain_queue() {
    assert_fails_well("plain");
}

#[test]
fn a_failed_allocation_in_a_fair_queue() {
    assert_fails_well("fair");
}

#[test]
fn a_failed_allocation_in_a_queue_by_priority() {
    assert_fails_well("by priority");
}

#[test]
fn a_failed_allocation_in_a_leased_queue() {
    assert_fails_well("leased");
}
