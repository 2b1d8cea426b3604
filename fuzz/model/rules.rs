//! What a call must say, and when it may wait.

use super::item::Source;
use super::ops::Way;
use super::order::{Order, Work};
use requeue::{PopError, PushError};

impl Order {
    fn room(&self) -> usize {
        let open = self.open.values().map(|work| work.held.max(work.staged));
        let occupancy = self.ready() + open.sum::<usize>();
        match self.capacity {
            Some(capacity) => capacity
                .checked_sub(occupancy)
                .expect("within the capacity"),
            None => usize::MAX,
        }
    }

    fn work(&self, source: Source) -> Work {
        self.open.get(&source).copied().unwrap_or_default()
    }

    /// Whether a push of so many items can never succeed.
    fn is_too_large(&self, items: usize) -> bool {
        self.capacity.is_some_and(|capacity| items > capacity)
    }

    /// Closed, and nothing will be ready any more.
    fn is_over(&self) -> bool {
        self.closed && self.ready() == 0 && self.open.is_empty()
    }

    /// How a push is made: it blocks only if it is answered at once.
    pub(crate) fn way_to_push(&self, way: Way, items: usize) -> Way {
        let answered = self.closed || items <= self.room() || self.is_too_large(items);
        way.unless(!answered || !self.pushers.is_empty())
    }

    pub(crate) fn way_to_stage(&self, way: Way, source: Source) -> Way {
        let Work { held, staged } = self.work(source);
        let full = staged >= held && self.room() == 0 && !self.is_too_large(staged + 1);
        way.unless(full && !self.closed || !self.pushers.is_empty())
    }

    pub(crate) fn way_to_pop(&self, way: Way) -> Way {
        let answered = self.ready() > 0 || self.is_over();
        way.unless(!answered || !self.poppers.is_empty())
    }

    pub(crate) fn way_to_hold(&self, way: Way, source: Source) -> Way {
        let own = self.closed && self.open.contains_key(&source);
        let answered = self.ready() > 0 || self.is_over() || own;
        way.unless(!answered || !self.poppers.is_empty())
    }

    pub(crate) fn check_push<T>(&self, items: usize, said: &Result<usize, PushError<T>>) {
        match said {
            Ok(count) => assert_eq!(*count, items),
            // A batch of nothing may look whether the queue is closed.
            Err(PushError::Closed(_)) => assert!(self.closed),
            Err(PushError::Full(_)) => {
                assert!(!self.closed && (items > self.room() || self.pushers.may_gather()));
            }
        }
        assert!(said.is_err() || items == 0 || !self.closed && items <= self.room());
    }

    /// A push waits, rightly: there is no room, or somebody is before it.
    pub(crate) fn check_push_waits(&self, items: usize) {
        assert!(!self.closed && !self.is_too_large(items));
        assert!(items > self.room() || !self.pushers.is_empty());
    }

    pub(crate) fn check_stage<T>(&self, source: Source, said: &Result<usize, PushError<T>>) {
        let Work { held, staged } = self.work(source);
        let fits = staged < held || self.room() > 0;
        match said {
            Ok(_) => assert!(!self.closed && fits),
            Err(PushError::Closed(_)) => assert!(self.closed),
            Err(PushError::Full(_)) => {
                let gathered = staged >= held && self.pushers.may_gather();
                assert!(!self.closed && (!fits || gathered));
            }
        }
    }

    pub(crate) fn check_stage_waits(&self, source: Source) {
        let Work { held, staged } = self.work(source);
        assert!(!self.closed && staged >= held && !self.is_too_large(staged + 1));
        assert!(self.room() == 0 || !self.pushers.is_empty());
    }

    /// What a pop said that found nothing.
    pub(crate) fn check_nothing(&self, said: PopError) {
        assert_eq!(self.ready(), 0, "{said:?}");
        assert_eq!(said.is_closed(), self.is_over());
    }

    /// A pop waits, rightly. `own` is that of its transaction.
    pub(crate) fn check_pop_waits(&self, own: Option<Source>) {
        let alone = self.closed && own.is_some_and(|own| self.open.contains_key(&own));
        let nothing = self.ready() == 0 && !self.is_over() && !alone;
        assert!(nothing || !self.poppers.is_empty());
    }

    /// At rest: nobody sleeps whose wait is over.
    pub(crate) fn check(&self) {
        let held: usize = self.open.values().map(|work| work.held).sum();
        assert_eq!(held, self.held);
        self.pushers
            .check(if self.closed { usize::MAX } else { self.room() });
        self.poppers
            .check(usize::from(self.ready() > 0 || self.is_over()));
    }
}

impl Way {
    /// Another way than to block, if that would last.
    fn unless(self, waits: bool) -> Self {
        match self {
            Self::Block if waits => Self::Try,
            way => way,
        }
    }
}
