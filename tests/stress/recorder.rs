//! Records the calls of threads.

use crate::history::{sound_lives, End, Event, Life, Span};
use requeue::{PopError, Queue};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::Mutex;

/// A number on the heap, so that a sanitizer sees every invalid access to an item.
pub(crate) type Item = Box<usize>;

/// A queue and its number in the history.
#[derive(Clone, Default)]
pub(crate) struct Subject {
    pub(crate) number: u32,
    pub(crate) queue: Queue<Item>,
}

impl Subject {
    /// Creates this many queues.
    pub(crate) fn several(count: u32) -> Vec<Self> {
        let subject = |number| Self {
            number,
            queue: Queue::unbounded(),
        };
        (0..count).map(subject).collect()
    }
}

/// The state shared by all threads of a test.
pub(crate) struct Recording {
    clock: AtomicU64,
    items: AtomicUsize,
    streams: AtomicU64,
    events: Mutex<Vec<Event>>,
}

impl Recording {
    pub(crate) fn new() -> Self {
        Self {
            clock: AtomicU64::new(0),
            items: AtomicUsize::new(0),
            streams: AtomicU64::new(0),
            events: Mutex::default(),
        }
    }

    pub(crate) fn recorder(&self) -> Recorder<'_> {
        let events = Vec::new();
        Recorder {
            stream: self.streams.fetch_add(1, Ordering::Relaxed),
            shared: self,
            events,
        }
    }

    /// Drains the queues and checks all records; returns the items' lives.
    pub(crate) fn finish(self, subjects: &[Subject]) -> Vec<Life> {
        let mut recorder = self.recorder();
        for subject in subjects {
            while recorder.pop(subject) {}
        }
        drop(recorder);
        let lives = sound_lives(&self.events.into_inner().unwrap());
        for subject in subjects {
            check_stats(subject, &lives);
        }
        lives
    }
}

/// A drained queue has counted every push, every committed pop and every abort.
fn check_stats(subject: &Subject, lives: &[Life]) {
    let own = || lives.iter().filter(|life| life.queue == subject.number);
    let holds: usize = own().map(|life| life.holds.len()).sum();
    let (items, holds) = (own().count() as u64, holds as u64);
    let stats = subject.queue.stats();
    assert_eq!((stats.ready, stats.held, subject.queue.len()), (0, 0, 0));
    assert_eq!((stats.pushed, stats.committed), (items, items));
    assert_eq!(stats.aborted, holds - items);
}

/// The records of one thread.
pub(crate) struct Recorder<'r> {
    shared: &'r Recording,
    /// The stream of the thread's pushes without a handle.
    stream: u64,
    events: Vec<Event>,
}

impl Drop for Recorder<'_> {
    fn drop(&mut self) {
        if let Ok(mut events) = self.shared.events.lock() {
            events.append(&mut self.events);
        }
    }
}

impl Recorder<'_> {
    /// Advances the logical time.
    pub(crate) fn now(&self) -> u64 {
        self.shared.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// The result of `call`, and its span.
    pub(crate) fn timed<R>(&self, call: impl FnOnce() -> R) -> (R, Span) {
        let from = self.now();
        let result = call();
        let to = self.now();
        (result, Span { from, to })
    }

    pub(crate) fn write(&mut self, event: Event) {
        self.events.push(event);
    }

    /// A new item.
    #[allow(clippy::unnecessary_box_returns)] // the box is the item
    pub(crate) fn item(&self) -> Item {
        Box::new(self.shared.items.fetch_add(1, Ordering::Relaxed))
    }

    /// A new stream.
    pub(crate) fn stream(&self) -> u64 {
        self.shared.streams.fetch_add(1, Ordering::Relaxed)
    }

    /// Pushes an item without a handle.
    pub(crate) fn push(&mut self, subject: &Subject) {
        let item = self.item();
        let items = vec![*item];
        let (result, span) = self.timed(|| subject.queue.push(item));
        result.expect("unbounded");
        self.write(Event::Push {
            queue: subject.number,
            stream: self.stream,
            span,
            items,
        });
    }

    /// Pops an item without a handle; false if there is none.
    pub(crate) fn pop(&mut self, subject: &Subject) -> bool {
        let (result, span) = self.timed(|| subject.queue.pop());
        self.popped(subject.number, span, result)
    }

    /// Calls `is_empty`.
    pub(crate) fn is_empty(&mut self, subject: &Subject) -> bool {
        let queue = subject.number;
        let (empty, span) = self.timed(|| subject.queue.is_empty());
        if empty {
            self.write(Event::Empty { queue, span });
        }
        empty
    }

    /// Records the result of a pop of one item.
    pub(crate) fn popped(
        &mut self,
        queue: u32,
        span: Span,
        result: Result<Item, PopError>,
    ) -> bool {
        let items = result.into_iter().collect();
        self.popped_batch(queue, span, items)
    }

    /// Records the popped items; false if there are none.
    pub(crate) fn popped_batch(&mut self, queue: u32, claim: Span, items: Vec<Item>) -> bool {
        if items.is_empty() {
            self.write(Event::Empty { queue, span: claim });
            return false;
        }
        let items = items.into_iter().map(|item| *item).collect();
        self.write(Event::Hold {
            queue,
            claim,
            items,
            end: End::Taken,
        });
        true
    }
}
