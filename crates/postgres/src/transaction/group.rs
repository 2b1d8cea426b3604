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
        let (send, mut written) = oneshot::channel();
        self.commits.0.lock().commits.push_back(Commit {
            part,
            written: send,
        });
        self.start_writer(WRITERS);
        loop {
            match timeout(PATIENCE, &mut written).await {
                // Its writer has ended with its runtime while it wrote.
                Ok(ended) => {
                    return ended.unwrap_or(Err(Error::InDoubt("its writer was stopped".into())))
                }
                Err(_) => self.start_writer(usize::MAX),
            }
        }
    }

    /// Starts a writer, if commits wait and fewer than `limit` work.
    fn start_writer(self: &Arc<Self>, limit: usize) {
        let mut waiting = self.commits.0.lock();
        if waiting.commits.is_empty() || waiting.writers >= limit {
            return;
        }
        waiting.writers += 1;
        let writer = Writer {
            shared: Arc::clone(self),
            works: true,
        };
        drop(waiting);
        tokio::spawn(writer.work());
    }

    /// Wakes the waiters of this process for what was pushed.
    pub(super) fn wake_for(&self, part: &Part) {
        for staged in &part.staged {
            if staged.due == Due::Now {
                self.hub.wake(staged.queue, 1);
            } else {
                self.promoter.nudge();
                self.hub.nudge(staged.queue); // it may be due already
            }
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
            let (parts, senders): (Vec<_>, Vec<_>) = group
                .drain(..)
                .map(|commit| (commit.part, commit.written))
                .unzip();
            match self.write_parts(&parts).await {
                Ok(tickets) => {
                    for (sender, tickets) in senders.into_iter().zip(tickets) {
                        let _ = sender.send(Ok(tickets));
                    }
                }
                Err(error) if parts.len() == 1 || !was_refused(&error) => {
                    for sender in senders {
                        let _ = sender.send(Err(error.clone()));
                    }
                }
                Err(_) => {
                    let commits = parts.into_iter().zip(senders);
                    let mut first: Vec<_> = commits
                        .map(|(part, written)| Commit { part, written })
                        .collect();
                    let second = first.split_off(first.len() / 2);
                    groups.extend([second, first]);
                }
            }
        }
    }

    /// Writes some parts by one statement.
    async fn write_parts(&self, parts: &[Part]) -> Result<Vec<Vec<Ticket>>, Error> {
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
        let tickets = writing.tickets_of_parts(&rows);
        Ok(tickets)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.works {
            return;
        }
        // Its runtime has ended. The commits that wait start a writer in theirs.
        self.shared.commits.0.lock().writers -= 1;
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
