//! What each queue that implements [`Backend`] promises, as tests.
//!
//! A [`Subject`] makes queues of one kind. [`suite!`] makes a module with a test for each case; what not all kinds of queues
//! can do has a macro of its own: [`closing_suite!`], [`bounded_suite!`], [`leased_suite!`], [`settled_at_once_suite!`],
//! [`settled_late_suite!`], [`strict_order_suite!`], [`threads_suite!`], [`ttl_suite!`], [`tail_suite!`], [`removed_suite!`],
//! [`closed_now_suite!`], [`unique_suite!`], [`unique_at_once_suite!`],
//! [`duplicates_suite!`], [`weighed_suite!`] and [`errors_suite!`]. A case decides nothing that the documentation of the traits leaves open.
//!
//! ```ignore
//! requeue_conformance::suite!(fifo, Memory::fifo());
//! requeue_conformance::closing_suite!(closing, Memory::fifo());
//! ```

pub mod cases;
mod lists;
mod steps;
mod waiting;

use requeue::backend::{Backend, Holds, Settlement};
use requeue::{AfterTtl, Backoff, OnDuplicate, ReturnTo};
use std::future::{ready, Future};
use std::panic::resume_unwind;
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Longer than anything takes, unless it waits for ever.
pub const LONG: Duration = Duration::from_secs(3600);

/// Longer than any test takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The transactions of a subject.
pub type TxOf<S> = <<S as Subject>::Queue as Backend>::Tx;
/// An item that a transaction of a subject holds.
pub type HeldOf<'t, S> = <TxOf<S> as Holds>::Held<'t>;
/// What a run of a worker pool gets of its transaction.
pub type ViewOf<S> = <TxOf<S> as Holds>::View;

/// Makes queues of one kind, and does what the traits cannot.
pub trait Subject: Send + Sync + 'static {
    /// The queues.
    type Queue: Backend<Item = u32, Tx: 'static> + 'static;

    /// A time that is long enough for the steps of a case, if they are not held up.
    const SHORT: Duration;
    /// Whether time passes only by [`pass`](Self::pass).
    const MANUAL: bool;
    /// How long a call goes on at least until it waits.
    const SETTLE: Duration;

    /// Makes a queue that is open and empty.
    fn queue(&self, settings: Settings) -> impl Future<Output = Self::Queue> + Send;

    /// The dead letters of a queue, in the order in which they died.
    fn letters(&self, queue: &Self::Queue) -> impl Future<Output = Vec<Letter>> + Send;

    /// How many calls wait for items of a queue. `None` if a call waits after its first poll.
    fn waiting(_: &Self::Queue) -> impl Future<Output = Option<usize>> + Send {
        ready(None)
    }

    /// Lets time pass.
    fn pass(&self, time: Duration) -> impl Future<Output = ()> + Send;

    /// Stages a push in a run of a worker pool.
    fn push_in(view: &ViewOf<Self>, item: u32) -> impl Future<Output = Result<(), String>> + Send;
}

/// A subject whose worker pools may be threads.
pub trait Threaded: Subject {
    /// Settles the item of a run.
    ///
    /// # Errors
    ///
    /// If it is refused.
    fn settle_in<'t>(
        view: &'t ViewOf<Self>,
        item: HeldOf<'t, Self>,
        settlement: Settlement,
    ) -> Result<(), String>;
}

/// A subject whose items can be removed where they are.
pub trait Removing: Subject {
    /// Removes items that nobody holds, and returns their number.
    fn remove(queue: &Self::Queue, what: Removal) -> impl Future<Output = usize> + Send;
}

/// A subject in which a duplicate may replace the item that has its key, or follow it.
pub trait Superseding: Subject {
    /// Pushes an item in no transaction. `false` if it is refused as a duplicate.
    fn push(queue: &Self::Queue, item: u32) -> impl Future<Output = bool> + Send;
}

/// What is removed from a queue.
#[derive(Clone, Copy, Debug)]
pub enum Removal {
    /// The items for which this is false: `retain`.
    Unless(fn(u32) -> bool),
    /// All: `clear_all`.
    All,
    /// Those that are not ready yet, and the queue is closed: `close_now`.
    Later,
}

/// The options of a queue that differ between cases.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// How many items it may have, if it is bounded.
    pub capacity: Option<usize>,
    /// How often an item is delivered before it becomes a dead letter.
    pub max_attempts: Option<u32>,
    /// How long an item may be held.
    pub lease: Option<Duration>,
    /// When failed items are delivered again.
    pub backoff: Option<Backoff>,
    /// Where failed items go back to.
    pub return_to: ReturnTo,
    /// How long items live.
    pub ttl: Option<Duration>,
    /// What becomes of items whose time to live is over.
    pub after_ttl: AfterTtl,
    /// The key of an item, if keys are unique.
    pub unique_by: Option<fn(u32) -> u32>,
    /// What becomes of duplicates, where it can be chosen.
    pub on_duplicate: OnDuplicate,
    /// How long a key stays taken after a commit.
    pub unique_for: Duration,
    /// The weight of an item, if items have weights.
    pub weigh: Option<fn(u32) -> usize>,
    /// Whether each item keeps its last error, where it can be chosen.
    pub tracked: bool,
}

/// A dead letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// Its item.
    pub item: u32,
    /// How often it was delivered.
    pub attempts: u32,
    /// The error of its last delivery.
    pub error: Option<String>,
    /// The name of its reason, in small letters.
    pub reason: String,
}

/// Runs a case on a thread of its own.
///
/// # Panics
///
/// If the case panics, or does not end.
#[track_caller]
pub fn run<F: Future<Output = ()>>(case: impl FnOnce() -> F + Send + 'static) {
    let (sender, receiver) = channel();
    let thread = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build();
        runtime.expect("a runtime").block_on(case());
        let _ = sender.send(());
    });
    match receiver.recv_timeout(PATIENCE) {
        Ok(()) => {}
        Err(RecvTimeoutError::Timeout) => panic!("it waits for ever"),
        Err(RecvTimeoutError::Disconnected) => resume_unwind(thread.join().unwrap_err()),
    }
}

#[cfg(test)]
mod tests {
    /// A case that is in no list would never run.
    #[test]
    fn each_case_is_listed() {
        let lists = include_str!("lists.rs");
        for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/cases")).unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            for line in text.lines() {
                if let Some(case) = line.strip_prefix("pub async fn ") {
                    let name = case.split('<').next().unwrap();
                    let is_listed = |line: &str| line.trim().trim_end_matches(';') == name;
                    assert!(lists.lines().any(is_listed), "{name} is not in lists.rs");
                }
            }
        }
    }
}
