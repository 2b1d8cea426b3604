//! What a push with a priority, or at a time, says of its item.

use super::OutOfRange;
use crate::core::shared::Shared;
use crate::order::priority::{Prioritized, Priority, Ticket, Word};
use crate::order::{Known, Source};
use std::time::{Duration, Instant};

/// What a push says of its item.
#[derive(Clone, Copy)]
pub(super) struct Wish {
    priority: Priority,
    /// In nanoseconds since the queue was made.
    due: Option<u64>,
}

impl Wish {
    pub(super) fn new<T: Send, O: Prioritized<T>>(
        shared: &Shared<T, O>,
        priority: u16,
        not_before: Option<Instant>,
    ) -> Result<Self, OutOfRange> {
        Ok(Self {
            priority: Priority::new(priority).ok_or(OutOfRange)?,
            due: not_before.map(|at| shared.time.nanos(at)),
        })
    }

    pub(super) fn at<T: Send, O: Prioritized<T>>(shared: &Shared<T, O>, at: Instant) -> Self {
        Self::due(shared.time.nanos(at))
    }

    pub(super) fn after<T: Send, O: Prioritized<T>>(
        shared: &Shared<T, O>,
        delay: Duration,
    ) -> Self {
        Self::due(shared.time.after(delay))
    }

    fn due(due: u64) -> Self {
        Self {
            priority: Priority::DEFAULT,
            due: Some(due),
        }
    }

    /// What the item with this ticket is registered as, which is about to be pushed.
    #[inline]
    pub(super) fn register<T: Send, O: Prioritized<T>>(
        self,
        ticket: Ticket,
        shared: &Shared<T, O>,
    ) -> Known<Word> {
        let meta = match self.due {
            None => Word::ticketed(self.priority, ticket),
            Some(due) => {
                shared.source.registry().note(ticket, due);
                Word::scheduled(self.priority, ticket)
            }
        };
        let since = shared.stamp();
        Known { since, meta }
    }
}
