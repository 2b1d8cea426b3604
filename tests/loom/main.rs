//! Loom models of whole queues: where waiting, capacity and closing meet the lanes.
//!
//! Built under `--cfg loom` only. The handles are warmed up first, so that what the threads do stays small.
//!
//! | model | file | ordering | weakened to |
//! |---|---|---|---|
//! | a_sleeper_against_a_commit | wait/line.rs | `!self.is_quiet() && self.tell(count).is_closed()` | `self.word().is_closed()` |
//! | a_sleeper_against_an_abort | core/port/mod.rs | `self.side.ready().ended(held);` | `` |
//! | a_sleeper_against_a_handle | core/port/mod.rs | `fn drop(&mut self) { self.settle(); }` | `fn drop(&mut self) {}` |
//! | a_sleeper_against_a_close | wait/line.rs | `self.wake_all(); true` | `true` |
//! | a_closed_queue_waits | raw/desk.rs | `self.holds() || self.stages()` | `self.stages()` |
//! | a_push_against_a_close | core/port/push.rs | `self.seat.retract() else` | `None::<Entry<T>> else` |
//! | a_push_without_a_handle | raw/strict.rs | `self.common().void_reserved();` | `` |
//! | a_commit_against_a_close | raw/state.rs | `self.desk().begin_staging();` | `` |
//! | a_pusher_sleeps | core/side/permits.rs | `room.freed(spread);` | `` |
//! | an_abort_frees | core/port/mod.rs | `self.side.end_transaction(dead, 0);` | `self.side.end_transaction(held, 0);` |
//! | failing::a_sleeper_against_a_retry | core/shared/due.rs | `self.ready.published(count);` | `let _ = count;` |
//! | failing::a_peek_against_a_sleeper | transaction/peek.rs | `self.side.shared().ended(1);` | `` |
//! | failing::a_peek_against_a_close | raw/peek.rs | `hold.give_back(lanes.common()); self.desk().uncount_taken(1);` | `self.desk().uncount_taken(1); hold.give_back(lanes.common());` |
//! | due::a_sleeper_against_a_delay | core/shared/due.rs | `self.agenda.call_reserve(); self.ready.published(1);` | `` |
//! | due::a_late_keeper | wait/agenda.rs | `self.line.wake_all();` | `` |
//! | due::a_plan_against_the_reserve | wait/agenda.rs | `self.reserve.swap(NEVER, Ordering::Acquire)` | `self.reserve.swap(NEVER, Ordering::Relaxed)` |
//! | due::a_plan_against_the_reserve | wait/agenda.rs | `self.reserve.fetch_min(at, Ordering::Release)` | `self.reserve.fetch_min(at, Ordering::Relaxed)` |
//! | due::a_plan_against_the_first_task | wait/agenda.rs | `UNUSED, NEVER, Ordering::Acquire,` | `UNUSED, NEVER, Ordering::Relaxed,` |
//! | due::who_ | core/side/waits.rs | `self.hand_time_over();` | `` |
//! | due::a_retry_against_a_release | wait/agenda.rs | `at < self.next.fetch_min(at, Ordering::Release)` | `at < self.next.load(Ordering::Relaxed) && at < self.next.fetch_min(at, Ordering::Release)` |
//! | due::a_release_against_a_close | core/shared/due.rs | `let mut released = self.lanes.put_at_head(due); delayed.count_released(released);` | `delayed.count_released(due.len()); let mut released = self.lanes.put_at_head(due);` |
//! | closing::a_follow_up_of_a_failed_item | raw/desk.rs | `self.holds() || self.stages()` | `self.stages() || self.holds()` |
//! | closing::a_follow_up_of_a_failed_item | raw/state.rs | `self.desk().begin_staging();` | `` |
//! | lent::a_commit_against | policy/lease.rs | `self.closed = true;` | `` |
//! | lent::a_sleeper_against | core/side/leases.rs | `shared.ready().published(usize::from(is_news));` | `let _ = is_news;` |
//! | pace::a_start_against_another_pace | rate/gate.rs | `let is_current = paced.pace.is_same(&start.pace);` | `let is_current = true;` |
//! | pace::a_start_against_another_pace | rate/gate.rs | `paced.starts != starts` | `false` |
//! | pace::a_sleeper_against_another_interval | rate/mod.rs | `Kind::Shared(_) => panic!("a shared pace has intervals of its own"), } self.wake_waiters();` | `Kind::Shared(_) => panic!("a shared pace has intervals of its own"), }` |
//! | lent::a_handle_that_leaves | core/port/mod.rs | `side: Side<T>, seat: Seat<T>,` | `seat: Seat<T>, side: Side<T>,` |

#![cfg(loom)]

mod closing;
mod due;
mod failing;
mod lent;
mod pace;

use loom::thread;
use requeue::{Handle, PopError, Queue};
use std::mem;

/// Explores all executions with at most `LOOM_MAX_PREEMPTIONS` preemptions, or two.
fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 50_000;
    builder.preemption_bound = builder.preemption_bound.or(Some(2));
    builder.check(run);
}

/// As [`model`], for models that are too large for more than one preemption.
fn large_model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 50_000;
    builder.preemption_bound = Some(1);
    builder.check(run);
}

/// A handle that has pushed and popped once, and has room for one item without a new segment.
fn warm(queue: &Queue<u32>) -> Handle<u32> {
    let mut handle = queue.handle();
    handle.push(100).unwrap();
    assert_eq!(handle.pop(), Ok(100));
    handle
}

#[test]
fn a_sleeper_against_a_commit() {
    model(|| {
        let queue = Queue::unbounded();
        let (mut pusher, mut popper) = (warm(&queue), warm(&queue));
        let other = thread::spawn(move || {
            let tx = pusher.begin();
            tx.push(1).unwrap();
            drop(tx.commit());
            pusher
        });
        assert_eq!(popper.pop_blocking(), Ok(1));
        drop(other.join().unwrap());
    });
}

#[test]
fn a_sleeper_against_an_abort() {
    model(|| {
        let queue = Queue::unbounded();
        let (mut holder, mut popper) = (warm(&queue), warm(&queue));
        popper.push(1).unwrap();
        let tx = holder.begin();
        assert!(tx.pop().is_ok());
        mem::forget(tx);
        let other = thread::spawn(move || {
            drop(holder.begin());
            holder
        });
        assert_eq!(popper.pop_blocking(), Ok(1));
        drop(other.join().unwrap());
    });
}

/// The handle has no shard: `raw::models::retire` knows those that retire one.
#[test]
fn a_sleeper_against_a_handle_that_is_dropped() {
    model(|| {
        let queue = Queue::unbounded();
        let (mut holder, mut popper) = (queue.handle(), warm(&queue));
        popper.push(1).unwrap();
        let tx = holder.begin();
        assert!(tx.pop().is_ok());
        mem::forget(tx);
        let other = thread::spawn(move || drop(holder));
        assert_eq!(popper.pop_blocking(), Ok(1));
        other.join().unwrap();
    });
}

#[test]
fn a_sleeper_against_a_close() {
    model(|| {
        let queue = Queue::unbounded();
        let mut popper = warm(&queue);
        let other = thread::spawn({
            let queue = queue.clone();
            move || assert!(queue.close())
        });
        assert_eq!(popper.pop_blocking(), Err(PopError::Closed));
        other.join().unwrap();
    });
}

#[test]
fn a_closed_queue_waits_for_the_transaction_that_holds() {
    model(|| {
        let queue = Queue::unbounded();
        let (mut holder, mut popper) = (warm(&queue), warm(&queue));
        popper.push(1).unwrap();
        let tx = holder.begin();
        assert!(tx.pop().is_ok());
        mem::forget(tx);
        queue.close();
        let other = thread::spawn(move || {
            drop(holder.begin());
            holder
        });
        assert_eq!(popper.pop_blocking(), Ok(1));
        drop(other.join().unwrap());
    });
}

#[test]
fn a_push_against_a_close() {
    model(|| {
        let queue = Queue::unbounded();
        let (mut pusher, mut popper) = (warm(&queue), warm(&queue));
        let other = thread::spawn(move || (pusher.push(1).is_ok(), pusher));
        queue.close();
        let received = popper.pop_blocking().is_ok();
        let (pushed, pusher) = other.join().unwrap();
        assert_eq!(pushed, received || popper.pop().is_ok());
        assert_eq!(popper.pop(), Err(PopError::Closed));
        assert!(received || !pushed, "a pop said Closed before");
        drop(pusher);
    });
}

#[test]
fn a_push_without_a_handle_against_a_close() {
    model(|| {
        let queue = Queue::unbounded();
        let mut popper = warm(&queue);
        let other = thread::spawn({
            let queue = queue.clone();
            move || queue.push(1).is_ok()
        });
        queue.close();
        let received = popper.pop_blocking().is_ok();
        let pushed = other.join().unwrap();
        assert_eq!(pushed, received);
    });
}

#[test]
fn a_commit_against_a_close() {
    model(|| {
        let queue = Queue::unbounded();
        let (mut pusher, mut popper) = (warm(&queue), warm(&queue));
        let other = thread::spawn(move || {
            let tx = pusher.begin();
            let staged = tx.push(1).is_ok();
            drop(tx.commit());
            (staged, pusher)
        });
        queue.close();
        let received = popper.pop_blocking().is_ok();
        let (staged, pusher) = other.join().unwrap();
        assert_eq!(staged, received);
        drop(pusher);
    });
}

#[test]
fn a_pusher_sleeps_until_there_is_room() {
    model(|| {
        let queue = Queue::bounded(1);
        let (mut pusher, mut popper) = (warm(&queue), warm(&queue));
        pusher.push(1).unwrap();
        let other = thread::spawn(move || {
            assert_eq!(popper.pop(), Ok(1));
            popper
        });
        assert_eq!(pusher.push_blocking(2), Ok(()));
        let mut popper = other.join().unwrap();
        assert_eq!(popper.pop(), Ok(2));
    });
}

#[test]
fn a_count_is_within_the_capacity() {
    model(|| {
        let queue = Queue::bounded(1);
        let (mut first, mut second) = (warm(&queue), warm(&queue));
        first.push(1).unwrap();
        let other = thread::spawn(move || {
            assert_eq!(first.pop(), Ok(1));
            second.push(2).unwrap();
            (first, second)
        });
        let (len, ready) = (queue.len(), queue.stats().ready);
        assert!(len <= 1 && ready <= 1, "{len} and {ready} of 1");
        drop(other.join().unwrap());
    });
}

#[test]
fn an_abort_frees_no_room() {
    model(|| {
        let queue = Queue::bounded(1);
        let (mut pusher, mut holder) = (warm(&queue), warm(&queue));
        pusher.push(1).unwrap();
        let tx = holder.begin();
        assert!(tx.pop().is_ok());
        mem::forget(tx);
        let other = thread::spawn(move || {
            drop(holder.begin());
            holder
        });
        assert!(pusher.push(2).unwrap_err().is_full());
        drop(other.join().unwrap());
        assert_eq!(pusher.pop(), Ok(1));
        assert_eq!(pusher.push(2), Ok(()));
    });
}
