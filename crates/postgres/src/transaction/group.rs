//! Group commit: commits that are one statement each, and wait at the same time, are written together.
//!
//! A commit without statements of its user finishes leases and pushes items. It waits in a list, from which a writer takes all
//! that is there, and writes it by one statement, with one sync of the disk. If the server refuses the statement, each commit
//! of the group is written by itself.

use super::write::{Part, Writing};
use crate::connect::{query_alone, Shared};
use crate::error::Error;
use crate::item::Ticket;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::slice;
use std::sync::Arc;
use tokio::sync::oneshot;

/// While one writer waits for the disk, the statement of another one runs.
const WRITERS: usize = 2;
/// The items of a group, if it has more than one commit.
const ITEMS: usize = 5_000;

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
    /// The commits for one statement, in their order.
    fn group(&mut self) -> Vec<Commit> {
        let mut items = 0;
        let fits = |commit: &&Commit| {
            items += commit.part.len();
            items <= ITEMS
        };
        let count = self.commits.iter().take_while(fits).count();
        let count = count.max(1).min(self.commits.len());
        self.commits.drain(..count).collect()
    }
}

impl Shared {
    /// Writes a part, together with others that wait. It is written even if the future is dropped.
    pub(super) async fn write_in_group(self: &Arc<Self>, part: Part) -> Result<Vec<Ticket>, Error> {
        if part.is_empty() {
            return Ok(Vec::new());
        }
        let (send, written) = oneshot::channel();
        let needs_writer = {
            let mut waiting = self.commits.0.lock();
            waiting.commits.push_back(Commit {
                part,
                written: send,
            });
            let needs_writer = waiting.writers < WRITERS;
            waiting.writers += usize::from(needs_writer);
            needs_writer
        };
        if needs_writer {
            let writer = Writer {
                shared: Arc::clone(self),
                works: true,
            };
            tokio::spawn(writer.work());
        }
        written.await.unwrap_or(Err(Error::Ended))
    }

    /// Wakes the waiters of this process for what was pushed.
    pub(super) fn wake_for(&self, part: &Part) {
        if part.staged.iter().any(|staged| staged.due.is_some()) {
            self.promoter.nudge();
        }
        for staged in part.staged.iter().filter(|staged| staged.due.is_none()) {
            self.hub.wake(staged.queue, 1);
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
        if waiting.commits.is_empty() {
            waiting.writers -= 1;
            self.works = false;
            return None;
        }
        Some(waiting.group())
    }

    async fn write(&self, group: Vec<Commit>) {
        let (parts, senders): (Vec<_>, Vec<_>) = group
            .into_iter()
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
                for (part, sender) in parts.iter().zip(senders) {
                    let written = self.write_parts(slice::from_ref(part)).await;
                    let _ =
                        sender.send(written.map(|tickets| tickets.into_iter().flatten().collect()));
                }
            }
        }
    }

    /// Writes some parts by one statement.
    async fn write_parts(&self, parts: &[Part]) -> Result<Vec<Vec<Ticket>>, Error> {
        let shared = &self.shared;
        let writing = Writing::of(parts, shared.process().await?);
        let client = shared.connection().await?;
        let rows = query_alone(&client, writing.sql(&shared.sql), &writing.params()).await;
        let tickets = writing.tickets_of_parts(&rows.map_err(Error::of_commit)?);
        for part in parts {
            shared.wake_for(part);
        }
        Ok(tickets)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.works {
            // Its runtime has ended. The commits that wait may have lost theirs too.
            let mut waiting = self.shared.commits.0.lock();
            waiting.writers -= 1;
            let lost = std::mem::take(&mut waiting.commits);
            drop(waiting);
            drop(lost);
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
