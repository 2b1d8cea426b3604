//! Commits over several queues.

use std::time::Duration;

use requeue::{commit_all, try_commit_all, Expired, Handle, Transaction, Unleased};

use super::held::Held;
use super::lanes::{Lane, Put};
use super::ledger::Job;
use super::observer::Observer;
use super::planned;
use super::rng::Rng;
use super::whole::Soak;

const WAIT: Duration = Duration::from_micros(200);

/// Takes from two queues and pushes to two others, until the round ends.
pub(crate) fn run(soak: &Soak, mut rng: Rng) {
    let lanes = &soak.lanes;
    let (mut bounded, mut leased) = (
        End::new(soak, &lanes.bounded),
        End::new(soak, &lanes.leased),
    );
    let (mut serial, mut priority) = (
        End::new(soak, &lanes.serial),
        End::new(soak, &lanes.priority),
    );
    while !soak.is_stopped() {
        let survived = planned::survives(|| {
            if rng.one_in(2) {
                without_leases(&mut bounded, &mut serial, &mut priority, &mut rng);
            } else {
                with_leases(&mut leased, &mut bounded, &mut priority, &mut rng);
            }
        });
        if !survived {
            soak.counts.panicked.one();
        }
    }
}

/// One queue's part in joint commits.
struct End<'s, O: Put> {
    soak: &'s Soak,
    lane: &'s Lane<O>,
    handle: Handle<Job, O>,
    stream: u32,
    observer: Observer,
}

/// What a part of a joint commit did.
struct Part<'h, 's, O: Put> {
    soak: &'s Soak,
    lane: &'s Lane<O>,
    /// Dropped before the transaction.
    held: Held<'s>,
    tx: Transaction<'h, Job, O>,
    taken: usize,
    staged: Vec<Job>,
}

impl<'s, O: Put> End<'s, O> {
    fn new(soak: &'s Soak, lane: &'s Lane<O>) -> Self {
        soak.counts.handles.one();
        Self {
            soak,
            lane,
            handle: lane.queue.handle(),
            stream: soak.ledger.stream(),
            observer: Observer::default(),
        }
    }

    /// Begins, waits for an item, and stages one. `None` if there is no item.
    fn first(&mut self, rng: &mut Rng) -> Option<Part<'_, 's, O>> {
        let part = self.part(true, rng);
        (part.taken > 0).then_some(part)
    }

    /// Begins, waits for an item if it `waits`, and stages one.
    fn part(&mut self, waits: bool, rng: &mut Rng) -> Part<'_, 's, O> {
        let (soak, lane) = (self.soak, self.lane);
        let tx = self.handle.begin();
        let mut held = Held::new(&lane.rules);
        let mut taken = 0;
        if let Some(item) = waits.then(|| tx.pop_timeout(WAIT).ok()).flatten() {
            held.add(&soak.ledger, &item);
            self.observer.delivered(&soak.ledger, &lane.rules, &item);
            taken = 1;
        }
        let job = lane.job(&soak.ledger, self.stream, rng).map(O::prepared);
        let staged = job.filter(|job| O::stage(&tx, *job));
        Part {
            soak,
            lane,
            held,
            tx,
            taken,
            staged: staged.into_iter().collect(),
        }
    }
}

impl<'h, 's, O: Put> Part<'h, 's, O> {
    /// The transaction, and the record of its commit.
    fn split(self) -> (Transaction<'h, Job, O>, Record<'s, O>) {
        let Self {
            soak,
            lane,
            held,
            tx,
            taken,
            staged,
        } = self;
        drop(held);
        (
            tx,
            Record {
                soak,
                lane,
                taken,
                staged,
            },
        )
    }
}

struct Record<'s, O: Put> {
    soak: &'s Soak,
    lane: &'s Lane<O>,
    taken: usize,
    staged: Vec<Job>,
}

impl<O: Put> Record<'_, O> {
    fn committed(&self, taken: impl Iterator<Item = Job>) {
        self.soak
            .ended(self.lane, Ok::<_, Expired>(taken), self.taken, &self.staged);
    }
}

fn without_leases<A, B, C>(from: &mut End<A>, over: &mut End<B>, to: &mut End<C>, rng: &mut Rng)
where
    A: Put + Unleased,
    B: Put + Unleased,
    C: Put + Unleased,
{
    let counts = &from.soak.counts;
    let Some(a) = from.first(rng) else {
        return;
    };
    let b = over.part(true, rng);
    let c = to.part(false, rng);
    let chance = rng.below(10);
    if chance == 0 {
        planned::panic();
    }
    let ((a, of_a), (b, of_b), (c, of_c)) = (a.split(), b.split(), c.split());
    if chance == 1 {
        return counts.aborted.one(); // all are dropped
    }
    let (a, b, c) = commit_all((a, b, c));
    of_a.committed(a);
    of_b.committed(b);
    of_c.committed(c);
    counts.joint.one();
}

fn with_leases<A: Put, B: Put, C: Put>(
    from: &mut End<A>,
    over: &mut End<B>,
    to: &mut End<C>,
    rng: &mut Rng,
) {
    let (soak, lane) = (from.soak, from.lane);
    let Some(a) = from.first(rng) else {
        return;
    };
    let b = over.part(true, rng);
    let c = to.part(true, rng);
    let ((a, of_a), (b, of_b), (c, of_c)) = (a.split(), b.split(), c.split());
    match try_commit_all((a, b, c)) {
        Ok((a, b, c)) => {
            of_a.committed(a);
            of_b.committed(b);
            of_c.committed(c);
            soak.counts.joint.one();
        }
        Err(Expired) => soak.expired(lane),
    }
}
