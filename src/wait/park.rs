//! Waiting threads: a waker that unparks its thread.

use crate::sync::{is_single_cpu, now, spin_hint, thread, thread_locals, weak, AtomicBool, SMALL};
use crate::time::{Time, Wait};
use std::cell::Cell;
use std::sync::Arc;
use std::task::{Poll, Wake, Waker};
use std::time::{Duration, Instant};

/// The rounds in which a thread attempts before it sleeps: it first spins, twice as long each time, then yields the
/// processor. This takes some microseconds, about as long as to park a thread and to wake it.
const SPINS: u32 = 7;
const ROUNDS: u32 = SPINS + 4;

/// The round from which on a spin is long enough to find more than one item where they come fast.
const LONGER: u32 = 4;
/// How often a thread attempts between two hints of a spin. A hint takes 20 to 40 ns on some processors, a look at what has not
/// changed 2 ns.
const LOOKS: u32 = 4;
/// The number of waits after which a waiter that finds one item at a time tries a longer spin.
const REST: u32 = 64;

/// A shorter sleep shows that to spin for longer would have avoided it.
const SHORT: Duration = Duration::from_micros(50);

/// A waiting thread or task, and how it is woken at a given time.
pub(crate) struct WakeTarget<'w> {
    pub(crate) waker: &'w Waker,
    /// The time, by the system's clock, at which a thread is to wake by itself. `None` for a task: its waker is called.
    park_until: Option<&'w Cell<Option<Instant>>>,
}

impl<'w> WakeTarget<'w> {
    pub(crate) fn task(waker: &'w Waker) -> Self {
        Self {
            waker,
            park_until: None,
        }
    }

    #[inline]
    pub(crate) fn is_task(&self) -> bool {
        self.park_until.is_none()
    }

    /// Schedules a wake-up at a time; it may come earlier.
    pub(crate) fn wake_at(&self, time: &Time, at: u64) {
        match self.park_until.filter(|_| time.is_system()) {
            None => time.wake_at(at, self.waker),
            Some(park_until) => {
                let end = park_until.get().into_iter().chain(time.instant(at)).min();
                park_until.set(end);
            }
        }
    }
}

/// The waker of a thread.
pub(crate) struct Sleeper {
    thread: thread::Thread,
    woken: AtomicBool,
}

impl Sleeper {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            thread: thread::current(),
            woken: AtomicBool::new(false),
        })
    }

    /// Runs `wait` with the sleeper of the current thread. With a new one if that is in use, since a waker that is
    /// called while this thread waits can itself wait, or if it was already destroyed with the thread's locals. It is kept since
    /// `thread::current` may panic in destructors of thread-locals.
    fn with_current<R>(wait: impl FnOnce(&Arc<Self>) -> R) -> R {
        #[cfg(any(loom, shuttle))]
        return wait(&Self::new());
        #[cfg(not(any(loom, shuttle)))]
        {
            thread_locals! {
                static CURRENT: Cell<Option<Arc<Sleeper>>> = Cell::new(None);
            }
            let current = CURRENT.try_with(Cell::take).ok().flatten();
            let current = current.unwrap_or_else(Self::new);
            let result = wait(&current);
            let _ = CURRENT.try_with(|cell| cell.set(Some(current)));
            result
        }
    }

    /// As [`Sleeper::park`]; the thread learns from how long that took.
    fn sleep(&self, park_until: Option<Instant>) {
        let start = (!SMALL).then(now);
        self.park(park_until);
        if let Some(start) = start {
            learn(now() - start);
        }
    }

    /// Sleeps until it is woken, or until the time `park_until`. User code may park the thread too: the flag decides.
    pub(crate) fn park(&self, park_until: Option<Instant>) {
        // ORDERING: Acquire; pairs with `sleeper.wake`.
        while !self.woken.swap(false, weak!("sleeper.sleep", Acquire)) {
            let Some(end) = park_until else {
                thread::park();
                continue;
            };
            let left = end.saturating_duration_since(now());
            if left.is_zero() {
                return;
            }
            thread::park_timeout(left);
        }
    }
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // ORDERING: Release; pairs with `sleeper.sleep`, so that the next poll sees what happened before.
        if !self.woken.swap(true, weak!("sleeper.wake", Release)) {
            self.thread.unpark();
        }
    }
}

thread_locals! {
    // In how many rounds this thread spins before it sleeps.
    static PATIENCE: Cell<u32> = Cell::new(ROUNDS);
}

/// Adapts the patience of this thread to how long it has slept: full after a short sleep, half after a long one.
fn learn(slept: Duration) {
    let adapt = |patience: &Cell<u32>| {
        let half = patience.get() / 2;
        patience.set(if slept < SHORT { ROUNDS } else { half });
    };
    let _ = PATIENCE.try_with(adapt);
}

/// The round with which a waiter begins to spin, learned from its last waits.
///
/// Where items come as fast as they are taken, a waiter that looks as soon as it can finds one at a time, and each look takes a
/// cache line from the publisher. A waiter that looks later finds many at once. Where the publisher is on the same processor, or
/// waits for one, only to yield helps.
#[derive(Clone, Copy, Default)]
pub(crate) struct SpinStart {
    first: u32,
    /// The number of waits for which it stays so, since a longer or a shorter spin has not paid.
    rest: u32,
}

impl SpinStart {
    /// Learns from a wait that did not find at once what it waited for, but before `round`. `more`: whether there was more
    /// than it needed; `None`: it has found nothing.
    pub(crate) fn learn(&mut self, round: u32, more: Option<bool>) {
        match more {
            None => *self = Self::default(),
            _ if self.first < SPINS && round > SPINS => (self.first, self.rest) = (SPINS, REST),
            Some(true) => self.first = (self.first + 1).min(SPINS - 1),
            Some(false) if self.rest > 0 => self.rest -= 1,
            Some(false) if self.first < LONGER => self.first += 1,
            Some(false) => (self.first, self.rest) = (0, REST),
        }
    }
}

/// Spins on `attempt` for a moment while `may_try`, so that a short wait costs no sleep. Attempts at least once, or not
/// at all if [`SMALL`]. Returns also the round before which it has ended, unless that was the first.
///
/// It attempts all the time, so that two threads that answer each other lose little, except in a first round that was learned.
pub(crate) fn spin<C: ?Sized, R>(
    user: &mut C,
    spin_start: SpinStart,
    may_try: impl Fn(&mut C) -> bool,
    mut attempt: impl FnMut(&mut C) -> Option<R>,
) -> (Option<R>, Option<u32>) {
    let first = if is_single_cpu() {
        SPINS
    } else {
        spin_start.first
    };
    let mut round = first;
    let patience = PATIENCE.try_with(Cell::get).unwrap_or(ROUNDS);
    let mut looks = 1;
    while !SMALL {
        let (pauses, hints) = match 1 << round.min(SPINS) {
            hints if round >= SPINS || round == first && first > 0 => (1, hints),
            pauses => (pauses, 1),
        };
        for _ in 0..pauses {
            if !may_try(user) {
                return (None, None);
            }
            let result = (0..looks).find_map(|_| attempt(user));
            if result.is_some() || round >= patience {
                return (result, (round > first).then_some(round));
            }
            if round < SPINS {
                (0..hints).for_each(|_| spin_hint());
            } else {
                thread::yield_now();
            }
            looks = LOOKS;
        }
        round += 1;
    }
    (None, None)
}

/// Polls until the result is ready, and sleeps in between; `None`: the time to wait is over, by this clock of a queue.
pub(crate) fn block<R>(
    wait: Wait,
    time: &Time,
    mut poll: impl FnMut(&WakeTarget<'_>) -> Poll<R>,
) -> Option<R> {
    let end = wait.end(time);
    Sleeper::with_current(|sleeper| {
        let waker = Waker::from(Arc::clone(sleeper));
        loop {
            let park_until = Cell::new(None);
            let wake_target = WakeTarget {
                waker: &waker,
                park_until: Some(&park_until),
            };
            if let Poll::Ready(result) = poll(&wake_target) {
                return Some(result);
            }
            if let Some(end) = end {
                if time.now() >= end {
                    return None;
                }
                wake_target.wake_at(time, end);
            }
            sleeper.sleep(park_until.get());
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rounds with which the next waits begin, after each has ended before `round`, and has found this.
    fn firsts(spin_start: &mut SpinStart, round: u32, more: Option<bool>, waits: u32) -> Vec<u32> {
        let learn = |_| {
            spin_start.learn(round, more);
            spin_start.first
        };
        (0..waits).map(learn).collect()
    }

    #[test]
    fn a_waiter_that_finds_many_begins_later() {
        let mut spin_start = SpinStart::default();
        let later = firsts(&mut spin_start, 1, Some(true), 8);
        assert_eq!(later, [1, 2, 3, 4, 5, 6, 6, 6]);
        assert_eq!(firsts(&mut spin_start, ROUNDS, None, 1), [0]);
    }

    #[test]
    fn a_waiter_that_finds_one_at_a_time_seldom_tries_to_begin_later() {
        let mut spin_start = SpinStart::default();
        let tried = firsts(&mut spin_start, 1, Some(false), LONGER + 1);
        assert_eq!(tried, [1, 2, 3, 4, 0]);
        let rests = firsts(&mut spin_start, 1, Some(false), REST);
        assert_eq!(rests, vec![0; REST as usize]);
        assert_eq!(firsts(&mut spin_start, 1, Some(false), 1), [1]);
    }

    #[test]
    fn a_waiter_that_has_spun_in_vain_yields_at_once_for_a_while() {
        let mut spin_start = SpinStart::default();
        let yields = firsts(&mut spin_start, SPINS + 1, Some(false), REST + 1);
        assert_eq!(yields, vec![SPINS; REST as usize + 1]);
        assert_eq!(firsts(&mut spin_start, SPINS + 1, Some(false), 1), [0]);
    }

    /// How often a thread attempts that waits in vain.
    #[cfg(not(any(loom, shuttle)))]
    fn attempts(first: u32) -> u32 {
        let mut attempts = 0;
        let spin_start = SpinStart { first, rest: 0 };
        let (found, round) = spin(
            &mut attempts,
            spin_start,
            |_| true,
            |attempts| {
                *attempts += 1;
                None::<()>
            },
        );
        assert_eq!((found, round), (None, Some(ROUNDS)));
        attempts
    }

    #[test]
    #[cfg(not(any(loom, shuttle)))]
    fn a_waiter_attempts_all_the_time_except_in_a_learned_first_round() {
        let yields = LOOKS * (ROUNDS - SPINS);
        let rounds = |from: u32| (from..SPINS).map(|round| LOOKS << round).sum::<u32>();
        if !is_single_cpu() {
            assert_eq!(attempts(0), 1 + rounds(0) + yields);
            assert_eq!(attempts(3), 1 + LOOKS + rounds(4) + yields);
        }
        assert_eq!(attempts(SPINS), 1 + yields);
    }
}
