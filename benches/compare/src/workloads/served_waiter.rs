//! A task that was woken in vain is woken again, before others, and is never polled any more: the pops of others beside it.

use super::crowd::both;
use super::{items, Sizes};
use crate::measure::{Subject, Workload};
use crate::peers::{Peer, Plan, Receiver, Sender, TaskReceiver};
use crate::tally::{Payload, Tally};
use crate::threads::Load;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Instant;

pub(super) fn workloads(sizes: Sizes) -> Vec<Workload> {
    let load = sizes.load_of(10);
    let served = Workload::new(
        "served waiter, push and pop",
        move || each!(u64: served(load) for Plain, Transactional, Direct),
    );
    vec![served.columns(&["without", "beside one"])]
}

/// Counts wake-ups.
#[derive(Default)]
struct Bell(AtomicU64);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// One thread pushes and pops: the times without the task and beside it. The task takes no item.
fn served<P: Peer<T>, T: Payload>(load: Load) -> Subject
where
    P::Receiver: TaskReceiver<T>,
{
    let (mut senders, mut receivers) = P::open(Plan {
        senders: 1,
        receivers: 2,
        bound: None,
        room: 1,
    });
    Subject::of::<P, T>(move || {
        let [receiver, waiting] = &mut receivers[..] else {
            unreachable!("there are two receivers");
        };
        let mut pairs = |count: u64| {
            items((0..count).map_while(|number| {
                senders[0].push_retrying(T::of(number));
                Some(receiver.pop()?.number())
            }))
        };
        let timed = |pairs: &mut dyn FnMut(u64) -> Tally| {
            let start = Instant::now();
            let received = pairs(load.items);
            load.round(start.elapsed(), received)
        };
        let without = timed(&mut pairs);
        let bell = Arc::new(Bell::default());
        let waker = Waker::from(Arc::clone(&bell));
        let mut task = pin!(waiting.pop_async());
        let mut poll = || {
            let mut context = Context::from_waker(&waker);
            let polled = task.as_mut().poll(&mut context);
            assert!(polled.is_pending(), "the item was taken by another");
        };
        poll();
        pairs(1);
        poll();
        let beside = timed(&mut pairs);
        let woken = bell.0.load(Ordering::Relaxed);
        assert_eq!(woken, 2, "in vain, and as the one that is served");
        both([without, beside])
    })
}
