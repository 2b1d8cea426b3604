//! Sequences of operations on queues whose items have weights, compared with a model that adds them up; in all orders.
//!
//! `REQUEUE_CASES` sets the number of random cases; `REQUEUE_SEED` runs only the case named by a failure.

use crate::common::failing::SECOND;
use crate::common::panics;
use crate::common::rng::Rng;
use requeue::{
    try_commit_all, AfterTtl, Backoff, Delivery, Handle, ManualClock, Order, OwnedTransaction,
    PushError, Queue,
};
use std::collections::HashSet;
use std::time::{Duration, Instant};

const LIMIT: usize = 10;
/// Heavier than the limit.
const TOO_HEAVY: usize = 11;
/// Maximal number of handles with an open transaction; one more handle has none.
const WORKERS: usize = 3;
/// The term of leases.
const TERM: Duration = Duration::from_secs(7);

/// The last digit of an item, to base 16.
#[allow(clippy::trivially_copy_pass_by_ref)] // as `weigh` calls it
pub(crate) fn weight(item: &u64) -> usize {
    usize::try_from(item % 16).unwrap()
}

fn sum<'i>(items: impl IntoIterator<Item = &'i u64>) -> usize {
    items.into_iter().map(weight).sum()
}

/// An item that was taken, and when.
type Taken = (u64, Instant);

/// An open transaction.
struct Open<O: Order<u64>> {
    tx: OwnedTransaction<u64, O>,
    held: Vec<Taken>,
    staged: Vec<u64>,
}

/// The state of a queue, as far as its items do not say it themselves.
struct World<'q, O: Order<u64>> {
    queue: &'q Queue<u64, O>,
    clock: &'q ManualClock,
    plain: Handle<u64, O>,
    leased: bool,
    /// Whether items have a time to live.
    dies: bool,
    numbers: u64,
    txs: [Option<Open<O>>; WORKERS],
    out: Vec<(Delivery<u64, O>, Taken)>,
    /// Those that nobody holds.
    inside: Vec<u64>,
}

impl<O: Order<u64>> World<'_, O> {
    fn item(&mut self, rng: &mut Rng) -> u64 {
        self.numbers += 1;
        let weight = if rng.percent(3) {
            TOO_HEAVY
        } else {
            rng.below(6)
        };
        self.numbers * 16 + weight as u64
    }

    fn is_lost(&self, (_, since): &Taken) -> bool {
        self.leased && self.clock.now() >= *since + TERM
    }

    fn kept<'t>(&'t self, taken: impl Iterator<Item = &'t Taken>) -> usize {
        let kept = taken.filter(|taken| !self.is_lost(taken));
        sum(kept.map(|(item, _)| item))
    }

    fn of_tx(&self, Open { held, staged, .. }: &Open<O>) -> usize {
        let all = sum(held.iter().map(|(item, _)| item));
        self.kept(held.iter()) + sum(staged).saturating_sub(all)
    }

    /// What is ready and delayed, and max(held, staged) of each transaction.
    fn room(&self) -> usize {
        let txs = self.txs.iter().flatten().map(|open| self.of_tx(open));
        let out = self.kept(self.out.iter().map(|(_, taken)| taken));
        let used = sum(&self.inside) + out + txs.sum::<usize>();
        assert!(used <= LIMIT, "more than the limit: {used}");
        LIMIT - used
    }

    /// Looks at the items that nobody holds, and checks the weight of all.
    fn look(&mut self) {
        let mut inside = Vec::new();
        let (mut over, mut before) = (0, None);
        // What is due has come, and what is over is gone, also behind what went before.
        while before != Some(over) {
            before = Some(over);
            inside.clear();
            self.queue.retain(|&item, _| {
                inside.push(item);
                true
            });
            let stats = self.queue.stats();
            over = stats.timed_out + stats.dead;
        }
        let distinct: HashSet<_> = inside.iter().collect();
        assert_eq!(distinct.len(), inside.len());
        self.inside = inside;
        let of_tx = |open: &Open<O>| self.kept(open.held.iter()) + sum(&open.staged);
        let txs: usize = self.txs.iter().flatten().map(of_tx).sum();
        let out = self.kept(self.out.iter().map(|(_, taken)| taken));
        assert_eq!(self.queue.weight(), sum(&self.inside) + out + txs);
        assert_eq!(self.queue.is_full(), self.room() == 0);
    }

    /// Checks the outcome of a push.
    fn pushed<R, I>(&self, items: &[u64], needed: usize, outcome: Result<R, PushError<I>>) -> bool {
        let outcome = outcome.map(drop).map_err(|error| match error {
            PushError::TooHeavy(_) => PushError::TooHeavy(()),
            PushError::Full(_) => PushError::Full(()),
            PushError::Closed(_) => PushError::Closed(()),
            PushError::Duplicate(_, of) => PushError::Duplicate((), of),
        });
        let expected = if items.iter().any(|item| weight(item) > LIMIT) {
            Err(PushError::TooHeavy(()))
        } else if needed > self.room() {
            Err(PushError::Full(()))
        } else {
            Ok(())
        };
        // What is over may be found meanwhile.
        let is_freed = self.dies && outcome.is_ok() && expected == Err(PushError::Full(()));
        assert!(is_freed || outcome == expected, "{outcome:?} for {items:?}");
        outcome.is_ok()
    }

    fn push(&mut self, rng: &mut Rng) {
        let (one, other) = (self.item(rng), self.item(rng));
        let delay = SECOND * u32::try_from(rng.below(3)).unwrap();
        let both = [one, other];
        let (items, outcome) = match rng.below(6) {
            0 => (&both[..1], self.queue.push(one).map_err(drop_item)),
            1 => (&both[..1], self.plain.push(one).map_err(drop_item)),
            2 => (
                &both[..],
                self.plain.push_batch(both).map(drop).map_err(drop_item),
            ),
            3 => (
                &both[..],
                self.queue.push_batch(both).map(drop).map_err(drop_item),
            ),
            4 => (
                &both[..1],
                self.queue
                    .after(delay)
                    .push(one)
                    .map(drop)
                    .map_err(drop_item),
            ),
            _ => {
                let later = self.plain.after(delay);
                (
                    &both[..],
                    later.push_batch(both).map(drop).map_err(drop_item),
                )
            }
        };
        self.pushed(items, sum(items), outcome);
    }

    fn stage(&mut self, worker: usize, rng: &mut Rng) {
        let both = [self.item(rng), self.item(rng)];
        let Some(mut open) = self.txs[worker].take() else {
            return;
        };
        let (tx, one) = (&open.tx, both[0]);
        let (items, outcome) = match rng.below(4) {
            0 | 1 => (&both[..1], tx.push(one).map_err(drop_item)),
            2 => (&both[..], tx.push_batch(both).map(drop).map_err(drop_item)),
            _ => (
                &both[..1],
                tx.after(SECOND).push(one).map(drop).map_err(drop_item),
            ),
        };
        let held = sum(open.held.iter().map(|(item, _)| item));
        let staged = sum(&open.staged);
        let needed = (staged + sum(items)).saturating_sub(held.max(staged));
        let own = self.of_tx(&open);
        self.txs[worker] = None;
        // Without this transaction there is as much more room as it has permits.
        let needed = needed + own;
        if self.pushed(items, needed, outcome) {
            open.staged.extend(items);
        }
        self.txs[worker] = Some(open);
    }

    fn hold(&mut self, worker: usize, rng: &mut Rng) {
        let now = self.clock.now();
        let Some(Open { tx, held, staged }) = &mut self.txs[worker] else {
            return;
        };
        if rng.percent(30) {
            return held.extend(tx.pop_batch(2).map(|item| (*item, now)));
        }
        let item = if rng.percent(20) {
            tx.peek().map(requeue::Peek::take)
        } else {
            tx.pop()
        };
        let Ok(item) = item else { return };
        let taken = (*item, now);
        held.push(taken);
        let all = sum(held.iter().map(|(item, _)| item));
        let needed = (sum(&*staged) + weight(&taken.0)).saturating_sub(all.max(sum(&*staged)));
        let (left, dies) = match rng.below(8) {
            0 => (tx.retry(item), false),
            1 => (tx.retry_after(item, SECOND), false),
            2 => (tx.fail(item, "failed"), true),
            _ => return,
        };
        if left.is_ok() {
            held.pop();
        }
        let before: HashSet<_> = self.inside.iter().copied().collect();
        assert!(before.contains(&taken.0));
        self.inside.retain(|item| *item != taken.0);
        if !dies && left.is_err() {
            assert!(needed > self.room());
        }
    }

    fn deliver(&mut self, rng: &mut Rng) {
        let now = self.clock.now();
        let Ok(delivery) = self.queue.take() else {
            return;
        };
        let taken = (*delivery, now);
        match rng.below(6) {
            0 => drop(delivery),
            1 => delivery.fail("failed"),
            2 => {
                self.inside.retain(|item| *item != taken.0);
                let staged = self.item(rng);
                let tx = delivery.try_into_transaction().unwrap();
                let needed = weight(&staged).max(weight(&taken.0));
                self.pushed(&[staged], needed, tx.push(staged));
                if rng.percent(50) {
                    assert!(tx.try_commit().is_ok());
                }
            }
            _ => self.out.push((delivery, taken)),
        }
    }

    fn end_delivery(&mut self, rng: &mut Rng) {
        if self.out.is_empty() {
            return;
        }
        let (delivery, taken) = self.out.swap_remove(rng.below(self.out.len()));
        let is_lost = self.is_lost(&taken);
        match rng.below(4) {
            0 => drop(delivery),
            1 => delivery.nack_after(SECOND),
            _ => assert_eq!(delivery.try_ack().is_err(), is_lost),
        }
    }

    fn end(&mut self, worker: usize, rng: &mut Rng) {
        let Some(Open { tx, .. }) = self.txs[worker].take() else {
            return;
        };
        let other = self.txs[(worker + 1) % WORKERS].take();
        match (rng.below(4), other) {
            (0, Some(other)) => drop(try_commit_all(vec![tx, other.tx])),
            (1, other) => {
                tx.abort();
                drop(other);
            }
            (_, other) => {
                drop(tx.try_commit());
                self.txs[(worker + 1) % WORKERS] = other;
            }
        }
    }

    fn step(&mut self, rng: &mut Rng) {
        let worker = rng.below(WORKERS);
        self.txs[worker].get_or_insert_with(|| Open {
            tx: self.queue.begin_owned(),
            held: Vec::new(),
            staged: Vec::new(),
        });
        match rng.below(40) {
            0..=9 => self.push(rng),
            10..=15 => self.stage(worker, rng),
            16..=23 => self.hold(worker, rng),
            24..=26 => self.end(worker, rng),
            27..=29 => self.deliver(rng),
            30..=31 => self.end_delivery(rng),
            32..=33 => drop(self.queue.pop()),
            34 => drop(self.plain.pop_batch(2, &mut Vec::new())),
            35 => drop(self.queue.dead_letters().requeue_all()),
            36 => {
                let gone = rng.below(6);
                self.queue.retain(|item, _| weight(item) != gone);
            }
            _ => self
                .clock
                .advance(SECOND * u32::try_from(rng.below(4)).unwrap()),
        }
        self.look();
    }
}

#[allow(clippy::needless_pass_by_value)] // as `map_err` calls it
fn drop_item<I>(error: PushError<I>) -> PushError<()> {
    match error {
        PushError::TooHeavy(_) => PushError::TooHeavy(()),
        PushError::Full(_) => PushError::Full(()),
        PushError::Closed(_) => PushError::Closed(()),
        PushError::Duplicate(_, of) => PushError::Duplicate((), of),
    }
}

fn play<O: Order<u64>>(
    clock: &ManualClock,
    queue: &Queue<u64, O>,
    (leased, dies): (bool, bool),
    rng: &mut Rng,
) {
    let mut world = World {
        queue,
        clock,
        plain: queue.handle(),
        leased,
        dies,
        numbers: 0,
        txs: [(); WORKERS].map(|()| None),
        out: Vec::new(),
        inside: Vec::new(),
    };
    for _ in 0..rng.below(200) {
        world.step(rng);
    }
    drop(world);
    assert_is_all_free(queue);
}

/// All room comes back when the queue is cleared.
fn assert_is_all_free<O: Order<u64>>(queue: &Queue<u64, O>) {
    queue.clear_all();
    assert_eq!((queue.weight(), queue.is_full()), (0, false));
    assert!(queue.push_batch([1; LIMIT + 1]).unwrap_err().is_full());
    for number in 0..LIMIT as u64 {
        queue.push(16 * number + 1).unwrap();
    }
    assert!(queue.push(1).unwrap_err().is_full());
    queue.push(16).unwrap(); // of weight 0
    queue.stats().check().unwrap();
}

/// Plays with a queue of each order, leased or not, with random options.
fn play_all(seed: u64) {
    macro_rules! play {
        ($(|$it:ident| $order:expr),+) => {$({
            for leased in [false, true] {
                let mut rng = Rng::new(seed);
                let clock = ManualClock::new();
                let mut $it = Queue::builder()
                    .clock(clock.clone())
                    .weigh(weight)
                    .capacity(LIMIT)
                    .max_dead_letters(3);
                if rng.percent(50) {
                    $it = $it.max_attempts(2);
                }
                if rng.percent(30) {
                    $it = $it.backoff(Backoff::fixed(SECOND));
                }
                let dies = rng.percent(40);
                if dies {
                    $it = $it.ttl(SECOND * 5);
                    if rng.percent(50) {
                        $it = $it.on_expired(AfterTtl::DeadLetter);
                    }
                }
                let it = $order;
                if leased {
                    play(&clock, &it.leased(TERM).build(), (true, dies), &mut rng);
                } else {
                    play(&clock, &it.build(), (false, dies), &mut rng);
                }
            }
        })+};
    }
    play!(
        |it| it,
        |it| it.lifo(),
        |it| it.fair_by(|item: &u64| item / 16 % 3),
        |it| it.fair_by(|item: &u64| item / 16 % 3).serial(),
        |it| it.by_priority()
    );
}

#[test]
fn random_sequences_agree_with_the_weights() {
    let variable = |name| Some(std::env::var(name).ok()?.parse().expect("a number"));
    let seeds = match variable("REQUEUE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..variable("REQUEUE_CASES").unwrap_or(60),
    };
    for seed in seeds {
        let played = panics(|| play_all(seed));
        assert!(!played, "REQUEUE_SEED={seed} fails");
    }
}
