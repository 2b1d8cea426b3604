//! The order of a queue that leases its items: another order, with a copy of each item in flight.

use super::{Engine, Fifo, ShardsOf};
use std::marker::PhantomData;
use std::sync::Arc;

/// The order of a queue that [leases](crate::Builder::leased) its items. `O` decides which one is next, by default
/// [`Fifo`]:
///
/// ```
/// use requeue::{Leased, Queue};
/// use std::time::Duration;
///
/// struct Service {
///     jobs: Queue<String, Leased>,
/// }
///
/// let jobs = Queue::builder().leased(Duration::from_secs(60)).build();
/// let service = Service { jobs };
/// # assert!(service.jobs.is_empty());
/// ```
///
/// It has the methods of `O`: a `Queue<T, Leased<ByPriority>>` pushes with priorities, a `Queue<T, Leased<ByKey<K, T>>>`
/// can list its keys. But a lease can expire before the commit, so its transactions have
/// [`try_commit`](crate::Transaction::try_commit), and no [`commit`](crate::Transaction::commit):
///
/// ```
/// use std::time::Duration;
///
/// let queue = requeue::Queue::builder().leased(Duration::from_secs(60)).build();
/// queue.push("job")?;
/// let mut worker = queue.handle();
/// let tx = worker.begin();
/// let _job = tx.pop()?;
/// tx.try_commit()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// ```compile_fail,E0277
/// use std::time::Duration;
///
/// let queue = requeue::Queue::builder().leased(Duration::from_secs(60)).build();
/// queue.push("job")?;
/// let mut worker = queue.handle();
/// let tx = worker.begin();
/// let _job = tx.pop()?;
/// tx.commit(); // `Leased<Fifo>` is not `Unleased`
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Leased<O = Fifo>(PhantomData<fn() -> O>);

/// Marks types whose commits cannot fail because nothing is [leased](crate::Builder::leased): an
/// [`Order`](trait@crate::Order) of queues without leases, their transactions, and tuples of these.
///
/// A function that commits in any such order:
///
/// ```
/// use requeue::{Handle, Order, Queue, Unleased};
///
/// fn work<O: Order<u32> + Unleased>(handle: &mut Handle<u32, O>) -> u32 {
///     let tx = handle.begin();
///     let sum = tx.pop_batch(10).map(|item| *item).sum();
///     tx.commit();
///     sum
/// }
///
/// let queue: Queue<u32> = (1..=3).collect();
/// assert_eq!(work(&mut queue.handle()), 6);
/// ```
#[cfg_attr(
    on_unimplemented,
    diagnostic::on_unimplemented(
        message = "items of a queue in the order `{Self}` are leased, so the commit can fail",
        note = "use `try_commit`, `try_transact` or `try_commit_all`, which return `Expired` if a lease has expired"
    )
)]
pub trait Unleased {}

impl<T: Clone, O: Engine<T> + Unleased> Engine<T> for Leased<O> {
    type Settings = O::Settings;
    type Meta = O::Meta;
    type Source = O::Source;

    const COPY: Option<fn(&T) -> T> = Some(T::clone);

    fn is_timed(settings: &O::Settings) -> bool {
        O::is_timed(settings)
    }

    fn make_room(settings: &mut O::Settings, of_one_key: usize) {
        O::make_room(settings, of_one_key);
    }

    fn source(settings: O::Settings, shards: &Arc<ShardsOf<T, Self>>) -> O::Source {
        O::source(settings, shards)
    }
}

impl<O> Clone for Leased<O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<O> Copy for Leased<O> {}

debug_struct!([O] Leased<O>);
