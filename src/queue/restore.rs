//! Restores the items of an earlier process.

use super::Queue;
use crate::core::shared::restore::Restored;
use crate::core::shared::Shared;
use crate::order::{Order, Source, StorePlace};
use crate::raw::DeliveryMeta;
use crate::OwnedTransaction;
use std::mem;
#[cfg(feature = "broker")]
use std::sync::Arc;
use std::time::Duration;
#[cfg(feature = "broker")]
use std::time::Instant;

/// Adds items that were in the queue in an earlier process: for crates that keep queues elsewhere too.
///
/// When it is dropped, the items are ready. In a FIFO queue they are before all others: those that were delivered before, in
/// the order of the calls, and then the rest. In other queues they are before those of their key or
/// priority that are pushed later. Of several with the same [unique key](crate::Builder::unique_by) the last one has it.
#[doc(hidden)]
pub struct Restore<'q, T, O: Order<T>> {
    shared: &'q Shared<T, O>,
    restored: Restored<T, O>,
    at_tail: bool,
    has_room: bool,
}

impl<T, O: Order<T>> Queue<T, O> {
    /// See [`Restore`].
    #[doc(hidden)]
    pub fn restore(&self) -> Restore<'_, T, O> {
        Restore {
            shared: self.shared(),
            restored: Restored::<T, O>::default(),
            at_tail: false,
            has_room: false,
        }
    }

    /// Takes room for this number of items that are kept elsewhere; returns whether there was enough. It is taken until the items
    /// are restored [with it](Restore::with_room), or it is given back.
    #[doc(hidden)]
    #[must_use = "the room is taken"]
    pub fn take_room(&self, items: usize) -> bool {
        self.shared().takes(items)
    }

    /// The number of ready items, or in a queue by priority, without [ageing](crate::Builder::age_after), of those of this priority
    /// or a more urgent one: then about `most` if there are more.
    #[doc(hidden)]
    pub fn ready_until(&self, priority: u16, most: usize) -> usize {
        let shared = self.shared();
        shared.bring_up_to_date();
        let sorted = shared.source.ready_until(priority, most);
        sorted.unwrap_or_else(|| usize::try_from(shared.ready_items()).unwrap_or(usize::MAX))
    }

    /// In a [fair](crate::Builder::fair_by) queue: adds to these groups of items those of which the last one has left since the last call,
    /// and removes those that have any which is ready or waits for others of its key.
    #[doc(hidden)]
    pub fn retain_empty(&self, group_of: fn(&T) -> u16, groups: &mut Vec<u16>) {
        let shared = self.shared();
        shared.bring_up_to_date();
        shared.source.retain_empty(group_of, groups);
    }

    /// Has `call` called when a time is over, by whoever looks for items that are due then: a waiting pop does so in time. It replaces
    /// the call that was planned before.
    #[cfg(feature = "broker")]
    #[doc(hidden)]
    pub fn call_at(&self, at: Instant, call: Arc<dyn Fn() + Send + Sync>) {
        let shared = self.shared();
        shared.set_alarm(shared.time.nanos(at), call);
    }

    /// Gives back room that was taken for items that are kept elsewhere.
    #[doc(hidden)]
    pub fn give_room(&self, items: usize) {
        self.shared().give_back(items);
    }
}

impl<T, O: Order<T>> Restore<'_, T, O> {
    /// The items of a FIFO queue are behind all others when this is dropped. The queue may be closed.
    #[must_use]
    pub fn at_tail(mut self) -> Self {
        self.at_tail = true;
        self
    }

    /// The items have their room already: it was [taken](Queue::take_room), or [kept](OwnedTransaction::keep_room) by a
    /// transaction.
    #[must_use]
    pub fn with_room(mut self) -> Self {
        self.has_room = true;
        self
    }

    /// Adds an item of this place that was delivered `attempts` times, and is delivered again after `delay`. If its due time is
    /// over, it has been in the queue since then. Returns whether the queue has room for it.
    ///
    /// # Panics
    ///
    /// If the key of the item in a fair queue is at its limit.
    pub fn add(&mut self, item: T, place: StorePlace, attempts: u32, delay: Duration) -> bool {
        let Self {
            shared,
            restored,
            has_room,
            ..
        } = self;
        let due = place.due.map(|due| shared.time.past_nanos(due));
        let since = shared.stamp().min(due.map_or(u64::MAX, |due| due + 1));
        let delivery = DeliveryMeta::after(attempts, since);
        let place = place.place(&shared.time);
        shared.add_restored(restored, item, delivery, delay, place, *has_room)
    }
}

impl<T, O: Order<T>> OwnedTransaction<T, O> {
    /// Makes the queue neither idle nor drained until the transaction ends, as a staged item does; returns whether the queue is
    /// open.
    #[doc(hidden)]
    pub fn stage_nothing(&self) -> bool {
        self.local().stage_nothing()
    }

    /// Drops the staged items, which are kept elsewhere from now on. Their room stays taken when the transaction commits, which has
    /// to follow. Items have no weights.
    #[doc(hidden)]
    pub fn keep_room(&mut self) {
        self.cell().get_mut().keep_room();
    }
}

impl<T, O: Order<T>> Drop for Restore<'_, T, O> {
    fn drop(&mut self) {
        let restored = mem::take(&mut self.restored);
        if self.at_tail {
            self.shared.restore_at_tail(restored);
        } else {
            self.shared.restore(restored);
        }
    }
}

debug_struct!([T, O: Order<T>] Restore<'_, T, O>);

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use crate::{ManualClock, Queue, StorePlace};
    use std::time::Duration;

    #[test]
    fn restored_items_come_before_pushed_ones_and_keep_their_attempts() {
        let clock = ManualClock::new();
        let queue = Queue::builder().capacity(5).max_held(1);
        let queue = queue.clock(clock.clone()).build();
        queue.push("new").unwrap();
        let mut restore = queue.restore();
        let second = Duration::from_secs(1);
        restore.add("late", StorePlace::default(), 2, second);
        restore.add("fresh", StorePlace::default(), 0, Duration::ZERO);
        restore.add("again", StorePlace::default(), 3, Duration::ZERO);
        drop(restore);
        let stats = queue.stats();
        assert_eq!((stats.pushed, stats.ready, stats.delayed), (4, 3, 1));
        stats.check().unwrap();
        queue.push("newer").unwrap();
        assert!(queue.push("too many").is_err());

        let mut handle = queue.handle();
        let mut pop = || {
            let tx = handle.begin();
            let delivery = tx.pop().map(|item| (*item, item.attempts())).unwrap();
            tx.commit();
            delivery
        };
        assert_eq!([pop(), pop()], [("again", 4), ("fresh", 1)]);
        clock.advance(second);
        assert_eq!(pop(), ("late", 3));
        assert_eq!([pop(), pop()], [("new", 1), ("newer", 1)]);
        queue.stats().check().unwrap();
    }

    #[test]
    fn items_restored_at_the_tail_come_after_the_others() {
        let queue = Queue::unbounded();
        queue.push_batch([1, 2]).unwrap();
        queue.close();
        let mut restore = queue.restore().at_tail();
        for item in [3, 4] {
            restore.add(item, StorePlace::default(), 0, Duration::ZERO);
        }
        drop(restore);
        assert_eq!(queue.stats().pushed, 4);
        queue.stats().check().unwrap();
        assert!(queue.drain().eq([1, 2, 3, 4]));
        queue.stats().check().unwrap();
    }

    #[test]
    fn items_that_are_kept_elsewhere_have_room() {
        let queue = Queue::bounded(2);
        let mut tx = queue.begin_owned();
        assert!(tx.stage_nothing());
        assert!(!queue.wait_idle_timeout(Duration::ZERO));
        tx.rollback();
        assert!(queue.wait_idle_timeout(Duration::ZERO));
        queue.push(1).unwrap();
        assert_eq!(tx.pop().map(|item| *item), Ok(1));
        tx.push_batch([2, 3]).unwrap();
        tx.keep_room();
        assert_eq!(tx.commit().collect::<Vec<_>>(), [1]);
        assert!(queue.is_full() && queue.is_empty());
        let mut restore = queue.restore().with_room();
        assert!(restore.add(2, StorePlace::default(), 0, Duration::ZERO));
        drop(restore);
        assert!(!queue.take_room(1));
        assert_eq!(queue.pop(), Ok(2));
        assert!(queue.take_room(1) && queue.is_full());
        queue.give_room(2);
        queue.push_batch([4, 5]).unwrap();
        assert!(queue.is_full());
        queue.stats().check().unwrap();
    }

    #[test]
    #[cfg(feature = "broker")]
    fn a_waiting_pop_has_a_call_made_in_time() {
        use std::future::Future;
        use std::pin::pin;
        use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
        use std::sync::Arc;
        use std::task::{Context, Poll, Wake, Waker};

        #[derive(Default)]
        struct Woken(AtomicBool);

        impl Wake for Woken {
            fn wake(self: Arc<Self>) {
                self.0.store(true, Ordering::Relaxed);
            }
        }

        let clock = ManualClock::new();
        let queue = Queue::builder().clock(clock.clone()).build();
        let mut handle = queue.handle();
        let (called, second) = (Arc::new(AtomicUsize::new(0)), Duration::from_secs(1));
        let call = |pushed| {
            let (queue, called) = (queue.clone(), Arc::clone(&called));
            Arc::new(move || {
                called.fetch_add(1, Ordering::Relaxed);
                queue.push(pushed).unwrap();
            })
        };
        queue.call_at(queue.now() + 5 * second, call(1));
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut pop = pin!(handle.pop_async());
        let mut poll = || pop.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(poll().is_pending());
        queue.call_at(queue.now() + 2 * second, call(2));
        assert!(poll().is_pending());
        clock.advance(second);
        assert!(poll().is_pending());
        assert_eq!(called.load(Ordering::Relaxed), 0);
        woken.0.store(false, Ordering::Relaxed);
        clock.advance(second);
        assert!(woken.0.load(Ordering::Relaxed));
        assert_eq!(poll(), Poll::Ready(Ok(2)));
        clock.advance(9 * second);
        assert_eq!((queue.len(), called.load(Ordering::Relaxed)), (0, 1));
    }

    #[test]
    fn groups_of_keys_have_items_or_not() {
        let queue = Queue::builder().fair_by(|item: &u16| *item).build();
        let empty = |looked_at: &[u16]| {
            let mut groups = looked_at.to_vec();
            queue.retain_empty(|item| item % 10, &mut groups);
            groups
        };
        queue.push_batch([1, 1, 11, 2]).unwrap();
        assert_eq!(empty(&[1, 2, 3]), [3]);
        assert!(empty(&[]).is_empty());
        let mut tx = queue.begin_owned();
        assert_eq!(tx.pop_batch(3).count(), 3); // 1, 11, 2
        assert_eq!(empty(&[1]), [2]);
        tx.rollback();
        assert!(empty(&[2]).is_empty());
        queue.retain(|item, _| *item == 11);
        assert_eq!(empty(&[1, 3]), [3, 2]);
        queue.push(2).unwrap();
        assert!(queue.drain().eq([11, 2]));
        assert_eq!(empty(&[2]), [2, 1, 2]);
        queue.push_batch([3, 13, 3]).unwrap();
        assert!(queue.pop().is_ok() && queue.pop().is_ok());
        assert!(empty(&[3]).is_empty());
    }

    #[test]
    #[cfg(feature = "broker")]
    fn a_restored_item_lives_from_its_due_time_on() {
        let (clock, second) = (ManualClock::new(), Duration::from_secs(1));
        let builder = Queue::builder().ttl(10 * second).clock(clock.clone());
        let queue = builder.build();
        let mut restore = queue.restore();
        for age in [99, 10, 9, 0] {
            let place = StorePlace {
                due: queue.now().checked_sub(age * second),
                ..StorePlace::default()
            };
            restore.add(age, place, 0, Duration::ZERO);
        }
        drop(restore);
        assert_eq!((queue.len(), queue.stats().timed_out), (2, 2));
        assert_eq!(queue.stats().oldest, Some(9 * second));
        clock.advance(second);
        assert_eq!(queue.pop(), Ok(0));
        queue.stats().check().unwrap();
    }

    #[test]
    fn restored_items_of_other_orders_come_before_pushed_ones_of_their_kind() {
        let fair = Queue::builder().fair_by(|item: &&str| item.len()).build();
        fair.push("d").unwrap();
        let mut restore = fair.restore();
        restore.add("b", StorePlace::default(), 0, Duration::ZERO);
        restore.add("c", StorePlace::default(), 0, Duration::ZERO);
        restore.add("a", StorePlace::default(), 1, Duration::ZERO);
        drop(restore);
        // What was pushed before the call has arrived by then.
        assert!(fair.drain().eq(["a", "d", "b", "c"]));

        let clock = ManualClock::new();
        let queue = Queue::builder().by_priority().clock(clock.clone()).build();
        let mut restore = queue.restore();
        let place = |number, priority, due| StorePlace {
            number,
            priority,
            due,
            ..StorePlace::default()
        };
        // No ticket of this process, which has one below, has this number.
        let first = 1 << 40;
        let fresh = crate::Ticket::of_store(first);
        restore.add("fresh", place(first, 2, None), 0, Duration::ZERO);
        restore.add("again", place(first + 1, 2, None), 1, Duration::ZERO);
        let hour = Duration::from_secs(3600);
        let due = Some(queue.now() + hour);
        restore.add("later", place(first + 2, 1, due), 1, Duration::ZERO);
        drop(restore);
        queue.priority(2).push("new").unwrap();
        assert_eq!(queue.stats().delayed, 1);
        assert!(queue.reprioritize(fresh, 3));
        let pop = || {
            let mut tx = queue.begin_owned();
            tx.pop_batch(9);
            let popped: Vec<_> = tx.items().map(|item| (*item, item.attempts())).collect();
            tx.commit();
            popped
        };
        assert_eq!(pop(), [("again", 2), ("new", 1), ("fresh", 1)]);
        clock.advance(hour);
        assert_eq!(pop(), [("later", 2)]);
        queue.stats().check().unwrap();
    }
}
