//! What cases do over and over.

use crate::waiting::Waiting;
use crate::{Letter, Settings, Subject, TxOf};
use requeue::backend::{AbortCause, Backend, Settlement, Tx};
use requeue::{Backoff, Reason, Wait};
use std::future::Future;
use std::time::{Duration, Instant};

/// No delay.
pub(crate) const AT_ONCE: Backoff = Backoff::fixed(Duration::ZERO);

/// The steps of a transaction, all of which must succeed.
#[allow(async_fn_in_trait)] // for this crate
pub(crate) trait Steps: Tx<Item = u32> {
    /// Waits for an item. Returns it and its attempts.
    async fn take_counted(&self) -> (u32, u32) {
        let item = self.pop(Wait::Forever).await.unwrap().expect("an item");
        (*item, Self::attempts(&item))
    }

    /// Waits for an item.
    async fn take(&self) -> u32 {
        self.take_counted().await.0
    }

    /// Waits for items, one by one.
    async fn take_each(&self, count: usize) -> Vec<u32> {
        let mut items = Vec::new();
        while items.len() < count {
            items.push(self.take().await);
        }
        items
    }

    /// Takes the item that is ready, if any.
    async fn look(&self) -> Option<u32> {
        self.pop(Wait::Never).await.unwrap().map(|item| *item)
    }

    /// Takes a batch of what is ready.
    async fn batch(&self, max: usize) -> Vec<u32> {
        let items = self.pop_batch(max, Wait::Never).await.unwrap();
        items.iter().map(|item| **item).collect()
    }

    /// Waits for an item, and settles it.
    async fn settle_next(&self, settlement: Settlement) -> u32 {
        let held = self.pop(Wait::Forever).await.unwrap().expect("an item");
        let item = *held;
        self.settle_held(held, settlement);
        item
    }

    /// Settles an item that is held.
    fn settle_held<'t>(&'t self, held: Self::Held<'t>, settlement: Settlement) {
        let settled = self.settle(held, settlement);
        settled.map_err(Self::Error::from).unwrap();
    }

    async fn stage(&self, items: impl IntoIterator<Item = u32>) {
        for item in items {
            self.push(item, Wait::Never).await.unwrap();
        }
    }

    /// Commits. Returns whether an item was settled.
    async fn done(&mut self) -> bool {
        self.commit().await.unwrap().given_up
    }

    /// Aborts, without a delay.
    async fn undo(&mut self) {
        self.abort(cause("undone")).await.unwrap();
    }
}

impl<X: Tx<Item = u32>> Steps for X {}

pub(crate) fn cause(error: &str) -> AbortCause {
    AbortCause::new(Reason::Aborted, error, AT_ONCE)
}

pub(crate) fn fail(error: &str) -> Settlement {
    Settlement::Fail(error.into())
}

/// Commits pushes.
pub(crate) async fn push<B: Backend<Item = u32>>(queue: &B, items: impl IntoIterator<Item = u32>) {
    let mut tx = queue.begin(None);
    tx.stage(items).await;
    tx.done().await;
}

/// A queue with these items, of one producer.
pub(crate) async fn filled<S: Subject>(
    subject: &S,
    items: impl IntoIterator<Item = u32>,
) -> S::Queue {
    filled_with(subject, Settings::default(), items).await
}

pub(crate) async fn filled_with<S: Subject>(
    subject: &S,
    settings: Settings,
    items: impl IntoIterator<Item = u32>,
) -> S::Queue {
    let queue = subject.queue(settings).await;
    push(&queue, items).await;
    queue
}

pub(crate) async fn left<B: Backend>(queue: &B) -> u64 {
    queue.left().await.unwrap()
}

/// Takes all items, which must be these, in this order.
pub(crate) async fn drains<B: Backend<Item = u32>>(queue: &B, items: &[u32]) {
    let mut tx = queue.begin(None);
    assert_eq!(tx.take_each(items.len()).await, items);
    assert_eq!(tx.look().await, None);
    tx.done().await;
    eventually(async || left(queue).await == 0).await;
}

/// Takes all items, which must be these, in any order.
pub(crate) async fn drains_any<B: Backend<Item = u32>>(queue: &B, items: &[u32]) {
    let mut tx = queue.begin(None);
    let mut taken = tx.take_each(items.len()).await;
    taken.sort_unstable();
    assert_eq!(taken, items);
    assert_eq!(tx.look().await, None);
    tx.done().await;
    eventually(async || left(queue).await == 0).await;
}

/// Waits until it is so.
pub(crate) async fn eventually(is_so: impl AsyncFn() -> bool) {
    while !is_so().await {
        tokio::task::yield_now().await;
    }
}

/// The dead letters, as items and attempts.
pub(crate) async fn dead<S: Subject>(subject: &S, queue: &S::Queue) -> Vec<(u32, u32)> {
    let letters = subject.letters(queue).await;
    letters
        .iter()
        .map(|letter| (letter.item, letter.attempts))
        .collect()
}

/// The only dead letter.
pub(crate) async fn letter<S: Subject>(subject: &S, queue: &S::Queue) -> Letter {
    let mut letters = subject.letters(queue).await;
    assert_eq!(letters.len(), 1, "{letters:?}");
    letters.remove(0)
}

/// A pop that waits.
pub(crate) async fn popping<'t, S: Subject>(
    queue: &S::Queue,
    tx: &'t TxOf<S>,
    wait: Wait,
) -> Waiting<'t, Option<u32>> {
    let popping = async move { tx.pop(wait).await.unwrap().map(|item| *item) };
    Waiting::begin::<S>(queue, popping).await
}

/// A time that has not passed yet.
pub(crate) struct Delay {
    began: Instant,
    length: Duration,
    is_manual: bool,
}

impl Delay {
    /// One of the usual length.
    pub(crate) fn short<S: Subject>() -> Self {
        Self {
            began: Instant::now(),
            length: S::SHORT,
            is_manual: S::MANUAL,
        }
    }

    /// Fails if something happened before this time. Returns whether it has happened: if time passes by itself, it may have been
    /// this case that was held up.
    pub(crate) async fn not_before<T>(&self, look: impl Future<Output = Option<T>>) -> bool {
        let has_happened = look.await.is_some();
        assert!(!has_happened || !self.is_manual && self.began.elapsed() >= self.length);
        has_happened
    }
}

/// Lets half of the usual delay pass, where that is exact.
pub(crate) async fn half<S: Subject>(subject: &S) {
    if S::MANUAL {
        subject.pass(S::SHORT / 2).await;
    }
}
