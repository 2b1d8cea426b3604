//! Items that are unique by key.

use super::{micros, Builder, Core, Items};
use crate::error::{Error, Result};
use crate::transaction::Staged;
use requeue::OnDuplicate;
use std::collections::HashSet;
use std::mem::forget;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use std::time::Duration;

impl<T, E> Builder<T, E> {
    /// Keeps items unique by key: while an item with the key is in the queue or held, the push of another one is refused, with
    /// [`Error::Duplicate`](crate::Error::Duplicate), or [replaces it](Self::on_duplicate).
    ///
    /// The key is computed once, at the push, and has 1 to 1,000 bytes. It is free again when its item is gone for good: committed
    /// ([at once](Self::unique_for), unless you say otherwise), removed, also since its time to live is over, or a dead letter. A
    /// dead letter that is [requeued](crate::DeadLetters::requeue) is not checked. A batch is refused as a whole. All processes
    /// must use the queue in the same way.
    ///
    /// Unless you [say otherwise](Self::on_duplicate), a transaction checks at the push, which is refused, and again with its
    /// commit, which fails if an item with the key was pushed meanwhile. Then the transaction was aborted. A commit waits for those
    /// that run at the same time and push the same key. A pushed item costs one more row, in a table of keys; the keys that are
    /// free are forgotten within ten minutes.
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

    /// Sets what becomes of a push whose item has the [unique key](Self::unique_by) of another one. The default is to refuse it.
    ///
    /// An item that is ready or delayed can be [replaced](OnDuplicate::Replace): it gets the pushed value, and stays in its place,
    /// with its priority, its times, its attempts, and its ticket, which the push returns. One that is held can be
    /// [followed](OnDuplicate::Follow): the pushed item counts as delayed until the held one is gone for good, and is ready then,
    /// at the place of its ticket. Until then further pushes replace it, and nothing that removes items removes it.
    ///
    /// The rule is that of all pushes: alone, in a batch, with a time, or by a transaction, whose commit applies it. So a push of a
    /// transaction asks nobody, and the commit fails with [`Error::Duplicate`] only if the key [stays taken](Self::unique_for), or the
    /// other item is held and cannot be followed. What the transaction holds itself, and ends, does not count. Two items of a key in one
    /// transaction are refused.
    ///
    /// An item that is leased [ahead](Self::prefetch) is held. A ready one whose row is locked counts as held, also if it is just being
    /// removed.
    ///
    /// ```no_run
    /// # #[tokio::main] async fn main() -> Result<(), requeue_postgres::Error> {
    /// use requeue_postgres::{OnDuplicate, PgQueue, Postgres};
    ///
    /// let db = Postgres::connect("postgres://app@localhost/app").await?;
    /// let builder = db.builder("index").unique_by(|(page, _): &(String, u32)| page.clone());
    /// let index: PgQueue<(String, u32)> = builder.on_duplicate(OnDuplicate::Follow).build();
    /// index.push(("news".into(), 1)).await?;
    /// index.push(("news".into(), 2)).await?; // replaces version 1
    /// let mut tx = db.begin().await?;
    /// if let Some(page) = tx.pop(&index).await? {
    ///     index.push(("news".into(), 3)).await?; // comes when this one is done
    ///     println!("version {}", page.1);
    ///     tx.commit().await?;
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// Commits with such pushes are not written together with others, and have one more round trip, which locks the keys. Programs of
    /// an earlier version make ready at once what follows.
    #[doc(alias("replace", "debounce", "conflict", "upsert"))]
    pub fn on_duplicate(mut self, rule: OnDuplicate) -> Self {
        self.core.rules.on_duplicate = rule;
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

/// Fails if one of the items that are to be staged has the unique key of another one, or of one that is staged.
pub(super) fn require_distinct(before: &[Staged], new: &[Staged]) -> Result<()> {
    if new.iter().all(|item| item.unique.is_none()) {
        return Ok(());
    }
    let mut keys: HashSet<_> = before.iter().filter_map(Staged::unique_key).collect();
    let again = new
        .iter()
        .filter_map(Staged::unique_key)
        .find(|key| !keys.insert(*key));
    again.map_or(Ok(()), |(_, key)| Err(Error::Duplicate(key.into())))
}

/// Fails if one of the items that are to be staged has the key of one in the queue, unless the commit knows what to do then.
pub(super) async fn refuse_duplicates(core: &Arc<Core>, new: &[Staged]) -> Result<()> {
    if core.rules.on_duplicate != OnDuplicate::Refuse {
        return Ok(());
    }
    let keys: Vec<_> = new
        .iter()
        .filter_map(|item| item.unique.as_deref())
        .collect();
    let taken = core.run(|sql| &sql.find_taken, &[&keys]).await?;
    let first = taken.first().map(|row| row.get::<_, &str>(0));
    first.map_or(Ok(()), |key| Err(Error::Duplicate(key.into())))
}
