//! The places of a concurrency limit that the server has granted to this process.

use std::time::{Duration, Instant};

/// How often the server is asked for a place that is needed.
const ASK: Duration = Duration::from_millis(100);
/// How often the server is told that this process is alive, at least.
const BEAT: Duration = Duration::from_secs(1);

/// What the server is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Question {
    /// The places that this process keeps.
    pub(super) kept: u32,
    /// The places that it asks for.
    pub(super) more: u32,
}

/// What the server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// The places that this process has.
    pub(super) granted: u32,
    /// How many of them other processes are entitled to.
    pub(super) owed: u32,
}

#[derive(Debug)]
pub(super) struct Places {
    /// How long the server keeps the places of a silent process.
    term: Duration,
    /// The places of this process, until `alive_until`.
    granted: u32,
    alive_until: Instant,
    /// The items in flight.
    used: u32,
    /// The most items in flight since the last question.
    most_used: u32,
    /// The places that other processes are entitled to.
    owed: u32,
    /// The places that are asked for at once.
    batch: u32,
    /// A start was refused since a place was last available.
    refused: bool,
    /// The server is to be told of places that are given back.
    released: bool,
    next_ask: Instant,
    next_beat: Instant,
}

impl Places {
    pub(super) fn new(term: Duration, now: Instant) -> Self {
        Self {
            term,
            granted: 0,
            alive_until: now,
            used: 0,
            most_used: 0,
            owed: 0,
            batch: 1,
            refused: false,
            released: false,
            next_ask: now,
            next_beat: now,
        }
    }

    /// Takes a place; false if there is none.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let has_room = self.used < self.granted && now < self.alive_until;
        self.refused |= !has_room;
        self.used += u32::from(has_room);
        self.most_used = self.most_used.max(self.used);
        has_room
    }

    /// Frees a place. Returns whether a start may succeed that was refused.
    pub(super) fn free(&mut self) -> bool {
        self.used = self.used.saturating_sub(1);
        self.release_owed();
        self.used < self.granted && std::mem::take(&mut self.refused)
    }

    /// Gives up free places that other processes are entitled to.
    fn release_owed(&mut self) {
        let released = self.owed.min(self.granted.saturating_sub(self.used));
        self.granted -= released;
        self.owed -= released;
        self.released |= released > 0;
    }

    /// Whether the task has to act before its next look.
    pub(super) fn is_pressing(&self) -> bool {
        self.refused || self.released
    }

    /// How long the server need not be asked; `None`: until a start is refused.
    pub(super) fn wait(&self, now: Instant) -> Option<Duration> {
        let beats = (self.granted + self.used > 0).then_some(self.next_beat);
        let asks = self.refused.then_some(self.next_ask);
        let tells = self.released.then_some(now);
        let next = beats.into_iter().chain(asks).chain(tells).min();
        next.map(|next| next.saturating_duration_since(now))
    }

    /// What to ask the server. Places that were not used since the last beat are given back.
    pub(super) fn question(&mut self, now: Instant) -> Question {
        if now >= self.alive_until {
            self.granted = self.used; // the server has given the others away
        }
        if now >= self.next_beat && !self.refused {
            self.granted = self.granted.min(self.most_used).max(self.used);
            self.batch = 1;
        }
        if now >= self.next_beat {
            self.most_used = self.used;
        }
        self.released = false;
        Question {
            kept: self.granted,
            more: if self.refused { self.batch } else { 0 },
        }
    }

    /// The server has answered a question that was asked at `asked`, or failed. Returns whether a start may succeed that was refused.
    pub(super) fn answered(
        &mut self,
        question: Question,
        answer: Option<Answer>,
        asked: Instant,
    ) -> bool {
        self.next_beat = asked + BEAT.min(self.term / 3);
        self.next_ask = asked + BEAT;
        let Some(Answer { granted, owed }) = answer else {
            return false;
        };
        let more = granted.saturating_sub(question.kept);
        let released = question.kept.saturating_sub(self.granted); // since the question
        self.granted = self.granted.saturating_add(more);
        self.owed = owed.saturating_sub(released);
        self.alive_until = asked + self.term;
        self.next_ask = asked + ASK;
        if more > 0 {
            self.batch = more.saturating_mul(2);
            self.next_ask = asked; // there may be others
        }
        self.release_owed();
        self.used < self.granted && std::mem::take(&mut self.refused)
    }
}

#[cfg(test)]
mod tests;
