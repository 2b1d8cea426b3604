//! What items can be pushed to.

use crate::call::{now, Call, Caller};
use crate::error::PushError;
use crate::order::{Order, Place};
use crate::queue::verbs::{push, push_batch};
use crate::ticket::{Ticket, Tickets};
use crate::{DurableQueue, Handle, Transaction};
use requeue::Clock;
use std::future::Future;

pub(crate) use sealed::Push;

/// A queue, handle or transaction. Sealed.
#[allow(private_bounds)] // sealed
pub trait PushTo: Push {}

impl<P: Push> PushTo for P {}

#[allow(private_interfaces)]
mod sealed {
    use super::{Caller, Clock, Future, Place, PushError, Ticket, Tickets};

    pub trait Push: Sized {
        type Item: Send;

        fn clock(&self) -> &dyn Clock;

        fn push(
            self,
            item: Self::Item,
            place: Option<Place>,
            caller: Caller,
        ) -> impl Future<Output = Result<Ticket, PushError<Self::Item>>> + Send;

        fn push_batch(
            self,
            items: Vec<Self::Item>,
            place: Option<Place>,
            caller: Caller,
        ) -> impl Future<Output = Result<Tickets, PushError<Vec<Self::Item>>>> + Send;
    }
}

/// By a transaction of its own.
macro_rules! push {
    ($push:ident, $items:ident: $type:ty, $ticket:ty, $begin:path) => {
        fn $push(
            self,
            $items: $type,
            place: Option<Place>,
            caller: Caller,
        ) -> impl Future<Output = Result<$ticket, PushError<$type>>> + Send {
            let pushing = match caller {
                Caller::Thread(_) => {
                    Call::Ended(self.with_tx(|tx| now($push(tx, $items, place, caller))))
                }
                Caller::Task => Call::Pends($push($begin(self), $items, place, caller)),
            };
            pushing.end()
        }
    };
}

#[allow(private_interfaces)]
impl<T: Send + 'static, O: Order<T>> Push for &DurableQueue<T, O> {
    type Item = T;

    fn clock(&self) -> &dyn Clock {
        &self.shared.clock
    }

    push!(push, item: T, Ticket, DurableQueue::begin_owned);
    push!(push_batch, items: Vec<T>, Tickets, DurableQueue::begin_owned);
}

#[allow(private_interfaces)]
impl<T: Send + 'static, O: Order<T>> Push for &mut Handle<T, O> {
    type Item = T;

    fn clock(&self) -> &dyn Clock {
        &self.queue.shared.clock
    }

    push!(push, item: T, Ticket, Handle::begin);
    push!(push_batch, items: Vec<T>, Tickets, Handle::begin);
}

#[allow(private_interfaces)]
impl<T: Send + 'static, O: Order<T>> Push for &Transaction<'_, T, O> {
    type Item = T;

    fn clock(&self) -> &dyn Clock {
        &self.shared().clock
    }

    fn push(
        self,
        item: T,
        place: Option<Place>,
        caller: Caller,
    ) -> impl Future<Output = Result<Ticket, PushError<T>>> + Send {
        self.stage(item, place, caller)
    }

    fn push_batch(
        self,
        items: Vec<T>,
        place: Option<Place>,
        caller: Caller,
    ) -> impl Future<Output = Result<Tickets, PushError<Vec<T>>>> + Send {
        self.stage_batch(items, place, caller)
    }
}
