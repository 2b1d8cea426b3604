//! The operations.

use super::settings::{Rule, Settings, Ticks};
use super::shapes::{
    batch, few, few_acts, maybe_batch, maybe_delay, queue, seldom_queue, several, slot, some_slots,
};
use super::wishes::{priority, Time, Wish};
use super::work::Name;
use arbitrary::{Arbitrary, Result, Unstructured};

/// Number of queues.
pub(crate) const QUEUES: usize = 3;

/// Maximal number of handles that are alive.
pub(crate) const SLOTS: usize = 6;

/// A sequence of operations.
#[derive(Debug)]
pub(crate) struct Case {
    /// Items of 4 KiB instead of a few words.
    pub(crate) large: bool,
    /// Whether the queues lease their items; some leases last longer than the case.
    pub(crate) leases: bool,
    pub(crate) settings: [Settings; QUEUES],
    pub(crate) finish: Finish,
    pub(crate) ops: Vec<Op>,
}

impl Case {
    /// Creates a case of queues with these rules.
    pub(crate) fn of<'a>(
        u: &mut Unstructured<'a>,
        rule: fn(&mut Unstructured<'a>) -> Result<Rule>,
    ) -> Result<Self> {
        let (large, leases, finish) = (u.ratio(1, 8)?, u.ratio(2, 5)?, u.arbitrary()?);
        let mut settings: [Settings; QUEUES] = u.arbitrary()?;
        for settings in &mut settings {
            settings.rule = rule(u)?;
            settings.set_leased(leases);
        }
        let mut ops = Vec::new();
        while !u.is_empty() {
            ops.push(u.arbitrary()?);
        }
        Ok(Self {
            large,
            leases,
            settings,
            finish,
            ops,
        })
    }
}

/// How a case ends.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Finish {
    /// The queues are dropped before the handles.
    QueuesFirst,
    HandlesFirst,
    /// The handles are dropped, and the queues closed and drained.
    Drain,
}

/// One operation at rest: no transaction is open, except forgotten ones.
#[derive(Arbitrary, Debug)]
pub(crate) enum Op {
    Plain(Act),
    /// One to three transactions that are open at the same time, on different handles.
    Begin {
        #[arbitrary(with = some_slots)]
        slots: Vec<usize>,
        #[arbitrary(with = several)]
        steps: Vec<Step>,
        end: Ending,
    },
    Transact {
        #[arbitrary(with = slot)]
        slot: usize,
        #[arbitrary(with = several)]
        steps: Vec<Step>,
        close: Close,
    },
    /// A future of a handle that is polled, and the operations until it is polled again or dropped.
    Wait {
        #[arbitrary(with = slot)]
        slot: usize,
        /// A push of this many items, or a pop.
        #[arbitrary(with = maybe_batch)]
        push: Option<usize>,
        #[arbitrary(with = several)]
        meanwhile: Vec<Act>,
        then: Then,
    },
}

/// How a closure that uses a transaction ends.
#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Close {
    Commit,
    Abort,
    Panic,
}

/// What happens to a pending future.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Then {
    /// It is polled once more, and dropped if it is still pending.
    Poll,
    Drop,
    Forget,
}

impl Then {
    /// The same for the push of a batch: if it were forgotten, its vector would leak.
    pub(crate) fn of_batch(self) -> Self {
        match self {
            Self::Forget => Self::Drop,
            then => then,
        }
    }
}

/// The form of a call that may wait.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Way {
    /// The form that never waits.
    Try,
    /// With a timeout of zero.
    Zero,
    /// Without a timeout, if the model knows that the call does not wait.
    Block,
    Poll(Then),
}

/// An operation outside any transaction.
#[derive(Arbitrary, Debug)]
pub(crate) enum Act {
    Push(#[arbitrary(with = slot)] usize, Way),
    Pop(#[arbitrary(with = slot)] usize, Way),
    PushBatch(
        #[arbitrary(with = slot)] usize,
        #[arbitrary(with = batch)] usize,
        Way,
    ),
    PopBatch(
        #[arbitrary(with = slot)] usize,
        #[arbitrary(with = batch)] usize,
        Way,
    ),
    /// A push without a handle.
    PushDirect(#[arbitrary(with = queue)] usize),
    /// A pop without a handle.
    PopDirect(#[arbitrary(with = queue)] usize),
    /// Drains this many items, if there are as many.
    Drain(
        #[arbitrary(with = queue)] usize,
        #[arbitrary(with = batch)] usize,
    ),
    Close(#[arbitrary(with = seldom_queue)] Option<usize>),
    /// A new handle of the queue replaces the one in the slot.
    Handle(
        #[arbitrary(with = slot)] usize,
        #[arbitrary(with = queue)] usize,
        Label,
    ),
    Drop(#[arbitrary(with = slot)] usize),
    /// Advances the clock.
    Advance(#[arbitrary(with = few)] Ticks),
    /// A peek without a transaction.
    Peek(#[arbitrary(with = slot)] usize),
    Snapshot(#[arbitrary(with = queue)] usize),
    /// Recovers the items that handles of this name took longer ago than this.
    Recover(
        #[arbitrary(with = queue)] usize,
        Label,
        #[arbitrary(with = few)] Ticks,
    ),
    /// The oldest dead letter is removed.
    Letter(#[arbitrary(with = queue)] usize),
    Requeue(#[arbitrary(with = queue)] usize),
    Own(Verb),
}

/// Operations of priority queues only; other queues push without a priority.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Verb {
    Push(#[arbitrary(with = slot)] usize, Wish),
    /// A push without a handle.
    PushDirect(#[arbitrary(with = queue)] usize, Wish),
    /// Of one of the items that were pushed with a ticket.
    Cancel(u8),
    Reprioritize(u8, #[arbitrary(with = priority)] u16),
    Reschedule(u8, Time),
}

/// The name of a handle.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Label {
    None,
    Ann,
    Ben,
}

impl Label {
    pub(crate) fn name(self) -> Option<Name> {
        match self {
            Self::None => None,
            Self::Ann => Some("ann"),
            Self::Ben => Some("ben"),
        }
    }
}

/// An operation while transactions are open: inside one of them, selected by its number, or outside.
#[derive(Arbitrary, Debug)]
pub(crate) enum Step {
    Stage(u8, Way),
    /// Like [`Verb::Push`].
    StageSo(u8, Wish),
    Hold(u8, Way),
    HoldBatch(u8, #[arbitrary(with = batch)] usize, Way),
    /// A peek at the next item, operations meanwhile, and what happens to the item.
    Peek(u8, #[arbitrary(with = few_acts)] Vec<Act>, Look),
    /// One of the held items is retried early.
    Retry(u8, #[arbitrary(with = maybe_delay)] Option<Ticks>),
    Renew(u8),
    Outside(Act),
}

/// What happens to a peeked item.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Look {
    Drop,
    Take,
    Forget,
}

/// How transactions that are open at the same time end.
#[derive(Arbitrary, Debug)]
pub(crate) enum Ending {
    Joint(Rest),
    Each([End; 3]),
}

/// How one transaction ends.
#[derive(Arbitrary, Debug)]
pub(crate) enum End {
    Commit(Rest),
    Abort,
    Drop,
    Forget,
}

/// What happens to the items of a commit.
#[derive(Arbitrary, Debug)]
pub(crate) struct Rest {
    /// This many are taken by value.
    #[arbitrary(with = batch)]
    pub(crate) take: usize,
    /// The others are forgotten with their iterator, not dropped.
    pub(crate) forget: bool,
}
