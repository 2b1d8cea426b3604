use super::pool::{AtDrop, Pool};
use requeue::ManualClock;
use std::sync::mpsc::{channel, Receiver, Sender, TryRecvError};
use std::thread;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn pool(at_drop: AtDrop) -> (Pool, ManualClock, Sender<u32>, Receiver<u32>) {
    let clock = ManualClock::new();
    let (sender, receiver) = channel();
    (
        Pool::new(4, at_drop, clock.clone()),
        clock,
        sender,
        receiver,
    )
}

/// A job that sends a number.
fn sends(sender: &Sender<u32>, number: u32) -> impl FnMut() + Send + 'static {
    let sender = sender.clone();
    move || sender.send(number).unwrap()
}

#[test]
fn jobs_run_at_their_times() {
    let (pool, clock, sender, receiver) = pool(AtDrop::Complete);
    pool.execute_after(2 * SECOND, sends(&sender, 2));
    pool.execute_after(SECOND, sends(&sender, 1));
    pool.execute(sends(&sender, 0));
    assert_eq!(receiver.recv(), Ok(0));
    for number in 1..3 {
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        clock.advance(SECOND);
        assert_eq!(receiver.recv(), Ok(number));
    }
}

#[test]
fn a_panic_ends_its_job_alone() {
    let (pool, _, sender, receiver) = pool(AtDrop::Complete);
    for number in 0..8 {
        pool.execute(|| panic!("a job"));
        pool.execute(sends(&sender, number));
    }
    drop((pool, sender));
    assert_eq!(receiver.iter().count(), 8);
}

#[test]
fn a_cancelled_job_is_dropped_at_once() {
    let (pool, clock, sender, receiver) = pool(AtDrop::Complete);
    let job = pool.execute_after(SECOND, sends(&sender, 1));
    drop(sender);
    pool.cancel(&job);
    assert_eq!(receiver.recv(), Err(std::sync::mpsc::RecvError)); // it had the last sender
    clock.advance(SECOND);
    pool.cancel(&job);
}

#[test]
fn a_repeated_job_runs_until_it_is_cancelled() {
    let (pool, clock, sender, receiver) = pool(AtDrop::Complete);
    let job = pool.execute_every(2 * SECOND, SECOND, sends(&sender, 1));
    clock.advance(SECOND);
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    for _ in 0..3 {
        clock.advance(SECOND);
        assert_eq!(receiver.recv(), Ok(1));
    }
    pool.cancel(&job);
    drop(sender);
    assert!(receiver.recv().is_err());
}

#[test]
fn a_drop_completes_what_is_scheduled() {
    let (pool, clock, sender, receiver) = pool(AtDrop::Complete);
    pool.execute_after(SECOND, sends(&sender, 1));
    pool.execute_every(SECOND, SECOND, sends(&sender, 2));
    drop(sender);
    let dropped = thread::spawn(move || drop(pool));
    while !dropped.is_finished() {
        clock.advance(SECOND);
        thread::yield_now();
    }
    dropped.join().unwrap();
    let (once, repeated): (Vec<_>, Vec<_>) = receiver.iter().partition(|number| *number == 1);
    assert_eq!(once, [1]);
    assert!(!repeated.is_empty());
}

#[test]
fn a_drop_discards_what_is_scheduled() {
    let (pool, _, sender, receiver) = pool(AtDrop::Discard);
    pool.execute_after(SECOND, sends(&sender, 1));
    pool.execute_every(SECOND, SECOND, sends(&sender, 2));
    drop((pool, sender));
    assert!(receiver.recv().is_err());
}
