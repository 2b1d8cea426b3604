//! What items can be pushed to.

use crate::call::{now, Call, Caller};
use crate::error::PushError;
use crate::order::{Load, Order, Place};
use crate::queue::verbs;
use crate::ticket::Tickets;
use crate::{DurableQueue, Handle, Transaction};
use requeue::Clock;
use std::future::Future;

pub(crate) use sealed::Push;

/// A queue, handle or transaction. Sealed.
#[allow(private_bounds)] // sealed
pub trait PushTo: Push {}

impl<P: Push> PushTo for P {}

#[allow(private_bounds, private_interfaces)]
mod sealed {
    use super::{Caller, Clock, Future, Load, Place, PushError, Tickets};

    pub trait Push: Sized {
        type Item: Send + 'static;

        fn clock(&self) -> &dyn Clock;

        fn push<L: Load>(
            self,
            load: L::Of<Self::Item>,
            place: Option<Place>,
            caller: Caller,
        ) -> impl Future<Output = Result<Tickets, PushError<L::Of<Self::Item>>>> + Send;
    }
}

macro_rules! target {
    ($target:ty, |$this:ident, $load:ident, $place:ident, $caller:ident| $clock:expr, $push:expr) => {
        #[allow(private_interfaces)]
        impl<T: Send + 'static, O: Order<T>> Push for $target {
            type Item = T;

            fn clock(&self) -> &dyn Clock {
                let $this = self;
                &$clock
            }

            fn push<L: Load>(
                self,
                $load: L::Of<T>,
                $place: Option<Place>,
                $caller: Caller,
            ) -> impl Future<Output = Result<Tickets, PushError<L::Of<T>>>> + Send {
                let $this = self;
                $push
            }
        }
    };
}

/// By a transaction of its own.
macro_rules! push {
    ($on:ident, $begin:ident, $load:ident, $place:ident, $caller:ident) => {{
        let pushing = match $caller {
            Caller::Thread(_) => Call::Ended(
                $on.with_tx(|tx| now(verbs::push::<T, O, L>(tx, $load, $place, $caller))),
            ),
            Caller::Task => {
                Call::Pends(verbs::push::<T, O, L>($on.$begin(), $load, $place, $caller))
            }
        };
        pushing.end()
    }};
}

target!(&DurableQueue<T, O>, |queue, load, place, caller|
    queue.shared.times.clock, push!(queue, begin_owned, load, place, caller));
target!(&mut Handle<T, O>, |handle, load, place, caller|
    handle.queue.shared.times.clock, push!(handle, begin, load, place, caller));
target!(
    &Transaction<'_, T, O>,
    |tx, load, place, caller| tx.shared().times.clock,
    tx.stage::<L>(load, place, caller)
);
