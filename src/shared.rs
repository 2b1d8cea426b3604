//! What the handles of a queue share, and what works without a handle.

use crate::agenda::Agenda;
use crate::builder::Settings;
use crate::capacity::Capacity;
use crate::failure::{Failed, Failures, Fate};
use crate::post::{Lease, Post, Posts};
use crate::raw::{Entry, Lanes, Remainder, Vacant};
use crate::sync::{lock, thread};
use crate::telemetry::{Event, Telemetry};
use crate::time::{later, Time, NEVER};
use crate::wait::{quietly, Line, Word};
use crate::{PopError, PushError, Reason};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A queue: its lanes, those who wait, its room, and what becomes of failed deliveries.
pub(crate) struct Shared<T> {
    lanes: Arc<Lanes<T>>,
    /// Where those wait who want an item.
    ready: Line,
    room: Option<Room>,
    pub(crate) time: Time,
    pub(crate) agenda: Agenda,
    pub(crate) failures: Failures<T>,
    pub(crate) posts: Posts<T>,
    pub(crate) lease: Option<Lease<T>>,
    /// Whether the time of each push is kept.
    pub(crate) timed: bool,
    pub(crate) name: Option<Arc<str>>,
    telemetry: Option<Telemetry>,
}

/// The room of a bounded queue.
pub(crate) struct Room {
    pub(crate) capacity: Capacity,
    /// Where those wait who want a permit.
    pub(crate) line: Line,
}

impl Room {
    fn new(capacity: usize) -> Self {
        Self {
            capacity: Capacity::new(capacity),
            line: Line::new(Word::standing(false, false, false)),
        }
    }

    /// Gives permits back that belong to no handle.
    fn give_back(&self, count: usize) {
        self.capacity.give_shared(count);
        self.line.published(count);
    }

    /// Takes a permit that will belong to no handle.
    fn take_one(&self) -> bool {
        self.capacity.take_shared(1) == 1
    }
}

impl<T> Shared<T> {
    pub(crate) fn new(settings: Settings<T>) -> Self {
        let attended = settings.is_attended();
        Self {
            lanes: Arc::new(Lanes::new(settings.timed)),
            ready: Line::new(Word::standing(
                settings.capacity.is_some(),
                settings.timed,
                attended,
            )),
            room: settings.capacity.map(Room::new),
            time: settings.time,
            agenda: Agenda::new(),
            failures: settings.failures,
            posts: Posts::new(),
            lease: settings.lease,
            timed: settings.timed,
            telemetry: Telemetry::of(settings.name.as_ref()),
            name: settings.name,
        }
    }

    pub(crate) fn lanes(&self) -> &Arc<Lanes<T>> {
        &self.lanes
    }

    #[inline]
    pub(crate) fn ready(&self) -> &Line {
        &self.ready
    }

    #[inline]
    pub(crate) fn room(&self) -> Option<&Room> {
        self.room.as_ref()
    }

    #[inline]
    pub(crate) fn word(&self) -> Word {
        self.ready.word()
    }

    /// The time to keep for a push: 0, if none is kept.
    pub(crate) fn stamp(&self) -> u64 {
        if self.timed {
            self.time.stamp()
        } else {
            0
        }
    }

    /// Pushes without a handle.
    pub(crate) fn push(&self, item: T) -> Result<(), PushError<T>> {
        self.push_since(item, self.stamp())
    }

    /// Pushes without a handle an item that was first pushed at some time.
    pub(crate) fn push_since(&self, item: T, since: u64) -> Result<(), PushError<T>> {
        if self.word().is_closed() {
            return Err(PushError::Closed(item));
        }
        if !self.room().map_or(true, Room::take_one) {
            return Err(PushError::Full(item));
        }
        let admit = || !self.ready.look().is_closed();
        if let Err(item) = self.lanes.push(item, since, admit) {
            self.give_back(1);
            return Err(PushError::Closed(item));
        }
        self.ready.published(1);
        Ok(())
    }

    /// Pops without a handle.
    pub(crate) fn pop(&self) -> Result<T, PopError> {
        let word = self.word();
        if word.is_drained() {
            return Err(PopError::Closed);
        }
        if word.is_attended() {
            self.release_due();
        }
        let item = self.lanes.pop(word.is_attended());
        let item = item.ok_or_else(|| self.why_empty())?;
        self.give_back(1);
        Ok(item)
    }

    pub(crate) fn give_back(&self, permits: usize) {
        if let Some(room) = self.room() {
            room.give_back(permits);
        }
    }

    pub(crate) fn close(&self) -> bool {
        let closed = self.ready.close();
        if closed {
            if let Some(room) = self.room() {
                room.line.wake_all();
            }
            self.tell(|| Event::Closed);
        }
        closed
    }

    /// Tells those who listen what happened. A clock that panics while it is asked for that is ignored.
    #[inline]
    pub(crate) fn tell<'e>(&self, event: impl FnOnce() -> Event<'e>) {
        if let Some(telemetry) = &self.telemetry {
            quietly(|| telemetry.tell(event()));
        }
    }

    /// Whether anybody listens.
    pub(crate) fn is_told_of(&self) -> bool {
        self.telemetry.is_some()
    }

    /// What to say of a queue that was found empty just now.
    #[cold]
    pub(crate) fn why_empty(&self) -> PopError {
        let word = self.word();
        if !word.is_closed() {
            return PopError::Empty;
        }
        if !word.is_drained() {
            self.ready.seal();
            let none_delayed = || self.failures.delayed.count() == 0;
            if self.lanes.left_when_closed(none_delayed) != Remainder::Nothing {
                return PopError::Empty;
            }
            self.ready.mark_drained();
        }
        // Not only who has found it so: that thread may be held up.
        self.ready.wake_all_if_any();
        PopError::Closed
    }

    /// Wakes for `count` items that a transaction published when it ended. After the close the end of
    /// any transaction may be what the others wait for.
    #[inline]
    pub(crate) fn ended(&self, count: usize) {
        if !self.ready.is_quiet() && self.ready.tell(count).is_closed() {
            self.ready.wake_all();
        }
    }
}

/// What becomes ready with time.
impl<T> Shared<T> {
    /// Delays an item. Whoever held it counts it as aborted afterwards.
    pub(crate) fn delay(
        &self,
        envelope: Vacant<Failed<T>>,
        mut failed: Failed<T>,
        now: u64,
        delay: Duration,
    ) {
        let (due, attempts) = (later(now, delay), failed.entry.tag.attempts);
        failed.due = due;
        self.ready.attend();
        self.failures.delayed.put(envelope, failed);
        self.agenda.plan(due);
        self.ready.published(1);
        self.tell(|| Event::Delayed { attempts, delay });
    }

    /// Puts an item at the head. Whoever held it counts it as aborted afterwards.
    pub(crate) fn put_at_head(&self, entry: Entry<T>) {
        self.ready.attend();
        let count = self.lanes.put_at_head([entry]);
        self.ready.published(count);
    }

    /// Puts what is due at the head, and what others have held for longer than they may.
    #[inline]
    pub(crate) fn release_due(&self) {
        if self.agenda.next() != NEVER {
            self.release(self.time.now());
        }
    }

    #[cold]
    fn release(&self, now: u64) {
        if now < self.agenda.next() {
            return;
        }
        let delayed = &self.failures.delayed;
        let begin = || self.agenda.clear();
        let end = |next| {
            self.agenda.plan(next);
        };
        let Some(due) = delayed.take_due(now, begin, end) else {
            thread::yield_now();
            return;
        };
        let mut released = self.lanes.put_at_head(due);
        delayed.count_released(released);
        if self.lease.is_some() {
            released += self.end_leases(now);
        }
        // At least one waiter has to know of the new plan.
        let planned = self.agenda.next() != NEVER;
        self.ended(released + usize::from(planned));
        self.failures.letters.drop_excess(&self.time);
    }

    /// Takes back what is held for too long, and says how many items are ready by that.
    fn end_leases(&self, now: u64) -> usize {
        let posts = self.posts.all();
        posts.iter().map(|post| self.take_away(post, now, 0)).sum()
    }

    /// See [`Queue::recover`](crate::Queue::recover).
    pub(crate) fn recover(&self, worker: &str, before: Instant) -> usize {
        self.release_due();
        let before = self.time.nanos(before);
        let posts = self.posts.all();
        let named = posts
            .iter()
            .filter(|post| post.name().is_some_and(|name| **name == *worker));
        let ready = named.map(|post| self.take_away(post, 0, before)).sum();
        self.ended(ready);
        self.failures.letters.drop_excess(&self.time);
        ready
    }

    /// Takes out of a book what was taken before `taken` or is over at `now`, and says how many items are
    /// ready by that. Whoever waits for them is still to be woken.
    fn take_away(&self, post: &Post<T>, now: u64, taken: u64) -> usize {
        let mut book = lock(&post.book);
        let entries = book.take_away(now, taken);
        let next = book.next();
        drop(book);
        self.agenda.plan(next.unwrap_or(NEVER));
        let count = entries.len();
        let ready = self.take_over(entries);
        self.lanes.count_expired(post.desk, count);
        if count > 0 {
            self.tell(|| Event::Expired {
                worker: post.name().map(AsRef::as_ref),
                items: count,
            });
        }
        ready
    }

    /// Makes a dead letter of an item for which a place was taken.
    pub(crate) fn bury(&self, envelope: Vacant<Failed<T>>, failed: Failed<T>) {
        let (attempts, reason) = (failed.entry.tag.attempts, failed.reason);
        self.failures.letters.put(envelope, failed);
        self.tell(|| Event::Died { attempts, reason });
    }

    /// Puts items whose lease is over at the head, but for those that die, and says how many.
    fn take_over(&self, entries: Vec<Entry<T>>) -> usize {
        let mut dead = 0;
        let alive = entries.into_iter().filter_map(|entry| {
            if self.failures.fate(entry.tag) != Fate::Death {
                return Some(entry);
            }
            dead += 1;
            self.bury(Vacant::new(), Failed::new(entry, Reason::Expired));
            None
        });
        let ready = self.lanes.put_at_head(alive);
        self.give_back(dead);
        ready
    }
}
