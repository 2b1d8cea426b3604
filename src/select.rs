//! The first item of several queues.

use crate::core::Port;
use crate::order::Order;
use crate::sync::defer_with;
use crate::wait::{block, spin, Deadline, Waiter};
use crate::{Handle, PopError};
use std::borrow::BorrowMut;
use std::task::Poll;

/// Pops from the first of several queues that has an item, and waits until one has. Says which of the
/// handles it was, and gives the item; the pop is committed at once.
///
/// If several have items, the handle that stands first is served. Closed queues are passed over. For
/// queues of different items, or together with other things to wait for, select among the futures of
/// [`Handle::pop_async`]: dropping those that were not first loses nothing.
///
/// ```
/// use requeue::{pop_any, Queue};
///
/// let (urgent, normal) = (Queue::unbounded(), Queue::unbounded());
/// normal.push("sweep")?;
/// urgent.push("put out the fire")?;
///
/// let mut handles = [urgent.handle(), normal.handle()];
/// assert_eq!(pop_any(&mut handles)?, (0, "put out the fire"));
/// assert_eq!(pop_any(&mut handles)?, (1, "sweep"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`PopError::Closed`] if all of the queues are closed and drained, also if there are none.
pub fn pop_any<T, O: Order<T>, H: BorrowMut<Handle<T, O>>>(
    handles: &mut [H],
) -> Result<(usize, T), PopError> {
    let ports = handles.iter_mut().map(|handle| handle.borrow_mut().cell());
    // Their places in the lines are left at the end, also if a pace or a clock panics.
    let mut ports = defer_with(ports.collect::<Vec<_>>(), |ports| {
        for port in ports {
            port.end_waiting();
        }
    });
    ports.iter_mut().for_each(|port| {
        port.settled();
    });
    let try_all = |ports: &mut Vec<_>| first(ports, |port| Poll::Ready(port.pop()));
    if let Some(result) = spin(&mut *ports, |_| true, try_all) {
        return result;
    }
    let poll = |waiter: &Waiter<'_>| {
        let result = first(&mut ports, |port| port.get_mut().poll_pop(waiter));
        result.map_or(Poll::Pending, Poll::Ready)
    };
    let result = block(Deadline::NEVER, poll);
    result.unwrap_or(Err(PopError::Closed))
}

/// The first item that `pop` gives, if any; closed if all of them are.
fn first<T, O: Order<T>>(
    ports: &mut [&mut Port<T, O>],
    mut pop: impl FnMut(&mut Port<T, O>) -> Poll<Result<T, PopError>>,
) -> Option<Result<(usize, T), PopError>> {
    let mut closed = 0;
    for (index, port) in ports.iter_mut().enumerate() {
        match pop(port) {
            Poll::Ready(Ok(item)) => return Some(Ok((index, item))),
            Poll::Ready(Err(PopError::Closed)) => closed += 1,
            Poll::Ready(Err(PopError::Empty)) | Poll::Pending => {}
        }
    }
    (closed == ports.len()).then_some(Err(PopError::Closed))
}
