//! The strict Empty, against pushes and aborts; the rest of a closed queue, against a push.
//!
//! In most models the queue is never empty, but no item stays in it all the time. The endpoints are
//! warmed up first: then the threads do not pin, so no fence of the reclaimer makes up for a missing
//! ordering.

use super::*;
use crate::raw::Remainder;
use crate::sync::{fence, AtomicBool, Ordering};

/// An endpoint that has pushed and popped once, and has a slot left in its segment.
fn warm_pusher(shards: &Arc<Shards<u32>>) -> Endpoint<u32> {
    let mut endpoint = Endpoint::new(Arc::clone(shards));
    endpoint.push(100);
    assert_eq!(endpoint.pop(), Some(100));
    endpoint
}

/// An endpoint whose consumer is on its own shard, in which `item` is ready.
fn warm_popper(shards: &Arc<Shards<u32>>, item: u32) -> Endpoint<u32> {
    let mut endpoint = Endpoint::new(Arc::clone(shards));
    endpoint.push(200);
    endpoint.push(item);
    assert_eq!(endpoint.pop(), Some(200));
    endpoint
}

/// An endpoint with a third shard.
fn idle_third(shards: &Arc<Shards<u32>>) -> Endpoint<u32> {
    let mut endpoint = Endpoint::new(Arc::clone(shards));
    endpoint.push(300);
    assert!(endpoint.retract().is_some());
    endpoint
}

#[test]
fn never_while_a_push_precedes_the_pop() {
    model(|| {
        let shards = Arc::new(Shards::new(false));
        let mut pusher = warm_pusher(&shards);
        let mut popper = warm_popper(&shards, 1);
        let mover = thread::spawn(move || {
            pusher.push(2);
            assert_eq!(popper.pop(), Some(1));
            (pusher, popper)
        });
        assert!(
            !shards.is_empty(),
            "one of two items was ready all the time"
        );
        drop(mover.join().unwrap());
    });
}

#[test]
fn never_while_an_abort_precedes_the_pop() {
    model(|| {
        let shards = Arc::new(Shards::new(false));
        let mut holder = warm_popper(&shards, 1);
        assert!(holder.hold());
        let mut popper = warm_popper(&shards, 2);
        let mover = thread::spawn(move || {
            holder.abort(UNBORROWED);
            assert_eq!(popper.pop(), Some(2));
            (holder, popper)
        });
        assert!(
            !shards.is_empty(),
            "one of two items was ready all the time"
        );
        drop(mover.join().unwrap());
    });
}

#[test]
fn never_while_items_move_behind_the_look() {
    model(|| {
        let shards = Arc::new(Shards::new(false));
        let mut pusher = warm_pusher(&shards);
        let mut popper = warm_popper(&shards, 1);
        let third = idle_third(&shards);
        let mover = thread::spawn(move || {
            pusher.push(2);
            (popper.pop(), pusher, popper)
        });
        let mine = shards.pop_one();
        let (theirs, ..) = mover.join().unwrap();
        assert!(mine.is_some(), "one of two items was ready all the time");
        assert_ne!(mine, theirs);
        drop(third);
    });
}

/// The push sees an item before its own, which a third thread pops, and therefore is not taken back.
#[test]
fn nothing_is_left_only_where_a_late_push_is_taken_back() {
    model(|| {
        let shards = Arc::new(Shards::new(false));
        let mut pusher = warm_pusher(&shards);
        let mut popper = Endpoint::new(Arc::clone(&shards));
        pusher.push(1);
        let pusher = thread::spawn(move || {
            pusher.push(2);
            (pusher.retract().is_none(), pusher)
        });
        let closer = thread::spawn({
            let shards = Arc::clone(&shards);
            move || shards.left_when_closed(|| true, || true)
        });
        assert_eq!(popper.pop(), Some(1));
        let left = closer.join().unwrap();
        let (stays, pusher) = pusher.join().unwrap();
        assert!(!stays || left != Remainder::Nothing);
        drop((popper, pusher));
    });
}

#[test]
fn nothing_is_left_of_a_push_without_a_handle_that_is_refused() {
    model(|| {
        let shards = Arc::new(Shards::new(false));
        let closed = Arc::new(AtomicBool::new(false));
        let pusher = thread::spawn({
            let (shards, closed) = (Arc::clone(&shards), Arc::clone(&closed));
            // ORDERING: SeqCst; pairs with the fence below, as `waitqueue.fence` does with `waitqueue.seal`.
            let admit = move || {
                fence(Ordering::SeqCst);
                !closed.load(Ordering::Relaxed)
            };
            move || shards.push(1, 0, admit).is_ok()
        });
        closed.store(true, Ordering::Relaxed);
        // ORDERING: SeqCst; as above.
        fence(Ordering::SeqCst);
        let left = shards.left_when_closed(|| true, || true);
        let pushed = pusher.join().unwrap();
        assert!(left != Remainder::Nothing || !pushed);
    });
}
