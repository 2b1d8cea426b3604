//! What the handles of a queue share, apart from the queue in memory.

use super::letters::Letters;
use super::pages::Pages;
use super::times::Times;
use super::windows::Windows;
use crate::batch::{Batch, Change, NewKey};
use crate::codec::Codec;
use crate::entry::{Besides, Entry};
use crate::error::StoreError;
use crate::format::level::{self, Level};
use crate::format::{self, Front, Key, OrderTag, Schedule, WITH_DUE_CHUNKS};
use crate::log::chunks::Item;
use crate::log::{Durability, Log};
use crate::order::{Engine, EntryOf, KeyOf, Place};
use crate::store::{millis, OpenName, StoreInner};
use parking_lot::Mutex;
use requeue::{AfterTtl, Backoff};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// How many bytes of the error of a failed delivery are kept.
const MOST_OF_ERROR: usize = 1_000;

/// What the handles of a queue share, apart from the queue in memory, which owns a reference to it.
pub(crate) struct Shared<T: Send + 'static, O: Engine<T>> {
    pub(super) _open: OpenName,
    pub(crate) store: Arc<StoreInner>,
    pub(crate) name: Arc<str>,
    pub(crate) id: u32,
    pub(crate) codec: Arc<dyn Codec<T>>,
    pub(crate) key_of: KeyOf<T, O>,
    pub(crate) besides: Besides<T>,
    /// Whether some items may be on the disk only, without an entry in memory.
    pub(crate) has_pages: bool,
    /// Whether items that are pushed together are written so: none is read by itself later.
    pub(crate) in_chunks: bool,
    /// The pages, once the queue is opened.
    pub(super) pages: OnceLock<Weak<Pages<T, O>>>,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) backoff: Option<Backoff>,
    pub(crate) times: Times,
    /// What becomes of items whose time to live is over, if they have one.
    pub(crate) after_ttl: Option<AfterTtl>,
    /// How many such items were dropped.
    pub(super) timed_out: AtomicU64,
    pub(crate) letters: Letters<T>,
    pub(crate) unique_for: Duration,
    pub(crate) windows: Windows,
    /// Whether a push may replace another item, or follow it.
    pub(crate) supersedes: bool,
    /// The values of such pushes, by number, until that is decided.
    pub(crate) pushing: Mutex<HashMap<u64, Vec<u8>>>,
}

impl<T: Send + 'static, O: Engine<T>> Shared<T, O> {
    pub(crate) fn log(&self) -> &Log {
        &self.store.log
    }

    pub(crate) fn key(&self, id: u64) -> Key {
        Key { queue: self.id, id }
    }

    /// Numbers that no item and no letter has.
    pub(crate) fn new_ids(&self, count: usize) -> u64 {
        // Relaxed: they only have to differ.
        self.log()
            .disk()
            .next_id
            .fetch_add(count as u64, Ordering::Relaxed)
    }

    /// Numbers for items of a place, which have no keys.
    pub(crate) fn new_items(&self, count: usize, place: Option<Place>) -> u64 {
        let serial = self.new_ids(count);
        if self.has_levels() {
            let mut place = place.unwrap_or_default();
            place.due = place.due.filter(|due| *due > self.times.clock.now());
            level::with_serial(level::of_place(place), serial)
        } else {
            serial
        }
    }

    /// Whether the numbers of items have [levels](level).
    pub(crate) fn has_levels(&self) -> bool {
        self.has_pages && O::TAG != OrderTag::Fifo
    }

    /// The levels of these items, if they are those of keys.
    #[inline]
    pub(crate) fn levels_by_key(&self, items: &[T]) -> Option<Vec<Level>> {
        let level_of = |item| level::of_key(&(self.key_of)(item));
        let are_by_key = self.has_pages && O::TAG == OrderTag::ByKey;
        are_by_key.then(|| items.iter().map(level_of).collect())
    }

    /// Whether the item with this number may be on the disk only, without an entry in memory.
    pub(crate) fn is_paged(&self, id: u64) -> bool {
        self.has_pages && (level::of(id) > 0 || O::TAG != OrderTag::ByKey)
    }

    /// Whether items with such numbers are read from the disk by their due times.
    pub(crate) fn is_scheduled(&self, id: u64) -> bool {
        self.has_pages && level::of(id) == 0 && O::TAG == OrderTag::ByPriority
    }

    /// Whether pushed items with such numbers are written in chunks.
    pub(crate) fn writes_chunks(&self, id: u64) -> bool {
        let are_due_together = || self.log().disk().is_of(WITH_DUE_CHUNKS);
        self.in_chunks && (!self.is_scheduled(id) || are_due_together())
    }

    /// The pages, if there are any and the queue is open.
    pub(super) fn pages(&self) -> Option<Arc<Pages<T, O>>> {
        self.pages.get()?.upgrade()
    }

    /// An entry for an item that takes `bytes` bytes.
    #[inline]
    pub(crate) fn entry(&self, id: u64, item: T, bytes: usize) -> EntryOf<T, O> {
        let key = (self.key_of)(&item);
        let is_paged = self.is_paged(id);
        let more = if is_paged { self.besides.bytes() } else { 0 };
        let (beside, has_room) = self.besides.of(&item, bytes + more);
        let has_room = has_room || is_paged;
        Entry {
            id,
            key,
            item: has_room.then_some(item),
            beside,
        }
    }

    /// Whether entries may have their items on the disk only.
    pub(crate) fn may_leave_memory(&self) -> bool {
        self.besides.budget.is_some()
    }

    /// Reads the item of an entry from the disk, if it is not in memory.
    #[inline]
    pub(crate) fn load(&self, entry: &mut EntryOf<T, O>) -> Result<(), StoreError> {
        if entry.item.is_none() {
            entry.item = Some(self.read(entry.id)?);
        }
        Ok(())
    }

    /// An item of such a push replaces the one with this number, or follows another one. That is in the log before others can
    /// take it, and so before its removal: this is called under the lock of its key. Whoever has the lock of the log takes no key.
    pub(crate) fn superseding(&self, replaced: Option<u64>, entry: &mut EntryOf<T, O>) {
        let Some(value) = self.pushing.lock().remove(&entry.id) else {
            return; // it is restored
        };
        entry.id = replaced.unwrap_or(entry.id);
        let batch = replaced.map_or(Batch::of_push as fn(_, _) -> _, |_| Batch::of_replacement);
        let mut batch = batch(self.key(entry.id), value);
        if self.besides.has_keys && replaced.is_none() {
            let (row, is_cold) = (entry.key_row(self.id), false);
            batch.keys.extend(row.map(|row| NewKey { row, is_cold }));
        }
        self.log().note(batch);
    }

    /// Reads an item from the disk.
    #[cold]
    pub(crate) fn read(&self, id: u64) -> Result<T, StoreError> {
        let content = self.item(id)?.content;
        self.decode(id, &content).map(|(_, item)| item)
    }

    /// The bytes of an item on the disk.
    pub(super) fn read_bytes(&self, id: u64) -> Result<Vec<u8>, StoreError> {
        let content = self.item(id)?.content;
        self.split(id, &content).map(|(_, bytes)| bytes.to_vec())
    }

    /// The item on the disk with this number, which may be removed later.
    pub(super) fn item(&self, id: u64) -> Result<Item, StoreError> {
        let missing =
            || StoreError::damaged(format!("item {id} of queue {:?} is missing", self.name));
        let item = self.stored(id)?.ok_or_else(missing)?;
        self.log().disk().know(item.chunk.as_ref());
        Ok(item)
    }

    /// The item on the disk with this number, if there is one.
    pub(super) fn stored(&self, id: u64) -> Result<Option<Item>, StoreError> {
        let disk = self.log().disk();
        if self.supersedes {
            self.log().settle()?; // it may have another value since
        }
        match disk.item(self.key(id))? {
            // It is shown already, and not written yet.
            None => self.log().settle().and_then(|()| disk.item(self.key(id))),
            item => Ok(item),
        }
    }

    /// The item in the content of a row.
    pub(crate) fn decode(&self, id: u64, content: &[u8]) -> Result<(Front, T), StoreError> {
        let (front, bytes) = self.split(id, content)?;
        let item = self.codec.decode(bytes);
        Ok((front, item.map_err(|error| error.at(&self.name, Some(id)))?))
    }

    fn split<'v>(&self, id: u64, content: &'v [u8]) -> Result<(Front, &'v [u8]), StoreError> {
        format::split_value(content).ok_or_else(|| {
            let name = &self.name;
            StoreError::damaged(format!("item {id} of queue {name:?} cannot be read"))
        })
    }

    /// Writes a change, and waits until it is on the disk.
    pub(crate) fn write(&self, change: Change) -> Result<(), StoreError> {
        self.log()
            .commit(&mut [Batch::of([change])], Durability::Synced)
    }

    /// Whether the queue is closed in what is written.
    pub(crate) fn is_closed_on_disk(&self) -> bool {
        let catalog = self.log().disk().catalog();
        catalog.queues.get(self.id).is_some_and(|row| row.closed)
    }

    /// Writes, without waiting, the number of deliveries of each item and when its delay ends.
    pub(crate) fn note_delays(
        &self,
        items: impl Iterator<Item = (u64, u32)>,
        delay: impl Fn(u32) -> Duration,
    ) {
        self.note(items.map(|(id, attempts)| {
            let due = self.wall_time_after(delay(attempts));
            Change::Delayed(self.key(id), attempts, due)
        }));
    }

    /// Writes down, without a wait, that deliveries failed, and until when the backoff of the queue, or else that of the
    /// worker, delays the items. Those that become dead letters are not delayed.
    pub(crate) fn note_backoff(
        &self,
        items: impl Iterator<Item = (u64, u32)>,
        worker: Option<Backoff>,
    ) {
        if let Some(backoff) = self.backoff.or(worker) {
            let is_last = |attempts| self.max_attempts.is_some_and(|most| attempts >= most);
            let delayed = items.filter(|(_, attempts)| !is_last(*attempts));
            self.note_delays(delayed, |attempts| backoff.delay(attempts));
        }
    }

    /// Writes down, without a wait, that a delivery of an item failed with this error; of a long one, the beginning.
    pub(crate) fn note_error(&self, entry: &mut EntryOf<T, O>, attempts: u32, error: &str) {
        let mut end = error.len().min(MOST_OF_ERROR);
        while !error.is_char_boundary(end) {
            end -= 1;
        }
        entry.set_error(&error[..end]);
        if self.max_attempts.is_none_or(|most| attempts < most) {
            let failed = Change::Failed(self.key(entry.id), attempts, error[..end].to_owned());
            self.note([failed].into_iter());
        }
    }

    pub(crate) fn note(&self, changes: impl Iterator<Item = Change>) {
        self.log().note(Batch::of(changes));
    }

    /// The wall clock's time after a duration.
    pub(crate) fn wall_time_after(&self, delay: Duration) -> u64 {
        self.store.wall_time().saturating_add(millis(delay))
    }

    /// What is written in front of items that are pushed now, to this place.
    #[inline]
    pub(crate) fn front(&self, place: Option<Place>) -> Front {
        Front {
            schedule: place.map(|place| self.schedule(place)),
            pushed: self.after_ttl.map(|_| self.times.wall_time()),
        }
    }

    /// Encodes a placement.
    pub(crate) fn schedule(&self, place: Place) -> Schedule {
        Schedule {
            priority: place.priority,
            due: place.due.map(|due| self.times.due_in_store(due)),
        }
    }
}
