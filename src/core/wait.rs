//! Waiting for an item or for room: the one loop around an attempt.
//!
//! `user` is a handle's [`Local`], or its borrow by a transaction.

use super::local::Local;
use super::mode::ModeWord;
use super::refusal::Admission;
use crate::bound::Room;
use crate::order::Order;
use crate::policy::Policies;
use crate::sync::{defer_with, planted, step, thread};
use crate::time::{Wait, NEVER};
use crate::wait::{
    block, spin, Deadline, WaitKind, WaitQueue, WaitWord, Waiter, Waits, WakeTarget, Wanted,
};
use std::ops::DerefMut;
use std::sync::Arc;
use std::task::Poll;

/// The panic message of a future that is polled after completion.
pub(crate) const DONE: &str = "future polled after completion";

/// How often a pop without waiting yields to a waiter that is being served.
const MAX_YIELDS: usize = 32;

/// Yields the processor for a moment if a waiter is being served, so that it can go first. One that never reacts, such as
/// a task that is not polled, is not served for long.
#[inline]
pub(super) fn yield_to_served<T, O: Order<T>>(local: &Local<T, O>) {
    if local.word().is_serving() {
        yield_while_served(&local.ready);
    }
}

#[cold]
fn yield_while_served(wait_queue: &WaitQueue) {
    for _ in 0..MAX_YIELDS {
        if !wait_queue.word().is_serving() {
            return;
        }
        thread::yield_now();
    }
    if wait_queue.word().is_serving() {
        wait_queue.give_way_in_vain();
    }
}

/// Waits for an item. `None`: timed out. An item that has arrived wins over the deadline.
pub(crate) fn for_item<T, O, C, R>(
    user: &mut C,
    wait: Wait,
    mut attempt: impl FnMut(&mut C) -> Option<R>,
) -> Option<R>
where
    O: Order<T>,
    C: DerefMut<Target = Local<T, O>>,
{
    if wait.is_over(&user.shared.time) {
        return attempt(user);
    }
    let may_try = |user: &C| !user.word().is_serving();
    let look = |user: &mut C| {
        let is_vain = user.looks_empty(user.word());
        (!is_vain).then(|| attempt(user)).flatten()
    };
    let found = spin(user, may_try, look);
    found.or_else(|| {
        sleep(user, wait, attempt, |user, wake_target, attempt| {
            poll_item(user, wake_target, attempt)
        })
    })
}

/// As [`for_item`], for room, if waiting [may help](Local::is_worth_waiting).
pub(crate) fn for_room<T, O, C, R>(
    user: &mut C,
    kind: WaitKind,
    worth: bool,
    wait: Wait,
    mut attempt: impl FnMut(&mut C) -> Admission<R>,
) -> Admission<R>
where
    O: Order<T>,
    C: DerefMut<Target = Local<T, O>>,
{
    if !worth || wait.is_over(&user.shared.time) {
        return attempt(user);
    }
    let is_serving = |room: &Arc<Room>| room.wait_queue.word().is_serving();
    let may_try = |user: &C| !user.shared.room().is_some_and(is_serving);
    let found = spin(user, may_try, &mut attempt);
    found.or_else(|| {
        sleep(user, wait, attempt, |user, wake_target, attempt| {
            poll_room(user, kind, wake_target, attempt)
        })
    })
}

/// Sleeps until `poll` is ready, or attempts once more when the time is over.
fn sleep<T, O, C, R, A>(
    user: &mut C,
    wait: Wait,
    mut attempt: A,
    poll: impl Fn(&mut C, &WakeTarget<'_>, &mut A) -> Poll<R>,
) -> Option<R>
where
    O: Order<T>,
    C: DerefMut<Target = Local<T, O>>,
    A: FnMut(&mut C) -> Option<R>,
{
    let shared = Arc::clone(&user.shared);
    // Runs also if user code panics: a clock, the key function of the order, or `Clone` of an item.
    let mut user = defer_with(user, |user| user.stop_waiting());
    let deadline = Deadline::of(wait, &shared.time);
    let polled = block(deadline, |wake_target| {
        poll(&mut **user, wake_target, &mut attempt)
    });
    polled.or_else(|| attempt(&mut **user))
}

/// Polls for an item with `attempt`, which takes one or returns `None`.
#[inline]
pub(crate) fn poll_item<T, O, C, R>(
    user: &mut C,
    wake_target: &WakeTarget<'_>,
    mut attempt: impl FnMut(&mut C) -> Option<R>,
) -> Poll<R>
where
    O: Order<T>,
    C: DerefMut<Target = Local<T, O>>,
{
    if user.finds_item_at_once() {
        if let Some(result) = attempt(user) {
            let local = &mut **user;
            local.item_waiter.leave_served(&local.access.ready);
            return Poll::Ready(result);
        }
    }
    wait_for_item(user, wake_target, attempt)
}

/// As [`poll_item`], where no item was found at once.
#[inline]
pub(crate) fn wait_for_item<T, O, C, R>(
    user: &mut C,
    wake_target: &WakeTarget<'_>,
    attempt: impl FnMut(&mut C) -> Option<R>,
) -> Poll<R>
where
    O: Order<T>,
    C: DerefMut<Target = Local<T, O>>,
{
    let spare =
        |user: &C, served| user.word().is_closed() || user.shared.ready_items() > served as u64;
    let is_vain = |user: &C, word: Option<WaitWord>| match word {
        None => user.item_waiter.enters_at_once || user.looks_empty(user.word()),
        Some(word) => user.looks_empty(ModeWord(word)),
    };
    let (wanted, kind, waker) = (Wanted::Item, WaitKind::One, wake_target.waker);
    let poll = wait_for_due(user, wake_target, true, |user| {
        Waiter::poll(user, wanted, kind, waker, spare, is_vain, attempt)
    });
    user.item_waiter.enters_at_once = poll.is_pending();
    if poll.is_pending() {
        user.endpoint.rest();
    }
    poll
}

/// Polls for room with `attempt`. A waiter that is refused for good passes an unused wake-up on.
pub(crate) fn poll_room<T, O, C, R, E>(
    user: &mut C,
    kind: WaitKind,
    wake_target: &WakeTarget<'_>,
    mut attempt: impl FnMut(&mut C) -> Option<Result<R, E>>,
) -> Poll<Result<R, E>>
where
    O: Order<T>,
    C: DerefMut<Target = Local<T, O>>,
{
    let attempt = |user: &mut C| {
        let result = attempt(user);
        // It has used nothing, so the next waiter is woken for it. So no wake-up needs to carry a key that is at its limit.
        if let Some(Err(_)) = result {
            let (waiter, wait_queue) = user.waiter(Wanted::Room);
            waiter.leave(wait_queue);
        }
        result
    };
    let has_spare = |room: &Arc<Room>, served| room.capacity.free() > served;
    let spare = |user: &C, served| {
        let room = user.shared.room();
        user.word().is_closed() || room.is_some_and(|room| has_spare(room, served))
    };
    let (wanted, waker) = (Wanted::Room, wake_target.waker);
    let awaited = Policies::<T, O>::LEASES && !planted!("waits.leads-for-room");
    wait_for_due(user, wake_target, awaited, |user| {
        Waiter::poll(user, wanted, kind, waker, spare, |_, _| false, attempt)
    })
}

/// Polls by `wait`. Where what is `awaited` may become due, a waiter that has to sleep may become the leader, and the
/// leader gives up the lead first.
#[inline(always)] // the wait of a task
fn wait_for_due<T, O, C, R>(
    user: &mut C,
    wake_target: &WakeTarget<'_>,
    awaited: bool,
    wait: impl FnOnce(&mut C) -> Poll<R>,
) -> Poll<R>
where
    O: Order<T>,
    C: DerefMut<Target = Local<T, O>>,
{
    if awaited && wake_target.is_task() {
        user.shared.due_timer.expect_tasks();
    }
    // Runs also if user code panics: a clock.
    let was_leader = user.is_leader;
    let mut user = defer_with((user, was_leader), |(user, hands_over)| {
        if *hands_over {
            step!("waits.leads", user.shared.due_timer.hand_over_lead());
        }
    });
    // Before the attempt: what is due is ready then.
    if was_leader {
        stop_leading(&mut *user.0);
    }
    let poll = wait(&mut *user.0);
    if poll.is_pending() {
        user.1 = false;
        let local = &mut **user.0;
        let due_timer = &local.access.shared.due_timer;
        if awaited && due_timer.next() != NEVER {
            due_timer.lead(&mut local.is_leader, wake_target);
        }
    }
    poll
}

/// Gives up the lead for a wait, at whose end another waiter is to become the leader.
#[cold]
fn stop_leading<T, O: Order<T>>(local: &mut Local<T, O>) {
    let shared = &local.access.shared;
    shared.due_timer.stop_leading(&mut local.is_leader);
    // Due items wake their waiters in FIFO order.
    shared.release_due();
}

impl<T, O: Order<T>> Waits for Local<T, O> {
    #[inline]
    fn waiter(&mut self, wanted: Wanted) -> (&mut Waiter, &WaitQueue) {
        let room = self.access.shared.room().filter(|_| wanted == Wanted::Room);
        match room {
            Some(room) => (&mut self.room_waiter, &room.wait_queue),
            None => (&mut self.item_waiter, &self.access.ready),
        }
    }
}

impl<T, O: Order<T>> Local<T, O> {
    /// Whether an item is visible where the last one came from, and taking it involves nothing else: it was woken, if
    /// it waits, no order or clock has a say, and no other waiter is being served.
    #[inline]
    fn finds_item_at_once(&self) -> bool {
        self.may_take_at_once() && self.endpoint.sees_one()
    }

    /// Whether an attempt would certainly find nothing. A waiter needs no strict Empty: for each shard, by the barriers of
    /// the waiter and of a publisher, one sees the other. Each shard is found empty at an instant of its own behind the barrier;
    /// whatever becomes visible in it later is published by a thread that sees the waiter. A shard with returned runs, or with
    /// the record of a commit over several queues, is left to the attempt.
    #[inline(always)] // the wait of a task
    pub(super) fn looks_empty(&self, word: ModeWord) -> bool {
        !word.slows_pop() && self.endpoint.looks_empty()
    }

    /// Whether to take an item involves nothing but the shard that it is in: see [`Local::finds_item_at_once`].
    #[inline]
    pub(super) fn may_take_at_once(&self) -> bool {
        self.item_waiter.may_attempt_unless(self.is_leader) && !self.word().slows_pop()
    }
}

impl<T, O: Order<T>> Local<T, O> {
    /// Leaves the wait queues, and releases the permits gathered for a batch that will not be pushed.
    #[inline]
    pub(crate) fn stop_waiting(&mut self) {
        stop_waiting_for(self, Wanted::Item);
        if self.permits.is_bounded() {
            self.permits.give_back_gathered();
            stop_waiting_for(self, Wanted::Room);
        }
    }
}

/// Leaves a wait queue. If this waiter was the leader, another one is woken to become it.
#[inline]
pub(super) fn stop_waiting_for<T, O: Order<T>>(local: &mut Local<T, O>, wanted: Wanted) {
    let due_timer = &local.access.shared.due_timer;
    let was_leader = due_timer.stop_leading(&mut local.is_leader);
    let (waiter, wait_queue) = local.waiter(wanted);
    waiter.leave(wait_queue);
    if was_leader {
        step!("waits.leads", local.shared.due_timer.hand_over_lead());
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
