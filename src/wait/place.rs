//! One waiter's place in a line.

use super::line::Line;
use super::list::Key;
use crate::sync::planted;
use std::ops::DerefMut;
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
    key: Option<Key>,
}

/// What a waiter wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wanted {
    Item,
    Room,
}

/// A waiter: it has a place in each of the lines.
pub(crate) trait Waits {
    fn place(&mut self, wanted: Wanted) -> &mut Place;
}

/// By itself it is the place of one who waits for one thing only.
impl Waits for Place {
    fn place(&mut self, _: Wanted) -> &mut Place {
        self
    }
}

/// One look of a waiter.
struct Look<'l, S> {
    wanted: Wanted,
    line: &'l Line,
    kind: Kind,
    waker: &'l Waker,
    /// Whether a newcomer may take something though so many older ones are being served.
    spare: S,
}

impl Place {
    #[inline]
    pub(crate) fn is_taken(&self) -> bool {
        self.key.is_some()
    }

    /// Tries, and waits in the line while `attempt` gives the user nothing.
    ///
    /// `spare`: whether a newcomer may take something though so many older ones are being served.
    pub(crate) fn poll<C: DerefMut<Target = impl Waits>, R>(
        user: &mut C,
        wanted: Wanted,
        line: &Line,
        kind: Kind,
        waker: &Waker,
        spare: impl Fn(usize) -> bool,
        mut attempt: impl FnMut(&mut C) -> Option<R>,
    ) -> Poll<R> {
        let look = Look {
            wanted,
            line,
            kind,
            waker,
            spare,
        };
        let result = match user.place(wanted).key {
            None => look.enter(user, &mut attempt),
            Some(key) if !line.is_woken(key, waker) => None,
            Some(key) => look.use_wake_up(user, key, &mut attempt),
        };
        result.map_or(Poll::Pending, Poll::Ready)
    }

    /// Whether this is the first in the line.
    pub(crate) fn is_first(&self, line: &Line) -> bool {
        self.key.is_some_and(|key| line.is_first(key))
    }

    /// Leaves the line, and passes an unused wake-up on.
    #[inline]
    pub(crate) fn leave(&mut self, line: &Line) {
        if self.is_taken() {
            self.give_up(line, false);
        }
    }

    fn give_up(&mut self, line: &Line, spent: bool) {
        if let Some(key) = self.key.take() {
            line.leave(key, spent);
        }
    }
}

impl<S: Fn(usize) -> bool> Look<'_, S> {
    fn enter<C: DerefMut<Target = impl Waits>, R>(
        &self,
        user: &mut C,
        attempt: &mut impl FnMut(&mut C) -> Option<R>,
    ) -> Option<R> {
        let Self { line, waker, .. } = *self;
        if !line.word().is_serving() {
            if let Some(result) = attempt(user) {
                return Some(result);
            }
        }
        let (key, serving) = line.enter(waker.clone(), self.kind == Kind::Several);
        user.place(self.wanted).key = Some(key);
        if serving > 0 && !(self.spare)(serving) {
            return None;
        }
        let result = attempt(user)?;
        user.place(self.wanted).give_up(line, false);
        Some(result)
    }

    fn use_wake_up<C: DerefMut<Target = impl Waits>, R>(
        &self,
        user: &mut C,
        key: Key,
        attempt: &mut impl FnMut(&mut C) -> Option<R>,
    ) -> Option<R> {
        let first = attempt(user);
        let spent = first.is_some();
        if !spent {
            self.line.wait_again(key, self.waker.clone());
            planted!("place.looks-once", return None);
        }
        let result = first.or_else(|| attempt(user))?;
        user.place(self.wanted).give_up(self.line, spent);
        Some(result)
    }
}
