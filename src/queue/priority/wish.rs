//! What a push with a priority, or at a time, says of its item.

use crate::core::shared::Shared;
use crate::order::priority::{Prioritized, Priority, Ticket, Word};
use crate::order::{Known, Source};

/// What a push says of its items.
#[derive(Clone, Copy)]
pub(crate) struct Wish {
    pub(super) priority: Priority,
    /// In nanoseconds since the queue was made.
    pub(super) due: Option<u64>,
}

impl Wish {
    /// The metadata of the item with this ticket, which is about to be pushed.
    #[inline]
    fn meta<T: Send, O: Prioritized<T>>(self, ticket: Ticket, shared: &Shared<T, O>) -> Word {
        match self.due {
            None => Word::ticketed(self.priority, ticket),
            Some(due) => {
                shared.source.registry().note(ticket, due);
                Word::scheduled(self.priority, ticket)
            }
        }
    }

    /// What an item is registered as that is about to be pushed with this ticket.
    #[inline]
    pub(super) fn register<T: Send, O: Prioritized<T>>(
        self,
        ticket: Ticket,
    ) -> impl Fn(&Shared<T, O>, &T) -> Option<Known<Word>> + Copy {
        move |shared, _| {
            let since = shared.stamp();
            let meta = self.meta(ticket, shared);
            Some(Known { since, meta })
        }
    }

    /// As [`Wish::register`], of the nth item of a batch, without its time.
    pub(super) fn register_nth<T: Send, O: Prioritized<T>>(
        self,
        tickets: &[Ticket],
    ) -> impl Fn(&Shared<T, O>, usize, &T) -> Option<Word> + '_ {
        move |shared, nth, _| Some(self.meta(tickets[nth], shared))
    }
}
