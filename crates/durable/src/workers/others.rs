//! Other queues that the runs of a pool commit to.

use crate::call::swallow_panic;
use crate::commit::{conclude_all, write, Taken};
use crate::error::PushError;
use crate::order::Order;
use crate::{DurableQueue, Handle, OwnedTransaction, Transaction};
use requeue::workers::{CommitWith, Others};
use std::sync::Arc;

impl<A: Send + 'static, P: Order<A>> Others for &DurableQueue<A, P> {
    type Handles = Handle<A, P>;
    type Transactions<'h> = Transaction<'h, A, P>;

    fn handles(&self) -> impl Fn(&Arc<str>) -> Self::Handles + Send + Sync + 'static {
        let queue = DurableQueue::clone(self);
        move |worker| queue.named_handle(Arc::clone(worker))
    }

    fn begin(handle: &mut Self::Handles) -> Self::Transactions<'_> {
        handle.begin()
    }
}

impl<T: Send + 'static, O: Order<T>, A: Send + 'static, P: Order<A>> CommitWith<DurableQueue<T, O>>
    for &DurableQueue<A, P>
{
    fn commit_with(
        tx: &mut OwnedTransaction<T, O>,
        other: Self::Transactions<'_>,
    ) -> Result<bool, PushError<T>> {
        <(Self,)>::commit_with(tx, (other,))
    }
}

macro_rules! tuples {
    ($($A:ident $P:ident $other:ident $item:ident),+) => {
        impl<T: Send + 'static, O: Order<T>, $($A: Send + 'static, $P: Order<$A>),+>
            CommitWith<DurableQueue<T, O>> for ($(&DurableQueue<$A, $P>,)+)
        {
            fn commit_with(
                tx: &mut OwnedTransaction<T, O>,
                ($(mut $other,)+): Self::Transactions<'_>,
            ) -> Result<bool, PushError<T>> {
                let core = tx.core_mut();
                core.local.failed = true; // until it is committed
                write(&mut [core, $($other.core_mut()),+], None)?;
                let given_up = core.ram.has_given_up() $(| $other.core_mut().ram.has_given_up())+;
                $(let $other = $other.split();)+
                core.ram.commit_by(|ram| {
                    let (taken, $($item,)+) = conclude_all((ram, $($other.0,)+));
                    $(swallow_panic(|| drop(Taken::new($item, $other.1)));)+
                    taken
                });
                core.local.failed = false;
                core.local.end(true);
                Ok(given_up)
            }
        }
    };
}

tuples!(A P a ai);
tuples!(A P a ai, B Q b bi);
tuples!(A P a ai, B Q b bi, C R c ci);
tuples!(A P a ai, B Q b bi, C R c ci, D S d di);
