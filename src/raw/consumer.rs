//! A consumer: chooses the lane to take from next.
//!
//! It stays on a lane until the segment that it entered there is used up, the lane is empty, or
//! another consumer is faster. Then it compares its lane with a random other one and takes the
//! older head; every [`ROUND`]th time it goes to the next lane in turn, so that none starves. Aborts
//! count like choices: what is aborted again and again does not keep its consumer from other lanes.
//! What it does not find that way it looks for on every lane, and answers Empty only by the rules
//! of `strict.rs`.

use super::cursor::{Cursor, Take};
use super::front::Front;
use super::lanes::Lanes;
use super::sink::Sink;
use super::strict::Marks;
use crate::sync::planted;
use crossbeam_utils::Backoff;

/// One in so many choices goes to the next lane in turn.
const ROUND: u32 = 16;

/// After so many numbers of lanes that are not in use those that are get counted.
const PICKS: u32 = 8;

/// One consumer's choice of lanes. Not shared; whoever has it calls [`Consumer::leave`] at the end.
pub(super) struct Consumer<T> {
    lane: Lane<T>,
    /// The number of `lane`.
    number: usize,
    choices: u32,
    random: u32,
}

/// A lane that a consumer is on.
pub(super) enum Lane<T> {
    /// The common shard, and which of its nodes was entered.
    Common(u64),
    Shard(Cursor<T>),
    /// A shard whose items have times.
    Timed(Cursor<T>),
}

impl<T> Lane<T> {
    pub(super) fn at(lanes: &Lanes<T>, number: usize) -> Self {
        match number.checked_sub(1) {
            None => Lane::Common(lanes.common().entered()),
            Some(number) => {
                let cursor = Cursor::new(lanes.shards().get(number));
                if lanes.timed() {
                    Lane::Timed(cursor)
                } else {
                    Lane::Shard(cursor)
                }
            }
        }
    }

    /// Returned runs of the lane, and what its head gives.
    fn take<S: Sink<T>>(&mut self, lanes: &Lanes<T>, sink: &mut S, most: usize) -> Take {
        let take = self.take_pushed(lanes, sink, most);
        if take != Take::Returned {
            return take;
        }
        let front = self.front(lanes);
        match front.take(sink, most) {
            0 if front.is_closed() => {
                self.leave();
                Take::Empty
            }
            0 => Take::Lost,
            count => Take::Got(count),
        }
    }

    /// How many items there may be more than were seen last.
    #[inline]
    pub(super) fn backlog(&self, lanes: &Lanes<T>) -> u64 {
        match self {
            Lane::Shard(cursor) | Lane::Timed(cursor) => cursor.backlog(),
            Lane::Common(_) => lanes.common().backlog(),
        }
    }

    /// What the head of the lane gives.
    pub(super) fn take_pushed<S: Sink<T>>(
        &mut self,
        lanes: &Lanes<T>,
        sink: &mut S,
        most: usize,
    ) -> Take {
        match self {
            Lane::Shard(cursor) => cursor.take(sink, most),
            Lane::Timed(cursor) => cursor.take_timed(sink, most),
            Lane::Common(node) => lanes.common().take(*node, sink, most),
        }
    }

    fn front<'l>(&self, lanes: &'l Lanes<T>) -> &'l Front<T> {
        match self {
            Lane::Shard(cursor) | Lane::Timed(cursor) => cursor.shard().front(),
            Lane::Common(_) => lanes.common().front(),
        }
    }

    /// Takes until something is got or nothing is visible.
    fn insist<S: Sink<T>>(&mut self, lanes: &Lanes<T>, sink: &mut S, most: usize) -> Option<usize> {
        let backoff = Backoff::new();
        loop {
            match self.take(lanes, sink, most) {
                Take::Got(count) => return Some(count),
                Take::Empty => return None,
                Take::Spent => self.enter(lanes),
                Take::Lost | Take::Returned => backoff.spin(),
            }
        }
    }

    /// Enters the segment at the head.
    pub(super) fn enter(&mut self, lanes: &Lanes<T>) {
        match self {
            Lane::Shard(cursor) | Lane::Timed(cursor) => cursor.enter(),
            Lane::Common(node) => *node = lanes.common().entered(),
        }
    }

    pub(super) fn leave(&mut self) {
        if let Lane::Shard(cursor) | Lane::Timed(cursor) = self {
            cursor.flush();
        }
    }
}

impl<T> Consumer<T> {
    /// `seed`: different for consumers that work side by side.
    pub(super) fn new(seed: usize) -> Self {
        #[allow(clippy::cast_possible_truncation)] // any bits will do
        let random = (seed as u32).wrapping_mul(0x9E37_79B9) | 1;
        Self {
            lane: Lane::Common(0),
            number: 0,
            choices: 0,
            random,
        }
    }

    /// How many items there may be in the lane that it is on.
    pub(super) fn backlog(&self, lanes: &Lanes<T>) -> u64 {
        self.lane.backlog(lanes)
    }

    /// Takes one item. `None`: the queue was strictly empty.
    #[inline(always)]
    #[allow(clippy::inline_always)] // the pop
    pub(super) fn take_one(&mut self, lanes: &Lanes<T>) -> Option<T> {
        if let Lane::Shard(cursor) = &mut self.lane {
            let mut item = None;
            if let Take::Got(_) = cursor.take(&mut item, 1) {
                return item;
            }
        }
        self.search_one(lanes)
    }

    #[cold]
    #[inline(never)]
    fn search_one(&mut self, lanes: &Lanes<T>) -> Option<T> {
        let mut item = None;
        self.search(lanes, &mut item, 1);
        item
    }

    /// Moves up to `most` items into the sink. 0: the queue was strictly empty.
    #[inline(always)]
    #[allow(clippy::inline_always)] // the pop
    pub(super) fn take<S: Sink<T>>(
        &mut self,
        lanes: &Lanes<T>,
        sink: &mut S,
        most: usize,
    ) -> usize {
        if let Lane::Shard(cursor) = &mut self.lane {
            if let Take::Got(count) = cursor.take(sink, most) {
                return count;
            }
        }
        self.search(lanes, sink, most)
    }

    /// Fills the sink with up to `most` items, from as many lanes as it takes. 0: the queue was
    /// strictly empty.
    pub(super) fn take_all<S: Sink<T>>(
        &mut self,
        lanes: &Lanes<T>,
        sink: &mut S,
        most: usize,
    ) -> usize {
        if most == 0 {
            return 0;
        }
        let mut taken = self.take(lanes, sink, most);
        while 0 < taken && taken < most {
            taken += match self.lane.take(lanes, sink, most - taken) {
                Take::Got(count) => count,
                _ => match self.look_around(lanes, sink, most - taken) {
                    Ok(count) => count,
                    Err(_) => break,
                },
            };
        }
        taken
    }

    /// Fills the sink with up to `most` items of one lane.
    pub(super) fn take_lane<S: Sink<T>>(
        &mut self,
        lanes: &Lanes<T>,
        lane: usize,
        sink: &mut S,
        most: usize,
    ) -> usize {
        self.enter(lanes, lane);
        let mut taken = 0;
        while taken < most {
            match self.lane.insist(lanes, sink, most - taken) {
                Some(count) => taken += count,
                None => break,
            }
        }
        taken
    }

    /// Says what was moved out of the lane, so that its memory can go back.
    pub(super) fn leave(&mut self) {
        self.lane.leave();
    }

    /// Goes on after a failed attempt, until something is got or the queue is strictly empty.
    #[cold]
    #[inline(never)]
    fn search<S: Sink<T>>(&mut self, lanes: &Lanes<T>, sink: &mut S, most: usize) -> usize {
        // The attempt may have failed because the head was seen too long ago; now it is known.
        if let Take::Got(count) = self.lane.take(lanes, sink, most) {
            return count;
        }
        loop {
            match self.look_around(lanes, sink, most) {
                Ok(count) => return count,
                Err(_) if planted!("consumer.looks-once") => return 0,
                Err(marks) if lanes.marks_if_empty() == Some(marks) => return 0,
                Err(_) => {}
            }
        }
    }

    /// Chooses a lane, and tries all of them from that one on.
    fn look_around<S: Sink<T>>(
        &mut self,
        lanes: &Lanes<T>,
        sink: &mut S,
        most: usize,
    ) -> Result<usize, Marks> {
        if !self.go_round(lanes) && lanes.end() > 1 {
            self.choose(lanes);
        }
        self.sweep(lanes, sink, most)
    }

    /// Tries every lane in use, from the present one on. `Err`: nothing was visible in any of them, and
    /// the marks read before.
    fn sweep<S: Sink<T>>(
        &mut self,
        lanes: &Lanes<T>,
        sink: &mut S,
        most: usize,
    ) -> Result<usize, Marks> {
        let mut marks = lanes.no_marks();
        for number in lanes.round_from(self.number) {
            marks.add(lanes.mark(number));
            if number == self.number || !lanes.looks_empty(number) {
                self.enter(lanes, number);
                if let Some(count) = self.lane.insist(lanes, sink, most) {
                    return Ok(count);
                }
            }
            if let Some(number) = number.checked_sub(1) {
                lanes.vacate(number);
            }
        }
        Err(marks)
    }

    /// Enters the common shard if items were put back there.
    pub(super) fn go_to_head(&mut self, lanes: &Lanes<T>) {
        if !lanes.common().front().is_clear() {
            self.enter(lanes, 0);
        }
    }

    /// Takes note of an abort.
    pub(super) fn aborted(&mut self, lanes: &Lanes<T>) {
        self.go_round(lanes);
    }

    /// Goes to the next lane if it is time to: true if so.
    #[inline]
    fn go_round(&mut self, lanes: &Lanes<T>) -> bool {
        self.choices = self.choices.wrapping_add(1);
        let due = self.choices % ROUND == 0;
        if due {
            self.go_on(lanes);
        }
        due
    }

    #[cold]
    fn go_on(&mut self, lanes: &Lanes<T>) {
        let next = lanes.next_from(self.number + 1);
        self.enter(lanes, next.unwrap_or(0));
    }

    /// Chooses between the present lane and another one, where there are several.
    fn choose(&mut self, lanes: &Lanes<T>) {
        let other = self.pick_other(lanes);
        match (lanes.age(self.number), lanes.age(other)) {
            (Some(here), Some(there)) if there < here => self.enter(lanes, other),
            (None, Some(_)) => self.enter(lanes, other),
            _ => {}
        }
    }

    /// A random lane in use other than the present one, if there is one.
    fn pick_other(&mut self, lanes: &Lanes<T>) -> usize {
        let end = lanes.end();
        for _ in 0..PICKS {
            let other = (self.number + 1 + self.random() % (end - 1)) % end;
            if lanes.is_in_use(other) {
                return other;
            }
        }
        let steps = self.random() % lanes.count();
        lanes.in_use().nth(steps).unwrap_or(0)
    }

    #[inline(always)]
    #[allow(clippy::inline_always)] // a search goes through all lanes by it
    fn enter(&mut self, lanes: &Lanes<T>, number: usize) {
        if number != self.number {
            self.lane.leave();
            self.lane = Lane::at(lanes, number);
            self.number = number;
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
