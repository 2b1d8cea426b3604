//! A consumer: chooses the shard to take from next.
//!
//! A consumer stays on a shard until it has taken as many items as the queue's [stickiness](crate::Builder::stickiness)
//! allows, the segment that it entered there is used up, the shard is empty, or another consumer is faster. Then it
//! looks for a shard where an item is visible, compares that one with a random other, and takes from the one with the
//! older head, or from the other one if a consumer was faster on the present one. This is the power of two choices
//! (Mitzenmacher, 2001), with the present shard as one of the two; to compare only after several items is known from
//! the `MultiQueue` (Williams, Sanders and Dementiev, 2021). A pop that stays pays nothing: it compares its position
//! with a cached limit anyway. No shard starves: the age of a head that nobody takes stays, and those of others grow.
//! After every [`ROUND`]th abort it moves to the next one with items: an item that is aborted again and again does not
//! keep its consumer from other shards. The walk is the first collect of `strict.rs`, by whose rules the consumer
//! answers Empty.

use crate::raw::hold::Hold;
use crate::raw::memory::{drop_all, reclaim, DeliveryMeta, NumberSet};
use crate::raw::registry::detach::Visits;
use crate::raw::registry::shards::{Shards, COMMON};
use crate::raw::registry::strict::Collect;
use crate::raw::shard::{Cursor, Sink, Take};
use crate::sync::{planted, start};

/// One of `ROUND` aborts moves to the next shard with items; one of as many choices compares with it.
const ROUND: u16 = 16;

/// Where aborts and choices begin, a multiple of a round.
#[allow(clippy::cast_possible_truncation)] // of 16 bits
const ROUNDS: u16 = start(u16::BITS) as u16 / ROUND * ROUND;

/// The number of shards that are looked at for one to compare with.
const PICKS: usize = 8;

/// How many times the [stickiness](crate::Builder::stickiness) a consumer takes if it found no other shard with items, and at most
/// in batches; and how many batches.
const LONGER: u32 = 4;

/// One consumer's choice of shards. Not shared; its owner calls [`Consumer::leave`] at the end.
pub(in crate::raw) struct Consumer<T> {
    cursor: Cursor<T>,
    /// The number of the cursor's shard, and its [`NumberSet::only_flag`].
    number: usize,
    flag: u64,
    aborts: u16,
    /// Whether the next item comes from another shard, if one has items.
    turns: bool,
    /// Whether another consumer was faster: the next choice avoids this shard, so that consumers do not gather on it.
    lost: bool,
    choices: u16,
    random: u32,
    visits: Visits,
    /// The size of the batch that the present call takes, or the largest number.
    batch: u32,
}

impl<T> Consumer<T> {
    /// `seed` should differ between concurrent consumers.
    pub(in crate::raw) fn new(shards: &Shards<T>, seed: usize) -> Self {
        #[allow(clippy::cast_possible_truncation)] // any bits will do
        let random = (seed as u32).wrapping_mul(0x9E37_79B9) | 1;
        Self {
            cursor: shards.cursor(COMMON),
            number: COMMON,
            flag: NumberSet::only_flag(COMMON),
            aborts: ROUNDS,
            turns: false,
            lost: false,
            choices: ROUNDS,
            random,
            visits: Visits::default(),
            batch: 1,
        }
    }

    /// The number of the current shard, from which the last item was taken.
    #[inline]
    pub(in crate::raw) fn shard_number(&self) -> usize {
        self.number
    }

    /// The rank of the item that was [taken](Consumer::take_next) last.
    #[inline]
    pub(in crate::raw) fn last_rank(&self) -> u64 {
        self.cursor.last_rank()
    }

    /// An estimate of the number of items in the current shard.
    #[inline]
    pub(in crate::raw) fn backlog(&self) -> u64 {
        self.cursor.backlog()
    }

    /// Whether certainly no item is visible in any attached shard, one after the other.
    #[inline(always)] // the wait of a task
    pub(in crate::raw) fn looks_empty(&self, shards: &Shards<T>) -> bool {
        shards.attached().is_only(self.flag) && self.cursor.looks_empty() || shards.look_empty()
    }

    /// Takes one item. Returns `None` if the queue was strictly empty.
    #[inline(always)] // the pop
    pub(in crate::raw) fn take_one(&mut self, shards: &Shards<T>) -> Option<T> {
        match self.take_next() {
            None => self.search_one(shards),
            item => item,
        }
    }

    /// Takes the next item of the present shard if [nothing else has to be done](Cursor::take_next).
    #[inline(always)] // the pop
    pub(in crate::raw) fn take_next(&mut self) -> Option<T> {
        if self.cursor.is_timed() {
            return None;
        }
        self.cursor.take_next()
    }

    /// Takes the next item of the present shard into the hold, in the case of [`Cursor::take_next`]: it has no time, and is
    /// delivered for the first time. Calls `begin` before the claim. `None`: the hold has no room for it, and nothing was done.
    #[inline(always)] // the pop of a transaction
    pub(in crate::raw) fn hold_next(
        &mut self,
        hold: &mut Hold<T>,
        begin: impl FnOnce(),
    ) -> Option<bool> {
        if self.cursor.is_timed() || !hold.has_room(self.cursor.front().home()) {
            return None;
        }
        begin();
        let Some(item) = self.cursor.take_next() else {
            return Some(false);
        };
        // SAFETY: there is room.
        unsafe { hold.accept(item, DeliveryMeta::first(0)) };
        Some(true)
    }

    /// Takes up to `most` items that an abort returned to the current shard into the hold, if it
    /// [adopts](crate::raw::shard::front::Front::take_whole) them. Returns their number.
    #[inline]
    pub(in crate::raw) fn hold_returned(&mut self, hold: &mut Hold<T>, most: usize) -> usize {
        let front = self.cursor.front();
        let most = most.min(hold.vacant_room());
        if !front.has_runs() || most == 0 || self.turns {
            return 0;
        }
        front.take_whole(hold, most)
    }

    /// Takes one item into the hold. Returns false if the queue was strictly empty.
    pub(in crate::raw) fn hold_one(&mut self, shards: &Shards<T>, hold: &mut Hold<T>) -> bool {
        self.hold_next(hold, || ()) == Some(true) || self.search(shards, hold, 1) > 0
    }

    #[cold]
    #[inline(never)]
    fn search_one(&mut self, shards: &Shards<T>) -> Option<T> {
        let mut item = None;
        self.search(shards, &mut item, 1);
        item
    }

    /// Moves up to `most` items from as many shards as necessary into the sink, and returns their number: 0 if
    /// the queue was strictly empty.
    pub(in crate::raw) fn take_all<S: Sink<T>>(
        &mut self,
        shards: &Shards<T>,
        sink: &mut S,
        most: usize,
    ) -> usize {
        if most == 0 {
            return 0;
        }
        self.batch = u32::try_from(most).unwrap_or(u32::MAX);
        let mut taken = match self.cursor.take_pushed(sink, most) {
            Take::Got(count) => count,
            _ => self.search(shards, sink, most),
        };
        while 0 < taken && taken < most {
            taken += match self.cursor.take(sink, most - taken) {
                Take::Got(count) => count,
                _ => match self.sweep(shards, sink, most - taken) {
                    Ok(count) => count,
                    Err(_) => break,
                },
            };
        }
        self.batch = 1;
        taken
    }

    /// Moves up to `most` items of one shard into the sink, and returns their number.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(in crate::raw) fn take_shard<S: Sink<T>>(
        &mut self,
        shards: &Shards<T>,
        shard: usize,
        sink: &mut S,
        most: usize,
    ) -> usize {
        self.enter(shards, shard);
        let mut taken = 0;
        while taken < most {
            match self
                .cursor
                .take_retrying(sink, most - taken, self.quota(shards))
            {
                Some(count) => taken += count,
                None => break,
            }
        }
        taken
    }

    /// Counts the items moved out of the shard, so that its memory can be reclaimed.
    #[inline]
    pub(in crate::raw) fn leave(&mut self) {
        self.cursor.flush();
    }

    /// Frees the memory of its empty shard, if that has no owner.
    #[inline(always)] // the wait of a task
    pub(in crate::raw) fn rest(&mut self, shards: &Shards<T>) {
        if self.cursor.shard().looks_free() {
            self.cursor.flush();
            shards.vacate(self.number);
        }
    }

    /// Continues after a failed attempt, until items were taken or the queue is strictly empty.
    #[cold]
    #[inline(never)]
    fn search<S: Sink<T>>(&mut self, shards: &Shards<T>, sink: &mut S, most: usize) -> usize {
        if self.turns {
            self.turn(shards);
        }
        // The attempt may have failed because the cached head was stale; now it is current.
        match self.cursor.take(sink, most) {
            Take::Got(count) => return count,
            Take::Lost => self.lost = true,
            // Without another shard there is nothing to compare with.
            Take::Spent if shards.attached().is_only(self.flag) => {
                self.stay_alone(shards);
                if let Take::Got(count) = self.cursor.take(sink, most) {
                    return count;
                }
            }
            _ => {}
        }
        loop {
            match self.sweep(shards, sink, most) {
                Ok(count) => return count,
                Err(_) if planted!("consumer.looks-once") => return 0,
                Err(collect) if shards.collect_if_empty() == Some(collect) => return 0,
                Err(_) => {}
            }
        }
    }

    /// The first collect: visits the attached shards, from the current one on, and takes from the first one where an
    /// item is visible, or from the one that it chooses instead. `Err`: no item was visible.
    fn sweep<S: Sink<T>>(
        &mut self,
        shards: &Shards<T>,
        sink: &mut S,
        most: usize,
    ) -> Result<usize, Collect> {
        let mut collect = shards.begin_collect();
        let mut visits = 0;
        for number in shards.round_from(self.number) {
            visits += 1;
            collect.add(shards.shard_version(number));
            if !shards.looks_empty(number) {
                if let Some(count) = self.take_chosen(shards, number, sink, most) {
                    return Ok(count);
                }
            }
            shards.vacate(number);
        }
        self.visits.count(shards, visits);
        // Renews a stale head, so that the backlog shows that nothing is left.
        if self.backlog() > 0 {
            if let Some(count) = self.cursor.take_retrying(sink, most, self.quota(shards)) {
                return Ok(count);
            }
        }
        Err(collect)
    }

    /// Enters the common shard if items were put back there.
    #[inline]
    pub(in crate::raw) fn go_to_head(&mut self, shards: &Shards<T>) {
        // A consumer begins in the common shard, so it was made.
        if shards.records.get(COMMON).front().has_runs() {
            self.enter_head(shards);
        }
    }

    #[cold]
    #[inline(never)]
    fn enter_head(&mut self, shards: &Shards<T>) {
        self.enter(shards, COMMON);
        self.turns = false;
    }

    /// Makes the next take move to the next other shard with items, once in [`ROUND`] aborts. The abort itself must not
    /// allocate, as the first pin of a thread does.
    #[inline]
    pub(in crate::raw) fn aborted(&mut self, shards: &Shards<T>) {
        self.aborts = self.aborts.wrapping_add(1);
        if self.aborts % ROUND == 0 && !shards.attached().is_only(self.flag) {
            self.turns = true;
            self.cursor.stop();
        }
    }

    /// Moves to the next other shard with items.
    #[cold]
    fn turn(&mut self, shards: &Shards<T>) {
        self.turns = false;
        let mut others = shards.round_from(self.number + 1);
        let ready = |&next: &usize| next != self.number && !shards.looks_empty(next);
        if let Some(next) = others.find(ready) {
            self.enter(shards, next);
            // The next item comes from there, without a comparison.
            self.cursor.enter();
        }
    }

    /// Takes from a chosen shard, or if that is empty from the one with this number.
    fn take_chosen<S: Sink<T>>(
        &mut self,
        shards: &Shards<T>,
        number: usize,
        sink: &mut S,
        most: usize,
    ) -> Option<usize> {
        self.choose(shards, number);
        let chosen = self.cursor.take_retrying(sink, most, self.quota(shards));
        chosen.or_else(|| {
            self.enter(shards, number);
            self.cursor.take_retrying(sink, most, self.quota(shards))
        })
    }

    /// Enters the shard with this number, or a random other one with an older head.
    fn choose(&mut self, shards: &Shards<T>, number: usize) {
        self.enter(shards, number);
        let Some((other, there)) = self.pick_other(shards) else {
            return self.stay_alone(shards);
        };
        // Ages within a tick are equal: of handles that push in turn each opens a segment at nearly the same time, and the
        // consumer serves them in turn.
        let here = shards.records.get(number).age().unwrap_or(u64::MAX);
        if std::mem::take(&mut self.lost) || there <= here.saturating_add(Shards::<T>::TICK) {
            self.enter(shards, other);
        }
    }

    /// After how many items the present call compares shards. It depends on the size of the whole batch, not on what is left of it:
    /// consumers serve shards in turn, and would otherwise take more from one than from others.
    fn quota(&self, shards: &Shards<T>) -> u32 {
        let most = shards.stickiness.saturating_mul(LONGER);
        let more = self.batch - 1; // a single item is no batch
        more.saturating_mul(LONGER).clamp(shards.stickiness, most)
    }

    /// Enters the segment of the head, while no other shard is known where an item is visible.
    fn stay_alone(&mut self, shards: &Shards<T>) {
        let most = shards.stickiness.saturating_mul(LONGER);
        self.cursor.enter_for(most);
    }

    /// The next shard from a random one on where an item is visible, other than the current one, and its age. Every
    /// [`ROUND`]th time the walk begins behind the current one: few numbers may lead to a shard if most are detached.
    fn pick_other(&mut self, shards: &Shards<T>) -> Option<(usize, u64)> {
        self.choices = self.choices.wrapping_add(1);
        let first = match self.choices % ROUND {
            0 => self.number + 1,
            _ => self.random() % shards.records.len(),
        };
        let mut visits = 0;
        let others = shards.round_from(first).take(PICKS);
        let others = others.filter(|&other| other != self.number);
        let mut others = others.inspect(|_| visits += 1);
        let found = others.find_map(|other| Some((other, shards.records.get(other).age()?)));
        self.visits.count(shards, visits);
        found
    }

    #[inline(always)] // a search enters all shards by it
    fn enter(&mut self, shards: &Shards<T>, number: usize) {
        if number != self.number {
            self.cursor.flush();
            self.cursor = shards.cursor(number);
            self.number = number;
            self.flag = NumberSet::only_flag(number);
        }
    }

    /// The next number of Marsaglia's 32-bit xorshift ("Xorshift RNGs", 2003).
    fn random(&mut self) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        self.random as usize
    }
}

impl<T> Shards<T> {
    /// Unlinks the runs of empty shards: one that was used up while another one was on top of it is still linked.
    pub(super) fn unlink_runs(&self) {
        for shard in self.attached().from(0) {
            self.records.get(shard).front().take(&mut None::<T>, 1);
        }
    }
}

impl<T> Drop for Shards<T> {
    /// Drops the items; the fields then free their memory.
    fn drop(&mut self) {
        if self.is_new() {
            return;
        }
        let mut consumer = Consumer::new(self, 0);
        drop_all(|| consumer.take_one(self));
        consumer.leave();
        self.unlink_runs();
        reclaim::collect();
    }
}
