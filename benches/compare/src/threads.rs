//! Threads that start together, and what each receiver still expects.

use crate::calls::{self, Calls};
use crate::measure::Round;
use crate::tally::{Payload, Tally};
use std::hint::black_box;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// The work of one thread, which returns what it received.
pub(crate) type Work<'a> = Box<dyn FnOnce() -> Tally + Send + 'a>;

/// What one thread or several have done, from the first start to the last end.
#[derive(Clone, Copy)]
struct Done {
    start: Instant,
    end: Instant,
    received: Tally,
    calls: Calls,
}

impl Done {
    fn of(work: Work<'_>) -> Self {
        let before = calls::of_this_thread();
        let start = Instant::now();
        let received = work();
        let end = Instant::now();
        Self {
            start,
            end,
            received,
            calls: calls::of_this_thread() - before,
        }
    }

    fn and(self, other: Self) -> Self {
        let (mut received, mut calls) = (self.received, self.calls);
        received += other.received;
        calls += other.calls;
        Self {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
            received,
            calls,
        }
    }
}

/// Runs all work from one instant on, each on its own thread, a single one on this thread.
fn together(mut all: Vec<Work<'_>>) -> Done {
    if all.len() == 1 {
        return Done::of(all.remove(0));
    }
    let barrier = &Barrier::new(all.len());
    thread::scope(|scope| {
        let start = |work| {
            scope.spawn(move || {
                barrier.wait();
                Done::of(work)
            })
        };
        let threads: Vec<_> = all.into_iter().map(start).collect();
        let done = threads
            .into_iter()
            .map(|thread| thread.join().expect("no thread panics"));
        done.reduce(Done::and).expect("there are threads")
    })
}

/// How much there is to do in a round, and for how long a receiver waits in vain before it gives up.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) items: u64,
    pub(crate) patience: Duration,
}

impl Load {
    /// The numbers that are the task of one of several threads.
    pub(crate) fn part(&self, thread: usize, threads: usize) -> Range<u64> {
        let at = |thread: usize| self.items * thread as u64 / threads as u64;
        at(thread)..at(thread + 1)
    }

    /// A round that passes all items.
    pub(crate) fn round(&self, span: Duration, received: Tally) -> Round {
        let value = span.as_secs_f64() * 1e9 / self.as_float();
        Round::new(vec![value], Tally::of(0..self.items), received)
    }

    /// A round in which threads pass all items together.
    pub(crate) fn shared_round(&self, work: Vec<Work<'_>>) -> Round {
        let done = together(work);
        Round {
            calls: done.calls,
            ..self.round(done.end - done.start, done.received)
        }
    }

    #[allow(clippy::cast_precision_loss)]
    pub(crate) fn as_float(&self) -> f64 {
        self.items as f64
    }
}

/// The senders that are not done, where a thread waits for no other.
static NONE: AtomicUsize = AtomicUsize::new(0);

/// What a thread still expects, and what it has received.
pub(crate) struct Share<'s> {
    left: u64,
    received: Tally,
    patience: Duration,
    sending: &'s AtomicUsize,
    /// What was left when the thread found nothing after the last sender was done, and since when.
    idle: Option<(u64, Instant)>,
}

impl Share<'static> {
    pub(crate) fn alone(items: u64, patience: Duration) -> Self {
        Share::new(items, patience, &NONE)
    }
}

impl<'s> Share<'s> {
    fn new(items: u64, patience: Duration, sending: &'s AtomicUsize) -> Self {
        Self {
            left: items,
            received: Tally::default(),
            patience,
            sending,
            idle: None,
        }
    }

    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// At most this many items fit into the share.
    pub(crate) fn at_most(&self, max: usize) -> usize {
        usize::try_from(self.left).map_or(max, |left| left.min(max))
    }

    pub(crate) fn receive<T: Payload>(&mut self, item: &T) {
        self.left = self.left.saturating_sub(1);
        self.received.add(item.number());
        black_box(item);
    }

    /// Yields after an attempt in vain. Without progress for too long after the end of the senders nothing is expected
    /// any more: items were lost.
    pub(crate) fn idle(&mut self) {
        thread::yield_now();
        if self.sending.load(Ordering::Acquire) > 0 {
            return;
        }
        match self.idle {
            Some((left, since)) if left == self.left => {
                if since.elapsed() >= self.patience {
                    self.left = 0;
                }
            }
            _ => self.idle = Some((self.left, Instant::now())),
        }
    }

    /// Pops until the share is complete.
    pub(crate) fn complete<T: Payload>(mut self, mut pop: impl FnMut() -> Option<T>) -> Tally {
        while self.left > 0 {
            match pop() {
                Some(item) => self.receive(&item),
                None => self.idle(),
            }
        }
        self.received
    }

    pub(crate) fn received(self) -> Tally {
        self.received
    }
}

/// Senders and receivers that pass all items, each an equal part.
pub(crate) fn flow<S: Send, R: Send>(
    load: Load,
    senders: &mut [S],
    send: impl Fn(&mut S, Range<u64>) + Sync,
    receivers: &mut [R],
    receive: impl Fn(&mut R, Share<'_>) -> Tally + Sync,
) -> Round {
    let (sending, receiving) = (senders.len(), receivers.len());
    let unfinished = AtomicUsize::new(sending);
    let (send, receive, unfinished) = (&send, &receive, &unfinished);
    let senders = senders.iter_mut().enumerate().map(|(at, sender)| {
        let work: Work = Box::new(move || {
            send(sender, load.part(at, sending));
            unfinished.fetch_sub(1, Ordering::Release);
            Tally::default()
        });
        work
    });
    let receivers = receivers.iter_mut().enumerate().map(|(at, receiver)| {
        let part = load.part(at, receiving);
        let share = Share::new(part.end - part.start, load.patience, unfinished);
        let work: Work = Box::new(move || receive(receiver, share));
        work
    });
    load.shared_round(senders.chain(receivers).collect())
}
