//! Waiting for an item or for room: the one loop around an attempt.

use super::admit::Admission;
use super::local::Local;
use crate::bound::Room;
use crate::order::Order;
use crate::policy::Policies;
use crate::sync::{defer_with, planted, step, thread};
use crate::time::{Wait, NEVER};
use crate::wait::{block, WaitQueue, WaitWord, Waiter, Waits, WakeTarget};
use std::sync::Arc;
use std::task::Poll;

/// The panic message of a future that is polled after completion.
pub(crate) const DONE: &str = "future polled after completion";

/// How often a pop without waiting yields to a waiter that is being served.
const MAX_YIELDS: usize = 32;

/// A wait for an item by `attempt`.
struct ForItem<'l, T, O: Order<T>, A> {
    local: &'l mut Local<T, O>,
    attempt: A,
}

impl<T, O: Order<T>, R, A: FnMut(&mut Local<T, O>) -> Option<R>> Waits for ForItem<'_, T, O, A> {
    type Found = R;

    #[inline]
    fn waiter(&mut self) -> (&mut Waiter, &WaitQueue) {
        (&mut self.local.item_waiter, &self.local.access.ready)
    }

    #[inline]
    fn attempt(&mut self) -> Option<R> {
        (self.attempt)(self.local)
    }

    fn has_spare(&self, served: usize) -> bool {
        self.local.word().is_closed() || self.local.shared.ready_items() > served as u64
    }

    /// Not at a closed queue: behind the others it would wake itself whenever it finds the queue drained.
    #[inline]
    fn gives_way(&mut self) -> bool {
        let word = self.local.word();
        word.is_serving() && !word.is_closed()
    }

    #[inline]
    fn sees(&self) -> bool {
        !self.local.looks_empty(self.local.word())
    }

    #[inline]
    fn is_vain(&self, word: Option<WaitWord>) -> bool {
        let local = &self.local;
        match word {
            None => local.item_waiter.enters_at_once || !self.sees(),
            Some(word) => local.looks_empty(word),
        }
    }
}

/// A wait for room by `attempt`.
struct ForRoom<'l, T, O: Order<T>, A> {
    local: &'l mut Local<T, O>,
    room: &'l Room,
    gathers: bool,
    attempt: A,
}

impl<T, O: Order<T>, R, E, A> Waits for ForRoom<'_, T, O, A>
where
    A: FnMut(&mut Local<T, O>) -> Option<Result<R, E>>,
{
    type Found = Result<R, E>;

    fn waiter(&mut self) -> (&mut Waiter, &WaitQueue) {
        (&mut self.local.room_waiter, &self.room.wait_queue)
    }

    fn attempt(&mut self) -> Option<Result<R, E>> {
        let found = (self.attempt)(self.local);
        // Refused for good, it has used nothing, so the next waiter is woken for it. So no wake-up needs to carry a key that is
        // at its limit.
        if let Some(Err(_)) = found {
            self.local.room_waiter.leave(&self.room.wait_queue);
        }
        found
    }

    fn gathers(&self) -> bool {
        self.gathers
    }

    /// While it spins it revokes no permits from other handles, only before it sleeps: then the attempt is strict.
    fn sees(&self) -> bool {
        !self.local.word().is_only_bounded() || !self.room.capacity.looks_full()
    }

    fn has_spare(&self, served: usize) -> bool {
        self.local.word().is_closed() || self.room.capacity.free() > served
    }
}

/// Waiting threads.
impl<T, O: Order<T>> Local<T, O> {
    /// Yields the processor for a moment if a waiter is being served, so that it can go first. One that never reacts, such
    /// as a task that is not polled, is not served for long.
    #[inline]
    pub(super) fn yield_to_served(&self) {
        if self.word().is_serving() {
            self.yield_while_served();
        }
    }

    #[cold]
    fn yield_while_served(&self) {
        for _ in 0..MAX_YIELDS {
            if !self.word().is_serving() {
                return;
            }
            thread::yield_now();
        }
        if self.word().is_serving() {
            self.ready.give_way_in_vain();
        }
    }

    /// Waits for an item. `None`: timed out. An item that has arrived takes precedence over the deadline.
    pub(super) fn wait_for_item<R>(
        &mut self,
        wait: Wait,
        mut attempt: impl FnMut(&mut Self) -> Option<R>,
    ) -> Option<R> {
        if wait.is_over(&self.shared.time) {
            return attempt(self);
        }
        let spun = ForItem {
            local: self,
            attempt: &mut attempt,
        }
        .spin();
        spun.or_else(|| {
            self.sleep(wait, attempt, |local, wake_target, attempt| {
                local.poll_item(wake_target, attempt)
            })
        })
    }

    /// As [`Local::wait_for_item`], for room. Without any that is [worth waiting for](Local::worthwhile_room) it
    /// attempts once.
    pub(super) fn wait_for_room<R>(
        &mut self,
        gathers: bool,
        room: Option<Arc<Room>>,
        wait: Wait,
        mut attempt: impl FnMut(&mut Self) -> Admission<R>,
    ) -> Admission<R> {
        let Some(room) = room.filter(|_| !wait.is_over(&self.shared.time)) else {
            return attempt(self);
        };
        let spun = ForRoom {
            local: self,
            room: &room,
            gathers,
            attempt: &mut attempt,
        }
        .spin();
        spun.or_else(|| {
            self.sleep(wait, attempt, |local, wake_target, attempt| {
                local.poll_room(&room, gathers, wake_target, attempt)
            })
        })
    }

    /// Sleeps until `poll` is ready, or attempts once more when the time is over.
    fn sleep<R, A: FnMut(&mut Self) -> Option<R>>(
        &mut self,
        wait: Wait,
        mut attempt: A,
        poll: impl Fn(&mut Self, &WakeTarget<'_>, &mut A) -> Poll<R>,
    ) -> Option<R> {
        let shared = Arc::clone(&self.shared);
        // Runs also if user code panics: a clock, the key function of the order, or `Clone` of an item.
        let mut local = defer_with(self, |local| local.stop_waiting());
        let polled = block(wait, &shared.time, |wake_target| {
            poll(&mut local, wake_target, &mut attempt)
        });
        polled.or_else(|| attempt(&mut local))
    }
}

/// Polls, of threads and tasks.
impl<T, O: Order<T>> Local<T, O> {
    /// Polls for an item with `attempt`, which takes one or returns `None`.
    #[inline]
    pub(super) fn poll_item<R>(
        &mut self,
        wake_target: &WakeTarget<'_>,
        mut attempt: impl FnMut(&mut Self) -> Option<R>,
    ) -> Poll<R> {
        if self.may_take_at_once() && self.endpoint.sees_one() {
            if let Some(found) = attempt(self) {
                self.item_waiter.leave_served(&self.access.ready);
                return Poll::Ready(found);
            }
        }
        self.poll_item_slowly(wake_target, attempt)
    }

    /// As [`Local::poll_item`], where no item was found at once.
    #[inline]
    pub(crate) fn poll_item_slowly<R>(
        &mut self,
        wake_target: &WakeTarget<'_>,
        attempt: impl FnMut(&mut Self) -> Option<R>,
    ) -> Poll<R> {
        let poll = self.wait_for_due(wake_target, true, |local| {
            ForItem { local, attempt }.poll(wake_target.waker)
        });
        self.item_waiter.enters_at_once = poll.is_pending();
        if poll.is_pending() {
            self.endpoint.rest();
        }
        poll
    }

    /// Polls for room with `attempt`. A waiter that is refused for good passes an unused wake-up on.
    pub(crate) fn poll_room<R, E>(
        &mut self,
        room: &Room,
        gathers: bool,
        wake_target: &WakeTarget<'_>,
        attempt: impl FnMut(&mut Self) -> Option<Result<R, E>>,
    ) -> Poll<Result<R, E>> {
        let frees = Policies::<T, O>::RECLAIMS || self.shared.expires();
        let awaited = frees && !planted!("waits.leads-for-room");
        self.wait_for_due(wake_target, awaited, |local| {
            let mut wait = ForRoom {
                local,
                room,
                gathers,
                attempt,
            };
            wait.poll(wake_target.waker)
        })
    }

    /// Polls by `wait`. Where what is `awaited` may become due, a waiter that has to sleep may become the leader, and the
    /// leader gives up the lead first.
    #[inline(always)] // the wait of a task
    fn wait_for_due<R>(
        &mut self,
        wake_target: &WakeTarget<'_>,
        awaited: bool,
        wait: impl FnOnce(&mut Self) -> Poll<R>,
    ) -> Poll<R> {
        if awaited && wake_target.is_task() {
            self.shared.due_timer.expect_tasks();
        }
        // Runs also if user code panics: a clock.
        let was_leader = self.is_leader;
        let mut local = defer_with((self, was_leader), |(local, hands_over)| {
            if *hands_over {
                step!("waits.leads", local.shared.due_timer.hand_over_lead());
            }
        });
        // Before the attempt: what is due is ready then.
        if was_leader {
            local.0.stop_leading();
        }
        let poll = wait(local.0);
        if poll.is_pending() {
            local.1 = false;
            let Self {
                access, is_leader, ..
            } = &mut *local.0;
            let due_timer = &access.shared.due_timer;
            if awaited && due_timer.next() != NEVER {
                due_timer.lead(is_leader, wake_target);
            }
        }
        poll
    }

    /// Gives up the lead for a wait, at whose end another waiter is to become the leader.
    #[cold]
    fn stop_leading(&mut self) {
        let shared = &self.access.shared;
        shared.due_timer.stop_leading(&mut self.is_leader);
        // Due items wake their waiters in FIFO order.
        shared.release_due();
    }

    /// Whether an attempt would certainly find nothing. A waiter needs no strict Empty: for each shard, by the barriers of
    /// the waiter and of a publisher, one sees the other. Each shard is found empty at an instant of its own behind the barrier;
    /// whatever becomes visible in it later is published by a thread that sees the waiter. A shard with returned runs, or with
    /// the record of a commit over several queues, is left to the attempt.
    #[inline(always)] // the wait of a task
    pub(super) fn looks_empty(&self, word: WaitWord) -> bool {
        !word.slows_pop() && self.endpoint.looks_empty()
    }

    /// Whether to take an item involves nothing but the shard that it is in: it was woken, if it waits, no order or clock is
    /// involved, and no other waiter is being served.
    #[inline]
    pub(super) fn may_take_at_once(&self) -> bool {
        self.item_waiter.may_attempt_unless(self.is_leader) && !self.word().slows_pop()
    }

    /// Leaves the wait queues, and releases the permits gathered for a batch that will not be pushed. If this waiter was the
    /// leader, another one is woken to become it.
    #[inline]
    pub(crate) fn stop_waiting(&mut self) {
        let due_timer = &self.access.shared.due_timer;
        let was_leader = due_timer.stop_leading(&mut self.is_leader);
        self.item_waiter.leave(&self.access.ready);
        if was_leader {
            // Before it leaves the wait queue for room: if it is woken itself, it passes that on, so that only one is woken.
            step!("waits.leads", self.shared.due_timer.hand_over_lead());
        }
        if let Some(room) = self.access.shared.room() {
            self.access.permits.give_back_gathered();
            self.room_waiter.leave(&room.wait_queue);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use crate::future::TakeAsync;
    use crate::{Fifo, Handle, PopError, Queue};
    use std::future::Future;
    use std::mem::ManuallyDrop;
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Wake, Waker};

    struct NoopWaker;

    impl Wake for NoopWaker {
        fn wake(self: Arc<Self>) {}
    }

    type Wait<'h> = ManuallyDrop<TakeAsync<'h, u32, Fifo>>;

    fn poll(wait: &mut Wait<'_>) -> Poll<Result<u32, PopError>> {
        let waker = Waker::from(Arc::new(NoopWaker));
        Pin::new(&mut **wait).poll(&mut Context::from_waker(&waker))
    }

    /// A waiter that was woken in vain, is woken once more, and then not polled again.
    fn served<'h>(queue: &Queue<u32>, handle: &'h mut Handle<u32>) -> Wait<'h> {
        let mut wait = ManuallyDrop::new(handle.pop_async());
        assert_eq!(poll(&mut wait), Poll::Pending);
        wake_in_vain(queue, &mut wait);
        queue.push(0).unwrap();
        assert!(queue.shared().word().is_serving());
        wait
    }

    fn wake_in_vain(queue: &Queue<u32>, wait: &mut Wait<'_>) {
        queue.push(0).unwrap();
        assert_eq!(queue.pop(), Ok(0));
        assert_eq!(poll(wait), Poll::Pending);
    }

    /// How many of ten pops leave the fast path after a waiter was served, and is not polled again.
    fn slow_pops(forgets: bool) -> usize {
        let queue = Queue::unbounded();
        let mut handle = queue.handle();
        let wait = served(&queue, &mut handle);
        let mut slow = 0;
        for item in 0..10 {
            slow += usize::from(queue.shared().word().slows_pop());
            assert_eq!(queue.pop(), Ok(item));
            queue.push(item + 1).unwrap();
        }
        if !forgets {
            drop(ManuallyDrop::into_inner(wait));
        }
        slow
    }

    #[test]
    fn few_pops_give_way_to_a_waiter_that_never_reacts() {
        assert_eq!([false, true].map(slow_pops), [2, 2]);
    }

    /// Another one is served again before each pop that gives way.
    #[test]
    fn a_waiter_that_never_reacts_is_served_no_longer_because_others_are() {
        let queue = Queue::unbounded();
        let mut handles = [queue.handle(), queue.handle()];
        let mut waits = handles
            .each_mut()
            .map(|handle| ManuallyDrop::new(handle.pop_async()));
        let poll_all = |waits: &mut [Wait<'_>]| {
            for wait in waits {
                assert_eq!(poll(wait), Poll::Pending);
            }
        };
        poll_all(&mut waits);
        queue.push_batch([0, 0]).unwrap();
        assert_eq!([(); 2].map(|()| queue.pop()), [Ok(0); 2]);
        poll_all(&mut waits);
        queue.push(0).unwrap(); // for the first, which is not polled again
        assert_eq!(queue.pop(), Ok(0));
        for _ in 0..4 {
            queue.push(0).unwrap();
            assert_eq!(queue.pop(), Ok(0));
            poll_all(&mut waits[1..]);
        }
        assert!(!queue.shared().word().is_serving());
    }

    /// All others wait.
    #[test]
    fn newcomers_that_wait_end_the_service_of_a_waiter_that_never_reacts() {
        let queue = Queue::unbounded();
        let (mut handle, mut other) = (queue.handle(), queue.handle());
        let _never_reacts = served(&queue, &mut handle);
        let ready = (0..100).position(|_| {
            let mut wait = ManuallyDrop::new(other.pop_async());
            let popped = poll(&mut wait).is_ready();
            drop(ManuallyDrop::into_inner(wait));
            popped
        });
        assert!(ready.is_some_and(|ready| ready > 32), "{ready:?}");
        assert!(!queue.shared().word().is_serving());
    }
}
