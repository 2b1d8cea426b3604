//! The traits of the public types: thread safety, `Debug` without bounds, errors.

use std::cell::Cell;
use std::error::Error;
use std::fmt::{Debug, Display};
use std::hash::Hash;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::rc::Rc;

use crate::common::filled;
use requeue::channel::{Receiver, Sender};
use requeue::future::{OwnedPop, OwnedPush, OwnedPushBatch};
use requeue::iter::{Drain, Items, Iter};
use requeue::{
    commit_all, Backoff, Builder, ByPriority, DeadLetters, DeliveryId, Handle, Held, Item,
    ManualClock, OwnedTaken, OwnedTransaction, Peek, PopError, PushError, Queue, Stats, Taken,
    Transaction,
};

/// Compiles only if the type has all the traits.
macro_rules! has {
    ($type:ty: $($bound:tt)+) => {
        const _: () = {
            const fn has<T: $($bound)+>() {}
            has::<$type>();
        };
    };
}

/// Compiles only if the type lacks the trait: with it, both implementations of `Lacks` would fit.
macro_rules! lacks {
    ($type:ty: $bound:ident) => {
        const _: () = {
            struct Has;
            trait Lacks<Which> {
                const PROOF: () = ();
            }
            impl<T> Lacks<()> for T {}
            impl<T: $bound> Lacks<Has> for T {}
            <$type as Lacks<_>>::PROOF
        };
    };
}

has!(Queue<Cell<u8>>: Send + Sync + Clone + Default + 'static);
has!(Handle<Cell<u8>>: Send + Sync + Clone + 'static);
has!(Sender<Cell<u8>>: Send + Sync + Clone + 'static);
has!(Receiver<Cell<u8>>: Send + Sync + Clone + 'static);
has!(Sender<Cell<u8>, ByPriority>: Send + Sync + Clone + 'static);
has!(Receiver<Cell<u8>, ByPriority>: Send + Sync + Clone + 'static);
has!(OwnedPop<Cell<u8>>: Send + Unpin + 'static);
has!(OwnedPush<Cell<u8>>: Send + Unpin + 'static);
has!(OwnedPushBatch<Cell<u8>>: Send + Unpin + 'static);
has!(Iter<Cell<u8>>: Send + 'static);
has!(Drain<Cell<u8>>: Send + 'static);
has!(Item<'static, Cell<u8>>: Debug);
has!(Item<'static, u8>: Debug + Display);
has!(Transaction<'static, Cell<u8>>: Send);
has!(Item<'static, Cell<u8>>: Send);
has!(OwnedTransaction<Cell<u8>>: Send + Unpin + 'static);
has!(OwnedTaken<Cell<u8>>: Send + Unpin + 'static);
has!(Items<'static, Cell<u8>>: Send);
has!(Taken<'static, Cell<u8>>: Send);
has!(Peek<'static, u8>: Send);
has!(Builder<Cell<u8>>: Send);
has!(DeadLetters<Cell<u8>>: Send + Sync + 'static);
has!(ManualClock: Send + Sync + Clone + Default + 'static);
has!(Backoff: Send + Sync + Copy + 'static);
has!(Held: Send + Sync + Clone + 'static);
has!(DeliveryId: Send + Sync + Copy + Ord + Hash + Debug + Display + 'static);
has!(Stats: Send + Sync + Clone);

has!(Queue<Cell<u8>>: UnwindSafe + RefUnwindSafe);
has!(Handle<Cell<u8>>: UnwindSafe);
has!(DeadLetters<Cell<u8>>: UnwindSafe + RefUnwindSafe);
has!(ManualClock: UnwindSafe + RefUnwindSafe);

lacks!(Transaction<'static, u8>: Sync);
lacks!(OwnedTransaction<u8>: Sync);
lacks!(Items<'static, Cell<u8>>: Sync);
lacks!(Item<'static, Cell<u8>>: Sync);
lacks!(Item<'static, Plain>: Debug);
lacks!(Item<'static, Cell<u8>>: Display);

lacks!(Queue<Rc<u8>>: Send);
lacks!(Queue<Rc<u8>>: Sync);
lacks!(Handle<Rc<u8>>: Send);
lacks!(Handle<Rc<u8>>: Sync);
lacks!(Sender<Rc<u8>>: Send);
lacks!(Sender<Rc<u8>>: Sync);
lacks!(OwnedPop<Rc<u8>>: Send);
lacks!(OwnedPush<Rc<u8>>: Send);
lacks!(OwnedPushBatch<Rc<u8>>: Send);
lacks!(Transaction<'static, Rc<u8>>: Send);
lacks!(Item<'static, Rc<u8>>: Send);
lacks!(Taken<'static, Rc<u8>>: Send);
lacks!(OwnedTransaction<Rc<u8>>: Send);
lacks!(OwnedTaken<Rc<u8>>: Send);
lacks!(Items<'static, Rc<u8>>: Send);
lacks!(Peek<'static, Rc<u8>>: Send);
lacks!(DeadLetters<Rc<u8>>: Send);

has!(PopError: Error + Clone + Copy + PartialEq + Eq + Send + Sync + 'static);
has!(PushError<u8>: Error + Clone + Copy + PartialEq + Eq + Send + Sync + 'static);
has!(PushError<Plain>: Error);
lacks!(PushError<String>: Copy);

/// A type without any trait.
struct Plain;

/// Whether the `Debug` output begins with the name of the type, or with `name` for a variant.
fn shows(value: &impl Debug, name: &str) -> bool {
    format!("{value:?}").starts_with(name)
}

#[test]
fn everything_is_debug_whatever_the_items_are() {
    let queue = filled([Plain, Plain]);
    let mut handle = queue.handle();
    assert!(shows(&queue, "Queue"));
    assert!(shows(&queue.stats(), "Stats"));
    assert!(shows(&handle, "Handle"));
    let tx = handle.begin();
    tx.pop().unwrap_or_else(|_| unreachable!());
    assert!(shows(&tx.pop_batch(1), "Items"));
    assert!(shows(&tx, "Transaction"));
    assert!(shows(&tx.commit(), "Taken"));
    let tx = queue.begin_owned();
    assert!(shows(&tx, "OwnedTransaction"));
    assert!(shows(&tx.commit(), "OwnedTaken"));
    assert!(shows(&PushError::Full(Plain), "Full"));
    assert!(shows(&PushError::Closed(Plain), "Closed"));
    assert!(shows(&PopError::Empty, "Empty"));
    assert!(shows(&PopError::Closed, "Closed"));
}

#[test]
fn push_error_gives_the_item_back() {
    let full = PushError::Full(String::from("item"));
    let closed = PushError::Closed(String::from("item"));
    assert!(full.is_full() && !full.is_closed());
    assert!(closed.is_closed() && !closed.is_full());
    assert_eq!(full, full.clone());
    assert_ne!(full, closed);
    assert_ne!(PushError::Full(1), PushError::Full(2));
    assert_eq!(full.into_inner(), "item");
    assert_eq!(closed.into_inner(), "item");
}

#[test]
fn pop_error_is_empty_or_closed() {
    assert!(PopError::Empty.is_empty() && !PopError::Empty.is_closed());
    assert!(PopError::Closed.is_closed() && !PopError::Closed.is_empty());
    assert_ne!(PopError::Empty, PopError::Closed);
}

#[test]
fn errors_say_what_happened() {
    let pushes = [PushError::Full(Plain), PushError::Closed(Plain)].map(|error| error.to_string());
    let pops = [PopError::Empty, PopError::Closed].map(|error| error.to_string());
    assert_eq!(
        pushes,
        [
            "no room: the queue or the item's key is at its limit, or a batch exceeds it",
            "the queue is closed"
        ]
    );
    assert_eq!(
        pops,
        [
            "nothing to pop: the queue is empty, paused or rate limited",
            "the queue is closed and drained"
        ]
    );
}

#[test]
fn items_without_any_trait_pass() {
    let queue = Queue::default();
    let (mut a, mut b) = (queue.handle(), queue.handle());
    a.push(Plain).unwrap();
    a.push_batch([Plain]).unwrap();
    queue.push(Plain).unwrap();
    let (tx_a, tx_b) = (a.begin(), b.begin());
    assert_eq!(tx_a.pop_batch(2).len(), 2);
    tx_b.pop().unwrap();
    tx_b.push(Plain).unwrap();
    let (taken_a, taken_b) = commit_all((tx_a, tx_b));
    assert_eq!((taken_a.count(), taken_b.count()), (2, 1));
    assert_eq!(queue.len(), 1);
}

#[test]
fn items_may_borrow() {
    let text = String::from("one two");
    let queue = filled(text.split(' '));
    let mut handle = queue.handle();
    let tx = handle.begin();
    assert_eq!(
        tx.pop_batch(2).map(|word| *word).collect::<Vec<_>>(),
        ["one", "two"]
    );
    let words: Vec<&str> = tx.commit().collect();
    assert_eq!(words.concat(), "onetwo");
}

/// The modules export the names of the crate root, and some more.
#[test]
fn modules_hold_the_types() {
    fn same<T>(_: fn(T), _: fn(T)) {}
    same::<PopError>(|_: requeue::error::PopError| (), |_: PopError| ());
    same::<Backoff>(|_: requeue::time::Backoff| (), |_: Backoff| ());
    same(
        |_: requeue::fair::FairQueue<u8, u8>| (),
        |_: requeue::FairQueue<u8, u8>| (),
    );
    same(
        |_: requeue::priority::PriorityQueue<u8>| (),
        |_: requeue::PriorityQueue<u8>| (),
    );
    same(|_: requeue::workers::Workers| (), |_: requeue::Workers| ());
}
