//! The operations.

use super::settings::{Rule, Settings, Ticks};
use super::shapes::{
    batch, few, few_acts, maybe_batch, maybe_delay, queue, seldom_queue, several, slot, some_slots,
};
use super::wishes::{priority, Time, Wish};
use super::work::Name;
use arbitrary::{Arbitrary, Result, Unstructured};

/// How many queues there are.
pub(crate) const QUEUES: usize = 3;

/// How many handles may be alive at once.
pub(crate) const SLOTS: usize = 6;

/// A sequence of operations.
#[derive(Debug)]
pub(crate) struct Case {
    /// Items of 4 KiB instead of a few words.
    pub(crate) large: bool,
    /// Whether the queues lease their items; some for longer than the case lasts.
    pub(crate) leases: bool,
    pub(crate) settings: [Settings; QUEUES],
    pub(crate) finish: Finish,
    pub(crate) ops: Vec<Op>,
}

impl Case {
    /// Makes a case of queues with such rules.
    pub(crate) fn of<'a>(
        u: &mut Unstructured<'a>,
        rule: fn(&mut Unstructured<'a>) -> Result<Rule>,
    ) -> Result<Self> {
        let (large, leases, finish) = (u.ratio(1, 8)?, u.ratio(2, 5)?, u.arbitrary()?);
        let mut settings: [Settings; QUEUES] = u.arbitrary()?;
        for settings in &mut settings {
            settings.rule = rule(u)?;
            settings.lend(leases);
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

/// One operation at rest: no transaction is in progress but forgotten ones.
#[derive(Arbitrary, Debug)]
pub(crate) enum Op {
    Plain(Act),
    /// One to three transactions that are open together, on different handles.
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
    /// A future of a handle that is polled, and what happens until it is polled again or given up.
    Wait {
        #[arbitrary(with = slot)]
        slot: usize,
        /// It pushes so many items, or pops.
        #[arbitrary(with = maybe_batch)]
        push: Option<usize>,
        #[arbitrary(with = several)]
        meanwhile: Vec<Act>,
        then: Then,
    },
}

/// How a closure ends that works on a transaction.
#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Close {
    Commit,
    Abort,
    Panic,
}

/// What becomes of a future that waits.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Then {
    /// It is polled once more, and dropped if it still waits.
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

/// How a call that may wait is made.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Way {
    /// By the call that never waits.
    Try,
    /// With a timeout of zero.
    Zero,
    /// Without end, where the model knows that there is nothing to wait for.
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
    /// So many items are drained, if there are so many.
    Drain(
        #[arbitrary(with = queue)] usize,
        #[arbitrary(with = batch)] usize,
    ),
    Close(#[arbitrary(with = seldom_queue)] Option<usize>),
    /// A new handle of the queue takes the place of the one in the slot.
    Handle(
        #[arbitrary(with = slot)] usize,
        #[arbitrary(with = queue)] usize,
        Label,
    ),
    Drop(#[arbitrary(with = slot)] usize),
    /// So much time goes by.
    Advance(#[arbitrary(with = few)] Ticks),
    /// A look without a transaction.
    Peek(#[arbitrary(with = slot)] usize),
    Snapshot(#[arbitrary(with = queue)] usize),
    /// What the handles of this name took earlier than so long ago is taken back.
    Recover(
        #[arbitrary(with = queue)] usize,
        Label,
        #[arbitrary(with = few)] Ticks,
    ),
    /// The oldest dead letter is taken out.
    Letter(#[arbitrary(with = queue)] usize),
    Requeue(#[arbitrary(with = queue)] usize),
    Own(Verb),
}

/// What only queues by priority do; others push as they always do.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Verb {
    Push(#[arbitrary(with = slot)] usize, Wish),
    /// A push without a handle.
    PushDirect(#[arbitrary(with = queue)] usize, Wish),
    /// Of one of the items that were pushed so.
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

/// An operation while transactions are open: inside one of them, named by its number, or outside.
#[derive(Arbitrary, Debug)]
pub(crate) enum Step {
    Stage(u8, Way),
    /// As [`Verb::Push`].
    StageSo(u8, Wish),
    Hold(u8, Way),
    HoldBatch(u8, #[arbitrary(with = batch)] usize, Way),
    /// A look at the next item, what happens meanwhile, and what becomes of it.
    Peek(u8, #[arbitrary(with = few_acts)] Vec<Act>, Look),
    /// One of the held items is given back early.
    Retry(u8, #[arbitrary(with = maybe_delay)] Option<Ticks>),
    Renew(u8),
    Outside(Act),
}

/// What becomes of an item that is looked at.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Look {
    Drop,
    Take,
    Forget,
}

/// How the transactions that are open together end.
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

/// What is done with the items of a commit.
#[derive(Arbitrary, Debug)]
pub(crate) struct Rest {
    /// So many are taken by value.
    #[arbitrary(with = batch)]
    pub(crate) take: usize,
    /// The others are forgotten with their iterator, not dropped.
    pub(crate) forget: bool,
}
