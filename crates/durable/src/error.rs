//! What can fail because of the disk.

use crate::codec::CodecError;
use requeue::DuplicateOf;
use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What failed in a store, its files or its disk.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process, or another [`Store`](crate::Store) of this one, has the directory open.
    Locked(PathBuf),
    /// The directory holds files of another program.
    NotAStore(PathBuf),
    /// The store was written in a version of the format that this version of the crate does not read.
    Version {
        /// The version of the store.
        found: u32,
        /// The version that this crate reads and writes.
        supported: u32,
    },
    /// Acknowledged data is missing or damaged; see [`StoreOptions::accept_damage`](crate::StoreOptions::accept_damage).
    Damaged(Damage),
    /// The disk has less free space than the store [reserves](crate::StoreOptions::reserve). Nothing was written. Pops and
    /// commits without pushes still work.
    DiskFull,
    /// A write or a sync failed. It is unknown whether the commits that waited for it are on the disk; their transactions were
    /// aborted. The store writes nothing more until it is opened again.
    Poisoned(Arc<str>),
    /// A call of the operating system failed, before anything was changed. The error names the file, or the store's directory.
    Io(Arc<io::Error>),
    /// An item could not be decoded. The error names the queue and the item.
    Codec(CodecError),
    /// The queue of this name is open already.
    InUse(Arc<str>),
    /// The store has no queue of this name.
    NoQueue(Arc<str>),
    /// The queue of this name was made with another order.
    OtherOrder {
        /// The name of the queue.
        queue: Arc<str>,
        /// The order of the queue in the store.
        found: &'static str,
    },
    /// The lease of an item expired, so that it was delivered again: the transaction was aborted.
    Expired,
    /// There was no room to retry or fail an item apart from the others of its transaction, or in a
    /// [budget](crate::Builder::budget) for what a queue has on the disk.
    NoRoom,
}

/// What a store has lost, according to the counts and checksums in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// The queue, if the damage is within one.
    pub queue: Option<Arc<str>>,
    /// How many items are missing.
    pub missing: u64,
    /// How many items are there though they were removed.
    pub extra: u64,
    /// How many items are there and cannot be read.
    pub unreadable: u64,
    /// How many acknowledged commits are missing.
    pub commits: u64,
    /// What was found, in words.
    pub details: Arc<str>,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(queue) = &self.queue {
            write!(f, "queue {queue:?}: ")?;
        }
        f.write_str(&self.details)?;
        let counts = [
            (self.missing, "items missing"),
            (self.extra, "removed items found"),
            (self.unreadable, "items unreadable"),
            (self.commits, "acknowledged groups of commits missing"),
        ];
        for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, ", {count} {what}")?;
        }
        Ok(())
    }
}

impl StoreError {
    /// The error with a path, unless it has one.
    pub(crate) fn at(self, path: &Path) -> Self {
        match self {
            Self::Io(error) if !has_path(&error) => {
                let (kind, path) = (error.kind(), path.to_owned());
                io::Error::new(kind, AtPath { path, error }).into()
            }
            error => error,
        }
    }

    pub(crate) fn damaged(details: impl Into<Arc<str>>) -> Self {
        Self::Damaged(Damage {
            details: details.into(),
            ..Damage::default()
        })
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Locked(path) => write!(f, "{} is open in another store", path.display()),
            Self::NotAStore(path) => {
                write!(f, "{} holds files of another program", path.display())
            }
            Self::Version { found, supported } => write!(
                f,
                "the store has version {found} of the format; this program reads version {supported}"
            ),
            Self::Damaged(damage) => write!(f, "the store is damaged: {damage}"),
            Self::DiskFull => f.write_str("the disk is full: only pops can be committed"),
            Self::Poisoned(why) => write!(f, "the store must be opened again, since a write failed: {why}"),
            Self::Io(error) => write!(f, "input or output failed: {error}"),
            Self::Codec(error) => write!(f, "an item cannot be encoded or decoded: {error}"),
            Self::InUse(queue) => write!(f, "the queue {queue:?} is open already"),
            Self::NoQueue(queue) => write!(f, "the store has no queue {queue:?}"),
            Self::OtherOrder { queue, found } => {
                write!(f, "the queue {queue:?} was made with another order: {found}")
            }
            Self::Expired => f.write_str("the lease of an item expired: it was delivered again"),
            Self::NoRoom => f.write_str("no room: for an item apart from the others, or in a budget"),
        }
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io(error) => Some(&**error),
            Self::Codec(error) => Some(error),
            _ => None,
        }
    }
}

/// An error of the operating system, with the file.
#[derive(Debug)]
struct AtPath {
    path: PathBuf,
    error: Arc<io::Error>,
}

fn has_path(error: &io::Error) -> bool {
    let known = error.get_ref();
    known.is_some_and(|known| known.downcast_ref::<AtPath>().is_some())
}

impl fmt::Display for AtPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.error)
    }
}

impl Error for AtPath {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.error)
    }
}

impl From<fjall::Error> for StoreError {
    fn from(error: fjall::Error) -> Self {
        match error {
            fjall::Error::Io(error) => error.into(),
            fjall::Error::Poisoned => Self::Poisoned(
                "the storage engine could not write a table or merge tables, or an earlier write failed"
                    .into(),
            ),
            fjall::Error::Storage(lsm_tree::Error::Io(error)) if !is_damage(&error) => error.into(),
            error => Self::damaged(format!("the storage engine reports {error:?}")),
        }
    }
}

/// Whether files that are damaged, too short, not there or of another kind are why a read failed; otherwise it is the system.
pub(crate) fn is_damage(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::AlreadyExists
            | Kind::InvalidData
            | Kind::InvalidInput
            | Kind::IsADirectory
            | Kind::NotADirectory
            | Kind::NotFound
            | Kind::UnexpectedEof
    )
}

/// Why items were not pushed.
#[derive(Clone)]
#[non_exhaustive]
pub enum PushError<T> {
    /// The queue, or the key of the item, is at its limit.
    Full(T),
    /// The queue is closed.
    Closed(T),
    /// The item is [heavier](crate::Builder::weigh) than the capacity of the queue.
    TooHeavy(T),
    /// Another item has the [unique key](crate::Builder::unique_by) of the item.
    Duplicate(T, DuplicateOf),
    /// The item cannot be encoded.
    Codec(T, CodecError),
    /// The commit of the push failed. [`StoreError::Poisoned`] leaves open whether the item is on the disk.
    Store(StoreError),
}

impl<T> PushError<T> {
    /// The items, unless the commit failed.
    ///
    /// ```
    /// use requeue_durable::PushError;
    ///
    /// assert_eq!(PushError::Full(1).into_inner(), Some(1));
    /// ```
    pub fn into_inner(self) -> Option<T> {
        match self {
            Self::Full(item)
            | Self::Closed(item)
            | Self::TooHeavy(item)
            | Self::Duplicate(item, _)
            | Self::Codec(item, _) => Some(item),
            Self::Store(_) => None,
        }
    }

    /// Whether the queue, or the key of the item, is at its limit.
    pub const fn is_full(&self) -> bool {
        matches!(self, Self::Full(_))
    }

    /// Whether the queue is closed.
    pub const fn is_closed(&self) -> bool {
        matches!(self, Self::Closed(_))
    }

    /// Whether the item is heavier than the capacity of the queue.
    pub const fn is_too_heavy(&self) -> bool {
        matches!(self, Self::TooHeavy(_))
    }

    /// Whether another item has the unique key of the item.
    pub const fn is_duplicate(&self) -> bool {
        matches!(self, Self::Duplicate(..))
    }

    pub(crate) fn map<U>(self, map: impl FnOnce(T) -> U) -> PushError<U> {
        match self {
            Self::Full(item) => PushError::Full(map(item)),
            Self::Closed(item) => PushError::Closed(map(item)),
            Self::TooHeavy(item) => PushError::TooHeavy(map(item)),
            Self::Duplicate(item, of) => PushError::Duplicate(map(item), of),
            Self::Codec(item, error) => PushError::Codec(map(item), error),
            Self::Store(error) => PushError::Store(error),
        }
    }
}

impl<T> fmt::Debug for PushError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(_) => f.write_str("Full(..)"),
            Self::Closed(_) => f.write_str("Closed(..)"),
            Self::TooHeavy(_) => f.write_str("TooHeavy(..)"),
            Self::Duplicate(_, of) => write!(f, "Duplicate(.., {of:?})"),
            Self::Codec(_, error) => write!(f, "Codec(.., {error:?})"),
            Self::Store(error) => f.debug_tuple("Store").field(error).finish(),
        }
    }
}

impl<T> fmt::Display for PushError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(_) => f.write_str(
                "no room: the queue or the item's key is at its limit, or a batch exceeds it",
            ),
            Self::Closed(_) => f.write_str("the queue is closed"),
            Self::TooHeavy(_) => requeue::PushError::TooHeavy(()).fmt(f),
            Self::Duplicate(_, of) => requeue::PushError::Duplicate((), *of).fmt(f),
            Self::Codec(_, error) => write!(f, "the item cannot be encoded: {error}"),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl<T> Error for PushError<T> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Codec(_, error) => Some(error),
            Self::Store(error) => Some(error),
            _ => None,
        }
    }
}

/// Why no item was popped.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum PopError {
    /// Nothing is ready: the queue is empty, paused or rate limited.
    Empty,
    /// The queue is closed, and nothing is left in it.
    Closed,
    /// The item could not be read, or the commit of the pop failed. The item is back at the head.
    Store(StoreError),
}

impl PopError {
    /// Whether nothing is ready.
    pub const fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }

    /// Whether the queue is closed, and nothing is left in it.
    pub const fn is_closed(&self) -> bool {
        matches!(self, Self::Closed)
    }
}

/// What an iterator or a stream of pops yields: it ends when nothing is popped.
pub(crate) fn yielded<T>(popped: Result<T, PopError>) -> Option<Result<T, StoreError>> {
    match popped {
        Ok(item) => Some(Ok(item)),
        Err(PopError::Store(error)) => Some(Err(error)),
        Err(PopError::Empty | PopError::Closed) => None,
    }
}

impl fmt::Display for PopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => requeue::PopError::Empty.fmt(f),
            Self::Closed => requeue::PopError::Closed.fmt(f),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl Error for PopError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            _ => None,
        }
    }
}

macro_rules! from {
    ($([$($generic:ident)?] $from:ty => $to:ty: $($error:pat => $made:expr),+;)+) => {$(
        impl$(<$generic>)? From<$from> for $to {
            fn from(error: $from) -> Self {
                match error {
                    $($error => $made),+
                }
            }
        }
    )+};
}

from! {
    [] io::Error => StoreError: error => Self::Io(Arc::new(error));
    [] CodecError => StoreError: error => Self::Codec(error);
    [] requeue::Expired => StoreError: _ => Self::Expired;
    [] StoreError => PopError: error => Self::Store(error);
    [] requeue::PopError => PopError:
        requeue::PopError::Empty => Self::Empty, requeue::PopError::Closed => Self::Closed;
    [T] StoreError => PushError<T>: error => Self::Store(error);
    [T] requeue::PushError<T> => PushError<T>:
        requeue::PushError::Full(item) => Self::Full(item), requeue::PushError::Closed(item) => Self::Closed(item),
        requeue::PushError::TooHeavy(item) => Self::TooHeavy(item),
        requeue::PushError::Duplicate(item, of) => Self::Duplicate(item, of);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_system_in_a_table_is_no_damage() {
        let of_table = |error| StoreError::from(fjall::Error::Storage(lsm_tree::Error::Io(error)));
        let too_many_files = of_table(io::Error::from_raw_os_error(24));
        assert!(matches!(too_many_files, StoreError::Io(_)));
        let short = of_table(io::ErrorKind::UnexpectedEof.into());
        assert!(matches!(short, StoreError::Damaged(_)));
    }
}
