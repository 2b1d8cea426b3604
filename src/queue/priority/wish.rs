//! What a push with a priority, or at a time, says of its item.

use super::OutOfRange;
use crate::core::shared::Shared;
use crate::order::priority::{Priority, Ticket, Times, Word};
use crate::raw::Label;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a push says of its item.
#[derive(Clone, Copy)]
pub(super) struct Wish {
    priority: Priority,
    /// In nanoseconds since the queue was made.
    due: Option<u64>,
}

impl Wish {
    pub(super) fn new<T>(
        shared: &Shared<T>,
        priority: u16,
        not_before: Option<Instant>,
    ) -> Result<Self, OutOfRange> {
        Ok(Self {
            priority: Priority::new(priority).ok_or(OutOfRange)?,
            due: not_before.map(|at| shared.time.nanos(at)),
        })
    }

    pub(super) fn at<T>(shared: &Shared<T>, at: Instant) -> Self {
        Self::due(shared.time.nanos(at))
    }

    pub(super) fn after<T>(shared: &Shared<T>, delay: Duration) -> Self {
        Self::due(shared.time.after(delay))
    }

    fn due(due: u64) -> Self {
        Self {
            priority: Priority::DEFAULT,
            due: Some(due),
        }
    }

    /// The label of the item with this ticket, which is about to be pushed.
    #[inline]
    pub(super) fn label<T>(self, ticket: Ticket, shared: &Shared<T>) -> Label {
        let since = shared.stamp();
        let word = match self.due {
            None => Word::ticketed(self.priority, ticket),
            Some(due) => {
                let times = shared.roll::<Arc<Times>>().expect(KIND);
                times.note(ticket, due);
                Word::scheduled(self.priority, ticket)
            }
        };
        Label {
            since,
            order: word.order(),
        }
    }
}

const KIND: &str = "only a priority queue has handles of this kind";
