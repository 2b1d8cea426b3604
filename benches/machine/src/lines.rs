//! The lines of memory, and which cores have them: MESI.
//!
//! A line that one core has is modified or exclusive, which cost the same; one that several have is shared. A core that needs a line to write it waits
//! until earlier requests are served, so that writes to one line are one after the other. Readers wait for writers only.

use crate::costs::{transfer, FIRST, KEEP};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Bytes of a line.
pub(crate) const LINE: usize = 64;

/// A set of at most 64 cores.
type Cores = u64;

#[derive(Default)]
struct Line {
    /// The cores that have the line.
    holders: Cores,
    /// The last core that has asked for it to write.
    last: Option<usize>,
    /// When that core will give it to others, and when all readers that have asked for it have it.
    free: u64,
    read: u64,
    /// How long all cores together have waited for it.
    waited: u64,
    /// Transfers for stores in buffers, which begin later.
    deferred: Vec<Transfer>,
}

/// A transfer that a core has to wait for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    line: usize,
    core: usize,
    is_write: bool,
    pub(crate) start: u64,
    pub(crate) cost: u64,
    /// Whether another core had the line.
    pub(crate) is_between_cores: bool,
}

/// All lines, by address.
#[derive(Default)]
pub(crate) struct Lines(HashMap<usize, Line, BuildHasherDefault<Mix>>);

impl Lines {
    /// Asks for the line of an address at a time. `None`: the core has it, or will have it for a store in its buffer.
    ///
    /// `jitter` makes transfers take a little longer.
    pub(crate) fn request(
        &mut self,
        address: usize,
        core: usize,
        is_write: bool,
        now: u64,
        jitter: u64,
    ) -> Option<Transfer> {
        let number = address / LINE;
        let line = self.0.entry(number).or_default();
        line.settle(now);
        let others = line.holders & !(1 << core);
        let has = line.holders != others && !(is_write && others != 0);
        if has || line.deferred.iter().any(|deferred| deferred.core == core) {
            return None;
        }
        let writes = if is_write { line.read } else { 0 };
        let start = now.max(line.free).max(writes);
        let cost = match line.last.filter(|_| start > now) {
            Some(last) => transfer(last, core),
            None => line.cost(core, is_write),
        };
        let cost = cost + jitter % (cost / 8 + 1);
        line.waited += start + cost - now;
        if is_write {
            line.free = start + cost + KEEP;
            line.last = Some(core);
        } else {
            line.read = line.read.max(start + cost);
        }
        Some(Transfer {
            line: number,
            core,
            is_write,
            start,
            cost,
            is_between_cores: others != 0 || start > now,
        })
    }

    /// How long cores have waited for the line for which they have waited longest, and for all.
    pub(crate) fn waits(&self) -> (u64, u64) {
        let waits = || self.0.values().map(|line| line.waited);
        (waits().max().unwrap_or(0), waits().sum())
    }

    /// Makes a transfer, which begins now.
    pub(crate) fn make(&mut self, transfer: Transfer) {
        let line = self.0.entry(transfer.line).or_default();
        line.settle(transfer.start);
        line.make(transfer);
    }

    /// Makes a transfer once it begins.
    pub(crate) fn defer(&mut self, transfer: Transfer) {
        let line = self.0.entry(transfer.line).or_default();
        line.deferred.push(transfer);
    }
}

impl Line {
    fn make(&mut self, transfer: Transfer) {
        let own = 1 << transfer.core;
        self.holders = if transfer.is_write {
            own
        } else {
            self.holders | own
        };
    }

    /// Makes the deferred transfers that have begun. They are in the order in which they begin.
    fn settle(&mut self, now: u64) {
        while self
            .deferred
            .first()
            .is_some_and(|first| first.start <= now)
        {
            let first = self.deferred.remove(0);
            self.make(first);
        }
    }

    /// What it takes to get the line from those that have it: a reader gets it from the nearest, a writer waits for all.
    fn cost(&self, core: usize, is_write: bool) -> u64 {
        let others = (0..64).filter(|&other| other != core && self.holders & (1 << other) != 0);
        let costs = others.map(|other| transfer(other, core));
        let cost = if is_write { costs.max() } else { costs.min() };
        cost.unwrap_or(FIRST)
    }
}

/// Spreads the numbers of lines.
#[derive(Default)]
pub(crate) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(26);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }
}
