//! Builders of queues with unique keys.

use crate::order::Order;
use crate::policy::unique::{key_of, KeyOf, OnReserve, OnSupersede};
use crate::{Builder, OnDuplicate};
use std::hash::Hash;
use std::time::Duration;

impl<T, O: Order<T>> Builder<T, O> {
    /// Keeps the items unique by `key`: while an item is in the queue or held, a push of another one with an equal key is
    /// refused, with [`PushError::Duplicate`](crate::PushError::Duplicate). By default any number of items may be equal.
    ///
    /// An item has its key from its push until it is gone for good: while it is ready, scheduled, held, out for delivery,
    /// or delayed for another delivery. A dead letter has none; pushed [again](crate::DeadLetters::requeue) it may be refused
    /// as a duplicate, and stays a letter then. Once a commit has returned, the keys of its items are free, unless they
    /// stay taken [for a time](Builder::unique_for).
    ///
    /// A transaction takes the keys of the items that it stages, so its commit never fails because of them; an abort frees
    /// them. Pushes that wait, such as [`push_timeout`](crate::Queue::push_timeout) and [`push_async`](crate::Queue::push_async), wait
    /// while the other item is only staged, and are refused at once otherwise. A transaction that has staged items itself
    /// does not wait: two could wait for each other. Of a batch, all items are pushed or none.
    ///
    /// `key` is called once by each push, before that waits, without a lock. If it panics, nothing is pushed. The item keeps its key
    /// even if a worker modifies it.
    ///
    /// ```
    /// use requeue::{DuplicateOf, PushError, Queue};
    ///
    /// let queue = Queue::builder().unique_by(|&(user, _mail)| user).build();
    /// queue.push((7, "hello"))?;
    /// let refused = queue.push((7, "hello again")).unwrap_err();
    /// assert_eq!(refused, PushError::Duplicate((7, "hello again"), DuplicateOf::Queued));
    /// assert_eq!(queue.pop()?, (7, "hello"));
    /// queue.push(refused.into_inner())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors of pushes
    ///
    /// A queue that is closed refuses an item as closed; otherwise a duplicate is refused as such, also if there is no room. A
    /// push may be refused as a duplicate of one that is refused itself because the queue is being closed.
    ///
    /// # Costs
    ///
    /// Each item has a record with its key, in tables under locks that are shared by few items: each push, take, return and
    /// end takes such a lock, and pushes and takes leave their fast paths. The record and the entry of its key cost some 200 bytes. `Eq` of
    /// the keys is called under such a lock.
    ///
    /// Keeps [timestamps](Builder::timestamps).
    ///
    #[doc(alias("dedup", "deduplication", "job_key", "idempotency"))]
    pub fn unique_by<K>(self, key: impl Fn(&T) -> K + Send + Sync + 'static) -> Self
    where
        K: Hash + Eq + Send + Sync + 'static,
    {
        self.unique_by_key_of(key_of(key))
    }

    /// As [`unique_by`](Builder::unique_by), for crates that keep queues elsewhere too, and the keys beside the items.
    #[doc(hidden)]
    pub fn unique_by_key_of(mut self, key_of: KeyOf<T>) -> Self {
        self.callbacks_mut().key_of = Some(key_of);
        self.settings.records.get_or_insert(|| None);
        self
    }

    #[doc(hidden)]
    pub fn on_supersede(mut self, call: OnSupersede<T>) -> Self {
        self.callbacks_mut().on_supersede = Some(call);
        self
    }

    #[doc(hidden)]
    pub fn on_reserve(mut self, call: OnReserve<T>) -> Self {
        self.callbacks_mut().on_reserve = Some(call);
        self
    }

    /// Keeps the [unique key](Builder::unique_by) of an item taken for this time after its commit. By default it is free
    /// at once.
    ///
    /// The time begins with a commit, also that of a pop, by the [clock](Builder::clock) of the queue. An item that is removed,
    /// cancelled, timed out, or a dead letter frees its key at once.
    ///
    /// ```
    /// use requeue::{DuplicateOf, ManualClock, Queue};
    /// use std::time::Duration;
    ///
    /// let clock = ManualClock::new();
    /// let queue = Queue::builder()
    ///     .unique_by(|mail: &&str| *mail)
    ///     .unique_for(Duration::from_secs(60))
    ///     .clock(clock.clone())
    ///     .build();
    /// queue.push("welcome")?;
    /// assert_eq!(queue.pop()?, "welcome");
    /// let refused = queue.push("welcome").unwrap_err();
    /// assert!(refused.to_string().contains("a short time ago"));
    /// clock.advance(Duration::from_secs(60));
    /// queue.push("welcome")?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("period", "throttle", "window"))]
    pub fn unique_for(mut self, window: Duration) -> Self {
        self.settings.unique_for = window;
        self
    }

    /// Sets what becomes of a push whose item has the [unique key](Builder::unique_by) of another one. The default is to refuse
    /// it.
    ///
    /// To replace and to follow is for one item that is pushed at once, with any form of waiting. A batch, a push of a
    /// transaction, and one with a time ([`after`](crate::Queue::after), [`at`](crate::Queue::at)) are refused.
    ///
    /// A value that is replaced stays in its place, with its priority, its time and its deliveries; the time of a scheduled item
    /// does not change. The new value gets there when the item is taken, and the old one is dropped then: until then calls that
    /// visit items, such as [`retain`](crate::Queue::retain) and [`peek_each`](crate::Queue::peek_each), see the old one.
    /// A push that replaces another one needs no room. One that follows does; it counts as delayed, also for a queue that is
    /// closed meanwhile or waited for to be idle, and when it is pushed it comes behind the others. Nothing that removes
    /// items removes it before.
    ///
    /// In a queue whose items have [weights](Builder::weigh) duplicates can only be refused.
    ///
    /// ```
    /// use requeue::{OnDuplicate, Queue};
    ///
    /// let queue = Queue::builder()
    ///     .unique_by(|&(page, _version)| page)
    ///     .on_duplicate(OnDuplicate::Follow)
    ///     .build();
    /// queue.push(("index", 1))?;
    /// queue.push(("index", 2))?; // replaces it
    /// let job = queue.take()?;
    /// assert_eq!(*job, ("index", 2));
    /// queue.push(("index", 3))?; // follows it
    /// queue.push(("index", 4))?; // instead of version 3
    /// assert!(queue.pop().is_err());
    /// job.ack();
    /// assert_eq!(queue.pop()?, ("index", 4));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("replace", "debounce", "conflict", "upsert"))]
    pub fn on_duplicate(mut self, rule: OnDuplicate) -> Self {
        self.settings.on_duplicate = rule;
        self
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use crate::{DuplicateOf, PushError, Queue, StorePlace};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    /// Tests a queue of which some items are elsewhere: a push of `9` finds that one has its key, one of `8` lets that come into the
    /// queue.
    fn test(rule: crate::OnDuplicate, test: impl FnOnce(Queue<u32>)) {
        let own = Arc::new(Mutex::new(None::<Queue<u32>>));
        let shared = Arc::clone(&own);
        let queue = Queue::builder().capacity(4).unique_by(|item| item % 5);
        let queue = queue.on_duplicate(rule).on_reserve(Arc::new(move |item| {
            match item {
                9 => return Err(PushError::Duplicate((), DuplicateOf::Queued)),
                8 => {
                    let queue = shared.lock().unwrap().clone().unwrap();
                    let mut restore = queue.restore();
                    assert!(restore.add(3, StorePlace::default(), 0, Duration::ZERO));
                }
                _ => {}
            }
            Ok(())
        }));
        let queue = queue.build();
        *own.lock().unwrap() = Some(queue.clone());
        test(queue.clone());
        queue.stats().check().unwrap();
        *own.lock().unwrap() = None;
    }

    #[test]
    fn an_item_that_is_elsewhere_has_its_key() {
        test(crate::OnDuplicate::Refuse, |queue| {
            for _ in 0..2 {
                let refused = queue.push(9).unwrap_err();
                assert_eq!(refused, PushError::Duplicate(9, DuplicateOf::Queued));
                assert_eq!(queue.push_batch([1, 9]).unwrap_err().into_inner(), [1, 9]);
            }
            queue.push_batch([1, 4, 2, 10]).unwrap();
            assert_eq!(queue.drain().count(), 4);
            let mut tx = queue.begin_owned();
            tx.push(9).unwrap_err();
            tx.push(4).unwrap();
            tx.rollback();
            queue.push_batch([0, 1, 2, 3]).unwrap();
            assert!(matches!(queue.push(9), Err(PushError::Duplicate(..))));
            assert!(matches!(queue.push(14), Err(PushError::Full(_))));
        });
    }

    #[test]
    fn an_item_that_comes_into_the_queue_takes_its_key_over() {
        test(crate::OnDuplicate::Refuse, |queue| {
            let refused = queue.push(8).unwrap_err();
            assert_eq!(refused, PushError::Duplicate(8, DuplicateOf::Queued));
            let tx = queue.begin_owned();
            assert_eq!(tx.pop().map(|item| *item), Ok(3));
            let refused = queue.push(13).unwrap_err();
            assert_eq!(refused, PushError::Duplicate(13, DuplicateOf::Held));
            tx.commit();
            queue.push(13).unwrap();
        });
    }

    #[test]
    fn an_item_that_comes_into_the_queue_can_be_replaced() {
        test(crate::OnDuplicate::Replace, |queue| {
            queue.push(8).unwrap();
            assert_eq!((queue.len(), queue.pop()), (1, Ok(8)));
        });
    }

    #[test]
    fn the_first_of_a_batch_is_the_oldest() {
        let queue = Queue::builder().unique_by(|item: &u32| *item).build();
        queue.push_batch(0..1_000).unwrap();
        assert_eq!(queue.retain(|item, _| item % 2 == 0), 500);
        queue
            .push_batch((0..1_000).filter(|item| item % 2 == 1))
            .unwrap();
        assert!(queue
            .drain()
            .eq((0..1_000).step_by(2).chain((1..1_000).step_by(2))));
        queue.stats().check().unwrap();
    }
}
