//! Deliveries: items that were taken, and are acknowledged or given back one by one.

use crate::core::delivery::Delivered;
use crate::core::failed::Settlement;
use crate::order::Order;
use crate::{DeliveryId, Expired, Fifo, ReturnTo, Unleased};
use std::fmt;
use std::time::Duration;

/// An item that [`Queue::take`](crate::Queue::take) has taken, until it is acknowledged or given back: like the delivery of a
/// message broker.
///
/// It dereferences to the item, and borrows nothing: it may be stored, sent to another thread, and ended there, in any order with
/// others, also after its runtime and its queue are gone. Until then its item is held, as by a transaction: it counts in
/// [`Stats::held`](crate::Stats::held), keeps its permit in a bounded queue, and a closed queue is not drained.
///
/// In a queue that [leases](crate::Builder::leased) its items a delivery that takes too long loses its item: the queue delivers a
/// copy, and this delivery can only be dropped. It has [`try_ack`](Self::try_ack) instead of [`ack`](Self::ack).
///
/// A delivery that is dropped has failed: as [`nack`](Self::nack). So a panic or a cancelled task loses no item. One that is
/// leaked by [`std::mem::forget`] stays held as long as the queue lives.
///
/// # Order
///
/// Items that come back to the head of a FIFO queue are taken again in the order of their producer, whatever order their
/// deliveries end in; [ordering](crate::guide::ordering#deliveries) says what is not kept.
///
/// # Example
///
/// Deliveries that are acknowledged by id, in any order and by any thread:
///
/// ```
/// use std::collections::HashMap;
///
/// let queue = requeue::Queue::unbounded();
/// queue.push_batch(["a", "b", "c"])?;
/// let mut open: HashMap<_, _> = queue.take_batch(3).into_iter().map(|job| (job.id(), job)).collect();
///
/// let id = *open.iter().find(|(_, job)| ***job == "b").unwrap().0;
/// let acked = open.remove(&id).unwrap();
/// std::thread::spawn(|| assert_eq!(acked.ack(), "b")).join().unwrap();
/// drop(open); // the connection is gone
/// assert!(queue.drain().eq(["a", "c"]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a delivery that is dropped has failed"]
pub struct Delivery<T, O: Order<T> = Fifo>(pub(crate) Delivered<T, O>);

impl<T, O: Order<T>> Delivery<T, O> {
    /// The id of the delivery, unique in its queue.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push_batch([1, 2])?;
    /// assert_ne!(queue.take()?.id(), queue.take()?.id());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn id(&self) -> DeliveryId {
        self.0.id()
    }

    /// The number of deliveries of the item, this one included, as [`Item::attempts`](crate::Item::attempts).
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push("job")?;
    /// queue.take()?.nack();
    /// assert_eq!(queue.take()?.attempts(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn attempts(&self) -> u32 {
        self.0.attempts()
    }

    /// How long ago the item was first pushed when it was taken; `None` unless the queue keeps
    /// [timestamps](crate::Builder::timestamps).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let clock = requeue::ManualClock::new();
    /// let queue = requeue::Queue::builder().timestamps().clock(clock.clone()).build();
    /// queue.push("job")?;
    /// clock.advance(Duration::from_secs(5));
    /// let job = queue.take()?;
    /// clock.advance(Duration::from_secs(1));
    /// assert_eq!(job.waited(), Some(Duration::from_secs(5)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn waited(&self) -> Option<Duration> {
        self.0.waited()
    }

    /// Acknowledges the delivery: the item is gone from the queue, and is returned. Never fails or waits.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push("job")?;
    /// assert_eq!(queue.take()?.ack(), "job");
    /// assert_eq!(queue.stats().committed, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("acknowledge", "commit", "complete"))]
    #[inline]
    pub fn ack(self) -> T
    where
        O: Unleased,
    {
        self.0.ack()
    }

    /// Acknowledges the delivery, unless the queue [leases](crate::Builder::leased) its items and this one was taken back.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let clock = requeue::ManualClock::new();
    /// let queue = requeue::Queue::builder()
    ///     .leased(Duration::from_secs(60))
    ///     .clock(clock.clone())
    ///     .build();
    /// queue.push("job")?;
    /// let slow = queue.take()?;
    /// clock.advance(Duration::from_secs(60));
    /// assert_eq!(queue.take()?.try_ack()?, "job");
    /// assert!(slow.try_ack().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Expired`] if the item was taken back; then it is dropped here, and its copy is the queue's.
    #[doc(alias("acknowledge", "commit", "complete"))]
    pub fn try_ack(self) -> Result<T, Expired> {
        let (item, lease) = self.0.try_ack()?;
        drop(lease); // its copy is user code
        Ok(item)
    }

    /// Makes the [lease](crate::Builder::leased) of the item last for `time` from now on, if it would end earlier. Without leases
    /// it does nothing.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let clock = requeue::ManualClock::new();
    /// let queue = requeue::Queue::builder()
    ///     .leased(Duration::from_secs(60))
    ///     .clock(clock.clone())
    ///     .build();
    /// queue.push("job")?;
    /// let job = queue.take()?;
    /// job.extend(Duration::from_secs(300))?;
    /// clock.advance(Duration::from_secs(299));
    /// assert!(queue.take().is_err());
    /// assert_eq!(job.try_ack()?, "job");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Expired`] if the item was taken back.
    #[doc(alias("heartbeat", "renew", "touch", "visibility timeout"))]
    pub fn extend(&self, time: Duration) -> Result<(), Expired> {
        self.0.extend(time)
    }

    /// Gives the item back as a failed delivery, by the rules of the queue: it is [delayed](crate::Builder::backoff), becomes a
    /// dead letter after [`max_attempts`](crate::Builder::max_attempts) deliveries, or is ready again at once, where
    /// [`on_failure`](crate::Builder::on_failure) says. A drop does the same.
    ///
    /// It needs no room, and works after the close.
    ///
    /// ```
    /// let queue = requeue::Queue::bounded(2);
    /// queue.push_batch([1, 2])?;
    /// let first = queue.take()?;
    /// queue.close();
    /// first.nack();
    /// assert!(queue.drain().eq([1, 2]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("reject", "abandon", "requeue", "retry"))]
    pub fn nack(mut self) {
        self.0.end(&Settlement::retry());
    }

    /// Gives the item back as a failed delivery, to be delivered again after `delay`, at the head. After
    /// [`max_attempts`](crate::Builder::max_attempts) deliveries it becomes a dead letter instead.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let clock = requeue::ManualClock::new();
    /// let queue = requeue::Queue::builder().clock(clock.clone()).build();
    /// queue.push("job")?;
    /// queue.take()?.nack_after(Duration::from_secs(60));
    /// assert!(queue.take().is_err());
    /// clock.advance(Duration::from_secs(60));
    /// assert_eq!(queue.take()?.attempts(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("delay", "defer", "retry_after"))]
    pub fn nack_after(mut self, delay: Duration) {
        self.0.end(&Settlement::After(delay));
    }

    /// Gives the item back as a failed delivery, to be delivered again at once from the head or from the tail of the queue,
    /// whatever its [`on_failure`](crate::Builder::on_failure) and [`backoff`](crate::Builder::backoff) are. After
    /// [`max_attempts`](crate::Builder::max_attempts) deliveries it becomes a dead letter instead.
    ///
    /// ```
    /// use requeue::ReturnTo;
    ///
    /// let queue = requeue::Queue::unbounded();
    /// queue.push_batch([1, 2, 3])?;
    /// queue.take()?.nack_to(ReturnTo::Tail);
    /// assert!(queue.drain().eq([2, 3, 1]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn nack_to(mut self, to: ReturnTo) {
        self.0.end(&Settlement::To(to));
    }

    /// Fails the delivery: the item becomes a [dead letter](crate::Queue::dead_letters) with this error. If the dead letters are
    /// at their [limit](crate::Builder::max_dead_letters), it is given back as by [`nack`](Self::nack).
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push("seven")?;
    /// queue.take()?.fail("not a number");
    /// let letter = queue.dead_letters().next().unwrap();
    /// assert_eq!((letter.item, letter.error()), ("seven", Some("not a number")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If `error` panics when it is formatted. The delivery is dropped then.
    #[doc(alias("reject", "dead letter"))]
    pub fn fail(mut self, error: impl fmt::Display) {
        self.0.end(&Settlement::fail(error));
    }

    /// Gives the item back to the head as if it had not been taken: no attempt is counted.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push("job")?;
    /// queue.take()?.release();
    /// assert_eq!(queue.take()?.attempts(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "put_back")]
    pub fn release(mut self) {
        self.0.end(&Settlement::Released);
    }
}

deref!([T, O: Order<T>] Delivery<T, O> => T, |delivery| delivery.0.item(), delivery.0.item_mut());

fmt_as_item!(Debug, [T, O: Order<T>] Delivery<T, O> => T);
fmt_as_item!(Display, [T, O: Order<T>] Delivery<T, O> => T);
