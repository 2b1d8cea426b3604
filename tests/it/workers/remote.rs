//! A queue elsewhere.

use requeue::backend::{AbortCause, Backend, Committed, Holds, Settlement, Tx};
use requeue::Wait;
use std::collections::VecDeque;
use std::future::{ready, Future};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::sync::Semaphore;

/// A queue of another kind: a locked deque of items and the numbers of their deliveries.
#[derive(Clone, Debug, Default)]
pub(super) struct Remote {
    pub(super) stored: Arc<Mutex<VecDeque<(u32, u32)>>>,
    pub(super) closed: Arc<Mutex<bool>>,
    pub(super) held: Arc<Mutex<usize>>,
    /// If it is there, workers do not notice the close, and the answer to a commit takes one of these.
    pub(super) answer: Option<Arc<Semaphore>>,
    /// The first commit of this item is refused.
    pub(super) refused: Option<u32>,
    /// Commits keep others waiting.
    pub(super) alone: bool,
}

#[derive(Debug)]
pub(super) struct RemoteTx {
    queue: Remote,
    staged: Mutex<Vec<(u32, u32)>>,
    held: Mutex<Vec<(u32, u32)>>,
}

#[derive(Debug)]
pub(super) struct RemoteItem(u32, u32);

impl Deref for RemoteItem {
    type Target = u32;

    fn deref(&self) -> &u32 {
        &self.0
    }
}

impl DerefMut for RemoteItem {
    fn deref_mut(&mut self) -> &mut u32 {
        &mut self.0
    }
}

impl Backend for Remote {
    type Item = u32;
    type Error = std::io::Error;
    type Tx = RemoteTx;

    fn begin(&self, _worker: Option<Arc<str>>) -> RemoteTx {
        RemoteTx {
            queue: self.clone(),
            staged: Mutex::default(),
            held: Mutex::default(),
        }
    }

    async fn close(&self) -> std::io::Result<bool> {
        *self.closed.lock().unwrap() = true;
        Ok(self.answer.is_none())
    }

    fn commits_wait(&self) -> bool {
        self.answer.is_some()
    }

    fn is_closed(&self) -> bool {
        *self.closed.lock().unwrap()
    }

    async fn left(&self) -> std::io::Result<u64> {
        let held = *self.held.lock().unwrap();
        Ok((self.stored.lock().unwrap().len() + held) as u64)
    }

    fn instant(&self, _since: u64) -> Instant {
        Instant::now()
    }
}

impl Holds for RemoteTx {
    type Item = u32;
    type Held<'t> = RemoteItem;
    type View = Self;

    fn attempts(item: &RemoteItem) -> u32 {
        item.1
    }

    fn view(&self) -> &Self {
        self
    }
}

impl RemoteTx {
    /// Ends the transaction, with what becomes of its items.
    fn end(&self, commits: bool) {
        let mut stored = self.queue.stored.lock().unwrap();
        let held = std::mem::take(&mut *self.held.lock().unwrap());
        *self.queue.held.lock().unwrap() -= held.len();
        let staged = std::mem::take(&mut *self.staged.lock().unwrap());
        let back = if commits { staged } else { held };
        back.into_iter()
            .rev()
            .for_each(|item| stored.push_front(item));
    }
}

impl Drop for RemoteTx {
    fn drop(&mut self) {
        self.end(false);
    }
}

impl Tx for RemoteTx {
    type Error = std::io::Error;
    type Refused = std::io::Error;

    async fn pop(&self, wait: Wait) -> std::io::Result<Option<RemoteItem>> {
        loop {
            let popped = {
                let mut stored = self.queue.stored.lock().unwrap();
                let popped = stored.pop_front();
                *self.queue.held.lock().unwrap() += usize::from(popped.is_some());
                popped
            };
            if let Some((item, attempts)) = popped {
                self.held.lock().unwrap().push((item, attempts + 1));
                return Ok(Some(RemoteItem(item, attempts + 1)));
            }
            let is_over = self.queue.is_closed() && self.queue.left().await? == 0;
            if is_over || wait != Wait::Forever {
                return Ok(None);
            }
            tokio::task::yield_now().await;
        }
    }

    async fn pop_batch(&self, _max: usize, wait: Wait) -> std::io::Result<Vec<RemoteItem>> {
        Ok(self.pop(wait).await?.into_iter().collect())
    }

    fn push(&self, item: u32, _wait: Wait) -> impl Future<Output = std::io::Result<()>> + Send {
        self.staged.lock().unwrap().push((item, 0));
        ready(Ok(()))
    }

    fn settle(&self, item: RemoteItem, settlement: Settlement) -> std::io::Result<()> {
        if settlement != Settlement::Retry {
            return Err(std::io::ErrorKind::Unsupported.into());
        }
        self.staged.lock().unwrap().push((item.0, item.1));
        Ok(())
    }

    async fn commit(&mut self) -> std::io::Result<Committed> {
        let first = self.held.lock().unwrap().first().copied();
        let is_refused = first.is_some() && first == self.queue.refused.map(|item| (item, 1));
        if !is_refused {
            self.end(true);
        }
        if let Some(answer) = &self.queue.answer {
            answer.acquire().await.unwrap().forget();
        }
        if is_refused {
            return Err(std::io::ErrorKind::ConnectionReset.into());
        }
        Ok(Committed::default())
    }

    fn can_commit_in_flight(&mut self) -> bool {
        !self.queue.alone
    }

    async fn abort(&mut self, _cause: AbortCause) -> std::io::Result<()> {
        self.end(false);
        Ok(())
    }

    fn deliveries(&mut self) -> (usize, u32) {
        let held = self.held.lock().unwrap();
        (
            held.len(),
            held.iter()
                .map(|(_, attempts)| *attempts)
                .max()
                .unwrap_or(0),
        )
    }

    fn since(&self) -> u64 {
        0
    }
}
