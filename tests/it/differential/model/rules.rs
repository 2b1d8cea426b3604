//! The results that calls may have, and when they may wait.

use super::item::{Mark, Source};
use super::ops::Way;
use super::order::Order;
use super::waits::Waiter;
use super::work::Work;
use requeue::{PopError, PushError};

impl Order {
    fn room(&self) -> usize {
        let extra = self.open.values().map(|work| work.extra).sum::<usize>();
        let occupancy = self.ready() + self.waiting() + self.held + extra;
        match self.settings.capacity {
            Some(capacity) => capacity
                .checked_sub(occupancy)
                .expect("within the capacity"),
            None => usize::MAX,
        }
    }

    /// Whether there is room for these items, and for each with its key.
    fn admits_all(&self, marks: &[Mark]) -> bool {
        marks.len() <= self.room() && self.admits_keys(&self.keys_of(marks))
    }

    fn admits_key_of(&self, mark: Mark) -> bool {
        self.admits_keys(&self.keys_of(&[mark]))
    }

    pub(crate) fn wait_to_push(&mut self, waiter: &Waiter, marks: &[Mark]) {
        self.pushers.join(waiter, marks.len());
    }

    pub(crate) fn wait_to_pop(&mut self, waiter: &Waiter) {
        self.poppers.join(waiter, 0);
    }

    /// Whether the transaction of this source may have one more staged item, or one less held item.
    fn fits(&self, source: Source) -> bool {
        self.work(source).has_permit() || self.room() > 0
    }

    /// Whether a batch may withhold a permit from a transaction that needs one.
    fn is_gathered(&self, source: Source) -> bool {
        !self.work(source).has_permit() && self.pushers.may_gather()
    }

    /// Whether a pop would wait for its own transaction.
    fn is_alone(&self, source: Source) -> bool {
        let work = self.work(source);
        self.closed && work.held + work.staged > 0
    }

    fn is_any_open(&self) -> bool {
        self.open.values().any(Work::is_open)
    }

    /// Whether a push of this many items can never succeed.
    fn is_too_large(&self, items: usize) -> bool {
        self.settings
            .capacity
            .is_some_and(|capacity| items > capacity)
    }

    /// Closed, and no item will be ready any more.
    fn is_over(&self) -> bool {
        let nothing = self.ready() + self.waiting() == 0;
        self.closed && nothing && !self.is_any_open()
    }

    /// Whether a push of these items is refused at once: there can never be room for them, or their keys are at their
    /// limits.
    fn refuses_at_once(&self, marks: &[Mark]) -> bool {
        self.is_too_large(marks.len()) || !self.admits_keys(&self.keys_of(marks))
    }

    /// The form of a push: it blocks only if it succeeds or fails at once.
    pub(crate) fn way_to_push(&self, way: Way, marks: &[Mark]) -> Way {
        let refused = self.closed || self.refuses_at_once(marks);
        let admitted = self.admits_all(marks) && self.pushers.is_empty();
        way.unless(!refused && !admitted)
    }

    pub(crate) fn way_to_stage(&self, way: Way, source: Source, mark: Mark) -> Way {
        let too_large = self.is_too_large(self.work(source).staged + 1);
        let refused = self.closed || too_large || !self.admits_key_of(mark);
        let admitted = self.fits(source) && self.pushers.is_empty();
        way.unless(!refused && !admitted)
    }

    pub(crate) fn way_to_pop(&self, way: Way) -> Way {
        let answered = self.ready() > 0 || self.is_over();
        way.unless(!answered || !self.poppers.is_empty())
    }

    pub(crate) fn way_to_hold(&self, way: Way, source: Source) -> Way {
        let answered = self.ready() > 0 || self.is_over() || self.is_alone(source);
        way.unless(!answered || !self.poppers.is_empty())
    }

    pub(crate) fn check_push<T>(&self, marks: &[Mark], said: &Result<usize, PushError<T>>) {
        match said {
            Ok(count) => assert_eq!(*count, marks.len()),
            // An empty batch may check whether the queue is closed.
            Err(PushError::Closed(_)) => assert!(self.closed),
            Err(PushError::Full(_)) => {
                assert!(!self.closed && (!self.admits_all(marks) || self.pushers.may_gather()));
            }
            Err(refused) => panic!("neither full nor closed: {refused:?}"),
        }
        let admitted = !self.closed && self.admits_all(marks);
        assert!(said.is_err() || marks.is_empty() || admitted);
    }

    /// A push begins to wait, correctly: its keys have room.
    pub(crate) fn check_worth_waiting(&self, marks: &[Mark]) {
        assert!(!self.refuses_at_once(marks));
    }

    /// A push waits, correctly: there is no room, or another push waits before it.
    pub(crate) fn check_push_waits(&self, marks: &[Mark]) {
        assert!(!self.closed && !self.is_too_large(marks.len()));
        assert!(marks.len() > self.room() || !self.pushers.is_empty());
    }

    /// Whether a push of this transaction is refused because the queue is closed.
    fn refuses(&self, source: Source) -> bool {
        self.closed && self.work(source).held == 0
    }

    pub(crate) fn check_stage<T>(
        &self,
        source: Source,
        mark: Mark,
        said: &Result<usize, PushError<T>>,
    ) {
        let fits = self.fits(source) && self.admits_key_of(mark);
        match said {
            Ok(_) => assert!(!self.refuses(source) && fits),
            // A transaction that has lost all its items may get `Closed`.
            Err(PushError::Closed(_)) => assert!(self.refuses(source) || self.is_over()),
            Err(PushError::Full(_)) => {
                assert!(!self.refuses(source) && (!fits || self.is_gathered(source)));
            }
            Err(refused) => panic!("neither full nor closed: {refused:?}"),
        }
    }

    /// Checks the result of an early retry. An item that becomes a dead letter needs no room.
    pub(crate) fn check_retry(&self, source: Source, mark: Mark, said: Result<(), PushError<()>>) {
        let fits = self.is_on_last(mark) || self.fits(source);
        match said {
            Ok(()) => assert!(fits),
            Err(PushError::Full(())) => assert!(!fits || self.is_gathered(source)),
            Err(refused) => panic!("only a push may be refused like this: {refused:?}"),
        }
    }

    /// The expected number of requeued dead letters.
    pub(crate) fn check_requeue(&self, count: usize) {
        let letters: Vec<_> = self.letters.iter().map(|letter| letter.mark).collect();
        let fit = |count: &usize| !self.closed && self.admits_all(&letters[..*count]);
        let most = (1..=letters.len()).take_while(fit).count();
        assert!(count == most || count < most && self.pushers.may_gather());
    }

    pub(crate) fn check_stage_waits(&self, source: Source, mark: Mark) {
        let work = self.work(source);
        assert!(!self.closed && !self.is_too_large(work.staged + 1));
        assert!(self.admits_key_of(mark) && !work.has_permit());
        assert!(self.room() == 0 || !self.pushers.is_empty());
    }

    /// Checks the result of a pop that found no item.
    pub(crate) fn check_nothing(&self, said: PopError) {
        assert_eq!(self.ready(), 0, "{said:?}");
        assert_eq!(said.is_closed(), self.is_over());
    }

    /// A pop waits, correctly. `own` is that of its transaction.
    pub(crate) fn check_pop_waits(&self, own: Option<Source>) {
        let alone = own.is_some_and(|own| self.is_alone(own));
        let nothing = self.ready() == 0 && !self.is_over() && !alone;
        assert!(nothing || !self.poppers.is_empty());
    }

    /// At rest: no future sleeps whose condition holds.
    pub(crate) fn check(&self) {
        let held: usize = self.open.values().map(Work::own).sum();
        assert_eq!(held, self.held);
        self.pushers
            .check(|items| self.closed || items <= self.room());
        self.poppers.check(|_| self.ready() > 0 || self.is_over());
    }

    /// At least one waiter is awake when an item is due.
    pub(crate) fn check_timer(&self) {
        let due = self.next_due().is_some_and(|due| due <= self.now);
        self.poppers.check(|_| due);
    }
}

impl Way {
    /// Another form than blocking, if that would not return.
    fn unless(self, waits: bool) -> Self {
        match self {
            Self::Block if waits => Self::Try,
            way => way,
        }
    }
}
