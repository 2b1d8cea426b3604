//! Options by which a push is refused for what its item is: a duplicate, or too heavy.

use super::Builder;
use crate::order::Order;
use crate::queue::windows::hash;
use requeue::{Budget, OnDuplicate};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

impl<T: Send + 'static, O: Order<T>, C> Builder<T, O, C> {
    /// Keeps the items unique by `key`: while an item is in the queue or held, a push of another one with an equal key is
    /// refused, with [`PushError::Duplicate`](crate::PushError::Duplicate), or [replaces](Self::on_duplicate) it. By default any
    /// number of items may be equal.
    ///
    /// It means the same as in memory, see [`requeue::Builder::unique_by`]: staging takes the key, so that a commit never fails
    /// because of it. A crash never brings back a committed item whose key another one has got since. `key` is called by a
    /// push, and when the queue is opened for each item on the disk: these have their keys again. Keys are not stored, so each
    /// opening may choose others. In a queue with [pages](Self::memory) the hashes of keys are stored, so that the others need not be
    /// read: if the last items have other ones when the queue is opened, all items are read, and their hashes written. A [dead letter](crate::DurableQueue::dead_letters) has no key;
    /// [requeued](crate::DeadLetters::requeue) it may be refused, and stays a letter then.
    ///
    /// A queue that has several items with a key on the disk keeps them, since they were pushed without such keys, or one
    /// [follows](Self::on_duplicate) another one, or a crash undid the end of one: the last one has the key.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// use requeue_durable::{DuplicateOf, PushError};
    ///
    /// let mails = || store.builder("mails").unique_by(|&(user, _mail): &(u32, u32)| user);
    /// mails().build()?.push((7, 1))?;
    /// let mails = mails().build()?; // later, in another process
    /// let refused = mails.push((7, 2)).unwrap_err();
    /// assert!(matches!(refused, PushError::Duplicate((7, 2), DuplicateOf::Queued)));
    /// assert_eq!(mails.pop()?, (7, 1));
    /// mails.push((7, 2))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("dedup", "deduplication", "job_key", "idempotency"))]
    pub fn unique_by<K>(mut self, key: impl Fn(&T) -> K + Send + Sync + 'static) -> Self
    where
        K: Hash + Eq + Send + Sync + 'static,
    {
        let key = Arc::new(key);
        let hashed = Arc::clone(&key);
        self.settings.besides.hash = Some(Arc::new(move |item| hash(&hashed(item))));
        self.settings.besides.unique = Some(requeue::unique_key_of(move |item| key(item)));
        self
    }

    /// Sets what becomes of a push whose item has the [unique key](Self::unique_by) of another one. The default is to refuse it.
    ///
    /// It means the same as in memory, see [`requeue::Builder::on_duplicate`]. The row of an item that is replaced gets the new value
    /// in one write, and keeps its place, its deliveries and its times: a crash leaves one of the two. An item that follows another
    /// one has a row of its own, and follows it in the next process too. Both are in the log before anybody can take the new value;
    /// so it may be delivered before the push returns, but what that delivery commits is later in the log.
    ///
    /// An item that is [submitted](crate::Jobs::submit) to a pool is refused, too. If the queue is opened with another rule, an item that followed another one is one like the others.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// use requeue_durable::OnDuplicate;
    ///
    /// let pages = || store.builder("pages").unique_by(|&(page, _): &(u32, u32)| page);
    /// let pages = || pages().on_duplicate(OnDuplicate::Follow);
    /// let queue = pages().build()?;
    /// queue.push((7, 1))?;
    /// queue.push((7, 2))?; // replaces it
    /// let tx = queue.begin_owned();
    /// assert_eq!(*tx.pop()?, (7, 2));
    /// queue.push((7, 3))?; // follows it
    /// drop((tx, queue)); // the process ends
    /// let queue = pages().build()?;
    /// assert_eq!(queue.pop_batch(9)?, [(7, 2)]);
    /// assert_eq!(queue.pop()?, (7, 3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// [`build`](Self::build) does, if duplicates do not have to be refused, and items have [weights](Self::weigh).
    #[doc(alias("replace", "debounce", "conflict", "upsert"))]
    pub fn on_duplicate(mut self, rule: OnDuplicate) -> Self {
        self.ram = self.ram.on_duplicate(rule);
        self.settings.on_duplicate = rule;
        self
    }

    /// Keeps the [unique key](Self::unique_by) of an item taken for this time after its commit: see
    /// [`requeue::Builder::unique_for`]. By default it is free at once.
    ///
    /// That is written with the commit, by the [wall clock](crate::StoreOptions::wall_clock), so the time goes on while no process
    /// runs; within a process the [clock](Self::clock) of the queue decides. What is written is a hash of the key, by its `Hash`:
    /// another process finds keys taken that say the same to a hasher there, as numbers and strings do. A push calls `key` twice
    /// then, or once more.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// use requeue_durable::DuplicateOf;
    /// use std::time::Duration;
    ///
    /// let mails = || store.builder("mails").unique_by(|mail: &String| mail.clone());
    /// let mails = || mails().unique_for(Duration::from_secs(3600)).build();
    /// let queue = mails()?;
    /// queue.push("welcome".to_string())?;
    /// queue.pop()?;
    /// drop(queue); // the process ends
    /// let refused = mails()?.push("welcome".to_string()).unwrap_err();
    /// assert!(refused.to_string().contains("a short time ago"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("period", "throttle", "window"))]
    pub fn unique_for(mut self, window: Duration) -> Self {
        self.ram = self.ram.unique_for(window);
        self.settings.unique_for = window;
        self
    }

    /// Shares a capacity with other queues, on disk or in memory, instead of a [`capacity`](Self::capacity) of its own: see
    /// [`requeue::Builder::budget`]. If there is no room for what the queue has on the disk, it is not opened:
    /// [`StoreError::NoRoom`](crate::StoreError::NoRoom). So open all queues of a budget before the first push.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// use requeue_durable::Budget;
    ///
    /// let budget = Budget::new(1_000);
    /// let pages = store.builder("pages").weigh(Vec::len).budget(&budget).build()?;
    /// let names = store.builder("names").weigh(String::len).budget(&budget).build()?;
    /// pages.push(vec![0_u8; 996])?;
    /// names.push("page".to_string())?;
    /// assert!(names.push("other".to_string()).unwrap_err().is_full());
    /// assert_eq!(budget.free(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn budget(mut self, budget: &Budget) -> Self {
        self.ram = self.ram.budget(budget);
        self
    }

    /// Weighs items: the [capacity](Self::capacity) limits their total weight, in units of your choice, such as bytes, and not
    /// their number.
    ///
    /// It means the same as in memory, see [`requeue::Builder::weigh`]. `weigh` is called once by a push, and when the queue is
    /// opened for each item on the disk. A queue that has more on the disk keeps it, and takes as much.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// let pages = store.builder("pages").weigh(Vec::len).capacity(1_000).build()?;
    /// pages.push(vec![0_u8; 600])?;
    /// assert!(pages.push(vec![0; 600]).unwrap_err().is_full());
    /// assert!(pages.push(vec![0; 1_001]).unwrap_err().is_too_heavy());
    /// assert_eq!((pages.len(), pages.weight()), (1, 600));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("bytes", "byte budget", "semaphore"))]
    pub fn weigh(mut self, weigh: impl Fn(&T) -> usize + Send + Sync + 'static) -> Self {
        self.settings.besides.weigh = Some(Arc::new(weigh));
        self
    }
}
