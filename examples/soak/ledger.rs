//! Every item of the round has a number, and the ledger knows what became of it.
//!
//! The ledger has a fixed size: it is audited and cleared after each round.

use std::fmt::Display;
use std::mem;
use std::sync::atomic::{AtomicU32, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Items that the threads and tasks may push in a round.
pub(crate) const ROUND: usize = 1 << 16;
/// Items that the checks at the end of the round may push.
const RESERVE: usize = 1 << 10;
/// Faults that are described; all are counted.
const DESCRIBED: usize = 20;

/// The push was committed.
const PUSHED: u8 = 1;
/// The pop was committed, or the dead letter was drained.
const CONSUMED: u8 = 2;
/// It was a dead letter and was pushed again, so its attempts started again.
const REQUEUED: u8 = 4;
/// Attempts from this one on are not recorded.
const UNRECORDED: u32 = 32;

/// An item.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Job {
    pub(crate) round: u32,
    pub(crate) number: u32,
    /// All items that one handle pushed have the same stream, and ascending numbers.
    pub(crate) stream: u32,
    pub(crate) priority: u16,
    pub(crate) lane: u8,
    pub(crate) key: u8,
}

#[derive(Default)]
struct Entry {
    state: AtomicU8,
    /// A bit for each attempt that was delivered.
    attempts: AtomicU32,
}

pub(crate) struct Ledger {
    entries: Box<[Entry]>,
    round: AtomicU32,
    next: AtomicUsize,
    streams: AtomicU32,
    faults: Mutex<Faults>,
}

#[derive(Default)]
pub(crate) struct Faults {
    pub(crate) count: u64,
    pub(crate) described: Vec<String>,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        Self {
            entries: (0..ROUND + RESERVE).map(|_| Entry::default()).collect(),
            round: AtomicU32::new(1),
            next: AtomicUsize::new(0),
            streams: AtomicU32::new(0),
            faults: Mutex::default(),
        }
    }

    /// The number of a new item; `None` if the round has had all of its items.
    pub(crate) fn number(&self) -> Option<u32> {
        self.number_below(ROUND)
    }

    /// The number of an item that a check pushes.
    pub(crate) fn reserved_number(&self) -> u32 {
        let number = self.number_below(self.entries.len());
        number.expect("the reserve is larger than what the checks push")
    }

    fn number_below(&self, end: usize) -> Option<u32> {
        let next = |number| (number < end).then_some(number + 1);
        // ORDERING: Relaxed; the number is unique since this is a read-modify-write.
        let number = self
            .next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        number
            .ok()
            .map(|number| number.try_into().expect("a round is small"))
    }

    /// `true` when the round has had all of its items.
    pub(crate) fn is_used_up(&self) -> bool {
        // ORDERING: Relaxed; the end of a round may be seen late.
        self.next.load(Ordering::Relaxed) >= ROUND
    }

    pub(crate) fn stream(&self) -> u32 {
        // ORDERING: Relaxed; as in `number_below`.
        self.streams.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn round(&self) -> u32 {
        // ORDERING: Relaxed; written between two rounds, when there are no other threads.
        self.round.load(Ordering::Relaxed)
    }

    /// The entry of a popped item, which must belong to this round.
    fn entry(&self, job: &Job) -> Option<&Entry> {
        if job.round != self.round() {
            self.fault(format_args!("{job:?} is of another round"));
            return None;
        }
        let entry = self.entries.get(job.number as usize);
        if entry.is_none() {
            self.fault(format_args!("{job:?} was never made"));
        }
        entry
    }

    fn mark(&self, job: &Job, mark: u8) {
        let Some(entry) = self.entry(job) else {
            return;
        };
        // ORDERING: Relaxed; one word, and the audit follows the join of all threads.
        let before = entry.state.fetch_or(mark, Ordering::Relaxed);
        if before & mark != 0 {
            let what = if mark == PUSHED {
                "pushed"
            } else {
                "committed"
            };
            self.fault(format_args!("{job:?} was {what} twice"));
        }
    }

    /// The push of `job` was committed.
    pub(crate) fn pushed(&self, job: &Job) {
        self.mark(job, PUSHED);
    }

    /// The pop of `job` was committed.
    pub(crate) fn consumed(&self, job: &Job) {
        self.mark(job, CONSUMED);
    }

    /// `job` is a dead letter that will be pushed again: nobody can take it now.
    pub(crate) fn will_be_requeued(&self, job: &Job) {
        let Some(entry) = self.entry(job) else {
            return;
        };
        // ORDERING: Relaxed; whoever takes the item next synchronizes with the push by the queue itself.
        entry.state.fetch_or(REQUEUED, Ordering::Relaxed);
        // ORDERING: as above.
        entry.attempts.store(0, Ordering::Relaxed);
    }

    /// `job` was delivered for this time. `true` if it is in the place where it was pushed: never delivered before.
    ///
    /// Its attempts count up one by one. With leases a late worker may come here after the next one, but no attempt
    /// is delivered twice.
    pub(crate) fn delivered(&self, job: &Job, attempt: u32, leased: bool) -> bool {
        let Some(entry) = self.entry(job) else {
            return false;
        };
        // ORDERING: Relaxed; as in `mark`.
        let state = entry.state.load(Ordering::Relaxed);
        if state & CONSUMED != 0 && !leased {
            self.fault(format_args!("{job:?} was delivered after its commit"));
        }
        if attempt < UNRECORDED {
            let bit = 1 << attempt;
            // ORDERING: Relaxed; without leases two deliveries synchronize by the queue itself, with leases only the
            // bit of this attempt is checked.
            let before = entry.attempts.fetch_or(bit, Ordering::Relaxed);
            let all_before = bit - 2;
            if before & bit != 0 || (!leased && before != all_before) {
                self.fault(format_args!(
                    "{job:?}: attempt {attempt} after the attempts {before:#b}"
                ));
            }
        }
        attempt == 1 && state & REQUEUED == 0
    }

    /// As [`Self::delivered`], for a pop that does not know the attempt.
    pub(crate) fn is_first(&self, job: &Job) -> bool {
        self.entry(job).is_some_and(|entry| {
            // ORDERING: Relaxed; as in `delivered`.
            let attempts = entry.attempts.load(Ordering::Relaxed);
            // ORDERING: as above.
            let state = entry.state.load(Ordering::Relaxed);
            attempts == 0 && state & REQUEUED == 0
        })
    }

    /// Checks a dead letter: the attempt that it died with was recorded, unless it is of a late worker.
    pub(crate) fn died(&self, job: &Job, attempts: u32, leased: bool) {
        let Some(entry) = self.entry(job) else {
            return;
        };
        // ORDERING: Relaxed; as in `delivered`.
        let seen = entry.attempts.load(Ordering::Relaxed);
        // ORDERING: as above.
        let requeued = entry.state.load(Ordering::Relaxed) & REQUEUED != 0;
        if requeued && seen == 0 {
            return; // the queue had no room for it
        }
        if attempts < UNRECORDED && !leased && seen >> attempts != 1 {
            self.fault(format_args!(
                "{job:?} died in attempt {attempts} after the attempts {seen:#b}"
            ));
        }
    }

    /// Reports that something is wrong.
    pub(crate) fn fault(&self, what: impl Display) {
        let mut faults = self.lock();
        faults.count += 1;
        if faults.described.len() < DESCRIBED {
            faults.described.push(what.to_string());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn take_faults(&self) -> Faults {
        mem::take(&mut *self.lock())
    }

    pub(crate) fn fault_count(&self) -> u64 {
        self.lock().count
    }

    /// At rest, when all queues are empty: every committed push was consumed, and nothing else was. Then the next
    /// round begins.
    pub(crate) fn audit(&self) {
        for (number, entry) in self.entries.iter().enumerate() {
            // ORDERING: Relaxed; all other threads have ended.
            let state = entry.state.swap(0, Ordering::Relaxed);
            // ORDERING: as above.
            entry.attempts.store(0, Ordering::Relaxed);
            match state & (PUSHED | CONSUMED) {
                PUSHED => self.fault(format_args!("item {number} was lost")),
                CONSUMED => self.fault(format_args!(
                    "item {number} was committed, but never pushed"
                )),
                _ => {}
            }
        }
        // ORDERING: Relaxed; the threads of the next round are started later.
        self.next.store(0, Ordering::Relaxed);
        // ORDERING: as above.
        self.round.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(ledger: &Ledger) -> Job {
        Job {
            round: ledger.round(),
            number: ledger.number().unwrap(),
            stream: 0,
            priority: 0,
            lane: 0,
            key: 0,
        }
    }

    #[test]
    fn pushes_and_pops_balance() {
        let ledger = Ledger::new();
        let (job, _refused) = (job(&ledger), job(&ledger));
        ledger.pushed(&job);
        assert!(ledger.delivered(&job, 1, false));
        assert!(!ledger.delivered(&job, 2, false));
        ledger.died(&job, 2, false);
        ledger.will_be_requeued(&job);
        assert!(!ledger.delivered(&job, 1, false));
        ledger.consumed(&job);
        ledger.audit();
        assert_eq!(ledger.fault_count(), 0);
    }

    #[track_caller]
    fn assert_fault(wrong: impl Fn(&Ledger, &Job), text: &str) {
        let ledger = Ledger::new();
        let job = job(&ledger);
        wrong(&ledger, &job);
        ledger.audit();
        let faults = ledger.take_faults();
        assert!(faults.described[0].contains(text), "{:?}", faults.described);
    }

    #[test]
    fn faults_are_found() {
        assert_fault(Ledger::pushed, "was lost");
        assert_fault(Ledger::consumed, "never pushed");
        let twice = |ledger: &Ledger, job: &Job| (0..2).for_each(|_| ledger.consumed(job));
        assert_fault(twice, "committed twice");
        let late = |ledger: &Ledger, job: &Job| {
            ledger.audit();
            ledger.consumed(job);
        };
        assert_fault(late, "of another round");
    }

    #[test]
    fn wrong_attempts_are_found() {
        let deliver = |attempts: &'static [u32], leased| {
            move |ledger: &Ledger, job: &Job| {
                for attempt in attempts {
                    ledger.delivered(job, *attempt, leased);
                }
            }
        };
        assert_fault(deliver(&[2], false), "attempt 2 after");
        assert_fault(deliver(&[1, 2, 1], false), "attempt 1 after");
        assert_fault(deliver(&[2, 1, 2], true), "attempt 2 after");
        assert_fault(
            |ledger, job| ledger.died(job, 1, false),
            "died in attempt 1",
        );
    }
}
