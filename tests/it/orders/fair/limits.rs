//! Keys with limits: a push whose key is at its limit is refused at once.

use super::{filled, names, pull_all, Names};
use crate::common::ends;
use crate::common::failing::{put_off, SECOND};
use crate::common::futures::{block_on, Task};
use crate::common::panics;
use requeue::{ManualClock, PushError};
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

type Pushed = Result<(), PushError<&'static str>>;

/// Converts the error of a batch of one item.
fn single(pushed: Result<usize, PushError<Vec<&'static str>>>) -> Pushed {
    match pushed {
        Ok(count) => {
            assert_eq!(count, 1);
            Ok(())
        }
        Err(PushError::Full(items)) => Err(PushError::Full(items[0])),
        Err(PushError::Closed(items)) => Err(PushError::Closed(items[0])),
        Err(refused) => panic!("neither full nor closed: {refused:?}"),
    }
}

type Push = fn(&Names, &'static str) -> Pushed;

/// The pushes of a queue, of a handle, and of a transaction, which is then committed.
const PUSHES: [(&str, Push); 24] = [
    ("queue", |queue, item| queue.push(item)),
    ("queue, timeout", |queue, item| {
        queue.push_timeout(item, Duration::MAX)
    }),
    ("queue, blocking", |queue, item| queue.push_blocking(item)),
    ("queue, async", |queue, item| {
        block_on(queue.push_async(item))
    }),
    ("queue, batch", |queue, item| {
        single(queue.push_batch([item]))
    }),
    ("queue, batch, timeout", |queue, item| {
        single(queue.push_batch_timeout([item], Duration::MAX))
    }),
    ("queue, batch, blocking", |queue, item| {
        single(queue.push_batch_blocking([item]))
    }),
    ("queue, batch, async", |queue, item| {
        single(block_on(queue.push_batch_async([item])))
    }),
    ("handle", |queue, item| queue.handle().push(item)),
    ("handle, timeout", |queue, item| {
        queue.handle().push_timeout(item, Duration::MAX)
    }),
    ("handle, blocking", |queue, item| {
        queue.handle().push_blocking(item)
    }),
    ("handle, async", |queue, item| {
        block_on(queue.handle().push_async(item))
    }),
    ("handle, batch", |queue, item| {
        single(queue.handle().push_batch([item]))
    }),
    ("handle, batch, timeout", |queue, item| {
        single(queue.handle().push_batch_timeout([item], Duration::MAX))
    }),
    ("handle, batch, blocking", |queue, item| {
        single(queue.handle().push_batch_blocking([item]))
    }),
    ("handle, batch, async", |queue, item| {
        single(block_on(queue.handle().push_batch_async([item])))
    }),
    ("transaction", |queue, item| {
        queue.handle().transact(|tx| tx.push(item))
    }),
    ("transaction, timeout", |queue, item| {
        let mut handle = queue.handle();
        handle.transact(|tx| tx.push_timeout(item, Duration::MAX))
    }),
    ("transaction, blocking", |queue, item| {
        queue.handle().transact(|tx| tx.push_blocking(item))
    }),
    ("transaction, async", |queue, item| {
        let mut handle = queue.handle();
        handle.transact(|tx| block_on(tx.push_async(item)))
    }),
    ("transaction, batch", |queue, item| {
        let mut handle = queue.handle();
        handle.transact(|tx| single(tx.push_batch([item])))
    }),
    ("transaction, batch, timeout", |queue, item| {
        let mut handle = queue.handle();
        handle.transact(|tx| single(tx.push_batch_timeout([item], Duration::MAX)))
    }),
    ("transaction, batch, blocking", |queue, item| {
        let mut handle = queue.handle();
        handle.transact(|tx| single(tx.push_batch_blocking([item])))
    }),
    ("transaction, batch, async", |queue, item| {
        let mut handle = queue.handle();
        handle.transact(|tx| single(block_on(tx.push_batch_async([item]))))
    }),
];

/// Every form of a push returns `Full` for `item` at once.
fn assert_all_refuse(queue: Names, item: &'static str) -> Names {
    ends(move || {
        for (form, push) in PUSHES {
            assert_eq!(push(&queue, item), Err(PushError::Full(item)), "{form}");
            assert!(queue.key_at_limit(&item).is_some());
        }
        queue
    })
}

#[test]
fn a_key_has_no_more_items_than_its_limit() {
    let queue = filled(names().key_capacity(2), "a1 a2 b1");
    let refused = queue.push("a3").unwrap_err();
    assert_eq!(refused, PushError::Full("a3"));
    assert_eq!(queue.key_at_limit(&"a3"), Some('a'));
    assert_eq!(queue.key_at_limit(&"b2"), None);
    let mut worker = queue.handle();
    assert_eq!(worker.push("a3"), Err(PushError::Full("a3")));
    assert_eq!(
        worker.push_batch(["b2", "a3"]),
        Err(PushError::Full(vec!["b2", "a3"]))
    );
    let tx = worker.begin();
    tx.pop().unwrap();
    assert_eq!(tx.push("a3"), Err(PushError::Full("a3")));
    tx.push("b2").unwrap();
    tx.commit();
    queue.push("a3").unwrap();
    pull_all(&queue, "b1 a2 b2 a3");
    assert_eq!(queue.capacity(), None);
}

#[test]
fn delayed_items_count_against_the_limit() {
    let clock = ManualClock::new();
    let queue = filled(names().key_capacity(1).clock(clock.clone()), "a1");
    put_off(&queue, SECOND);
    queue.push("a2").unwrap_err();
    clock.advance(SECOND);
    pull_all(&queue, "a1");
    queue.push("a2").unwrap();
}

#[test]
fn a_limit_of_none_cannot_be_set() {
    assert!(panics(|| names().key_capacity(0)));
    let queue = filled(names().key_capacity(usize::MAX), "a1");
    assert_eq!(queue.key_at_limit(&"a1"), None);
}

#[test]
fn every_form_of_a_push_is_refused_at_once_while_its_key_is_at_the_limit() {
    for builder in [names(), names().capacity(2), names().capacity(8)] {
        let queue = assert_all_refuse(filled(builder.key_capacity(1), "a1 b1"), "a2");
        pull_all(&queue, "a1 b1");
        for (form, push) in PUSHES {
            assert_eq!(push(&queue, "a2"), Ok(()), "{form}");
            pull_all(&queue, "a2");
        }
    }
}

/// Also while others wait for room, and newcomers queue up behind them.
#[test]
fn a_refused_push_does_not_wait_behind_others() {
    let queue = filled(names().key_capacity(1).capacity(2), "a1 b1");
    let mut handle = queue.handle();
    let mut waiting = Task::waiting(handle.push_async("c1"));
    let queue = assert_all_refuse(queue, "b2");
    for item in ["d1", "e1"] {
        queue.pop().unwrap();
        assert!(waiting.was_woken());
        queue.push(item).unwrap();
        waiting.assert_waits();
    }
    queue.pop().unwrap(); // it is woken again, and served
    let queue = assert_all_refuse(queue, "e2");
    assert_eq!(waiting.output(), Ok(()));
    drop(waiting);
    pull_all(&queue, "e1 c1");
}

#[test]
fn a_batch_that_does_not_fit_its_keys_is_refused_at_once() {
    let queue = ends(|| {
        let queue = filled(names().key_capacity(2), "a1");
        let items = ["b1", "a2", "a3"];
        let full = Err(PushError::Full(items.to_vec()));
        let mut handle = queue.handle();
        assert_eq!(handle.push_batch_blocking(items), full);
        let tx = handle.begin();
        assert_eq!(tx.push_batch_blocking(items), full);
        assert_eq!(Task::new(tx.push_batch_async(items)).output(), full);
        assert_eq!(tx.push_batch_blocking(["b1", "a2"]), Ok(2));
        assert_eq!(queue.push_blocking("a3"), Err(PushError::Full("a3")));
        tx.abort();
        queue
    });
    assert_eq!(queue.handle().push_batch(["b1", "a2", "b2"]), Ok(3));
    pull_all(&queue, "a1 b1 a2 b2");
}

#[test]
fn held_items_make_no_room_for_their_key() {
    let queue = filled(names().key_capacity(1).capacity(1), "a1");
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.pop().unwrap();
    assert_eq!(tx.push_blocking("a2"), Err(PushError::Full("a2")));
    assert_eq!(tx.push_blocking("b1"), Ok(()));
    tx.commit();
    pull_all(&queue, "b1");
}

/// A pending push.
type Waiting<'q> = Task<Pin<Box<dyn Future<Output = Pushed> + 'q>>>;

/// The pending pushes as futures: of a queue and of a handle, of a transaction, and of batches.
fn waiting<'q>(queue: &'q Names, item: &'static str) -> [Waiting<'q>; 6] {
    let (mut one, mut other) = (queue.handle(), queue.handle());
    let (mut third, mut fourth) = (queue.handle(), queue.handle());
    let futures: [Pin<Box<dyn Future<Output = Pushed> + 'q>>; 6] = [
        Box::pin(queue.push_async(item)),
        Box::pin(async move { one.push_async(item).await }),
        Box::pin(async move { other.begin().push_async(item).await }),
        Box::pin(async move { single(queue.push_batch_async([item]).await) }),
        Box::pin(async move { single(third.push_batch_async([item]).await) }),
        Box::pin(async move { single(fourth.begin().push_batch_async([item]).await) }),
    ];
    futures.map(Task::new)
}

/// A key reaches its limit while a push waits for room: the push is refused when it is woken, and wakes the next
/// waiter.
#[test]
fn a_refused_waiter_passes_its_wake_up_on() {
    for nth in 0..6 {
        let queue = filled(names().key_capacity(1).capacity(2), "x1 y1");
        let mut handle = queue.handle();
        let tx = handle.begin();
        assert_eq!(*tx.pop().unwrap(), "x1");
        let [mut first, ..] = {
            let mut forms = waiting(&queue, "a1");
            forms.swap(0, nth);
            forms
        };
        first.assert_waits();
        let mut other = queue.handle();
        let mut second = Task::waiting(other.push_async("b1"));
        tx.push("a0").unwrap(); // with the permit of the held item
        assert!(!first.was_woken());
        assert_eq!(queue.pop(), Ok("y1"));
        assert!(first.was_woken() && !second.was_woken(), "{nth}");
        assert_eq!(first.output(), Err(PushError::Full("a1")), "{nth}");
        assert!(second.was_woken(), "{nth}");
        assert_eq!(second.output(), Ok(()));
        drop(second);
        tx.commit();
        assert!(queue.is_full());
        pull_all(&queue, "a0 b1");
    }
}

#[test]
fn a_refused_batch_returns_its_gathered_permits() {
    let queue = filled(names().key_capacity(1).capacity(3), "x1 y1 z1");
    let mut handle = queue.handle();
    let tx = handle.begin();
    assert_eq!(*tx.pop().unwrap(), "x1");
    let (mut one, mut other) = (queue.handle(), queue.handle());
    let mut batch = Task::waiting(one.push_batch_async(["a1", "c1"]));
    let mut single = Task::waiting(other.push_async("b1"));
    assert_eq!(queue.pop(), Ok("y1"));
    batch.assert_waits(); // it has one permit now
    assert_eq!(queue.push("c0"), Err(PushError::Full("c0")));
    tx.push("a0").unwrap();
    assert_eq!(queue.pop(), Ok("z1"));
    assert_eq!(batch.output(), Err(PushError::Full(vec!["a1", "c1"])));
    assert!(single.was_woken());
    assert_eq!((single.output(), queue.push("c2")), (Ok(()), Ok(())));
    drop((batch, single));
    tx.commit();
    assert!(queue.is_full());
    let mut left: Vec<_> = queue.drain().collect();
    left.sort_unstable();
    assert_eq!(left, ["a0", "b1", "c2"]);
}
