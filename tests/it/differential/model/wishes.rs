//! Pushes with a priority, or scheduled pushes.

use super::item::Tracked;
use super::order::Wished;
use super::settings::{ticks, Ticks};
use super::shapes::few;
use arbitrary::{Arbitrary, Result, Unstructured};
use requeue::{Handle, Prioritized, PushError, Queue, Ticket, Transaction};
use std::time::{Duration, Instant};

/// The latest time that a queue can represent.
const END: Ticks = (u64::MAX - 1 - (1 << 62)) / 1_000_000;

/// Longer than a queue can represent.
const AGES: Duration = Duration::from_secs(600 * 366 * 24 * 60 * 60);

/// The arguments of a push.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Wish {
    With(
        #[arbitrary(with = priority)] u16,
        #[arbitrary(with = maybe_time)] Option<Time>,
    ),
    At(Time),
    After(#[arbitrary(with = few)] Ticks),
    /// After the longest delay.
    AtLast,
}

/// A time relative to now.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Time {
    Ago(#[arbitrary(with = few)] Ticks),
    In(#[arbitrary(with = few)] Ticks),
    InAges,
}

const PRIORITIES: [u16; 10] = [0, 0, 1, 1, 2, 4999, 5000, 5001, 10_000, u16::MAX];

pub(super) fn priority(u: &mut Unstructured) -> Result<u16> {
    u.choose(&PRIORITIES).copied()
}

fn maybe_time(u: &mut Unstructured) -> Result<Option<Time>> {
    u.arbitrary()
}

impl Time {
    pub(super) fn due(self, now: Ticks) -> Ticks {
        match self {
            Self::Ago(ago) => now.saturating_sub(ago),
            Self::In(delay) => now + delay,
            Self::InAges => END,
        }
    }

    pub(super) fn instant(self, now: Instant) -> Instant {
        match self {
            Self::Ago(ago) => now.checked_sub(ticks(ago)).expect("a recent time"),
            Self::In(delay) => now + ticks(delay),
            Self::InAges => now + AGES,
        }
    }
}

impl Wish {
    /// The facts in the model.
    pub(crate) fn known(self, now: Ticks) -> Wished {
        let (priority, due) = match self {
            Self::With(priority, time) => (priority, time.map(|time| time.due(now))),
            Self::At(time) => (Wished::default().priority, Some(time.due(now))),
            Self::After(delay) => (Wished::default().priority, Some(now + delay)),
            Self::AtLast => (Wished::default().priority, Some(END)),
        };
        Wished {
            priority,
            due: due.filter(|&due| due > now), // a plain push otherwise
            ticket: true,
        }
    }

    pub(crate) fn call(self, now: Instant) -> Call {
        match self {
            Self::With(priority, time) => Call::With(priority, time.map(|time| time.instant(now))),
            Self::At(time) => Call::At(time.instant(now)),
            Self::After(delay) => Call::After(ticks(delay)),
            Self::AtLast => Call::After(Duration::MAX),
        }
    }
}

/// The method that is called.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Call {
    With(u16, Option<Instant>),
    At(Instant),
    After(Duration),
}

/// The result of such a push.
pub(crate) type Said<const PAD: usize> =
    std::result::Result<Option<Ticket>, PushError<Tracked<PAD>>>;

/// Queues, handles and transactions with such pushes.
pub(super) trait Pusher<const PAD: usize> {
    fn push_so(self, call: Call, item: Tracked<PAD>) -> Said<PAD>;
}

macro_rules! pushers {
    ($($pusher:ty),+) => {$(
        impl<const PAD: usize, O: Prioritized<Tracked<PAD>>> Pusher<PAD> for $pusher {
            fn push_so(self, call: Call, item: Tracked<PAD>) -> Said<PAD> {
                Ok(Some(match call {
                    Call::With(priority, None) => self.priority(priority).push(item)?,
                    Call::With(priority, Some(time)) => {
                        self.priority(priority).at(time).push(item)?
                    }
                    Call::At(time) => self.at(time).push(item)?,
                    Call::After(delay) => self.after(delay).push(item)?,
                }))
            }
        }
    )+};
}

pushers!(
    &Queue<Tracked<PAD>, O>,
    &mut Handle<Tracked<PAD>, O>,
    &Transaction<'_, Tracked<PAD>, O>
);
