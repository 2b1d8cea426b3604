//! Dead letters.

mod table;

pub(crate) use table::{Letters, Limit};

use super::DurableQueue;
use crate::batch::Change;
use crate::codec::CodecError;
use crate::error::StoreError;
use crate::format::LetterRow;
use crate::order::Order;
use crate::PushError;
use parking_lot::Mutex;
use requeue::{Reason, Wait};
use std::collections::BTreeMap;
use std::time::SystemTime;

/// An item whose deliveries failed for good, or whose time to live was over.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeadLetter<T> {
    /// The item, with the changes that its last worker made, if it can be encoded with them.
    pub item: T,
    /// How often it was delivered.
    pub attempts: u32,
    /// Why its last delivery failed.
    pub reason: Cause,
    /// The error of its last delivery, if any.
    pub error: Option<String>,
    /// When its last delivery failed.
    pub died_at: SystemTime,
    id: u64,
}

impl<T> DeadLetter<T> {
    /// The number that identifies the letter in [`DeadLetters::requeue`]. Letters that died later have greater ones.
    pub fn id(&self) -> u64 {
        self.id
    }
}

/// A dead letter whose item cannot be decoded, from [`DeadLetters::undecodable`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UndecodableLetter {
    /// The bytes of the item, as they were encoded.
    pub bytes: Vec<u8>,
    /// Why they cannot be decoded, with the queue and the number of the item.
    pub error: CodecError,
    id: u64,
}

impl UndecodableLetter {
    /// The number that identifies the letter in [`DeadLetters::discard`] and [`DeadLetters::requeue`].
    pub fn id(&self) -> u64 {
        self.id
    }
}

/// Why the last delivery of a dead letter failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// In the process that held it, for the reason that `requeue` gives. [`Reason::Failed`] is also that of a run of
    /// [`Workers`](crate::Workers) that returned an error, which [`DeadLetter::error`] has.
    Failed(Reason),
    /// The process that held it died.
    Crashed,
    /// Its bytes could not be decoded.
    Undecodable,
}

impl Cause {
    /// The causes, as they are written.
    const BYTES: [(Self, u8); 9] = [
        (Self::Failed(Reason::Aborted), 0),
        (Self::Failed(Reason::Panicked), 1),
        (Self::Failed(Reason::Retried), 2),
        (Self::Failed(Reason::Forgotten), 3),
        (Self::Failed(Reason::Failed), 4),
        (Self::Failed(Reason::Expired), 5),
        (Self::Failed(Reason::TimedOut), 6),
        (Self::Undecodable, u8::MAX - 1),
        (Self::Crashed, u8::MAX),
    ];

    pub(crate) fn to_byte(self) -> u8 {
        let known = Self::BYTES.iter().find(|(cause, _)| *cause == self);
        known.unwrap_or(&Self::BYTES[0]).1
    }

    pub(crate) fn from_byte(byte: u8) -> Self {
        let known = Self::BYTES.iter().find(|(_, known)| *known == byte);
        known.unwrap_or(&Self::BYTES[0]).0
    }
}

/// The dead letters of a queue, from [`DurableQueue::dead_letters`].
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let store = requeue_durable::Store::open(directory.path())?;
/// let jobs = store.builder("jobs").max_attempts(1).build()?;
/// jobs.push("poison".to_string())?;
/// let mut worker = jobs.handle();
/// let tx = worker.begin();
/// tx.pop()?;
/// tx.abort();
///
/// let letters = jobs.dead_letters();
/// let letter = letters.oldest()?.unwrap();
/// assert_eq!((letter.item.as_str(), letter.attempts), ("poison", 1));
/// letters.requeue(letter.id())?;
/// assert_eq!(jobs.pop()?, "poison");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DeadLetters<T: Send + 'static, O: Order<T>> {
    queue: DurableQueue<T, O>,
}

impl<T: Send + 'static, O: Order<T>> DeadLetters<T, O> {
    pub(super) fn new(queue: DurableQueue<T, O>) -> Self {
        Self { queue }
    }

    fn rows(&self) -> &Mutex<BTreeMap<u64, LetterRow>> {
        &self.queue.shared.letters.rows
    }

    /// The number of letters.
    pub fn len(&self) -> usize {
        let unread = self.queue.shared.letters.unread.lock();
        unread.len() + self.rows().lock().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The oldest letter, which stays. It is the oldest of those whose items can be decoded.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the item cannot be read. Letters whose items cannot be read are the last.
    pub fn oldest(&self) -> Result<Option<DeadLetter<T>>, StoreError> {
        if self.rows().lock().is_empty() {
            self.queue.shared.write_unread()?;
        }
        let mut after = 0;
        loop {
            let rows = self.rows().lock();
            let next = rows.range(after..).next();
            let Some((id, row)) = next.map(|(id, row)| (*id, row.clone())) else {
                return Ok(None);
            };
            drop(rows);
            match self.queue.shared.letter(id, row) {
                Err(StoreError::Codec(_)) => after = id + 1,
                letter => return letter.map(Some),
            }
        }
    }

    /// All letters, oldest first, which stay, except [undecodable](Self::undecodable) ones.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if an item cannot be read.
    pub fn all(&self) -> Result<Vec<DeadLetter<T>>, StoreError> {
        let letters = self.each()?.into_iter().filter_map(|(id, row)| {
            let letter = self.queue.shared.letter(id, row);
            (!matches!(letter, Err(StoreError::Codec(_)))).then_some(letter)
        });
        letters.collect()
    }

    /// The letters whose items cannot be decoded, oldest first, which stay. A version of the program that can decode them may
    /// [requeue](Self::requeue) them.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// store.queue::<String>("jobs")?.push("x".repeat(300))?;
    /// let jobs = store.queue::<u8>("jobs")?; // of another type
    /// let letters = jobs.dead_letters().undecodable()?;
    /// assert!(letters[0].error.to_string().contains("of queue \"jobs\""));
    /// assert!(jobs.dead_letters().discard(letters[0].id())?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`StoreError`] if an item cannot be read.
    pub fn undecodable(&self) -> Result<Vec<UndecodableLetter>, StoreError> {
        let letters = self.each()?.into_iter().filter_map(|(id, row)| {
            let error = self.queue.shared.letter_item(&row).err()?;
            let bytes = row.item_bytes;
            Some(UndecodableLetter { bytes, error, id })
        });
        Ok(letters.collect())
    }

    fn each(&self) -> Result<Vec<(u64, LetterRow)>, StoreError> {
        self.queue.shared.write_unread()?;
        let rows = self.rows().lock();
        Ok(rows.iter().map(|(id, row)| (*id, row.clone())).collect())
    }

    /// Removes the letter with this number, whether or not its item can be decoded; returns whether it was there.
    ///
    /// # Errors
    ///
    /// As for [`Transaction::commit`](crate::Transaction::commit); then the letter stays.
    pub fn discard(&self, id: u64) -> Result<bool, StoreError> {
        let shared = &self.queue.shared;
        self.take(id, |_| shared.write(Change::Unbury(shared.key(id))))
    }

    /// Takes a letter, which is back if it could not be written that it is gone. Returns whether it was there.
    fn take<E>(&self, id: u64, write: impl FnOnce(&LetterRow) -> Result<(), E>) -> Result<bool, E> {
        let Some(row) = self.queue.shared.letters.take(id) else {
            return Ok(false);
        };
        let written = write(&row);
        if written.is_err() {
            self.rows().lock().insert(id, row);
        }
        written.map(|()| true)
    }

    /// Removes the letter with this number; returns it if it was there.
    ///
    /// # Errors
    ///
    /// As for [`Transaction::commit`](crate::Transaction::commit), or [`StoreError::Codec`]; then the letter stays.
    pub fn remove(&self, id: u64) -> Result<Option<DeadLetter<T>>, StoreError> {
        let Some(row) = self.rows().lock().get(&id).cloned() else {
            return Ok(None);
        };
        let letter = self.queue.shared.letter(id, row)?;
        Ok(self.discard(id)?.then_some(letter))
    }

    /// Pushes the item of the letter with this number to the queue, as a new item; returns whether the letter was there.
    ///
    /// # Errors
    ///
    /// [`PushError::Full`] and those of every push of its item, or [`PushError::Store`]. The letter stays then.
    pub fn requeue(&self, id: u64) -> Result<bool, PushError<()>> {
        let shared = &self.queue.shared;
        let Some(row) = self.rows().lock().get(&id).cloned() else {
            return Ok(false);
        };
        let item = shared.letter_item(&row).map_err(StoreError::Codec)?;
        self.take(id, |row| {
            let tx = self.queue.begin_owned();
            let moment = shared.times.moment();
            let place = row.schedule.map(|schedule| moment.place(schedule));
            let staged = tx.stage_now(item, place, Wait::Never);
            staged.map_err(|error| error.map(drop))?;
            let unbury = Change::Unbury(shared.key(id));
            tx.core().local.batch().others.push(unbury);
            Ok(tx.commit().map(drop)?)
        })
    }

    /// [Requeues](Self::requeue) all letters, oldest first; returns how many. [Undecodable](Self::undecodable) ones stay.
    ///
    /// # Errors
    ///
    /// As for [`requeue`](Self::requeue): earlier letters were requeued.
    pub fn requeue_all(&self) -> Result<usize, PushError<()>> {
        let unread = self.queue.shared.write_unread();
        let ids: Vec<_> = self.rows().lock().keys().copied().collect();
        let mut count = 0;
        for id in ids {
            match self.requeue(id) {
                Err(PushError::Store(StoreError::Codec(_))) => {}
                requeued => count += usize::from(requeued?),
            }
        }
        unread?;
        Ok(count)
    }
}

requeue::debug_struct!([T: Send + 'static, O: Order<T>] DeadLetters<T, O>, |it| len: it.len());
