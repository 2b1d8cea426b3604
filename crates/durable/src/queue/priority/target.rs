//! What items can be pushed to.

use crate::call::{now, Caller};
use crate::error::PushError;
use crate::order::{Order, Place};
use crate::queue::verbs;
use crate::ticket::{Ticket, Tickets};
use crate::{DurableQueue, Handle, Transaction};
use requeue::Wait;
use sealed::Push;
use std::future::Future;
use std::time::Instant;

/// A queue, handle or transaction. Sealed.
#[allow(private_bounds)] // sealed
pub trait PushTo: sealed::Push {}

mod sealed {
    use super::{Place, PushError, Ticket, Tickets, Wait};
    use std::future::Future;
    use std::time::Instant;

    pub trait Push: Sized {
        type Item: Send;
        fn now(&self) -> Instant;
        #[allow(private_interfaces)]
        fn push(
            self,
            item: Self::Item,
            place: Place,
            wait: Wait,
        ) -> Result<Ticket, PushError<Self::Item>>;
        #[allow(private_interfaces)]
        fn push_batch(
            self,
            items: Vec<Self::Item>,
            place: Place,
            wait: Wait,
        ) -> Result<Tickets, PushError<Vec<Self::Item>>>;
        #[allow(private_interfaces)]
        fn push_async(
            self,
            item: Self::Item,
            place: Place,
        ) -> impl Future<Output = Result<Ticket, PushError<Self::Item>>> + Send;
        #[allow(private_interfaces)]
        fn push_batch_async(
            self,
            items: Vec<Self::Item>,
            place: Place,
        ) -> impl Future<Output = Result<Tickets, PushError<Vec<Self::Item>>>> + Send;
    }
}

macro_rules! push_to {
    ([$($generics:tt)*] $type:ty, |$from:ident| $clock:expr, $begin:path) => {
        impl<$($generics)* T: Send + 'static, O: Order<T>> PushTo for $type {}

        impl<$($generics)* T: Send + 'static, O: Order<T>> Push for $type {
            type Item = T;

            fn now(&self) -> Instant {
                let $from = self;
                $clock.now()
            }

            #[allow(private_interfaces)]
            fn push(self, item: T, place: Place, wait: Wait) -> Result<Ticket, PushError<T>> {
                verbs::push(self, item, Some(place), wait)
            }

            #[allow(private_interfaces)]
            fn push_batch(self, items: Vec<T>, place: Place, wait: Wait) -> Result<Tickets, PushError<Vec<T>>> {
                verbs::push_batch(self, items, Some(place), wait)
            }

            #[allow(private_interfaces)]
            async fn push_async(self, item: T, place: Place) -> Result<Ticket, PushError<T>> {
                verbs::push_async($begin(self), item, Some(place)).await
            }

            #[allow(private_interfaces)]
            async fn push_batch_async(self, items: Vec<T>, place: Place) -> Result<Tickets, PushError<Vec<T>>> {
                verbs::push_batch_async($begin(self), items, Some(place)).await
            }
        }
    };
}

push_to!(['p,] &'p DurableQueue<T, O>, |queue| queue.shared.clock, DurableQueue::begin_owned);
push_to!(['p,] &'p mut Handle<T, O>, |handle| handle.queue().shared.clock, Handle::begin);

impl<T: Send + 'static, O: Order<T>> PushTo for &Transaction<'_, T, O> {}

impl<T: Send + 'static, O: Order<T>> Push for &Transaction<'_, T, O> {
    type Item = T;

    fn now(&self) -> Instant {
        self.core().local.shared.clock.now()
    }

    #[allow(private_interfaces)]
    fn push(self, item: T, place: Place, wait: Wait) -> Result<Ticket, PushError<T>> {
        now(self.stage(item, Some(place), Caller::Thread(wait)))
    }

    #[allow(private_interfaces)]
    fn push_batch(
        self,
        items: Vec<T>,
        place: Place,
        wait: Wait,
    ) -> Result<Tickets, PushError<Vec<T>>> {
        now(self.stage_batch(items, Some(place), Caller::Thread(wait)))
    }

    #[allow(private_interfaces)]
    fn push_async(
        self,
        item: T,
        place: Place,
    ) -> impl Future<Output = Result<Ticket, PushError<T>>> + Send {
        self.stage(item, Some(place), Caller::Task)
    }

    #[allow(private_interfaces)]
    fn push_batch_async(
        self,
        items: Vec<T>,
        place: Place,
    ) -> impl Future<Output = Result<Tickets, PushError<Vec<T>>>> + Send {
        self.stage_batch(items, Some(place), Caller::Task)
    }
}
