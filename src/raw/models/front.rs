//! The front of a shard: aborts against claims.

use super::*;
use crate::raw::memory::entry::DeliveryMeta;
use crate::raw::shard::front::Front;
use crate::raw::shard::run::Home;
use crate::raw::shard::sink::Sink;
use crate::sync::{AtomicBool, Ordering};

#[test]
fn an_abort_comes_before_what_follows() {
    model(|| {
        let (shard, pusher) = filled([1, 2, 3]);
        let mut holder = Popper::new(&shard);
        let mut hold = Hold::new();
        holder.hold(&mut hold, 2);
        let consumer = thread::spawn({
            let mut popper = Popper::new(&shard);
            move || popper.drain()
        });
        hold.give_back();
        let mine = holder.drain();
        let theirs = consumer.join().unwrap();
        assert!(mine.iter().filter(|item| **item < 3).is_sorted());
        assert!(theirs.iter().filter(|item| **item < 3).is_sorted());
        assert_eq!(sorted(mine.into_iter().chain(theirs)), [1, 2, 3]);
        drop(pusher);
    });
}

#[test]
fn nothing_pushed_after_an_abort_overtakes_it() {
    model(|| {
        let (shard, mut pusher) = filled([1]);
        let mut hold = Hold::new();
        let mut popper = Popper::new(&shard);
        popper.hold(&mut hold, 1);
        let consumer = thread::spawn(move || popper.pop());
        hold.give_back();
        pusher.push(2);
        assert_ne!(consumer.join().unwrap(), Some(2));
    });
}

#[test]
fn claimants_share_a_run() {
    model(|| {
        let (shard, pusher) = filled([1, 2]);
        let mut hold = Hold::new();
        Popper::new(&shard).hold(&mut hold, 2);
        hold.give_back();
        let consumer = thread::spawn({
            let mut popper = Popper::new(&shard);
            move || popper.drain()
        });
        let mine = Popper::new(&shard).drain();
        let theirs = consumer.join().unwrap();
        assert_eq!(sorted(mine.into_iter().chain(theirs)), [1, 2]);
        assert!(shard.front().is_clear());
        drop(pusher);
    });
}

#[test]
fn two_aborts_keep_their_items_apart() {
    model(|| {
        let (shard, pusher) = filled([1, 2]);
        let mut hold = Hold::new();
        let mut popper = Popper::new(&shard);
        popper.hold(&mut hold, 1);
        hold.give_back();
        let holder = thread::spawn({
            let popper = Popper::new(&shard);
            move || {
                let mut hold = Hold::new();
                assert!(popper.shard.front().take(&mut hold, 1) <= 1);
                hold.give_back();
            }
        });
        let mut items = popper.drain();
        holder.join().unwrap();
        items.extend(popper.drain());
        assert_eq!(sorted(items), [1, 2]);
        drop(pusher);
    });
}

#[test]
fn a_run_that_comes_and_goes_leaves_a_trace() {
    model(|| {
        let (shard, pusher) = filled([1]);
        let mut hold = Hold::new();
        Popper::new(&shard).hold(&mut hold, 1);
        let linked = Arc::new(AtomicBool::new(false));
        let mover = thread::spawn({
            let (shard, linked) = (Arc::clone(&shard), Arc::clone(&linked));
            move || {
                hold.give_back();
                // ORDERING: Release; pairs with the Acquire below: a thread that reads it finds the run linked.
                linked.store(true, Ordering::Release);
                let mut item = None;
                shard.front().take(&mut item, 1)
            }
        });
        let front = shard.front();
        let before = front.emptied();
        // ORDERING: Relaxed; a load that may be stale is no later than the load of `emptied`.
        let not_yet = !linked.load(Ordering::Relaxed);
        // ORDERING: Acquire; pairs with the Release above.
        let came = not_yet && linked.load(Ordering::Acquire);
        let went = came && front.is_exhausted();
        assert!(!went || front.emptied() != before);
        assert_eq!(mover.join().unwrap(), 1);
        drop(pusher);
    });
}

/// A handle that reuses a block without another visit or pin, which would synchronize.
struct Reuser {
    popper: Popper,
    _pusher: Pusher,
}

impl Reuser {
    fn new() -> Self {
        let (shard, pusher) = filled([7, 8]);
        let mut popper = Popper::new(&shard);
        assert_eq!(popper.pop(), Some(7)); // and enters the segment
        Self {
            popper,
            _pusher: pusher,
        }
    }

    /// Takes an item that an abort returned, aborts, and holds another one.
    fn reuse(mut self, front: &Front<u32>) {
        let mut hold = Hold::new();
        assert_eq!(front.take(&mut hold, 1), 1);
        hold.give_back();
        self.popper.hold(&mut hold, 1);
        hold.give_back();
    }
}

/// The last visitor of a run takes over its block, and fills it again.
#[test]
fn a_block_is_reused_after_its_last_visitor() {
    model(|| {
        let (shard, pusher) = filled([1, 2]);
        let mut hold = Hold::new();
        Popper::new(&shard).hold(&mut hold, 2);
        hold.give_back();
        // This thread is the visitor that leaves first: its end would synchronize too.
        let reuser = Reuser::new();
        let other = thread::spawn({
            let shard = Arc::clone(&shard);
            move || reuser.reuse(shard.front())
        });
        let mut item = None;
        assert_eq!(shard.front().take(&mut item, 1), 1);
        other.join().unwrap();
        drop(pusher);
    });
}

/// A claim from an earlier head, which always fails, sees the runs of an abort whose increment it sees.
#[test]
fn a_returned_item_that_is_seen_is_found() {
    model(|| {
        let (shard, pusher) = filled([1]);
        let first = shard.front().head();
        let mut hold = Hold::new();
        Popper::new(&shard).hold(&mut hold, 1);
        let before = shard.front().head();
        let consumer = thread::spawn({
            let shard = Arc::clone(&shard);
            move || {
                let found = |head| head == before || !shard.front().is_clear();
                assert!(shard.front().claim(first, 1).is_err_and(found));
            }
        });
        hold.give_back();
        consumer.join().unwrap();
        drop(pusher);
    });
}

/// A sink that records that a run was found.
struct Noted(Arc<AtomicBool>);

impl Sink<u32> for Noted {
    fn reserve(&mut self, _wanted: usize, _home: Home) -> usize {
        // ORDERING: Relaxed; published by the increment of `emptied`, which follows.
        self.0.store(true, Ordering::Relaxed);
        1
    }

    unsafe fn accept(&mut self, _item: u32, _delivery: DeliveryMeta) {}
}

#[test]
fn a_run_is_seen_linked_before_it_is_used_up() {
    model(|| {
        let (shard, pusher) = filled([1]);
        let mut hold = Hold::new();
        Popper::new(&shard).hold(&mut hold, 1);
        hold.give_back();
        let emptied = shard.front().emptied();
        let found = Arc::new(AtomicBool::new(false));
        let taker = thread::spawn({
            let (shard, found) = (Arc::clone(&shard), Noted(Arc::clone(&found)));
            move || shard.front().take(&mut { found }, 1)
        });
        if shard.front().emptied() != emptied {
            assert!(found.load(Ordering::Relaxed));
        }
        assert_eq!(taker.join().unwrap(), 1);
        drop(pusher);
    });
}
