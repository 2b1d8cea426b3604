//! The order of fair queues.

use super::{KeyMeta, Keys, Rounds, Rules, Standing, UNLIMITED};
use crate::order::{Engine, Leased, Order, ShardsOf, Sorted, Source, Unleased, Visit};
use std::hash::Hash;
use std::marker::PhantomData;
use std::sync::Arc;

/// How many removed items of a key are unregistered at once, so that pops rarely contend with pushes for the
/// tables. So a table may count too many for a while, but never too few: no number is free too early. A key whose last item
/// leaves the order has unregistered all, so none is free too late.
const BATCH: u32 = 64;

/// The order of a [`FairQueue`](crate::FairQueue): see [`Builder::fair_by`](crate::Builder::fair_by).
///
/// ```
/// use requeue::{Builder, ByKey, FairQueue, Queue};
///
/// fn limited(builder: Builder<u32, ByKey<u32, u32>>) -> FairQueue<u32, u32> {
///     builder.capacity(100).build()
/// }
/// assert_eq!(limited(Queue::builder().fair_by(|job| job % 10)).capacity(), Some(100));
/// ```
pub struct ByKey<K, T>(PhantomData<fn(&T) -> K>);

/// For items of any type, so that the compiler need not prove that two lifetimes in `T` are equal.
impl<K, T, U> Engine<U> for ByKey<K, T>
where
    K: Hash + Eq,
{
    type Settings = Rules<K, U>;
    type Meta = KeyMeta;
    type Source = Sorted<U, KeyMeta, Rounds<U>, Keys<K, U>>;

    fn make_room(rules: &mut Self::Settings, of_one_key: usize) {
        rules.limit = rules
            .limit
            .max(u32::try_from(of_one_key).unwrap_or(UNLIMITED));
    }

    fn source(rules: Rules<K, U>, shards: &Arc<ShardsOf<U, Self>>) -> Self::Source {
        // With a limit the counts must be exact.
        let is_limited = rules.limit < UNLIMITED;
        let batch = if is_limited { 1 } else { BATCH };
        let rounds = Rounds::new(rules.most_held, batch);
        Sorted::new(rounds, Keys::new(rules), shards)
    }
}

impl<K, T> Unleased for ByKey<K, T> {}

/// An order by key: [`ByKey`], [leased](crate::Leased) or not. Sealed.
///
/// ```
/// use requeue::{FairQueue, Keyed, Queue};
///
/// fn busiest<T: Send, O: Keyed<T>>(queue: &Queue<T, O>) -> usize {
///     queue.keys().iter().map(|(_, items)| items).max().unwrap_or(0)
/// }
///
/// let queue = FairQueue::by(|job: &u32| job % 10);
/// queue.handle().push_batch([11, 21, 32])?;
/// assert_eq!(busiest(&queue), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg_attr(
    on_unimplemented,
    diagnostic::on_unimplemented(
        message = "items of a queue in the order `{Self}` have no keys",
        note = "make the queue with `FairQueue::by(key)` or `Queue::builder().fair_by(key)`"
    )
)]
#[allow(private_bounds)] // sealed
pub trait Keyed<T>:
    Order<T>
    + KeyOrder<T, Keys = <Self as Keyed<T>>::Key>
    + Engine<T, Settings = Rules<<Self as Keyed<T>>::Key, T>>
{
    /// The type of the keys.
    type Key: Hash + Eq;
}

/// An order whose [`Source`] is a [`KeySource`].
pub(crate) trait KeyOrder<T>: Engine<T, Source = <Self as KeyOrder<T>>::Items> {
    type Keys;
    type Items: KeySource<T, Self::Meta, Key = Self::Keys>;
}

impl<T, O: Engine<T>> KeyOrder<T> for O
where
    O::Source: KeySource<T, O::Meta>,
{
    type Keys = <O::Source as KeySource<T, O::Meta>>::Key;
    type Items = O::Source;
}

/// A source of items with keys.
pub(crate) trait KeySource<T, M>: Source<T, M> {
    type Key;

    fn keys(&self) -> &Keys<Self::Key, T>;

    /// Begins a visit to the items of the key with this number, ready or not.
    fn begin_visit_of(&self, number: u32) -> Self::Visit;

    /// Passes on the keys in the order in which they will be served, then those that wait for a held or shown item; under
    /// the lock, so that their numbers remain theirs.
    fn each_standing(&self, each: impl FnMut(Standing));
}

impl<K: Hash + Eq, T> KeySource<T, KeyMeta> for Sorted<T, KeyMeta, Rounds<T>, Keys<K, T>> {
    type Key = K;

    fn keys(&self) -> &Keys<K, T> {
        self.registry()
    }

    fn begin_visit_of(&self, number: u32) -> Self::Visit {
        self.with(|rounds| Visit::new(rounds.begin_visit_of(number)))
    }

    fn each_standing(&self, each: impl FnMut(Standing)) {
        self.with(|rounds| rounds.standings().for_each(each));
    }
}

impl<K, T, U> Keyed<U> for ByKey<K, T>
where
    K: Hash + Eq,
{
    type Key = K;
}

impl<T: Clone, O: Keyed<T> + Unleased> Keyed<T> for Leased<O> {
    type Key = O::Key;
}

impl<K, T> Clone for ByKey<K, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, T> Copy for ByKey<K, T> {}

debug_struct!([K, T] ByKey<K, T>);
