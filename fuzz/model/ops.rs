//! The operations.

use arbitrary::{Arbitrary, Result, Unstructured};

/// How many queues there are.
pub(crate) const QUEUES: usize = 3;

/// How many handles may be alive at once.
pub(crate) const SLOTS: usize = 6;

/// The most operations inside one transaction, and the most items of one batch.
const MOST: usize = 12;

/// A sequence of operations.
#[derive(Debug)]
pub(crate) struct Case {
    /// Items of 4 KiB instead of a few words.
    pub(crate) large: bool,
    pub(crate) capacities: [Option<usize>; QUEUES],
    pub(crate) finish: Finish,
    pub(crate) ops: Vec<Op>,
}

impl<'a> Arbitrary<'a> for Case {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let (large, finish) = (u.ratio(1, 8)?, u.arbitrary()?);
        let mut capacities = [None; QUEUES];
        for capacity in &mut capacities {
            *capacity = *u.choose(&CAPACITIES)?;
        }
        let mut ops = Vec::new();
        while !u.is_empty() {
            ops.push(u.arbitrary()?);
        }
        Ok(Self {
            large,
            capacities,
            finish,
            ops,
        })
    }
}

/// What a queue may hold.
const CAPACITIES: [Option<usize>; 8] = [
    None,
    None,
    None,
    Some(1),
    Some(2),
    Some(3),
    Some(7),
    Some(40),
];

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
        commit: bool,
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
    ),
    Drop(#[arbitrary(with = slot)] usize),
}

/// An operation while transactions are open: inside one of them, named by its number, or outside.
#[derive(Arbitrary, Debug)]
pub(crate) enum Step {
    Stage(u8, Way),
    Hold(u8, Way),
    HoldBatch(u8, #[arbitrary(with = batch)] usize, Way),
    Outside(Act),
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

fn slot(u: &mut Unstructured) -> Result<usize> {
    u.choose_index(SLOTS)
}

fn queue(u: &mut Unstructured) -> Result<usize> {
    u.choose_index(QUEUES)
}

/// Most of a case should find its queues open.
fn seldom_queue(u: &mut Unstructured) -> Result<Option<usize>> {
    u.ratio(1, 16)?.then(|| queue(u)).transpose()
}

fn batch(u: &mut Unstructured) -> Result<usize> {
    u.int_in_range(0..=MOST)
}

fn maybe_batch(u: &mut Unstructured) -> Result<Option<usize>> {
    u.ratio(1, 2)?.then(|| batch(u)).transpose()
}

fn some_slots(u: &mut Unstructured) -> Result<Vec<usize>> {
    (0..u.int_in_range(1..=3)?).map(|_| slot(u)).collect()
}

fn several<'a, T: Arbitrary<'a>>(u: &mut Unstructured<'a>) -> Result<Vec<T>> {
    (0..u.int_in_range(0..=MOST)?)
        .map(|_| u.arbitrary())
        .collect()
}
