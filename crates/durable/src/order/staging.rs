//! Pushes in memory.

use crate::call::{Call, Caller};
use requeue::{Order, OwnedTransaction, PushError, StorePlace};
use std::future::Future;
use std::slice;

/// What one push has: [`One`] item, or [`Many`].
pub trait Load: 'static {
    type Of<E: Send + 'static>: Send + 'static;

    fn as_slice<E: Send + 'static>(load: &Self::Of<E>) -> &[E];

    fn map<E: Send + 'static, D: Send + 'static>(
        load: Self::Of<E>,
        change: impl FnMut(E) -> D,
    ) -> Self::Of<D>;

    fn stage<E: Send + 'static, R: Order<E>>(
        tx: &OwnedTransaction<E, R>,
        load: Self::Of<E>,
        place: StorePlace,
        caller: Caller,
    ) -> impl Future<Output = Result<(), PushError<Self::Of<E>>>> + Send + '_;
}

#[derive(Debug)]
pub(crate) struct One;

#[derive(Debug)]
pub(crate) struct Many;

macro_rules! load {
    ($load:ident, $of:ty, $as_slice:path, $task:ident, |$map:pat_param, $change:pat_param| $mapped:expr) => {
        impl Load for $load {
            type Of<E: Send + 'static> = $of;

            #[inline]
            fn as_slice<E: Send + 'static>(load: &$of) -> &[E] {
                $as_slice(load)
            }

            #[inline]
            fn map<E: Send + 'static, D: Send + 'static>(
                $map: $of,
                $change: impl FnMut(E) -> D,
            ) -> Self::Of<D> {
                $mapped
            }

            #[inline]
            fn stage<E: Send + 'static, R: Order<E>>(
                tx: &OwnedTransaction<E, R>,
                load: $of,
                place: StorePlace,
                caller: Caller,
            ) -> impl Future<Output = Result<(), PushError<$of>>> + Send + '_ {
                let staging = match caller {
                    Caller::Thread(wait) => Call::Ended(tx.push_to(place, load, wait)),
                    Caller::Task => {
                        let staging = tx.$task(place, load);
                        Call::Pends(async { staging.await.map(drop) })
                    }
                };
                staging.end()
            }
        }
    };
}

load! { One, E, slice::from_ref, push_to_async, |item, mut change| change(item) }
load! { Many, Vec<E>, Vec::as_slice, push_batch_to_async, |items, change| items.into_iter().map(change).collect() }
