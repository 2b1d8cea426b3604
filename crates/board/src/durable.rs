//! Queues on disk.

use crate::inspect::{
    at_once, blocking, not_offered, Change, Counts, Entry, Error, Holder, Inspect, Page, Pick,
    Reply, Search, Source, Verb,
};
use crate::memory::{self, Show};
use parking_lot::Mutex;
use requeue_durable::{
    Cause, DurableQueue, Fifo, Inspector, ItemInfo, LetterInfo, Order, QueueInfo, Store,
};
use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// A queue on disk that this process has open, for [`Board::queue`](crate::Board::queue).
///
/// Looking at its items visits all of them, and a search in its dead letters reads these. A dead letter that is moved is written to the
/// other queue before it is removed: a crash in between leaves it in both.
pub struct OnDisk<T: Send + 'static, O: Order<T> = Fifo> {
    queue: DurableQueue<T, O>,
    show: Show<T>,
}

impl<T: Debug + Send, O: Order<T>> OnDisk<T, O> {
    /// Shows items as their `Debug` does.
    pub fn new(queue: &DurableQueue<T, O>) -> Self {
        Self::with(queue, |item| format!("{item:?}"))
    }
}

impl<T: Send, O: Order<T>> OnDisk<T, O> {
    /// Shows items by a function, which may leave out what is secret.
    pub fn with(
        queue: &DurableQueue<T, O>,
        show: impl Fn(&T) -> String + Send + Sync + 'static,
    ) -> Self {
        Self {
            queue: queue.clone(),
            show: Arc::new(show),
        }
    }

    fn letter(&self, letter: &requeue_durable::DeadLetter<T>) -> Entry {
        Entry {
            id: Some(letter.id().to_string()),
            payload: (self.show)(&letter.item),
            attempts: letter.attempts,
            age: since(letter.died_at),
            state: reason(letter.reason),
            error: letter.error.clone(),
        }
    }

    /// Acts on each dead letter that is meant, and counts those for which that was possible.
    fn each(&self, pick: &Pick, act: impl Fn(u64, T) -> Result<bool, Error>) -> Result<u64, Error> {
        let mut count = 0;
        for letter in self.queue.dead_letters().all()? {
            let id = letter.id();
            if pick.is(Some(&id.to_string()), || self.letter(&letter)) {
                count += u64::from(act(id, letter.item)?);
            }
        }
        Ok(count)
    }
}

impl<T: Send, O: Order<T>> Clone for OnDisk<T, O> {
    fn clone(&self) -> Self {
        Self {
            queue: self.queue.clone(),
            show: Arc::clone(&self.show),
        }
    }
}

requeue::debug_struct!([T: Send, O: Order<T>] OnDisk<T, O>, |it| queue: it.queue.name());

fn since(time: SystemTime) -> Option<std::time::Duration> {
    time.elapsed().ok()
}

fn reason(cause: Cause) -> String {
    match cause {
        Cause::Failed(reason) => format!("{reason:?}").to_lowercase(),
        other => format!("{other:?}").to_lowercase(),
    }
}

impl<T: Send + 'static, O: Order<T> + 'static> Inspect for OnDisk<T, O>
where
    DurableQueue<T, O>: Send + Sync,
{
    memory::local!();

    fn page(&self, search: Search) -> Reply<'_, Page> {
        let this = self.clone();
        blocking(move || {
            let mut page = Page::default();
            if search.dead {
                for letter in this.queue.dead_letters().all()? {
                    page.visit(&search, || this.letter(&letter));
                }
            } else {
                let now = this.queue.now();
                this.queue.retain(|item, queued| {
                    page.visit(&search, || memory::item((this.show)(item), queued, now));
                    true
                })?;
            }
            Ok(page)
        })
    }

    fn change(&self, change: Change) -> Reply<'_, u64> {
        let this = self.clone();
        blocking(move || {
            let (queue, letters) = (&this.queue, this.queue.dead_letters());
            match &change {
                Change::Pause => queue.pause(),
                Change::Resume => queue.resume(),
                Change::Pace(rate) => queue.set_pace(memory::pace(*rate)),
                Change::Retry(pick) => return this.each(pick, |id, _| Ok(letters.requeue(id)?)),
                Change::Delete(pick) => return this.each(pick, |id, _| Ok(letters.discard(id)?)),
                Change::Move(pick, to) => {
                    let to = |id, item| Ok(to.put(Box::new(item)).is_ok() && letters.discard(id)?);
                    return this.each(pick, to);
                }
                Change::Remove(pick) => {
                    let now = queue.now();
                    let removed = queue.retain(|item, queued| {
                        let entry = || memory::item((this.show)(item), queued, now);
                        let id = queued.ticket.map(|ticket| format!("{ticket:?}"));
                        !pick.is(id.as_deref(), entry)
                    })?;
                    return Ok(removed as u64);
                }
            }
            Ok(1)
        })
    }

    fn put(&self, item: Box<dyn Any + Send>) -> Result<(), Box<dyn Any + Send>> {
        let item = item.downcast::<T>()?;
        let pushed = self.queue.push(*item);
        // Perhaps without the item: its letter is there until it is pushed.
        pushed.map_err(|refused| Box::new(refused.into_inner()) as _)
    }

    fn item_type(&self) -> Option<TypeId> {
        // Not that of queues in memory, whose letters are gone if the store loses the item.
        Some(TypeId::of::<DurableQueue<T>>())
    }
}

/// The queues of a store that no process has open, for [`Board::source`](crate::Board::source). Their dead letters can be retried if it
/// may change something. Their items are shown as their codecs have encoded them.
#[derive(Debug)]
pub struct InStore {
    inspector: Inspector,
    writes: bool,
    known: Mutex<BTreeMap<String, Arc<Stored>>>,
}

impl InStore {
    /// Opens the store in a folder. No other process can open it meanwhile.
    ///
    /// # Errors
    ///
    /// If there is none, another process has it open, or it is damaged.
    pub fn open(path: impl AsRef<Path>, writes: bool) -> Result<Self, Error> {
        let path = path.as_ref();
        if !path.join("version").is_file() {
            return Err(format!("there is no store in {}", path.display()).into());
        }
        Ok(Self {
            inspector: Store::open(path)?.inspector(),
            writes,
            known: Mutex::default(),
        })
    }
}

impl Source for InStore {
    fn queues(&self) -> Reply<'_, Vec<(String, Arc<dyn Inspect>)>> {
        let queues = self.inspector.queues();
        Box::pin(async move {
            let mut known = self.known.lock();
            let shown = queues?.into_iter().map(|info| {
                let name = info.name.clone();
                let stored = known.entry(name.clone()).or_insert_with(|| {
                    let (inspector, writes) = (self.inspector.clone(), self.writes);
                    Arc::new(Stored {
                        inspector,
                        writes,
                        info: Mutex::new(info.clone()),
                    })
                });
                *stored.info.lock() = info;
                (name, Arc::clone(stored) as Arc<dyn Inspect>)
            });
            Ok(shown.collect())
        })
    }
}

/// A queue of a store.
#[derive(Debug)]
struct Stored {
    inspector: Inspector,
    writes: bool,
    info: Mutex<QueueInfo>,
}

fn stored_letter(letter: &LetterInfo) -> Entry {
    Entry {
        id: Some(letter.id.to_string()),
        payload: letter.bytes.escape_ascii().to_string(),
        attempts: letter.attempts,
        age: since(letter.died_at),
        state: reason(letter.reason),
        error: letter.error.clone(),
    }
}

fn stored_item(item: &ItemInfo) -> Entry {
    let is_due = item.due.max(item.delayed) <= Some(SystemTime::now());
    Entry {
        payload: item.bytes.escape_ascii().to_string(),
        attempts: item.attempts,
        state: if is_due { "ready" } else { "waits" }.into(),
        error: item.error.clone(),
        ..Entry::default()
    }
}

impl Inspect for Stored {
    fn verbs(&self) -> &[Verb] {
        &[Verb::Retry][..usize::from(self.writes)]
    }

    fn counts(&self) -> Reply<'_, Counts> {
        let info = self.info.lock();
        at_once(Counts {
            ready: info.items,
            dead: info.dead_letters,
            is_closed: info.closed,
            ..Counts::default()
        })
    }

    fn holders(&self) -> Reply<'_, Vec<Holder>> {
        at_once(Vec::new())
    }

    fn page(&self, search: Search) -> Reply<'_, Page> {
        let (inspector, name) = (self.inspector.clone(), self.info.lock().name.clone());
        blocking(move || {
            let mut page = Page::default();
            if search.dead {
                for letter in &inspector.dead_letters(&name)? {
                    page.visit(&search, || stored_letter(letter));
                }
                return Ok(page);
            }
            for item in inspector.items(&name, ..)? {
                let item = item?;
                page.visit(&search, || stored_item(&item));
            }
            Ok(page)
        })
    }

    fn change(&self, change: Change) -> Reply<'_, u64> {
        let (Change::Retry(pick), true) = (change, self.writes) else {
            return not_offered();
        };
        let (inspector, name) = (self.inspector.clone(), self.info.lock().name.clone());
        blocking(move || {
            if pick == Pick::Matching(String::new()) {
                return Ok(inspector.requeue_all(&name)? as u64);
            }
            let mut count = 0;
            for letter in inspector.dead_letters(&name)? {
                if pick.is(Some(&letter.id.to_string()), || stored_letter(&letter)) {
                    count += u64::from(inspector.requeue(&name, letter.id)?);
                }
            }
            Ok(count)
        })
    }
}
