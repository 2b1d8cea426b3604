//! Group commit: commits that are one statement each, and wait at the same time, are written together.
//!
//! A commit without statements of its user finishes leases and pushes items. It waits in a list, from which a writer takes all
//! that is there, and writes it by one statement, with one sync of the disk. If the server refuses the statement, the group is
//! written in halves, until it is known which commit is to blame.

use super::write::{Part, Writing};
use crate::background::Task;
use crate::connect::Shared;
use crate::error::{Error, Result};
use crate::item::Ticket;
use crate::queue::Due;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{oneshot, Notify};
use tokio::time::timeout;

/// How long a commit waits before it starts another writer: the two that there are may wait for locks.
const PATIENCE: Duration = Duration::from_secs(1);
/// The items and the bytes of a group, if it has more than one commit.
const ITEMS: usize = 5_000;
const BYTES: usize = 4 << 20;

/// The commits that wait for a writer.
#[derive(Debug, Default)]
pub(crate) struct Commits {
    waiting: Mutex<VecDeque<Commit>>,
    /// While one waits for the disk, the statement of the other one runs.
    writers: [Task; 2],
}

#[derive(Debug)]
struct Commit {
    part: Part,
    written: oneshot::Sender<Result<Vec<Ticket>>>,
}

impl Commits {
    /// The commits for one statement, in their order. Those that may wait for locks of keys are alone.
    fn group(&self) -> Vec<Commit> {
        let mut waiting = self.waiting.lock();
        waiting.retain(|commit| !commit.written.is_closed()); // their callers are gone
        let (mut items, mut bytes) = (0, 0);
        let fits = |commit: &&Commit| {
            items += commit.part.len();
            bytes += commit.part.bytes();
            items <= ITEMS && bytes <= BYTES && !commit.part.may_wait()
        };
        let count = waiting.iter().take_while(fits).count();
        let count = count.max(1).min(waiting.len());
        waiting.drain(..count).collect()
    }
}

/// A writer.
async fn write(shared: Weak<Shared>, nudged: Arc<Notify>) {
    loop {
        nudged.notified().await;
        let Some(shared) = shared.upgrade() else {
            return;
        };
        shared.write_waiting().await;
    }
}

impl Shared {
    /// Writes a part, together with others that wait. If the future is dropped while the part waits, it is not written.
    pub(super) async fn write_in_group(self: &Arc<Self>, part: Part) -> Result<Vec<Ticket>> {
        if part.len() == 0 {
            return Ok(Vec::new());
        }
        let (written, mut ended) = oneshot::channel();
        let commit = Commit { part, written };
        self.commits.waiting.lock().push_back(commit);
        for writer in &self.commits.writers {
            writer.start(self, write);
            writer.nudge();
        }
        loop {
            if let Ok(ended) = timeout(PATIENCE, &mut ended).await {
                // Otherwise its writer has ended with its runtime while it wrote.
                return ended.unwrap_or(Err(Error::InDoubt("its writer was stopped".into())));
            }
            let shared = Arc::clone(self);
            tokio::spawn(async move { shared.write_waiting().await });
        }
    }

    /// Writes groups until no commit waits.
    async fn write_waiting(self: &Arc<Self>) {
        loop {
            let group = self.commits.group();
            if group.is_empty() {
                return;
            }
            self.write_group(group).await;
        }
    }

    /// Wakes the waiters of this process for what was pushed.
    pub(super) fn wake_for(self: &Arc<Self>, part: &Part) {
        for staged in &part.staged {
            if staged.ttl.is_some() {
                self.start_promoter(); // it ends what has expired
            }
            let is_ready = staged.due == Due::Now;
            if !is_ready {
                self.promoter.nudge();
            }
            self.hub.wake(staged.queue, usize::from(is_ready)); // or it may be due already
        }
    }

    /// Writes a group, in halves if the server refuses it.
    async fn write_group(self: &Arc<Self>, group: Vec<Commit>) {
        let mut groups = vec![group];
        while let Some(mut group) = groups.pop() {
            let parts: Vec<_> = group.iter().map(|commit| &commit.part).collect();
            let mut written = self.write_parts(&parts).await;
            // Nothing was written, perhaps because of one of the parts.
            let was_refused = match &written {
                Err(Error::Database(error)) => error.as_db_error().is_some(),
                Err(error) => matches!(error, Error::Expired),
                Ok(_) => false,
            };
            if group.len() > 1 && was_refused {
                let second = group.split_off(group.len() / 2);
                groups.extend([second, group]);
                continue;
            }
            for (place, commit) in group.into_iter().enumerate() {
                let tickets = written
                    .as_mut()
                    .map(|tickets| mem::take(&mut tickets[place]));
                let _ = commit.written.send(tickets.map_err(|error| error.clone()));
            }
        }
    }

    /// Writes some parts by one statement.
    async fn write_parts(self: &Arc<Self>, parts: &[&Part]) -> Result<Vec<Vec<Ticket>>> {
        let writing = Writing::of(parts, self.process().await?);
        let connection = self.connection().await?;
        let sql = writing.sql(&self.sql);
        let rows = connection.change(sql, &writing.params()).await?;
        drop(connection); // it may be the last one
        for part in parts {
            self.wake_for(part);
        }
        self.tell(writing.listened(&rows));
        Ok(writing.tickets(&rows))
    }
}
