//! Cancellation of runs: a table in memory says which run of this process works on which item. Items that are claimed ahead are dropped.

use crate::connect::Shared;
use crate::error::Result;
use crate::item::Ticket;
use crate::prefetch::Buffer;
use crate::queue::{count, PgQueue};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use tokio::sync::watch;

/// The items that runs of this process work on, and those that it has claimed ahead.
#[derive(Default)]
pub(crate) struct Running {
    runs: Mutex<HashMap<i64, Told>>,
    ahead: Mutex<Vec<Weak<Buffer>>>,
}

requeue::debug_struct!([] Running);

/// The tickets of the items of a run that are cancelled.
type Told = watch::Sender<Vec<i64>>;

impl Running {
    /// Tells the run that works on this item, or drops it before its run.
    pub(crate) fn cancel(&self, ticket: i64) {
        let ahead = self.ahead.lock();
        let ahead = ahead.iter().filter_map(Weak::upgrade);
        ahead.for_each(|buffer| buffer.cancel(ticket));
        if let Some(told) = self.runs.lock().get(&ticket) {
            told.send_modify(|cancelled| cancelled.push(ticket));
        }
    }

    /// Items of this buffer may be cancelled.
    pub(crate) fn claims_ahead(&self, buffer: &Arc<Buffer>) {
        let mut buffers = self.ahead.lock();
        buffers.retain(|buffer| buffer.strong_count() > 0);
        buffers.push(Arc::downgrade(buffer));
    }
}

/// Whether a run is cancelled, as others say while this is there.
pub(crate) struct Cancellation {
    shared: Arc<Shared>,
    told: Told,
    tickets: Vec<i64>,
}

impl Cancellation {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Self {
            shared: Arc::clone(shared),
            told: watch::Sender::default(),
            tickets: Vec::new(),
        }
    }

    /// The run works on this item too.
    pub(crate) fn add(&mut self, ticket: i64) {
        self.tickets.push(ticket);
        let mut running = self.shared.running.runs.lock();
        running.insert(ticket, self.told.clone());
    }

    /// Whether the run is to end because of this item.
    pub(crate) fn is_of(&self, ticket: i64) -> bool {
        self.told.borrow().contains(&ticket)
    }

    /// Changes when an item is cancelled.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Vec<i64>> {
        self.told.subscribe()
    }
}

impl Drop for Cancellation {
    fn drop(&mut self) {
        let mut running = self.shared.running.runs.lock();
        for ticket in &self.tickets {
            // Unless another run of this process works on it by now, since the lease expired.
            if running
                .get(ticket)
                .is_some_and(|told| told.same_channel(&self.told))
            {
                running.remove(ticket);
            }
        }
    }
}

impl<T: 'static> PgQueue<T> {
    /// Cancels the run of [workers](Self::workers) that works on an item, in whatever process: the item becomes a
    /// [dead letter](Self::dead_letters) with the reason `cancelled`. Returns whether somebody held it. For items that nobody holds see
    /// [`cancel`](Self::cancel).
    ///
    /// The future of a run of tasks is dropped as soon as its process is notified, and the run has failed; an item that was claimed
    /// [ahead](crate::guide::prefetch) gets no run; a run of threads is not interrupted, but can ask [`OwnedTransaction::is_cancelled`](crate::OwnedTransaction::is_cancelled). What the run has pushed
    /// and changed in its transaction is undone.
    ///
    /// A [leased](crate::Builder::leased) item is a dead letter when this returns, and its holder cannot commit, also if it is
    /// not notified, as behind a [pooler](crate::guide::poolers), and also if it is no worker. A locked one belongs to its
    /// transaction, which makes it a dead letter: if its holder is not notified, it goes on.
    ///
    /// ```no_run
    /// # async fn example(jobs: requeue_postgres::PgQueue<String>) -> Result<(), requeue_postgres::Error> {
    /// let ticket = jobs.push("a long film".into()).await?;
    /// if jobs.cancel(ticket).await?.is_none() && jobs.cancel_running(ticket).await? {
    ///     println!("the rendering was interrupted");
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Database`](crate::Error::Database), [`Error::InDoubt`](crate::Error::InDoubt) and
    /// [`Error::Pool`](crate::Error::Pool).
    #[doc(alias("abort", "kill"))]
    pub async fn cancel_running(&self, Ticket(ticket): Ticket) -> Result<bool> {
        let rows = self.core.change(|sql| &sql.cancel_held, &[&ticket]).await?;
        self.core.db.shared.running.cancel(ticket);
        Ok(count(&rows[0], 0) > 0)
    }
}
