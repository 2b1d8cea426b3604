//! The model of failed deliveries.

use super::item::Mark;
use super::order::Order;
use super::settings::Ticks;
use requeue::Reason;

/// A delayed item.
#[derive(Debug)]
pub(crate) struct Delayed {
    mark: Mark,
    pub(super) due: Ticks,
}

/// A dead letter.
#[derive(Debug)]
pub(crate) struct Letter {
    pub(crate) mark: Mark,
    pub(crate) attempts: u32,
    pub(crate) reason: Reason,
}

impl Order {
    /// Due items are put at the head, and expired leases are reclaimed.
    pub(crate) fn release(&mut self) {
        let now = self.now;
        let mut due = Vec::new();
        self.delayed.retain(|delayed| {
            let is_due = delayed.due <= now;
            if is_due {
                due.push((delayed.due, delayed.mark));
            }
            !is_due
        });
        due.sort_by_key(|&(at, _)| at);
        let due: Vec<_> = due.into_iter().map(|(_, mark)| mark).collect();
        self.put_at_head(&due);
        self.end_leases();
        self.stock.take_in(now);
    }

    pub(super) fn put_at_head(&mut self, run: &[Mark]) {
        let injector = self.injector;
        for &mark in run {
            self.fact_mut(mark).shard = injector;
        }
        self.give_back(run);
    }

    /// Whether a push makes a dead letter when the attempts are used up.
    fn has_place(&self) -> bool {
        let most = self.settings.letters.unwrap_or(usize::MAX);
        self.settings.overflow || self.letters.len() < most
    }

    /// Whether an item becomes a dead letter that has failed so many times.
    fn dies_of(&self, failures: u32) -> bool {
        let max = self.settings.max_attempts;
        max.is_some_and(|max| failures >= max) && self.has_place()
    }

    /// Whether the item becomes a dead letter if its present delivery fails.
    pub(super) fn is_on_last(&self, mark: Mark) -> bool {
        self.dies_of(self.fact(mark).failures + 1)
    }

    /// A delivery has failed. Returns whether the item becomes a dead letter.
    pub(super) fn fail(&mut self, mark: Mark, reason: Reason) -> bool {
        let fact = self.fact_mut(mark);
        fact.failures += 1;
        fact.changes += u32::from(reason != Reason::Expired);
        let attempts = fact.failures;
        let dies = self.dies_of(attempts);
        if dies {
            self.dead += 1;
            self.letters.push_back(Letter {
                mark,
                attempts,
                reason,
            });
            self.stock.leave(mark);
            self.strike(mark);
        }
        dies
    }

    /// Passes the excess dead letters to the callback.
    pub(super) fn spill(&mut self) {
        let most = self.settings.letters.unwrap_or(usize::MAX);
        while self.letters.len() > most {
            let oldest = self.letters.pop_front();
            self.spilled.extend(oldest.map(|letter| letter.mark));
        }
    }

    pub(super) fn delay(&mut self, mark: Mark, by: Ticks) {
        let due = self.now + by;
        self.delayed.push(Delayed { mark, due });
    }

    /// The items of a transaction are returned, delayed or made dead letters.
    pub(crate) fn abort(&mut self, held: &[Mark], reason: Reason) {
        self.held -= held.len();
        self.aborted += held.len();
        let mut back = Vec::new();
        for &mark in held {
            if self.fail(mark, reason) {
                continue;
            }
            match self.settings.delay(self.fact(mark).failures) {
                0 => back.push(mark),
                delay => self.delay(mark, delay),
            }
        }
        self.give_back(&back);
        self.spill();
    }

    /// A held item is retried early, and leaves the transaction.
    pub(super) fn retry(&mut self, mark: Mark, delay: Option<Ticks>) {
        self.held -= 1;
        self.aborted += 1;
        if !self.fail(mark, Reason::Retried) {
            let backoff = self.settings.delay(self.fact(mark).failures);
            match delay.unwrap_or(backoff) {
                0 => self.put_at_head(&[mark]),
                delay => self.delay(mark, delay),
            }
            self.checks_returned = true;
        }
        self.spill();
    }

    /// The oldest dead letters are pushed again, this many of them.
    pub(crate) fn requeue(&mut self, count: usize) {
        let marks: Vec<_> = self
            .letters
            .drain(..count)
            .map(|letter| letter.mark)
            .collect();
        let injector = self.injector;
        for &mark in &marks {
            let fact = self.fact_mut(mark);
            fact.failures = 0;
            fact.shard = injector;
            fact.wished.due = None;
            fact.wished.ticket = false;
        }
        self.push(&marks);
    }

    /// The next due time.
    pub(crate) fn next_due(&self) -> Option<Ticks> {
        let delayed = self.delayed.iter().map(|delayed| delayed.due);
        delayed
            .chain(self.leases())
            .chain(self.stock.next_due())
            .min()
    }
}
