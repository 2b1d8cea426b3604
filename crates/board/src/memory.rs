//! Queues in memory.

use crate::inspect::{
    at_once, blocking, give, Change, Counts, Entry, Error, Holder, Inspect, Page, Pick, Reply,
    Search, Verb,
};
use requeue::{Held, Order, Pace, Queue, Queued, Stats};
use std::any::{Any, TypeId};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How an item is shown.
pub(crate) type Show<T> = Arc<dyn Fn(&T) -> String + Send + Sync>;

/// A queue in memory, for [`Board::queue`](crate::Board::queue).
///
/// Looking at its items visits all of them, [32 at a time](Queue::peek_each), and so does a search in its dead letters. The age of the
/// oldest item, the ages of items and their holders are known for queues with [timestamps](requeue::Builder::timestamps), and single
/// items can be removed from [tracked](requeue::Builder::tracked) ones.
///
/// ```
/// let mails = requeue::Queue::builder().timestamps().build();
/// mails.push("welcome".to_string())?;
/// let board = requeue_board::Board::new().queue("mails", requeue_board::InMemory::new(&mails));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct InMemory<T, O: Order<T> = requeue::Fifo> {
    queue: Queue<T, O>,
    show: Show<T>,
}

impl<T: Debug, O: Order<T>> InMemory<T, O> {
    /// Shows items as their `Debug` does.
    pub fn new(queue: &Queue<T, O>) -> Self {
        Self::with(queue, |item| format!("{item:?}"))
    }
}

impl<T, O: Order<T>> InMemory<T, O> {
    /// Shows items by a function, which may leave out what is secret.
    pub fn with(queue: &Queue<T, O>, show: impl Fn(&T) -> String + Send + Sync + 'static) -> Self {
        Self {
            queue: queue.clone(),
            show: Arc::new(show),
        }
    }

    fn letter(&self, letter: &requeue::DeadLetter<T>, now: Instant) -> Entry {
        let ago = |at: Instant| now.saturating_duration_since(at);
        Entry {
            id: Some(letter.id().to_string()),
            payload: (self.show)(&letter.item),
            attempts: letter.attempts,
            age: letter.pushed_at.or(letter.died_at).map(ago),
            state: format!("{:?}", letter.reason).to_lowercase(),
            error: letter.error().map(Into::into),
        }
    }

    /// The ids of the dead letters that are meant.
    fn picked(&self, pick: &Pick) -> Result<Vec<u64>, Error> {
        if let Pick::One(id) = pick {
            return Ok(vec![id.parse()?]);
        }
        let (mut ids, now) = (Vec::new(), self.queue.now());
        self.queue.dead_letters().visit(|letter| {
            if pick.is(None, || self.letter(letter, now)) {
                ids.push(letter.id());
            }
        });
        Ok(ids)
    }

    fn remove(&self, pick: &Pick) -> usize {
        let now = self.queue.now();
        self.queue.retain(|it, queued| {
            let id = queued.ticket.map(|ticket| format!("{ticket:?}"));
            !pick.is(id.as_deref(), || item((self.show)(it), queued, now))
        })
    }
}

impl<T, O: Order<T>> Clone for InMemory<T, O> {
    fn clone(&self) -> Self {
        Self {
            queue: self.queue.clone(),
            show: Arc::clone(&self.show),
        }
    }
}

requeue::debug_struct!([T, O: Order<T>] InMemory<T, O>, |it| queue: it.queue);

/// What the statistics say.
pub(crate) fn counts(stats: &Stats) -> Counts {
    Counts {
        ready: stats.ready,
        held: Some(stats.held),
        delayed: Some(stats.delayed),
        pushed: Some(stats.pushed),
        done: Some(stats.committed + stats.timed_out + stats.dead),
        oldest: stats.oldest,
        waiting: Some(stats.waiting),
        ..Counts::default()
    }
}

pub(crate) fn holders(held: Vec<Held>, now: Instant) -> Vec<Holder> {
    let held = held.into_iter().map(|held| {
        let thread = || held.thread.map(|thread| format!("{thread:?}"));
        let worker = held.worker.as_deref().map(Into::into);
        Holder {
            name: worker
                .or_else(thread)
                .unwrap_or_else(|| held.id.to_string()),
            items: held.items as u64,
            since: held.since.map(|since| now.saturating_duration_since(since)),
        }
    });
    held.collect()
}

/// An item that is ready, or when it will be.
pub(crate) fn item(payload: String, queued: Queued, now: Instant) -> Entry {
    let due = queued
        .due
        .map(|due| due.saturating_duration_since(now).as_secs());
    Entry {
        id: queued.ticket.map(|ticket| format!("{ticket:?}")),
        payload,
        attempts: queued.attempts,
        age: queued.waited,
        state: due.map_or("ready".into(), |seconds| format!("due in {seconds} s")),
        error: None,
    }
}

/// The pace of so many starts a second.
pub(crate) fn pace(rate: Option<f64>) -> Pace {
    let interval = rate.and_then(|rate| Duration::try_from_secs_f64(rate.recip()).ok());
    interval.map_or_else(Pace::unlimited, Pace::every)
}

/// What queues in memory and on disk have in common.
macro_rules! local {
    () => {
        fn verbs(&self) -> &[Verb] {
            use Verb::{Delete, Move, Pace, Pause, Remove, Resume, Retry};
            &[Pause, Resume, Pace, Retry, Delete, Move, Remove]
        }

        fn counts(&self) -> Reply<'_, Counts> {
            at_once(Counts {
                dead: self.queue.dead_letters().len() as u64,
                capacity: self.queue.capacity().map(|count| count as u64),
                is_paused: self.queue.is_paused(),
                is_closed: self.queue.is_closed(),
                is_paced: !self.queue.pace().is_unlimited(),
                ..$crate::memory::counts(&self.queue.stats())
            })
        }

        fn holders(&self) -> Reply<'_, Vec<Holder>> {
            at_once($crate::memory::holders(self.queue.held(), self.queue.now()))
        }
    };
}
#[cfg(feature = "durable")]
pub(crate) use local;

impl<T: Send + 'static, O: Order<T> + 'static> Inspect for InMemory<T, O>
where
    Queue<T, O>: Send + Sync,
{
    local!();

    fn page(&self, search: Search) -> Reply<'_, Page> {
        let this = self.clone();
        blocking(move || {
            let (mut page, now) = (Page::default(), this.queue.now());
            if search.dead {
                let letters = this.queue.dead_letters();
                letters.visit(|letter| page.visit(&search, || this.letter(letter, now)));
            } else {
                this.queue.retain(|it, queued| {
                    page.visit(&search, || item((this.show)(it), queued, now));
                    true
                });
            }
            Ok(page)
        })
    }

    fn change(&self, change: Change) -> Reply<'_, u64> {
        let this = self.clone();
        blocking(move || {
            let (queue, letters) = (&this.queue, this.queue.dead_letters());
            let each = |pick: &Pick, act: &dyn Fn(u64) -> bool| {
                let ids = this.picked(pick)?.into_iter();
                Ok(ids.filter(|id| act(*id)).count() as u64)
            };
            match &change {
                Change::Pause => queue.pause(),
                Change::Resume => queue.resume(),
                Change::Pace(rate) => queue.set_pace(pace(*rate)),
                Change::Retry(pick) => return each(pick, &|id| letters.requeue(id)),
                Change::Delete(pick) => return each(pick, &|id| letters.remove(id, |_| Ok(()))),
                Change::Move(pick, to) => {
                    let to = |id| letters.remove(id, |item| give(&**to, item));
                    return each(pick, &to);
                }
                Change::Remove(pick) => return Ok(this.remove(pick) as u64),
            }
            Ok(1)
        })
    }

    fn put(&self, item: Box<dyn Any + Send>) -> Result<(), Box<dyn Any + Send>> {
        let item = item.downcast::<T>()?;
        let pushed = self.queue.push(*item);
        pushed.map_err(|refused| Box::new(refused.into_inner()) as _)
    }

    fn item_type(&self) -> Option<TypeId> {
        Some(TypeId::of::<T>())
    }
}
