//! Items whose time to live is over, while a process runs and while none does.

use crate::{copy_of, directory, options};
use futures::FutureExt;
use requeue::{ByKey, ByPriority, Fifo, Leased, ManualClock};
use requeue_durable::{
    AfterTtl, Builder, Cause, DurableQueue, Order, Reason, Stats, Store, StoreError,
};
use serde::{Deserialize, Serialize};
use std::env;
use std::fs;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

/// The time to live.
const TTL: Duration = Duration::from_secs(10);
const SECOND: Duration = Duration::from_secs(1);

/// Adds an order to a builder, and builds.
type Build<O> = fn(Builder<u32>) -> DurableQueue<u32, O>;

/// A process after the other.
struct Processes<O: Order<u32>> {
    build: Build<O>,
    directory: TempDir,
    wall: Arc<Mutex<SystemTime>>,
    clock: ManualClock,
}

impl<O: Order<u32>> Processes<O> {
    fn new(build: Build<O>) -> Self {
        Self {
            build,
            directory: directory(),
            wall: Arc::new(Mutex::new(UNIX_EPOCH + 100_000 * TTL)),
            clock: ManualClock::new(),
        }
    }

    fn store(&self) -> Store {
        let wall = Arc::clone(&self.wall);
        let options = options().wall_clock(move || *wall.lock().unwrap());
        options.open(self.directory.path()).unwrap()
    }

    /// The queue in the next process, with further settings.
    fn queue_with(&self, set: impl FnOnce(Builder<u32>) -> Builder<u32>) -> DurableQueue<u32, O> {
        (self.build)(set(self.store().builder("codes").clock(self.clock.clone())))
    }

    fn queue(&self) -> DurableQueue<u32, O> {
        self.queue_with(|builder| builder.ttl(TTL))
    }

    /// In which nothing ends: all that is on the disk.
    fn queue_without_ttl(&self) -> DurableQueue<u32, O> {
        self.queue_with(|builder| builder)
    }

    fn advance(&self, time: Duration) {
        self.pass(time);
        self.clock.advance(time);
    }

    /// While no process runs.
    fn pass(&self, time: Duration) {
        *self.wall.lock().unwrap() += time;
    }

    /// Whether the store has this version of the format; one of pages, if all queues have them.
    fn has_version(&self, version: u32) -> bool {
        let found = fs::read_to_string(self.directory.path().join("version")).unwrap();
        let of_pages: &[u32] = env::var_os("DURABLE_MEMORY").map_or(&[], |_| &[6]);
        let mut versions = of_pages.iter().chain([&version]);
        versions.any(|version| found == format!("requeue-durable, version {version}\n"))
    }
}

macro_rules! in_all_orders {
    ($check:ident) => {
        $check::<Fifo>(|it| it.build().unwrap());
        $check::<ByKey<u32, u32>>(|it| it.fair_by(|item| item % 3).build().unwrap());
        $check::<ByPriority>(|it| it.by_priority().build().unwrap());
        $check::<Leased<Fifo>>(|it| it.leased(TTL * 5).build().unwrap());
        $check::<Leased<ByKey<u32, u32>>>(|it| {
            let it = it.fair_by(|item| item % 3).leased(TTL * 5);
            it.build().unwrap()
        });
        $check::<Leased<ByPriority>>(|it| it.by_priority().leased(TTL * 5).build().unwrap());
    };
}

/// The statistics, which add up.
fn stats<O: Order<u32>>(queue: &DurableQueue<u32, O>) -> Stats {
    let stats = queue.stats();
    stats.check().unwrap();
    stats
}

fn timed_out<O: Order<u32>>(queue: &DurableQueue<u32, O>) -> u64 {
    stats(queue).timed_out
}

#[test]
fn what_is_over_is_neither_delivered_nor_kept() {
    fn check<O: Order<u32>>(build: Build<O>) {
        let processes = Processes::new(build);
        let codes = processes.queue();
        codes.push_batch([1, 2, 3]).unwrap();
        processes.advance(TTL / 2);
        codes.push(4).unwrap();
        processes.advance(TTL / 2);
        assert_eq!(codes.pop().unwrap(), 4);
        assert!(codes.pop().unwrap_err().is_empty());
        assert_eq!((timed_out(&codes), codes.stats().dead), (3, 0));
        assert!(codes.dead_letters().is_empty());
        drop(codes);
        assert!(processes.queue_without_ttl().is_empty());
    }
    in_all_orders!(check);
}

#[test]
fn the_time_goes_on_while_no_process_runs() {
    fn check<O: Order<u32>>(build: Build<O>) {
        let processes = Processes::new(build);
        let codes = processes.queue();
        codes.push(1).unwrap();
        processes.advance(3 * SECOND);
        codes.push(2).unwrap();
        drop(codes);
        processes.pass(6 * SECOND);
        let codes = processes.queue();
        assert_eq!((codes.len(), timed_out(&codes)), (2, 0));
        codes.push(3).unwrap();
        drop(codes);
        processes.pass(SECOND);
        let codes = processes.queue();
        assert_eq!((codes.len(), timed_out(&codes)), (2, 1));
        processes.advance(2 * SECOND);
        assert_eq!(codes.len(), 2);
        processes.advance(SECOND);
        assert_eq!(codes.pop().unwrap(), 3);
        assert_eq!((codes.len(), timed_out(&codes)), (0, 2));
        drop(codes);
        assert!(processes.queue_without_ttl().is_empty());
    }
    in_all_orders!(check);
}

#[test]
fn what_is_over_at_the_opening_leaves_the_disk() {
    fn check<O: Order<u32>>(build: Build<O>) {
        let processes = Processes::new(build);
        let codes = processes.queue();
        codes.push_batch(0..200).unwrap();
        drop(codes);
        processes.pass(TTL);
        let codes = processes.queue();
        assert_eq!(timed_out(&codes), 200);
        drop(codes);
        let codes = processes.queue_without_ttl();
        assert_eq!((codes.len(), codes.stats().pushed), (0, 0));
    }
    in_all_orders!(check);
}

/// A time to live that no instant reaches back for is one nevertheless.
#[test]
fn a_time_to_live_may_be_as_long_as_any() {
    let processes = Processes::<Fifo>::new(|it| it.build().unwrap());
    for ttl in [
        Duration::MAX,
        1_000_000_000 * TTL,
        Duration::from_nanos(u64::MAX),
    ] {
        let codes = processes.queue_with(|builder| builder.ttl(ttl));
        codes.push(1).unwrap();
        processes.advance(TTL);
        drop(codes);
        processes.pass(TTL);
        let codes = processes.queue_with(|builder| builder.ttl(ttl));
        let tx = codes.begin_owned();
        tx.retry_after(tx.pop().unwrap(), SECOND).unwrap();
        drop(tx);
        assert!(codes.is_empty());
        processes.advance(SECOND);
        assert_eq!(codes.pop().unwrap(), 1);
    }
}

#[test]
fn letters_are_made_while_a_process_runs_and_at_the_opening() {
    fn check<O: Order<u32>>(build: Build<O>) {
        let processes = Processes::new(build);
        let queue =
            || processes.queue_with(|builder| builder.ttl(TTL).on_expired(AfterTtl::DeadLetter));
        let codes = queue();
        codes.push(1).unwrap();
        processes.advance(TTL);
        codes.push(2).unwrap();
        assert_eq!(
            (codes.len(), timed_out(&codes), codes.stats().dead),
            (1, 0, 1)
        );
        drop(codes);
        processes.pass(TTL);
        let codes = queue();
        assert_eq!(codes.len(), 0);
        drop(codes);
        let codes = queue();
        let letters = codes.dead_letters().all().unwrap();
        let letters: Vec<_> = letters.iter().map(|it| (it.item, it.attempts)).collect();
        assert_eq!(letters, [(1, 0), (2, 0)]);
        let oldest = codes.dead_letters().oldest().unwrap().unwrap();
        assert_eq!(oldest.reason, Cause::Failed(Reason::TimedOut));
        // Their time begins again.
        assert_eq!(codes.dead_letters().requeue_all().unwrap(), 2);
        processes.advance(TTL / 2);
        drop(codes);
        let codes = queue();
        assert_eq!(codes.len(), 2);
        processes.advance(TTL / 2);
        assert_eq!((codes.len(), codes.dead_letters().len()), (0, 2));
        drop(codes);
        assert_eq!(
            processes.store().inspector().requeue_all("codes").unwrap(),
            2
        );
        assert_eq!(queue().len(), 2);
    }
    in_all_orders!(check);
}

#[test]
fn the_oldest_letters_are_handed_over() {
    let processes = Processes::<Fifo>::new(|it| it.build().unwrap());
    let (send, oldest) = channel();
    let codes = processes.queue_with(|builder| {
        let overflow = move |letter: requeue_durable::DeadLetter<u32>| {
            send.send(letter.item).unwrap();
        };
        let builder = builder.ttl(TTL).on_expired(AfterTtl::DeadLetter);
        builder.max_dead_letters(1, overflow)
    });
    codes.push_batch([1, 2]).unwrap();
    processes.advance(TTL);
    assert_eq!((codes.len(), codes.dead_letters().len()), (0, 1));
    assert_eq!(oldest.recv(), Ok(1));
}

#[test]
fn what_is_on_the_disk_only_ends_too() {
    for after in [AfterTtl::Drop, AfterTtl::DeadLetter] {
        let processes = Processes::<Fifo>::new(|it| it.memory(0).build().unwrap());
        let codes = processes.queue_with(|builder| builder.ttl(TTL).on_expired(after));
        codes.push_batch([1, 2]).unwrap();
        processes.advance(TTL);
        assert!(codes.pop().unwrap_err().is_empty());
        let letters = codes.dead_letters().all().unwrap();
        let items: Vec<_> = letters.iter().map(|letter| letter.item).collect();
        assert_eq!(items.is_empty(), after == AfterTtl::Drop);
        assert!(items.is_empty() || items == [1, 2]);
        stats(&codes);
        drop((letters, codes));
        assert!(processes.queue_without_ttl().is_empty());
    }
}

#[test]
fn what_is_held_can_be_committed_and_ends_when_it_comes_back() {
    fn check<O: Order<u32>>(build: Build<O>) {
        let processes = Processes::new(build);
        let codes = processes.queue_with(|builder| builder.ttl(TTL).max_attempts(9));
        codes.push_batch([1, 2]).unwrap();
        let (one, other) = (codes.begin_owned(), codes.begin_owned());
        let held = [one.pop().map(|it| *it), other.pop().map(|it| *it)];
        processes.advance(TTL);
        assert_eq!((codes.len(), codes.stats().held), (0, 2));
        assert_eq!(one.commit().unwrap().next(), held[0].as_ref().ok().copied());
        other.abort();
        assert_eq!((codes.len(), timed_out(&codes)), (0, 1));
        drop(codes);
        assert!(processes.queue_without_ttl().is_empty());
    }
    in_all_orders!(check);
}

#[test]
fn an_item_whose_lease_expires_ends_then() {
    fn check<O: Order<u32>>(build: Build<O>) {
        let processes = Processes::new(build);
        let codes = processes.queue();
        codes.push(1).unwrap();
        let tx = codes.begin_owned();
        assert_eq!(tx.pop_batch(1).unwrap().len(), 1);
        processes.advance(TTL);
        assert_eq!((codes.stats().held, timed_out(&codes)), (0, 1));
        tx.push(2).unwrap();
        assert!(matches!(tx.renew(), Err(StoreError::Expired)));
        assert!(matches!(tx.commit(), Err(StoreError::Expired)));
        drop(codes);
        assert!(processes.queue_without_ttl().is_empty());
    }
    check::<Leased<Fifo>>(|it| it.leased(SECOND).build().unwrap());
    check::<Leased<ByPriority>>(|it| it.by_priority().leased(TTL).build().unwrap());
}

#[test]
fn a_delayed_item_ends_when_it_is_due_in_a_later_process_too() {
    fn check<O: Order<u32>>(build: Build<O>) {
        for is_reopened in [false, true] {
            let processes = Processes::new(build);
            let mut codes = processes.queue();
            codes.push(1).unwrap();
            let mut tx = codes.begin_owned();
            assert_eq!(tx.pop_batch(1).unwrap().len(), 1);
            tx.retry_all_after(TTL + SECOND).unwrap();
            drop(tx);
            if is_reopened {
                drop(codes);
                processes.pass(TTL);
                codes = processes.queue();
            } else {
                processes.advance(TTL);
            }
            assert_eq!((codes.stats().delayed, timed_out(&codes)), (1, 0));
            processes.advance(SECOND);
            assert_eq!((codes.stats().delayed, timed_out(&codes)), (0, 1));
            assert!(codes.pop().unwrap_err().is_empty());
        }
    }
    in_all_orders!(check);
}

#[test]
fn a_scheduled_item_lives_from_its_due_time_on() {
    let processes = Processes::<ByPriority>::new(|it| it.by_priority().build().unwrap());
    let codes = processes.queue();
    codes.after(3 * TTL).push(1).unwrap();
    codes.after(TTL).push(2).unwrap();
    let moved = codes.priority(5).push(3).unwrap();
    processes.advance(TTL / 2);
    assert!(codes.reprioritize(moved, 9).unwrap());
    drop(codes);
    processes.pass(TTL);
    let codes = processes.queue();
    assert_eq!((codes.pop().unwrap(), timed_out(&codes)), (2, 1));
    drop(codes);
    processes.pass(3 * TTL / 2);
    let codes = processes.queue();
    processes.advance(9 * SECOND);
    assert_eq!(codes.len(), 1);
    processes.advance(SECOND);
    assert_eq!((codes.len(), timed_out(&codes)), (0, 1));
}

#[test]
fn a_scheduled_item_that_died_lives_again_when_it_is_requeued() {
    let processes = Processes::<ByPriority>::new(|it| it.by_priority().build().unwrap());
    let queue =
        || processes.queue_with(|builder| builder.ttl(TTL).on_expired(AfterTtl::DeadLetter));
    queue().after(TTL).push(1).unwrap();
    for is_open in [true, false] {
        let codes = queue();
        processes.advance(2 * TTL);
        assert_eq!((codes.len(), codes.dead_letters().len()), (0, 1));
        if is_open {
            assert_eq!(codes.dead_letters().requeue_all().unwrap(), 1);
            assert_eq!(codes.len(), 1);
            continue;
        }
        drop(codes);
        assert_eq!(
            processes.store().inspector().requeue_all("codes").unwrap(),
            1
        );
        assert_eq!(queue().pop().unwrap(), 1);
    }
}

/// Those of a store of an earlier version, and those that were pushed while the queue had no time to live.
#[test]
fn an_item_without_a_time_gets_that_of_the_first_opening() {
    fn check<O: Order<u32>>(build: Build<O>) {
        let processes = Processes::new(build);
        drop(processes.store());
        let version = processes.directory.path().join("version");
        fs::write(version, "requeue-durable, version 1\n").unwrap();
        processes.queue_without_ttl().push_batch([1, 2]).unwrap();
        assert!(processes.has_version(1));
        processes.pass(100 * TTL);
        drop(processes.queue());
        assert!(processes.has_version(2));
        processes.pass(9 * SECOND);
        assert_eq!(processes.queue().len(), 2);
        let codes = processes.queue_without_ttl();
        assert!(codes.pop().is_ok());
        codes.push(3).unwrap();
        drop(codes);
        processes.pass(SECOND);
        let codes = processes.queue();
        assert_eq!((codes.pop().unwrap(), timed_out(&codes)), (3, 1));
        drop(codes);
        assert!(processes.has_version(2));
    }
    in_all_orders!(check);
}

#[test]
fn a_wall_clock_that_is_put_back_delays_nothing() {
    fn check<O: Order<u32>>(build: Build<O>) {
        let processes = Processes::new(build);
        processes.queue().push(1).unwrap();
        *processes.wall.lock().unwrap() -= 1_000 * TTL;
        let codes = processes.queue();
        assert_eq!(codes.len(), 1);
        processes.advance(TTL);
        assert_eq!((codes.len(), timed_out(&codes)), (0, 1));
    }
    in_all_orders!(check);
}

#[test]
fn what_has_ended_is_gone_after_a_crash() {
    fn check<O: Order<u32>>(build: Build<O>) {
        let mut processes = Processes::new(build);
        let codes = processes.queue_with(|builder| builder.ttl(TTL).max_attempts(9));
        codes.push_batch(0..20).unwrap();
        let tx = codes.begin_owned();
        let held = *tx.pop().unwrap();
        processes.advance(TTL);
        assert_eq!(codes.len(), 0);
        codes.push(20).unwrap(); // later in the log, and synced
        let copy = copy_of(&processes.directory);
        drop((tx, codes));
        processes.directory = copy;
        let mut left = processes.queue_without_ttl().pop_batch(99).unwrap();
        left.sort_unstable();
        assert_eq!(left, [held, 20]);
    }
    in_all_orders!(check);
}

/// Of a queue whose pages have eight items.
#[test]
fn items_on_the_disk_only_take_the_place_of_those_that_are_over() {
    for after in [AfterTtl::Drop, AfterTtl::DeadLetter] {
        let processes = Processes::<Fifo>::new(|it| it.memory(0).build().unwrap());
        let codes = || processes.queue_with(|builder| builder.ttl(TTL).on_expired(after));
        let queue = codes();
        queue.push_batch(0..30).unwrap();
        processes.advance(TTL / 2);
        queue.push_batch(30..50).unwrap();
        let mut waiting = queue.begin_owned();
        let popped = Box::pin(waiting.pop_async());
        processes.advance(TTL / 2);
        let popped = popped.now_or_never().map(|item| *item.unwrap());
        assert_eq!(popped, Some(30));
        assert_eq!(waiting.items().len(), 1);
        drop(waiting);
        let ended = |queue: &DurableQueue<_>| stats(queue).timed_out + stats(queue).dead;
        assert_eq!((queue.len(), ended(&queue)), (20, 30));
        drop(queue);
        processes.pass((TTL / 2).saturating_sub(SECOND));
        let queue = codes();
        assert_eq!((queue.len(), ended(&queue)), (20, 0));
        thread::scope(|scope| {
            let idle = scope.spawn(|| queue.wait_idle());
            processes.advance(SECOND);
            idle.join().unwrap();
        });
        assert_eq!((queue.is_empty(), ended(&queue)), (true, 20));
        queue.push(50).unwrap();
        assert_eq!(queue.pop().unwrap(), 50);
    }
}

/// An item whose destructor uses its queue.
#[derive(Serialize, Deserialize)]
struct Curious(u32);

static CURIOUS: OnceLock<DurableQueue<Curious>> = OnceLock::new();

impl Drop for Curious {
    fn drop(&mut self) {
        let queue = CURIOUS.get();
        assert!(queue.is_none_or(|queue| queue.len() < 99));
    }
}

#[test]
fn a_destructor_of_an_item_that_is_over_uses_the_queue() {
    let (files, clock) = (directory(), ManualClock::new());
    let (wall, start) = (clock.clone(), clock.now());
    let options = options().wall_clock(move || UNIX_EPOCH + 9 * TTL + (wall.now() - start));
    let items = options.open(files.path()).unwrap().builder("items");
    let items = items.ttl(TTL).memory(0).clock(clock.clone());
    let items = items.build().unwrap();
    let _ = CURIOUS.set(items.clone());
    items.push_batch((0..20).map(Curious)).unwrap();
    clock.advance(TTL);
    assert_eq!((items.stats().timed_out, items.len()), (20, 0));
}
