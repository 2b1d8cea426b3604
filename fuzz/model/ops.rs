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
    /// At the end the queues are dropped before the handles.
    pub(crate) queues_first: bool,
    pub(crate) ops: Vec<Op>,
}

impl<'a> Arbitrary<'a> for Case {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let (large, queues_first) = (u.ratio(1, 8)?, u.arbitrary()?);
        let mut ops = Vec::new();
        while !u.is_empty() {
            ops.push(u.arbitrary()?);
        }
        Ok(Self {
            large,
            queues_first,
            ops,
        })
    }
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
}

/// An operation outside any transaction.
#[derive(Arbitrary, Debug)]
pub(crate) enum Act {
    Push(#[arbitrary(with = slot)] usize),
    Pop(#[arbitrary(with = slot)] usize),
    PushBatch(
        #[arbitrary(with = slot)] usize,
        #[arbitrary(with = batch)] usize,
    ),
    PopBatch(
        #[arbitrary(with = slot)] usize,
        #[arbitrary(with = batch)] usize,
    ),
    /// A push without a handle.
    PushDirect(#[arbitrary(with = queue)] usize),
    /// A pop without a handle.
    PopDirect(#[arbitrary(with = queue)] usize),
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
    Stage(u8),
    Hold(u8),
    HoldBatch(u8, #[arbitrary(with = batch)] usize),
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

fn batch(u: &mut Unstructured) -> Result<usize> {
    u.int_in_range(0..=MOST)
}

fn some_slots(u: &mut Unstructured) -> Result<Vec<usize>> {
    (0..u.int_in_range(1..=3)?).map(|_| slot(u)).collect()
}

fn several<'a, T: Arbitrary<'a>>(u: &mut Unstructured<'a>) -> Result<Vec<T>> {
    (0..u.int_in_range(0..=MOST)?)
        .map(|_| u.arbitrary())
        .collect()
}
