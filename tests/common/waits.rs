//! The forms of a pop that waits for an item and of a push that waits for room.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use super::futures::{block_on, woken, Task};
use requeue::{Fifo, Handle, Order, PopError, PushError, Unleased};

pub(crate) type Popped = Result<u32, PopError>;
pub(crate) type Pushed = Result<(), PushError<u32>>;
pub(crate) type Pop<O = Fifo> = fn(&mut Handle<u32, O>) -> Popped;
pub(crate) type Push = fn(&mut Handle<u32>, u32) -> Pushed;

/// Blocks until there is an item; a transaction is then committed.
pub(crate) fn blocking_pops<O: Order<u32> + Unleased>() -> [(&'static str, Pop<O>); 10] {
    [
        ("pop_blocking", Handle::pop_blocking),
        ("pop_timeout", |handle| handle.pop_timeout(Duration::MAX)),
        ("pop_async", |handle| block_on(handle.pop_async())),
        ("pop_batch_blocking", |handle| {
            let mut items = Vec::new();
            handle.pop_batch_blocking(1, 1, &mut items);
            items.pop().ok_or(PopError::Closed)
        }),
        ("pop_batch_async", |handle| {
            let mut items = Vec::new();
            block_on(handle.pop_batch_async(1, 1, &mut items));
            items.pop().ok_or(PopError::Closed)
        }),
        ("pop_blocking of a transaction", |handle| {
            handle.transact(|tx| tx.pop_blocking().map(|item| *item))
        }),
        ("pop_timeout of a transaction", |handle| {
            handle.transact(|tx| tx.pop_timeout(Duration::MAX).map(|item| *item))
        }),
        ("pop_async of a transaction", |handle| {
            handle.transact(|tx| block_on(tx.pop_async()).map(|item| *item))
        }),
        ("pop_batch_blocking of a transaction", |handle| {
            let tx = handle.begin();
            tx.pop_batch_blocking(1, 1);
            tx.commit().next().ok_or(PopError::Closed)
        }),
        ("pop_batch_async of a transaction", |handle| {
            let tx = handle.begin();
            block_on(tx.pop_batch_async(1, 1));
            tx.commit().next().ok_or(PopError::Closed)
        }),
    ]
}

/// Converts the error of a batch of one item to that of a single item.
fn single(pushed: Result<usize, PushError<Vec<u32>>>) -> Pushed {
    let first = |items: Vec<u32>| items[0];
    match pushed {
        Ok(count) => {
            assert_eq!(count, 1);
            Ok(())
        }
        Err(PushError::Full(items)) => Err(PushError::Full(first(items))),
        Err(PushError::Closed(items)) => Err(PushError::Closed(first(items))),
        Err(refused) => panic!("neither full nor closed: {refused:?}"),
    }
}

/// Blocks until there is room; a transaction is then committed.
pub(crate) const BLOCKING_PUSHES: [(&str, Push); 10] = [
    ("push_blocking", Handle::push_blocking),
    ("push_timeout", |handle, item| {
        handle.push_timeout(item, Duration::MAX)
    }),
    ("push_async", |handle, item| {
        block_on(handle.push_async(item))
    }),
    ("push_batch_blocking", |handle, item| {
        single(handle.push_batch_blocking([item]))
    }),
    ("push_batch_async", |handle, item| {
        single(block_on(handle.push_batch_async([item])))
    }),
    ("push_blocking of a transaction", |handle, item| {
        handle.transact(|tx| tx.push_blocking(item))
    }),
    ("push_timeout of a transaction", |handle, item| {
        handle.transact(|tx| tx.push_timeout(item, Duration::MAX))
    }),
    ("push_async of a transaction", |handle, item| {
        handle.transact(|tx| block_on(tx.push_async(item)))
    }),
    ("push_batch_blocking of a transaction", |handle, item| {
        single(handle.transact(|tx| tx.push_batch_blocking([item])))
    }),
    ("push_batch_async of a transaction", |handle, item| {
        single(handle.transact(|tx| block_on(tx.push_batch_async([item]))))
    }),
];

/// A boxed future, so that those of handles and of transactions have one type.
pub(crate) type Boxed<'h, R> = Pin<Box<dyn Future<Output = R> + Send + 'h>>;
pub(crate) type PopTask<'h> = Task<Boxed<'h, Popped>>;
pub(crate) type PushTask<'h> = Task<Boxed<'h, Pushed>>;
pub(crate) type AsyncPop<O = Fifo> = for<'h> fn(&'h mut Handle<u32, O>) -> Boxed<'h, Popped>;
pub(crate) type AsyncPush = for<'h> fn(&'h mut Handle<u32>, u32) -> Boxed<'h, Pushed>;

pub(crate) fn async_pops<O: Order<u32> + Unleased>() -> [AsyncPop<O>; 4] {
    [
        |handle| Box::pin(handle.pop_async()),
        |handle| {
            Box::pin(async move {
                let tx = handle.begin();
                let item = *tx.pop_async().await?;
                tx.commit();
                Ok(item)
            })
        },
        |handle| {
            Box::pin(async move {
                let mut items = Vec::new();
                handle.pop_batch_async(1, 1, &mut items).await;
                items.pop().ok_or(PopError::Closed)
            })
        },
        |handle| {
            Box::pin(async move {
                let tx = handle.begin();
                tx.pop_batch_async(1, 1).await;
                tx.commit().next().ok_or(PopError::Closed)
            })
        },
    ]
}

pub(crate) const ASYNC_PUSHES: [AsyncPush; 3] = [
    |handle, item| Box::pin(handle.push_async(item)),
    |handle, item| {
        let pushed = handle.push_batch_async([item]);
        Box::pin(async { single(pushed.await) })
    },
    |handle, item| {
        Box::pin(async move {
            let tx = handle.begin();
            tx.push_async(item).await?;
            tx.commit();
            Ok(())
        })
    },
];

/// Tasks that wait for an item, one for each handle and registered in that order, cycling through all forms.
pub(crate) fn poppers<O: Order<u32> + Unleased>(
    handles: &mut [Handle<u32, O>],
) -> Vec<PopTask<'_>> {
    let forms = async_pops().into_iter().cycle();
    let line = handles.iter_mut().zip(forms);
    line.map(|(handle, pop)| Task::waiting(pop(handle)))
        .collect()
}

/// Tasks that wait for room, one for each handle and registered in that order, cycling through all forms. They push
/// their indices.
pub(crate) fn pushers(handles: &mut [Handle<u32>]) -> Vec<PushTask<'_>> {
    let forms = ASYNC_PUSHES.iter().cycle();
    let line = handles.iter_mut().zip(forms).zip(0..);
    line.map(|((handle, push), number)| Task::waiting(push(handle, number)))
        .collect()
}

/// Polls woken tasks until one is ready.
pub(crate) fn next_output(tasks: &mut Vec<PopTask<'_>>) -> Option<u32> {
    for _ in 0..=tasks.len() {
        for place in woken(tasks) {
            if let Poll::Ready(output) = tasks[place].poll() {
                drop(tasks.remove(place));
                return Some(output.unwrap());
            }
        }
    }
    None
}
