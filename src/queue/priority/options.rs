//! The requested priority and time of a push.

use crate::core::shared::Shared;
use crate::order::priority::{Prioritized, Priority, Ticket, TicketSource};

/// The requested priority and time of a push.
#[derive(Clone, Copy)]
pub(crate) struct PushOptions {
    pub(super) priority: Priority,
    /// In nanoseconds since the queue was made.
    pub(super) due: Option<u64>,
}

impl PushOptions {
    /// The metadata of an item to be pushed with this ticket.
    #[inline]
    fn meta<T: Send, O: Prioritized<T>>(self, ticket: Ticket, shared: &Shared<T, O>) -> O::Meta {
        shared.source.meta_of(ticket, self.priority, self.due)
    }

    /// Registers an item to be pushed with this ticket.
    #[inline]
    pub(super) fn register<T: Send, O: Prioritized<T>>(
        self,
        ticket: Ticket,
    ) -> impl Fn(&Shared<T, O>, usize, &T) -> Option<O::Meta> + Copy {
        move |shared, _, _| Some(self.meta(ticket, shared))
    }

    /// As [`PushOptions::register`], for the nth item of a batch.
    pub(super) fn register_nth<T: Send, O: Prioritized<T>>(
        self,
        tickets: &[Ticket],
    ) -> impl Fn(&Shared<T, O>, usize, &T) -> Option<O::Meta> + '_ {
        move |shared, nth, _| Some(self.meta(tickets[nth], shared))
    }
}
