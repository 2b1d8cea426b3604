//! Waiting for an item, or for room: the one loop around an attempt.
//!
//! The user is a handle's [`Local`], or the borrow of one by its transaction.

use super::admit::{Admission, Refusal};
use super::local::Local;
use super::shared::{Room, Shared};
use crate::order::Order;
use crate::sync::{barrier, defer, defer_with, step, thread};
use crate::time::NEVER;
use crate::wait::{block, spin, Deadline, Kind, Line, Place, Waiter, Waits, Wanted};
use std::mem;
use std::ops::DerefMut;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// What a future panics with that is polled again.
pub(crate) const DONE: &str = "future polled after completion";

/// How often a pop that waits for nobody lets a waiter go first that was woken in vain before.
const COURTESY: usize = 32;

/// Lets a waiter go first that is being served, for a moment.
#[inline]
pub(super) fn give_way<T, O: Order<T>>(local: &Local<T, O>) {
    if local.word().is_serving() {
        wait_a_moment(&local.ready);
    }
}

#[cold]
fn wait_a_moment(line: &Line) {
    for _ in 0..COURTESY {
        if !line.word().is_serving() {
            return;
        }
        thread::yield_now();
    }
}

/// Waits for an item; without a timeout for ever. What arrives wins over the deadline. `None`: the time is over.
pub(crate) fn for_item<T, O, C, R>(
    user: &mut C,
    timeout: Option<Duration>,
    mut attempt: impl FnMut(&mut C) -> Option<R>,
) -> Option<R>
where
    O: Order<T>,
    C: DerefMut<Target = Local<T, O>>,
{
    if timeout == Some(Duration::ZERO) {
        return attempt(user);
    }
    if let Some(result) = spin(user, |user| !user.word().is_serving(), &mut attempt) {
        return Some(result);
    }
    let shared = Arc::clone(&user.shared);
    // Also if user code panics: a clock, or the copying of an item.
    let mut user = defer_with(user, |user| leave_item_line(user));
    let deadline = Deadline::after(&shared.time, timeout);
    let polled = block(deadline, |waiter| {
        poll_item(&mut **user, waiter, &mut attempt)
    });
    polled.or_else(|| attempt(&mut **user))
}

/// As [`for_item`], for room, if that [is worth it](Local::is_worth_waiting).
pub(crate) fn for_room<T, O, C, L>(
    user: &mut C,
    kind: Kind,
    worth: bool,
    timeout: Option<Duration>,
    mut attempt: impl FnMut(&mut C) -> Admission<L>,
) -> Admission<L>
where
    O: Order<T>,
    C: DerefMut<Target = Local<T, O>>,
{
    if timeout == Some(Duration::ZERO) || !worth {
        return attempt(user);
    }
    let is_serving = |room: &Room| room.line.word().is_serving();
    let may_try = |user: &C| !user.shared.room().is_some_and(is_serving);
    if let Some(result) = spin(user, may_try, &mut attempt) {
        return Some(result);
    }
    let shared = Arc::clone(&user.shared);
    let room = shared.room()?;
    // What was gathered stays for the caller, unless user code panics: a clock, or what finds the key of an item.
    let mut user = defer_with((user, true), |(user, panics)| {
        if *panics {
            user.permits.give_back_gathered(room);
        }
        user.room_place.leave(&room.line);
    });
    let deadline = Deadline::after(&shared.time, timeout);
    let polled = block(deadline, |waiter| {
        poll_room(&mut *user.0, kind, worth, waiter, &mut attempt)
    });
    let result = polled.or_else(|| attempt(&mut *user.0));
    user.1 = false;
    result
}

/// Polls for an item by way of `attempt`.
pub(crate) fn poll_item<T, O, C, R>(
    user: &mut C,
    waiter: &Waiter<'_>,
    attempt: impl FnMut(&mut C) -> Option<R>,
) -> Poll<R>
where
    O: Order<T>,
    C: DerefMut<Target = Local<T, O>>,
{
    let shared = Arc::clone(&user.shared);
    if waiter.is_task() {
        shared.agenda.expect_tasks();
    }
    // Also if user code panics: a clock.
    let handing_over =
        gives_up_time(user).then(|| defer(|| step!("waits.keeps-time", hand_time_over(&shared))));
    if handing_over.is_some() {
        // What is due wakes those who wait for it, in their order.
        shared.release_due();
    }
    let spare = |served: usize| shared.word().is_closed() || shared.ready_items() > served as u64;
    let line = shared.ready();
    let poll = Place::poll(
        user,
        Wanted::Item,
        line,
        Kind::One,
        waiter.waker,
        spare,
        attempt,
    );
    if poll.is_pending() {
        mem::forget(handing_over);
        keep_time(user, waiter);
    }
    poll
}

/// Polls for room by way of `attempt`, once if to wait is not worth it. Who is refused for good passes an unused
/// wake-up on.
pub(crate) fn poll_room<T, O, C, L>(
    user: &mut C,
    kind: Kind,
    worth: bool,
    waiter: &Waiter<'_>,
    mut attempt: impl FnMut(&mut C) -> Admission<L>,
) -> Poll<Result<L, Refusal>>
where
    O: Order<T>,
    C: DerefMut<Target = Local<T, O>>,
{
    let shared = Arc::clone(&user.shared);
    let Some(room) = shared.room().filter(|_| worth) else {
        return Poll::Ready(attempt(user).unwrap_or(Err(Refusal::Full)));
    };
    let attempt = |user: &mut C| {
        let admission = attempt(user);
        if let Some(Err(_)) = admission {
            user.room_place.leave(&room.line);
        }
        admission
    };
    let spare = |served| shared.word().is_closed() || room.capacity.free() > served;
    Place::poll(
        user,
        Wanted::Room,
        &room.line,
        kind,
        waiter.waker,
        spare,
        attempt,
    )
}

impl<T, O: Order<T>> Waits for Local<T, O> {
    fn place(&mut self, wanted: Wanted) -> &mut Place {
        match wanted {
            Wanted::Item => &mut self.item_place,
            Wanted::Room => &mut self.room_place,
        }
    }
}

/// Sleeps no longer than until something is due, unless another waiter does. The reserve looks after the one
/// that does.
fn keep_time<T, O: Order<T>>(local: &mut Local<T, O>, waiter: &Waiter<'_>) {
    let agenda = &local.shared.agenda;
    let next = agenda.next();
    if next < agenda.alarm() {
        agenda.set_alarm(next);
        local.keeps_time = true;
        waiter.wake_at(&local.shared.time, next);
    }
    agenda.call_reserve();
}

/// Whether this waiter kept the time; not any more.
#[inline]
fn gives_up_time<T, O: Order<T>>(local: &mut Local<T, O>) -> bool {
    let kept = mem::take(&mut local.keeps_time);
    if kept {
        local.shared.agenda.set_alarm(NEVER);
    }
    kept
}

/// Leaves the line of those who wait for an item. If this waiter kept the time another one must.
#[inline]
pub(super) fn leave_item_line<T, O: Order<T>>(local: &mut Local<T, O>) {
    let kept = gives_up_time(local);
    local.item_place.leave(&local.ready);
    if kept {
        step!("waits.keeps-time", hand_time_over(&local.shared));
    }
}

/// Wakes another waiter to keep the time, after this one has given that up.
fn hand_time_over<T, O: Order<T>>(shared: &Shared<T, O>) {
    barrier::full("waits.hand-over");
    shared.agenda.call_reserve();
    let planned = shared.agenda.next() != NEVER;
    shared.ready().published(usize::from(planned));
}
