//! The model of a handle's transaction and its leases.

use super::item::{Mark, Source};
use super::ops::SLOTS;
use super::order::Order;
use super::settings::Ticks;
use requeue::Reason;

/// The names of handles.
pub(crate) type Name = &'static str;

/// A delivery to a transaction, which may get the same item again after it lost it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) mark: Mark,
    number: usize,
}

/// A handle and its transaction.
#[derive(Debug, Default)]
pub(crate) struct Work {
    pub(super) name: Option<Name>,
    /// The items in the hold, including lost ones.
    pub(super) held: usize,
    pub(super) staged: usize,
    /// Permits in addition to those of the held items.
    pub(super) extra: usize,
    /// The peeked item, and the one that followed it.
    pub(super) peeked: Option<(Mark, Option<Mark>)>,
    /// The time at which it took the first held item.
    pub(super) since: Ticks,
    leased: Vec<Leased>,
    /// Lost items that are still in the hold.
    pub(super) lost: Vec<Held>,
    has_lost: bool,
    /// The shard that the handle has acquired, if it has pushed an item.
    shard: Option<usize>,
}

#[derive(Debug)]
struct Leased {
    held: Held,
    taken: Ticks,
    until: Ticks,
}

impl Work {
    /// Whether it has a permit for one more staged item, or for one less held item.
    pub(super) fn has_permit(&self) -> bool {
        self.staged < self.held + self.extra
    }

    /// It needs one more permit.
    fn take_permit(&mut self) {
        self.extra += usize::from(!self.has_permit());
    }

    /// Items that only this transaction has.
    pub(super) fn own(&self) -> usize {
        self.held - self.lost.len() + usize::from(self.peeked.is_some())
    }

    /// Whether the transaction can still produce ready items.
    pub(super) fn is_open(&self) -> bool {
        self.own() + self.staged > 0
    }
}

impl Order {
    pub(super) fn work(&self, source: Source) -> &Work {
        self.open.get(&source).expect("a handle")
    }

    fn work_mut(&mut self, source: Source) -> &mut Work {
        self.open.get_mut(&source).expect("a handle")
    }

    /// A handle is created; it gets the lowest free number.
    pub(crate) fn join(&mut self, source: Source, name: Option<Name>) {
        let free = (0..=SLOTS * 2).find(|number| !self.by_number.contains_key(number));
        self.by_number.insert(free.expect("few handles"), source);
        self.checks_returned |= name.is_some();
        let work = Work {
            name,
            ..Work::default()
        };
        self.open.insert(source, work);
    }

    pub(crate) fn has_joined(&self, source: Source) -> bool {
        self.open.contains_key(&source)
    }

    pub(crate) fn quit(&mut self, source: Source) {
        self.by_number.retain(|_, other| *other != source);
        self.open.remove(&source);
    }

    /// The number of the shard of a source, the lowest one that was free when it was first needed.
    pub(super) fn number_shard(&mut self, source: Source) -> usize {
        if source == self.injector {
            return 0;
        }
        let taken: Vec<_> = self.open.values().filter_map(|work| work.shard).collect();
        let work = self.work_mut(source);
        let free = (1..=SLOTS * 2 + 1).find(|shard| !taken.contains(shard));
        work.shard = work.shard.or(free);
        work.shard.expect("a shard")
    }

    /// The transaction of this source holds an item.
    pub(crate) fn hold_in(&mut self, source: Source, mark: Mark) -> Held {
        let (taken, term) = (self.now, self.settings.lease);
        self.holds += 1;
        let held = Held {
            mark,
            number: self.holds,
        };
        let work = self.work_mut(source);
        work.held += 1;
        work.extra = work.extra.min(work.staged.saturating_sub(work.held));
        if work.held == 1 {
            work.since = taken;
        }
        work.leased.extend(term.map(|term| Leased {
            held,
            taken,
            until: taken + term,
        }));
        held
    }

    pub(crate) fn stage_in(&mut self, source: Source, mark: Mark) {
        self.make(mark);
        self.enrol(mark);
        self.number_shard(source);
        let work = self.work_mut(source);
        work.take_permit();
        work.staged += 1;
    }

    /// The transaction peeks at an item.
    pub(crate) fn peek(&mut self, source: Source, mark: Mark) {
        let follower = self.take(mark);
        let now = self.now;
        let work = self.work_mut(source);
        work.peeked = Some((mark, follower));
        if work.held == 0 {
            work.since = now;
        }
    }

    /// The transaction has put its peeked item back, if any.
    pub(crate) fn put_back(&mut self, source: Source) {
        if let Some((mark, follower)) = self.work_mut(source).peeked.take() {
            self.held -= 1;
            let (card, shard) = (self.card(mark), self.fact(mark).shard);
            self.stock.put_back(card, shard, follower);
        }
    }

    /// The transaction holds its peeked item. Returns the number of the attempt.
    pub(crate) fn hold_peeked(&mut self, source: Source) -> u32 {
        let (mark, _) = self.work_mut(source).peeked.take().expect("a peek");
        self.fact(mark).failures + 1
    }

    /// The transaction of this source has ended. Returns the lost items, and the number of copies.
    pub(crate) fn end(&mut self, source: Source) -> (Vec<Held>, usize) {
        self.put_back(source);
        let work = self.work_mut(source);
        let (name, shard) = (work.name, work.shard);
        let ended = std::mem::take(work);
        (work.name, work.shard) = (name, shard);
        (ended.lost, ended.leased.len())
    }

    /// A held item leaves the transaction to be delivered later: false if it is lost, so that it stays.
    pub(crate) fn retry_in(&mut self, source: Source, held: Held, delay: Option<Ticks>) -> bool {
        let dies = self.is_on_last(held.mark);
        let work = self.work_mut(source);
        let is_lost = work.lost.contains(&held);
        if !is_lost || !dies {
            work.take_permit(); // that of the item, if it dies
        }
        if is_lost {
            return false;
        }
        work.held -= 1;
        work.leased.retain(|leased| leased.held != held);
        self.retry(held.mark, delay);
        true
    }

    /// Whether the transaction has lost an item.
    pub(crate) fn has_lost(&self, source: Source) -> bool {
        self.work(source).has_lost
    }

    /// Renews the leases: false if the transaction has lost an item.
    pub(crate) fn renew(&mut self, source: Source) -> bool {
        let until = self.now + self.settings.lease.unwrap_or(0);
        let work = self.work_mut(source);
        if !work.has_lost {
            for leased in &mut work.leased {
                leased.until = leased.until.max(until);
            }
        }
        !work.has_lost
    }

    pub(super) fn leases(&self) -> impl Iterator<Item = Ticks> + '_ {
        let leased = self.open.values().flat_map(|work| &work.leased);
        leased.map(|leased| leased.until)
    }

    pub(super) fn end_leases(&mut self) {
        let now = self.now;
        for source in self.by_number.clone().into_values() {
            self.take_away(source, |leased| leased.until <= now);
        }
    }

    /// The handles of this name lose the items that they took before. Returns how many items become ready.
    pub(crate) fn recover(&mut self, name: Name, before: Ticks) -> usize {
        let mut ready = 0;
        for source in self.by_number.clone().into_values() {
            if self.work(source).name == Some(name) {
                ready += self.take_away(source, |leased| leased.taken < before);
            }
        }
        ready
    }

    fn take_away(&mut self, source: Source, is_over: impl Fn(&Leased) -> bool) -> usize {
        let work = self.work_mut(source);
        let leased = std::mem::take(&mut work.leased);
        let (over, kept) = leased.into_iter().partition(is_over);
        work.leased = kept;
        let over = over
            .iter()
            .map(|leased: &Leased| leased.held)
            .collect::<Vec<_>>();
        work.has_lost |= !over.is_empty();
        work.lost.extend(&over);
        self.held -= over.len();
        self.expired += over.len();
        let marks = over.into_iter().map(|held| held.mark);
        let alive = marks.filter(|&mark| !self.fail(mark, Reason::Expired));
        let alive: Vec<_> = alive.collect();
        let ready = alive.len();
        self.put_at_head(&alive);
        self.spill();
        ready
    }
}
