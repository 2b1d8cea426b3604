//! What the board shows of a queue, and what it may change in it.

use std::any::{Any, TypeId};
use std::fmt;
use std::future::{ready, Future};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// What went wrong, as text for the viewer.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// The result of a call, which may have to wait for a server.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// A reply that is there at once.
pub(crate) fn at_once<'a, T: Send + 'a>(reply: T) -> Reply<'a, T> {
    Box::pin(ready(Ok(reply)))
}

/// Makes a call that may take long on a thread where it keeps no task waiting.
pub(crate) fn blocking<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Reply<'static, T> {
    Box::pin(async { tokio::task::spawn_blocking(call).await? })
}

/// The entries on a page.
pub const PAGE: usize = 50;

/// A queue that the board shows. Implemented by [`InMemory`](crate::InMemory), `OnDisk`, `InStore` and `InPostgres`; implement it for
/// queues of your own.
pub trait Inspect: Any + Send + Sync {
    /// What can be changed. The board offers nothing else.
    fn verbs(&self) -> &[Verb];

    /// Its counts now. Called about once a second while somebody looks.
    fn counts(&self) -> Reply<'_, Counts>;

    /// Who holds items.
    fn holders(&self) -> Reply<'_, Vec<Holder>>;

    /// A page of its items or dead letters.
    fn page(&self, search: Search) -> Reply<'_, Page>;

    /// Makes a change, and returns how many items it concerned.
    ///
    /// # Errors
    ///
    /// What the viewer is told: a change that is not among the [verbs](Self::verbs) too.
    fn change(&self, change: Change) -> Reply<'_, u64>;

    /// Takes an item of another queue with the same [type](Self::item_type). Gives it back if it is full or closed.
    ///
    /// # Errors
    ///
    /// The item.
    fn put(&self, item: Box<dyn Any + Send>) -> Result<(), Box<dyn Any + Send>> {
        Err(item)
    }

    /// A type that stands for its items. Dead letters can be moved between queues that have the same one.
    fn item_type(&self) -> Option<TypeId> {
        None
    }
}

/// Queues that come and go, such as those of a database.
pub trait Source: Send + Sync {
    /// The present queues with their names. A queue that is still there must be the same `Arc` as before. Called before the counts of the
    /// queues.
    fn queues(&self) -> Reply<'_, Vec<(String, Arc<dyn Inspect>)>>;
}

/// Counts of a queue. What is not known is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)] // they are named as in `requeue::Stats`
pub struct Counts {
    pub ready: u64,
    pub held: Option<u64>,
    pub delayed: Option<u64>,
    /// Dead letters that are there now.
    pub dead: u64,
    /// Items that ever came in.
    pub pushed: Option<u64>,
    /// Items that ever left: committed, removed or dead.
    pub done: Option<u64>,
    /// Time since the push of the oldest ready item.
    pub oldest: Option<Duration>,
    pub waiting: Option<u64>,
    pub capacity: Option<u64>,
    pub is_paused: bool,
    pub is_closed: bool,
    pub is_paced: bool,
}

/// Who holds items.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Holder {
    pub name: String,
    pub items: u64,
    /// For how long it has held its first item.
    pub since: Option<Duration>,
}

/// Which entries to show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// Dead letters, or else items.
    pub dead: bool,
    /// What an entry contains, in any case. Empty for all.
    pub text: String,
    /// The number of the page, from 0.
    pub page: usize,
}

impl Search {
    /// The numbers of the entries on the page, among those that match.
    pub(crate) fn range(&self) -> std::ops::Range<usize> {
        let first = self.page.saturating_mul(PAGE);
        first..first.saturating_add(PAGE)
    }
}

/// Some items or dead letters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// At most [`PAGE`].
    pub entries: Vec<Entry>,
    /// How many there are on all pages.
    pub total: u64,
}

impl Page {
    /// Counts an entry that may match, and keeps it if it is on the page. `entry` is called if it is needed.
    pub(crate) fn visit(&mut self, search: &Search, entry: impl FnOnce() -> Entry) {
        let is_here = search.range().contains(&as_usize(self.total));
        if !is_here && search.text.is_empty() {
            self.total += 1;
            return;
        }
        let entry = entry();
        if entry.contains(&search.text) {
            self.total += 1;
            self.entries.extend(is_here.then_some(entry));
        }
    }
}

/// An item or a dead letter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// By which a change finds it, if that is possible.
    pub id: Option<String>,
    /// The item.
    pub payload: String,
    /// How often it was delivered.
    pub attempts: u32,
    /// How long ago it was pushed.
    pub age: Option<Duration>,
    /// Such as `ready`, or why it is dead.
    pub state: String,
    /// The last error.
    pub error: Option<String>,
}

impl Entry {
    /// Whether its texts contain this one, in any case.
    pub(crate) fn contains(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        let error = self.error.as_deref().unwrap_or_default();
        let mut texts = [&self.payload, error, &self.state].into_iter();
        text.is_empty() || texts.any(|part| part.to_lowercase().contains(&text))
    }
}

/// The kinds of [`Change`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Verb {
    Pause,
    Resume,
    Pace,
    Retry,
    Delete,
    Move,
    Remove,
}

impl Verb {
    const ALL: [Self; 7] = [
        Self::Pause,
        Self::Resume,
        Self::Pace,
        Self::Retry,
        Self::Delete,
        Self::Move,
        Self::Remove,
    ];

    pub(crate) fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.name() == name)
    }
}

/// A change of a queue.
#[derive(Clone, Debug)]
pub enum Change {
    /// Delivers nothing.
    Pause,
    /// Ends a pause.
    Resume,
    /// Starts at most this many items a second; `None` for any number.
    Pace(Option<f64>),
    /// Makes dead letters items again.
    Retry(Pick),
    /// Removes dead letters.
    Delete(Pick),
    /// Moves dead letters into another queue, as items.
    Move(Pick, Arc<dyn Inspect>),
    /// Removes items that nobody holds.
    Remove(Pick),
}

impl fmt::Debug for dyn Inspect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inspect")
    }
}

/// Which items or dead letters a change concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pick {
    /// The one with this id.
    One(String),
    /// Those that contain this text, in any case: all if it is empty.
    Matching(String),
}

impl Pick {
    /// Whether it is this entry. `entry` is called if it is needed.
    pub(crate) fn is(&self, id: Option<&str>, entry: impl FnOnce() -> Entry) -> bool {
        match self {
            Self::One(one) => id == Some(one),
            Self::Matching(text) => text.is_empty() || entry().contains(text),
        }
    }
}

/// Gives an item to another queue.
pub(crate) fn give<T: Send + 'static>(to: &dyn Inspect, item: T) -> Result<(), T> {
    let refused = to.put(Box::new(item));
    refused.map_err(|item| *item.downcast().expect("the item that was given"))
}

/// For a change that a queue does not offer.
#[cfg(any(feature = "durable", feature = "postgres"))]
pub(crate) fn not_offered<'a, T: Send + 'a>() -> Reply<'a, T> {
    Box::pin(ready(Err("this queue does not offer that".into())))
}

pub(crate) fn as_usize(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
