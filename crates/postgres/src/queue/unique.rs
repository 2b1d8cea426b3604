//! Items that are unique by key.

use super::{micros, Builder, Core, Items};
use crate::error::{Error, Result};
use crate::transaction::Staged;
use std::collections::HashSet;
use std::mem::forget;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use std::time::Duration;

impl<T, E> Builder<T, E> {
    /// Keeps items unique by key: while an item with the key is in the queue or held, the push of another one is refused, with
    /// [`Error::Duplicate`](crate::Error::Duplicate).
    ///
    /// The key is computed once, at the push, and has 1 to 1,000 bytes. It is free again when its item is gone for good: committed
    /// ([at once](Self::unique_for), unless you say otherwise), removed, also since its time to live is over, or a dead letter. A dead letter that is [requeued](crate::DeadLetters::requeue) is not checked. A batch is refused
    /// as a whole. All processes must use the queue in the same way.
    ///
    /// A transaction checks at the push, which is refused, and again with its commit, which fails if an item with the key was pushed
    /// meanwhile. Then the transaction was aborted. A commit waits for those that run at the same time and push the same key. A pushed
    /// item costs one more row, in a table of keys; the keys that are free are forgotten within ten minutes.
    ///
    /// ```no_run
    /// # #[tokio::main] async fn main() -> Result<(), requeue_postgres::Error> {
    /// use requeue_postgres::{Error, PgQueue, Postgres};
    ///
    /// let db = Postgres::connect("postgres://app@localhost/app").await?;
    /// let builder = db.builder("reindex").unique_by(|path: &String| path.clone());
    /// let reindex: PgQueue<String> = builder.build();
    /// match reindex.push("/docs".into()).await {
    ///     Ok(_) | Err(Error::Duplicate(_)) => {} // somebody will do it
    ///     Err(error) => return Err(error),
    /// }
    /// # Ok(()) }
    /// ```
    #[doc(alias("deduplicate", "idempotent"))]
    pub fn unique_by(mut self, key: impl Fn(&T) -> String + Send + Sync + 'static) -> Self {
        self.unique = Some(Box::new(key));
        self
    }

    /// Keeps the [unique key](Self::unique_by) of an item taken for this time after its commit, by the clock of the server. By default it
    /// is free at once.
    ///
    /// An item that is removed, also since its time to live is over, or a dead letter frees its key at once. The key is computed again,
    /// when the item is delivered; if that panics, the key is free with the commit.
    ///
    /// ```no_run
    /// # #[tokio::main] async fn main() -> Result<(), requeue_postgres::Error> {
    /// use requeue_postgres::{PgQueue, Postgres};
    /// use std::time::Duration;
    ///
    /// let db = Postgres::connect("postgres://app@localhost/app").await?;
    /// let builder = db.builder("welcome").unique_by(|user: &i64| user.to_string());
    /// let welcome: PgQueue<i64> = builder.unique_for(Duration::from_secs(3600)).build(); // not again within an hour
    /// # Ok(()) }
    /// ```
    ///
    /// The commit of such an item is not written together with others, and has one more round trip.
    #[doc(alias("period", "throttle", "window"))]
    pub fn unique_for(mut self, window: Duration) -> Self {
        self.core.rules.unique_for = micros(window);
        self
    }
}

impl<T> Items<T> {
    /// The unique key of an item that is delivered. The function is user code; if it panics, there is none.
    pub(crate) fn unique_key(&self, item: &T) -> Option<String> {
        let key = self.unique.as_ref()?;
        catch_unwind(AssertUnwindSafe(|| key(item)))
            .map_err(forget)
            .ok() // its destructor may panic
    }
}

/// Fails if one of the items of a queue that are to be staged has the key of another one, of one that is staged, or of one in the queue.
pub(super) async fn refuse_duplicates(
    core: &Arc<Core>,
    before: &[Staged],
    new: &[Staged],
) -> Result<()> {
    let id = core.id().await?;
    let of_queue = before.iter().filter(|item| item.queue == id);
    let mut keys: HashSet<_> = of_queue.filter_map(|item| item.unique.as_deref()).collect();
    let new: Vec<_> = new
        .iter()
        .filter_map(|item| item.unique.as_deref())
        .collect();
    if let Some(key) = new.iter().find(|key| !keys.insert(key)) {
        return Err(Error::Duplicate((*key).into()));
    }
    let taken = core.run(|sql| &sql.find_taken, &[&new]).await?;
    let first = taken.first().map(|row| row.get::<_, &str>(0));
    first.map_or(Ok(()), |key| Err(Error::Duplicate(key.into())))
}
