//! A queue with all options, which is used in all ways while user code panics, and checked afterwards.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use crate::bell::Bell;
use crate::common::ends;
use crate::common::failing::SECOND;
use crate::ledger::{Fate, Ledger};
use crate::plan::{unless_planned, Alive, Call, Plan};
use crate::probes::{Probe, ProbeClock, ProbeLimiter};
use requeue::{
    Backoff, Builder, DeadLetter, Expired, Handle, ManualClock, Order, Pace, PopError, Queue,
    Transaction,
};

const CAPACITY: usize = 24;
pub(crate) const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
/// How many items may be held at a time; the limiter grants more.
const MAX_HELD: usize = 6;

/// A queue, with what its user knows of it.
pub(crate) struct Tour<O: Order<Probe>> {
    pub(crate) queue: Queue<Probe, O>,
    pub(crate) clock: ManualClock,
    pub(crate) plan: Arc<Plan>,
    pub(crate) ledger: Arc<Ledger>,
    traits: Traits,
}

/// What an order means for the transactions of a queue.
#[derive(Clone, Copy)]
pub(crate) struct Traits {
    /// How many items can be held at a time, if that depends on their keys.
    pub(crate) keys: usize,
    pub(crate) has_keys: bool,
    /// Whether items have weights.
    pub(crate) weighs: bool,
    pub(crate) is_leased: bool,
}

/// A part of a tour. It may end by a planned panic.
pub(crate) type Step<O> = fn(&Tour<O>, &mut Worker<O>);

/// The handle of a tour.
pub(crate) type Worker<O> = Handle<Probe, O>;

/// Takes the steps with a new queue on a thread of their own, which must end.
pub(crate) fn play<O: Order<Probe> + 'static>(
    build: fn() -> Builder<Probe, O>,
    traits: Traits,
    plan: &Arc<Plan>,
    steps: &[Step<O>],
    what: &str,
) {
    let (plan, steps, what) = (Arc::clone(plan), steps.to_vec(), what.to_owned());
    ends(move || Tour::new(build(), traits, &plan).run(&steps, &what));
}

impl<O: Order<Probe>> Tour<O> {
    fn new(builder: Builder<Probe, O>, traits: Traits, plan: &Arc<Plan>) -> Self {
        let (clock, ledger) = (ManualClock::new(), Ledger::new(plan));
        let overflow = {
            let (plan, ledger) = (Arc::clone(plan), Arc::clone(&ledger));
            move |letter: DeadLetter<Probe>| {
                ledger.deliver([letter.item]);
                plan.reach(Call::Overflow);
            }
        };
        let queue = builder
            .capacity(CAPACITY)
            .max_attempts(3)
            .backoff(Backoff::fixed(SECOND))
            .max_dead_letters(2)
            .on_dead_overflow(overflow)
            .pace(limiter(plan))
            .max_held(MAX_HELD)
            .clock(ProbeClock(clock.clone(), Alive::new(plan)))
            .timestamps()
            .name("tour")
            .build();
        Self {
            traits,
            plan: Arc::clone(plan),
            queue,
            clock,
            ledger,
        }
    }

    /// Stages an item in a transaction. It is refused until a commit.
    pub(crate) fn stage(&self, tx: &Transaction<'_, Probe, O>) -> Option<usize> {
        let item = self.ledger.item();
        let id = item.id;
        tx.push(item).ok().map(|()| id)
    }

    /// The items of a commit are delivered, the staged ones are accepted, unless a lease is over because the clock has
    /// jumped. No commit panics, except for the destructors of the copies of leased items, after all is committed.
    pub(crate) fn commit<I: IntoIterator<Item = Probe>>(
        &self,
        held: usize,
        staged: impl IntoIterator<Item = Option<usize>>,
        commit: impl FnOnce() -> Result<I, Expired>,
    ) {
        let items = match unless_planned(commit) {
            Some(Err(Expired)) if self.traits.is_leased && self.plan.jumps() => return,
            Some(items) => Some(items.expect("no lease is over")),
            None => None,
        };
        self.ledger
            .set(staged.into_iter().flatten(), Fate::Accepted);
        if let Some(items) = items {
            return self.ledger.deliver(items);
        }
        assert!(self.traits.is_leased && self.plan.panics_in(Call::DropItem));
        self.ledger.excuse(held);
    }

    /// Delivers what is ready, and what was due until then.
    pub(crate) fn drain(&self) {
        while let Ok(item) = self.queue.pop() {
            self.ledger.deliver([item]);
        }
    }

    /// Takes the steps, and checks that the queue works afterwards as if nothing had panicked, and that nothing is left
    /// of it in the end.
    fn run(self, steps: &[Step<O>], what: &str) {
        let mut handle = self.queue.named_handle("worker");
        self.plan.arm(true);
        for step in steps {
            let ended = unless_planned(|| step(&self, &mut handle));
            assert!(
                ended.is_some() || !self.plan.is_caught(),
                "{what} is not caught"
            );
            self.clock.advance(SECOND);
        }
        self.plan.arm(false);
        drop(handle.begin());
        self.queue.resume();
        // A clock that has gone backwards is late by as much.
        self.clock.advance(4 * CENTURY + 1000 * SECOND);
        self.assert_empty(what);
        self.assert_wakes(&mut handle, what);
        self.assert_has_room(&mut handle, what);
        self.clock.advance(1000 * SECOND);
        self.assert_closes(what);
        let (plan, ledger) = (Arc::clone(&self.plan), Arc::clone(&self.ledger));
        drop((self, handle));
        ledger.assert_conserved(what);
        assert_eq!(plan.slots(), 0, "{what}: slots are lost");
        assert_eq!(plan.alive(), 0, "{what}: values are leaked");
    }

    fn assert_empty(&self, what: &str) {
        self.drain();
        let stats = self.queue.stats();
        stats
            .check()
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        let left = (stats.ready, stats.held, stats.delayed, stats.waiting);
        assert_eq!(left, (0, 0, 0, 0), "{what}");
        assert_eq!(self.plan.slots(), 0, "{what}: slots are lost");
    }

    /// A waiter is woken by a push.
    fn assert_wakes(&self, handle: &mut Worker<O>, what: &str) {
        let bell = Bell::new(&self.plan);
        let mut pop = handle.pop_async();
        assert!(bell.poll(&mut pop).is_pending(), "{what}");
        self.ledger.push(|item| self.queue.push(item));
        assert!(bell.was_rung(), "{what}: a waiter sleeps");
        match bell.poll(&mut pop) {
            Poll::Ready(Ok(item)) => self.ledger.deliver([item]),
            _ => panic!("{what}: a waiter found nothing"),
        }
    }

    /// There is room for as many items as ever, and as many can be held.
    fn assert_has_room(&self, handle: &mut Worker<O>, what: &str) {
        let pushed = (0..=CAPACITY).filter(|_| self.ledger.push(|item| self.queue.push(item)));
        assert_eq!(pushed.count(), CAPACITY, "{what}: room is lost");
        let tx = handle.begin();
        assert_eq!(
            tx.pop_batch(CAPACITY).len(),
            MAX_HELD.min(self.traits.keys),
            "{what}"
        );
    }

    fn assert_closes(&self, what: &str) {
        self.drain();
        let letters = self.queue.dead_letters();
        self.ledger.deliver(letters.map(|letter| letter.item));
        self.queue.close();
        let end = self.queue.pop().err();
        assert_eq!(
            end,
            Some(PopError::Closed),
            "{what}: {:?}",
            self.queue.stats()
        );
    }
}

/// A new pace.
pub(crate) fn limiter(plan: &Arc<Plan>) -> Pace {
    Pace::shared(ProbeLimiter(Alive::new(plan)))
}
