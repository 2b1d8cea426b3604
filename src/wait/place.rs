//! One waiter's place in a line.

use super::line::Line;
use super::list::Key;
use crate::sync::{planted, Count};
use std::task::{Poll, Waker};

/// What a waiter waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    One,
    /// Several: it keeps what it has got while it is the first in the line.
    Several,
}

/// The place of a handle, which waits for one thing at a time.
///
/// Kept by the handle and not by the future, so that a future that is forgotten loses no wake-up for
/// good.
#[derive(Default)]
pub(crate) struct Place {
    /// One more than the key in the line; 0: not taken.
    taken: Count,
}

impl Place {
    #[inline]
    pub(crate) fn is_taken(&self) -> bool {
        self.taken.get() != 0
    }

    fn key(&self) -> Option<Key> {
        self.taken.get().checked_sub(1)
    }

    /// Tries, and waits in the line while `attempt` gives nothing.
    ///
    /// `spare`: whether a newcomer may take something though so many older ones are being served.
    pub(crate) fn poll<R>(
        &self,
        line: &Line,
        kind: Kind,
        waker: &Waker,
        spare: impl Fn(usize) -> bool,
        mut attempt: impl FnMut() -> Option<R>,
    ) -> Poll<R> {
        let result = match self.key() {
            None => self.enter(line, kind, waker, spare, &mut attempt),
            Some(key) if !line.is_woken(key, waker) => None,
            Some(key) => self.use_wake_up(line, key, waker, &mut attempt),
        };
        result.map_or(Poll::Pending, Poll::Ready)
    }

    fn enter<R>(
        &self,
        line: &Line,
        kind: Kind,
        waker: &Waker,
        spare: impl Fn(usize) -> bool,
        attempt: &mut impl FnMut() -> Option<R>,
    ) -> Option<R> {
        if !line.word().is_serving() {
            if let Some(result) = attempt() {
                return Some(result);
            }
        }
        let (key, serving) = line.enter(waker.clone(), kind == Kind::Several);
        self.taken.set(key + 1);
        if serving > 0 && !spare(serving) {
            return None;
        }
        let result = attempt()?;
        self.give_up(line, false);
        Some(result)
    }

    fn use_wake_up<R>(
        &self,
        line: &Line,
        key: Key,
        waker: &Waker,
        attempt: &mut impl FnMut() -> Option<R>,
    ) -> Option<R> {
        let first = attempt();
        let spent = first.is_some();
        if !spent {
            line.wait_again(key, waker.clone());
            planted!("place.looks-once", return None);
        }
        let result = first.or_else(attempt)?;
        self.give_up(line, spent);
        Some(result)
    }

    /// Whether this is the first in the line.
    pub(crate) fn is_first(&self, line: &Line) -> bool {
        self.key().is_some_and(|key| line.is_first(key))
    }

    /// Leaves the line, and passes an unused wake-up on.
    #[inline]
    pub(crate) fn leave(&self, line: &Line) {
        if self.is_taken() {
            self.give_up(line, false);
        }
    }

    fn give_up(&self, line: &Line, spent: bool) {
        if let Some(key) = self.key() {
            self.taken.set(0);
            line.leave(key, spent);
        }
    }
}
