//! What the handles of a queue share, and what works without a handle.

use crate::capacity::Capacity;
use crate::raw::{Lanes, Remainder};
use crate::wait::{Line, Word};
use crate::{PopError, PushError};
use std::sync::Arc;

/// A queue: its lanes, those who wait, and its room.
pub(crate) struct Shared<T> {
    lanes: Arc<Lanes<T>>,
    /// Where those wait who want an item.
    ready: Line,
    room: Option<Room>,
}

/// The room of a bounded queue.
pub(crate) struct Room {
    pub(crate) capacity: Capacity,
    /// Where those wait who want a permit.
    pub(crate) line: Line,
}

impl Room {
    fn new(capacity: usize) -> Self {
        Self {
            capacity: Capacity::new(capacity),
            line: Line::new(false),
        }
    }

    /// Gives permits back that belong to no handle.
    fn give_back(&self, count: usize) {
        self.capacity.give_shared(count);
        self.line.published(count);
    }

    /// Takes a permit that will belong to no handle.
    fn take_one(&self) -> bool {
        self.capacity.take_shared(1) == 1
    }
}

impl<T> Shared<T> {
    pub(crate) fn new(capacity: Option<usize>) -> Self {
        Self {
            lanes: Arc::new(Lanes::new()),
            ready: Line::new(capacity.is_some()),
            room: capacity.map(Room::new),
        }
    }

    pub(crate) fn lanes(&self) -> &Arc<Lanes<T>> {
        &self.lanes
    }

    #[inline]
    pub(crate) fn ready(&self) -> &Line {
        &self.ready
    }

    #[inline]
    pub(crate) fn room(&self) -> Option<&Room> {
        self.room.as_ref()
    }

    #[inline]
    pub(crate) fn word(&self) -> Word {
        self.ready.word()
    }

    /// Pushes without a handle.
    pub(crate) fn push(&self, item: T) -> Result<(), PushError<T>> {
        if self.word().is_closed() {
            return Err(PushError::Closed(item));
        }
        if !self.room().map_or(true, Room::take_one) {
            return Err(PushError::Full(item));
        }
        if let Err(item) = self.lanes.push(item, || !self.ready.look().is_closed()) {
            self.give_back(1);
            return Err(PushError::Closed(item));
        }
        self.ready.published(1);
        Ok(())
    }

    /// Pops without a handle.
    pub(crate) fn pop(&self) -> Result<T, PopError> {
        if self.word().is_drained() {
            return Err(PopError::Closed);
        }
        let item = self.lanes.pop().ok_or_else(|| self.why_empty())?;
        self.give_back(1);
        Ok(item)
    }

    fn give_back(&self, permits: usize) {
        if let Some(room) = self.room() {
            room.give_back(permits);
        }
    }

    pub(crate) fn close(&self) -> bool {
        let closed = self.ready.close();
        if let Some(room) = self.room().filter(|_| closed) {
            room.line.wake_all();
        }
        closed
    }

    /// What to say of a queue that was found empty just now.
    #[cold]
    pub(crate) fn why_empty(&self) -> PopError {
        let word = self.word();
        if !word.is_closed() {
            return PopError::Empty;
        }
        if !word.is_drained() {
            self.ready.seal();
            if self.lanes.left_when_closed() != Remainder::Nothing {
                return PopError::Empty;
            }
            self.ready.mark_drained();
        }
        // Not only who has found it so: that thread may be held up.
        self.ready.wake_all_if_any();
        PopError::Closed
    }

    /// Wakes for `count` items that a transaction published when it ended. After the close the end of
    /// any transaction may be what the others wait for.
    #[inline]
    pub(crate) fn ended(&self, count: usize) {
        if !self.ready.is_quiet() && self.ready.tell(count).is_closed() {
            self.ready.wake_all();
        }
    }
}
