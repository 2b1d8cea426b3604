//! A consumer: chooses the shard to take from next.
//!
//! A consumer stays on a shard until it has taken as many items as the queue's [stickiness](crate::Builder::stickiness)
//! allows, the segment that it entered there is used up, the shard is empty, or another consumer is faster. Then it
//! looks for a shard where an item is visible, compares that one with a random other, and takes from the one with the
//! older head. After every [`ROUND`]th abort it moves to the next one with items: an item that is aborted again and again does
//! not keep its consumer from other shards. The walk is the first collect of `strict.rs`, by whose rules the consumer
//! answers Empty.

use crate::raw::hold::{Hold, Room};
use crate::raw::registry::detach::Visits;
use crate::raw::registry::shards::Shards;
use crate::raw::registry::strict::Collect;
use crate::raw::shard::cursor::{Cursor, Take};
use crate::raw::shard::front::Front;
use crate::raw::shard::sink::Sink;
use crate::sync::{planted, start};
use crossbeam_utils::Backoff;

/// One of `ROUND` aborts moves to the next shard with items; one of as many choices compares with it.
const ROUND: u32 = 16;

/// Where aborts and choices begin, a multiple of a round.
#[allow(clippy::cast_possible_truncation)] // of 32 bits
const ROUNDS: u32 = start(u32::BITS) as u32 / ROUND * ROUND;

/// The number of shards that are looked at for one to compare with.
const PICKS: usize = 8;

/// How many times the [stickiness](crate::Builder::stickiness) a consumer takes if it found no other shard with items.
const ALONE: u32 = 4;

/// One consumer's choice of shards. Not shared; its owner calls [`Consumer::leave`] at the end.
pub(in crate::raw) struct Consumer<T> {
    shard: ShardCursor<T>,
    /// The number of `shard`, and its [`Shards::only_flag`].
    number: usize,
    flag: u64,
    aborts: u32,
    /// Whether the next item comes from another shard, if one has items.
    turns: bool,
    choices: u32,
    random: u32,
    visits: Visits,
}

/// The shard that a consumer is on.
pub(in crate::raw) enum ShardCursor<T> {
    /// The injector, and the position of the node that was entered.
    Injector(u64),
    Shard(Cursor<T>),
    /// A shard that stores the times of its items.
    Timed(Cursor<T>),
}

impl<T> ShardCursor<T> {
    pub(in crate::raw) fn at(shards: &Shards<T>, number: usize) -> Self {
        match number.checked_sub(1) {
            None => ShardCursor::Injector(shards.injector().entered()),
            Some(number) => {
                let cursor = Cursor::new(shards.records().get(number));
                if shards.timed() {
                    ShardCursor::Timed(cursor)
                } else {
                    ShardCursor::Shard(cursor)
                }
            }
        }
    }

    /// Takes items from the returned runs of the shard, or from its head.
    fn take<S: Sink<T>>(&mut self, shards: &Shards<T>, sink: &mut S, most: usize) -> Take {
        let take = self.take_pushed(shards, sink, most);
        if take != Take::Returned {
            return take;
        }
        let front = self.front(shards);
        match front.take(sink, most) {
            0 if front.is_detached() && !self.attach_if_ready() => {
                self.leave();
                Take::Empty
            }
            0 => self.take_behind(shards, sink, most),
            count => Take::Got(count),
        }
    }

    /// Takes items from the head after the runs were exhausted, or only bookmarks are left of them.
    #[cold]
    fn take_behind<S: Sink<T>>(&mut self, shards: &Shards<T>, sink: &mut S, most: usize) -> Take {
        match self.take_if(shards, sink, most, Front::is_passable) {
            Take::Returned => Take::Lost,
            take => take,
        }
    }

    /// An estimate of the number of items from the last seen head on.
    #[inline]
    pub(in crate::raw) fn backlog(&self, shards: &Shards<T>) -> u64 {
        match self {
            ShardCursor::Shard(cursor) | ShardCursor::Timed(cursor) => cursor.backlog(),
            ShardCursor::Injector(_) => shards.injector().backlog(),
        }
    }

    /// The same, even if the front is closed.
    #[inline]
    pub(in crate::raw) fn published(&self, shards: &Shards<T>) -> u64 {
        match self {
            ShardCursor::Shard(cursor) | ShardCursor::Timed(cursor) => cursor.published(),
            ShardCursor::Injector(_) => shards.injector().backlog(),
        }
    }

    /// Attaches a detached shard if an item is in it.
    pub(in crate::raw) fn attach_if_ready(&self) -> bool {
        let (ShardCursor::Shard(cursor) | ShardCursor::Timed(cursor)) = self else {
            return false;
        };
        let shard = cursor.shard();
        let ready = shard.backlog() > 0;
        if ready {
            shard.front().attach();
        }
        ready
    }

    /// Takes items from the head of the shard.
    pub(in crate::raw) fn take_pushed<S: Sink<T>>(
        &mut self,
        shards: &Shards<T>,
        sink: &mut S,
        most: usize,
    ) -> Take {
        self.take_if(shards, sink, most, Front::is_clear)
    }

    /// Takes items from the head of the shard if its front is `passable`.
    #[inline(always)] // the pop
    pub(in crate::raw) fn take_if<S: Sink<T>>(
        &mut self,
        shards: &Shards<T>,
        sink: &mut S,
        most: usize,
        passable: impl Fn(&Front<T>) -> bool,
    ) -> Take {
        match self {
            ShardCursor::Shard(cursor) => cursor.take_if(sink, most, passable),
            ShardCursor::Timed(cursor) => cursor.take_timed(sink, most, passable),
            ShardCursor::Injector(node) => shards.injector().take(*node, sink, most, passable),
        }
    }

    pub(in crate::raw) fn front<'s>(&self, shards: &'s Shards<T>) -> &'s Front<T> {
        match self {
            ShardCursor::Shard(cursor) | ShardCursor::Timed(cursor) => cursor.shard().front(),
            ShardCursor::Injector(_) => shards.injector().front(),
        }
    }

    /// Retries until items were taken or none is visible.
    pub(in crate::raw) fn take_retrying<S: Sink<T>>(
        &mut self,
        shards: &Shards<T>,
        sink: &mut S,
        most: usize,
    ) -> Option<usize> {
        let backoff = Backoff::new();
        loop {
            match self.take(shards, sink, most) {
                Take::Got(count) => return Some(count),
                Take::Empty => return None,
                Take::Spent => self.enter(shards),
                Take::Lost | Take::Returned => backoff.spin(),
            }
        }
    }

    /// Enters the segment at the head, until shards are compared.
    pub(in crate::raw) fn enter(&mut self, shards: &Shards<T>) {
        self.enter_for(shards, shards.stickiness());
    }

    /// Enters the segment at the head, for at most `most` positions. The injector's node is entered to its end.
    fn enter_for(&mut self, shards: &Shards<T>, most: u32) {
        match self {
            ShardCursor::Shard(cursor) | ShardCursor::Timed(cursor) => cursor.enter(most),
            ShardCursor::Injector(node) => *node = shards.injector().entered(),
        }
    }

    /// Ends the stay there: the next take decides anew.
    fn stop(&mut self) {
        if let ShardCursor::Shard(cursor) | ShardCursor::Timed(cursor) = self {
            cursor.stop();
        }
    }

    #[inline]
    pub(in crate::raw) fn leave(&mut self) {
        if let ShardCursor::Shard(cursor) | ShardCursor::Timed(cursor) = self {
            cursor.flush();
        }
    }
}

impl<T> Consumer<T> {
    /// `seed` should differ between concurrent consumers.
    pub(in crate::raw) fn new(seed: usize) -> Self {
        #[allow(clippy::cast_possible_truncation)] // any bits will do
        let random = (seed as u32).wrapping_mul(0x9E37_79B9) | 1;
        Self {
            shard: ShardCursor::Injector(0),
            number: 0,
            flag: Shards::<T>::only_flag(0),
            aborts: ROUNDS,
            turns: false,
            choices: ROUNDS,
            random,
            visits: Visits::default(),
        }
    }

    /// An estimate of the number of items in the current shard.
    #[inline]
    pub(in crate::raw) fn backlog(&self, shards: &Shards<T>) -> u64 {
        self.shard.backlog(shards)
    }

    /// Whether certainly no item is visible in any attached shard, one after the other.
    #[inline(always)] // the wait of a task
    pub(in crate::raw) fn looks_empty(&self, shards: &Shards<T>) -> bool {
        match &self.shard {
            ShardCursor::Shard(cursor) if shards.is_only(self.flag) && cursor.looks_empty() => true,
            _ => shards.look_empty(),
        }
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
        let ShardCursor::Shard(cursor) = &mut self.shard else {
            return None;
        };
        cursor.take_next()
    }

    /// The cursor on the present shard, and the hold's room for one item of it, if there is any. The injector does
    /// without.
    #[inline(always)] // the pop of a transaction
    pub(in crate::raw) fn with_room<'c, 'h>(
        &'c mut self,
        hold: &'h mut Hold<T>,
    ) -> Option<(&'c mut Cursor<T>, Room<'h, T>)> {
        match &mut self.shard {
            ShardCursor::Shard(cursor) => {
                let room = hold.room(cursor.shard().front())?;
                Some((cursor, room))
            }
            _ => None,
        }
    }

    /// Takes up to `most` items that an abort returned to the current shard into the hold, if it
    /// [adopts](Front::take_whole) them. Returns their number.
    #[inline]
    pub(in crate::raw) fn hold_returned(
        &mut self,
        shards: &Shards<T>,
        hold: &mut Hold<T>,
        most: usize,
    ) -> usize {
        let front = self.shard.front(shards);
        let most = most.min(hold.vacant_room());
        if !front.has_runs() || most == 0 || self.turns {
            return 0;
        }
        front.take_whole(hold, most)
    }

    /// Takes one item into the hold. Returns false if the queue was strictly empty.
    pub(in crate::raw) fn hold_one(&mut self, shards: &Shards<T>, hold: &mut Hold<T>) -> bool {
        if let Some((cursor, room)) = self.with_room(hold) {
            if room.take_next(cursor) {
                return true;
            }
        }
        self.search(shards, hold, 1) > 0
    }

    #[cold]
    #[inline(never)]
    fn search_one(&mut self, shards: &Shards<T>) -> Option<T> {
        let mut item = None;
        self.search(shards, &mut item, 1);
        item
    }

    /// Moves up to `most` items into the sink, and returns their number: 0 if the queue was strictly empty.
    fn take<S: Sink<T>>(&mut self, shards: &Shards<T>, sink: &mut S, most: usize) -> usize {
        if let ShardCursor::Shard(cursor) = &mut self.shard {
            if let Take::Got(count) = cursor.take(sink, most) {
                return count;
            }
        }
        self.search(shards, sink, most)
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
        let mut taken = self.take(shards, sink, most);
        while 0 < taken && taken < most {
            taken += match self.shard.take(shards, sink, most - taken) {
                Take::Got(count) => count,
                _ => match self.sweep(shards, sink, most - taken) {
                    Ok(count) => count,
                    Err(_) => break,
                },
            };
        }
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
            match self.shard.take_retrying(shards, sink, most - taken) {
                Some(count) => taken += count,
                None => break,
            }
        }
        taken
    }

    /// Counts the items moved out of the shard, so that its memory can be reclaimed.
    #[inline]
    pub(in crate::raw) fn leave(&mut self) {
        self.shard.leave();
    }

    /// Frees the memory of its empty shard, if that has no owner.
    #[inline(always)] // the wait of a task
    pub(in crate::raw) fn rest(&mut self, shards: &Shards<T>) {
        let (ShardCursor::Shard(cursor) | ShardCursor::Timed(cursor)) = &mut self.shard else {
            return;
        };
        if cursor.shard().looks_free() {
            cursor.flush();
            shards.vacate(self.number - 1);
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
        if let Take::Got(count) = self.shard.take(shards, sink, most) {
            return count;
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
            if let Some(number) = number.checked_sub(1) {
                shards.vacate(number);
            }
        }
        self.visits.count(shards, visits);
        // Renews a stale head, so that the backlog shows that nothing is left.
        if self.backlog(shards) > 0 {
            if let Some(count) = self.shard.take_retrying(shards, sink, most) {
                return Ok(count);
            }
        }
        Err(collect)
    }

    /// Enters the injector if items were put back there.
    pub(in crate::raw) fn go_to_head(&mut self, shards: &Shards<T>) {
        if !shards.injector().front().is_clear() {
            self.enter(shards, 0);
            self.turns = false;
        }
    }

    /// Makes the next take move to the next other shard with items, once in [`ROUND`] aborts. The abort itself must not
    /// allocate, as the first pin of a thread does.
    #[inline]
    pub(in crate::raw) fn aborted(&mut self, shards: &Shards<T>) {
        self.aborts = self.aborts.wrapping_add(1);
        if self.aborts % ROUND == 0 && !shards.is_only(self.flag) {
            self.turns = true;
            self.shard.stop();
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
            self.shard.enter(shards);
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
        let chosen = self.shard.take_retrying(shards, sink, most);
        chosen.or_else(|| {
            self.enter(shards, number);
            self.shard.take_retrying(shards, sink, most)
        })
    }

    /// Enters the shard with this number, or a random other one with an older head.
    fn choose(&mut self, shards: &Shards<T>, number: usize) {
        self.enter(shards, number);
        let Some((other, there)) = self.pick_other(shards) else {
            let most = shards.stickiness().saturating_mul(ALONE);
            return self.shard.enter_for(shards, most);
        };
        let here = shards.age(number).unwrap_or(u64::MAX);
        if there <= here.saturating_add(Shards::<T>::TICK) {
            self.enter(shards, other);
        }
    }

    /// The next shard from a random one on where an item is visible, other than the current one, and its age. Every
    /// [`ROUND`]th time the walk begins behind the current one: few numbers may lead to a shard if most are detached.
    fn pick_other(&mut self, shards: &Shards<T>) -> Option<(usize, u64)> {
        self.choices = self.choices.wrapping_add(1);
        let first = match self.choices % ROUND {
            0 => self.number + 1,
            _ => self.random() % shards.end(),
        };
        let mut visits = 0;
        let others = shards.round_from(first).take(PICKS);
        let others = others.filter(|&other| other != self.number);
        let mut others = others.inspect(|_| visits += 1);
        let found = others.find_map(|other| Some((other, shards.age(other)?)));
        self.visits.count(shards, visits);
        found
    }

    #[inline(always)] // a search enters all shards by it
    fn enter(&mut self, shards: &Shards<T>, number: usize) {
        if number != self.number {
            self.shard.leave();
            self.shard = ShardCursor::at(shards, number);
            self.number = number;
            self.flag = Shards::<T>::only_flag(number);
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
