//! Group commit: commits that are one statement each, and wait at the same time, are written together.
//!
//! A commit without statements of its user finishes leases and pushes items. It waits in a list, from which a writer takes all
//! that is there, and writes it by one statement, with one sync of the disk. If the server refuses the statement, the group is
//! written in halves, until it is known which commit is to blame.

use super::write::{Part, Writing};
use crate::connect::Shared;
use crate::error::Error;
use crate::item::Ticket;
use crate::queue::Due;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// While one writer waits for the disk, the statement of another one runs.
const WRITERS: usize = 2;
/// How long a commit waits before it starts another writer: those that there are may wait for locks.
const PATIENCE: Duration = Duration::from_secs(1);
/// The items and the bytes of a group, if it has more than one commit.
const ITEMS: usize = 5_000;
const BYTES: usize = 4 << 20;

/// The commits that wait for a writer.
#[derive(Debug, Default)]
pub(crate) struct Commits(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    commits: VecDeque<Commit>,
    writers: usize,
}

#[derive(Debug)]
struct Commit {
    part: Part,
    written: oneshot::Sender<Result<Vec<Ticket>, Error>>,
}

impl Waiting {
    /// The commits for one statement, in their order. Those of serial queues are alone, since they may wait for locks of keys.
    fn group(&mut self) -> Vec<Commit> {
        self.commits.retain(|commit| !commit.written.is_closed()); // their callers are gone
        let (mut items, mut bytes) = (0, 0);
        let fits = |commit: &&Commit| {
            items += commit.part.len();
            bytes += commit.part.bytes();
            items <= ITEMS && bytes <= BYTES && !commit.part.is_serial()
        };
        let count = self.commits.iter().take_while(fits).count();
        let count = count.max(1).min(self.commits.len());
        self.commits.drain(..count).collect()
    }
}

impl Shared {
    /// Writes a part, together with others that wait. If the future is dropped while the part waits, it is not written.
    pub(super) async fn write_in_group(self: &Arc<Self>, part: Part) -> Result<Vec<Ticket>, Error> {
        if part.is_empty() {
            return Ok(Vec::new());
        }
        let (written, mut ended) = oneshot::channel();
        let commit = Commit { part, written };
        self.commits.0.lock().commits.push_back(commit);
        self.start_writer(WRITERS);
        loop {
            if let Ok(ended) = timeout(PATIENCE, &mut ended).await {
                // Otherwise its writer has ended with its runtime while it wrote.
                return ended.unwrap_or(Err(Error::InDoubt("its writer was stopped".into())));
            }
            self.start_writer(usize::MAX);
        }
    }

    /// Starts a writer, if commits wait and fewer than `limit` work.
    fn start_writer(self: &Arc<Self>, limit: usize) {
        let mut waiting = self.commits.0.lock();
        if waiting.commits.is_empty() || waiting.writers >= limit {
            return;
        }
        waiting.writers += 1;
        drop(waiting);
        let (shared, works) = (Arc::clone(self), true);
        tokio::spawn(Writer { shared, works }.work());
    }

    /// Wakes the waiters of this process for what was pushed.
    pub(super) fn wake_for(&self, part: &Part) {
        for staged in &part.staged {
            let is_ready = staged.due == Due::Now;
            if !is_ready {
                self.promoter.nudge();
            }
            self.hub.wake(staged.queue, usize::from(is_ready)); // or it may be due already
        }
    }
}

/// A task that writes groups until no commit waits.
struct Writer {
    shared: Arc<Shared>,
    /// It is counted as a writer.
    works: bool,
}

impl Writer {
    async fn work(mut self) {
        while let Some(group) = self.next() {
            self.write(group).await;
        }
    }

    fn next(&mut self) -> Option<Vec<Commit>> {
        let mut waiting = self.shared.commits.0.lock();
        let group = waiting.group();
        if group.is_empty() {
            waiting.writers -= 1;
            self.works = false;
            return None;
        }
        Some(group)
    }

    /// Writes a group, in halves if the server refuses it.
    async fn write(&self, group: Vec<Commit>) {
        let mut groups = vec![group];
        while let Some(mut group) = groups.pop() {
            let parts: Vec<_> = group.iter().map(|commit| &commit.part).collect();
            match self.write_parts(&parts).await {
                Ok(tickets) => {
                    for (commit, tickets) in group.into_iter().zip(tickets) {
                        let _ = commit.written.send(Ok(tickets));
                    }
                }
                Err(error) if group.len() == 1 || !was_refused(&error) => {
                    for commit in group {
                        let _ = commit.written.send(Err(error.clone()));
                    }
                }
                Err(_) => {
                    let second = group.split_off(group.len() / 2);
                    groups.extend([second, group]);
                }
            }
        }
    }

    /// Writes some parts by one statement.
    async fn write_parts(&self, parts: &[&Part]) -> Result<Vec<Vec<Ticket>>, Error> {
        let shared = &self.shared;
        let writing = Writing::of(parts, shared.process().await?);
        let connection = shared.connection().await?;
        let sql = writing.sql(&shared.sql);
        let rows = connection.change(sql, &writing.params()).await?;
        drop(connection); // it may be the last one
        for part in parts {
            shared.wake_for(part);
        }
        shared.tell(writing.listened(&rows));
        Ok(writing.tickets(&rows))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.works {
            // Its runtime has ended. The commits that wait start a writer in theirs.
            self.shared.commits.0.lock().writers -= 1;
        }
    }
}

/// Whether the server refused the statement, so that nothing was written, perhaps because of one of its parts.
fn was_refused(error: &Error) -> bool {
    match error {
        Error::Expired => true,
        Error::Database(error) => error.as_db_error().is_some(),
        _ => false,
    }
}
