//! What a handle tells others of its open transaction, and its leases.

use super::{address_of, Side};
use crate::order::{EntryOf, Order, StoredOf};
use crate::policy::lease::Lost;
use crate::policy::telemetry::Event;
use crate::policy::watch::Post;
use crate::raw::{Entry, Seat, Spot, Stored, Tag};
use crate::sync::{lock, step};
use std::collections::HashSet;

impl<T, O: Order<T>> Side<T, O> {
    /// Takes note that the transaction holds something from now on.
    pub(super) fn note_begin(&self) {
        if let Some(post) = &self.post {
            post.begin(self.shared.time.stamp());
        }
    }

    /// Takes note of an item that the transaction has taken: the only one that it holds, or not.
    pub(super) fn note(&self, stored: &StoredOf<T, O>, only: bool, tag: impl FnOnce() -> Tag) {
        let Some(post) = &self.post else {
            return;
        };
        let (shared, tag) = (&self.shared, tag());
        if only {
            self.note_begin();
        }
        shared.tell(|| Event::Delivered {
            attempts: tag.attempts,
            waited: shared
                .time
                .stamped(tag.since)
                .map(|_| shared.time.age(tag.since)),
        });
        if let Some(lease) = &shared.lease {
            let (now, until) = (shared.time.now(), shared.time.after(lease.term));
            let address = address_of(&stored.item);
            let item = Stored {
                item: (lease.copy)(&stored.item),
                meta: stored.meta,
            };
            lock(&post.book).add(address, Entry { item, tag }, now, until);
            let is_news = shared.agenda.plan(until);
            if is_news {
                shared.agenda.call_reserve();
            }
            let news = usize::from(is_news);
            step!("leases.plans-unsaid", shared.ready().published(news));
        }
    }

    /// Takes note that a transaction has ended that held something.
    pub(crate) fn note_end(&self) {
        if let Some(post) = &self.post {
            let shared = &self.shared;
            shared.tell(|| Event::Released {
                held: shared.time.age(post.since()),
            });
        }
    }

    /// The post, if items are leased.
    fn lessee(&self) -> Option<&Post<StoredOf<T, O>>> {
        let post = self.post.as_ref()?;
        self.shared.lease.as_ref().map(|_| &**post)
    }

    /// Whether there is more to a commit than the lanes and the permits.
    #[inline]
    pub(crate) fn is_guarded(&self) -> bool {
        self.guarded.get() != 0
    }

    /// Starts the terms of all leases anew.
    pub(crate) fn renew(&self) -> Result<(), Lost> {
        let (Some(post), Some(lease)) = (self.lessee(), &self.shared.lease) else {
            return Ok(());
        };
        let until = self.shared.time.after(lease.term);
        lock(&post.book).renew(until)
    }

    /// Makes sure that nothing of the transaction is taken away any more, unless something was.
    pub(crate) fn close_book(&self) -> Result<(), Lost> {
        self.lessee()
            .map_or(Ok(()), |post| lock(&post.book).close())
    }

    /// Ends the lease of an item, and returns the copy; [`Lost`], if it was taken away before.
    pub(super) fn end_lease(&self, address: usize) -> Result<Option<EntryOf<T, O>>, Lost> {
        self.lessee()
            .map_or(Ok(None), |post| lock(&post.book).remove(address))
    }

    /// Ends all leases of a transaction that was committed, and returns the copies, which are to be
    /// dropped.
    pub(crate) fn end_leases(&self) -> Vec<EntryOf<T, O>> {
        self.lessee()
            .map_or_else(Vec::new, |post| lock(&post.book).end().0)
    }

    /// Ends all leases of a transaction that is aborted, and returns what is to be dropped: the copies,
    /// and those of its items that others have.
    pub(crate) fn part_with_lost(&self, seat: &mut Seat<StoredOf<T, O>>) -> Vec<EntryOf<T, O>> {
        let Some(post) = self.lessee() else {
            return Vec::new();
        };
        let (mut parted, lost) = lock(&post.book).end();
        if lost.is_empty() {
            return parted;
        }
        self.forget_counted(lost.len());
        let lost: HashSet<_> = lost.into_iter().collect();
        let mut spot = Spot::default();
        while let Some(entry) = seat.remove_next(&mut spot, |stored, _| {
            lost.contains(&address_of(&stored.item))
        }) {
            parted.push(entry);
        }
        parted
    }
}
