//! The cores, their clocks, and the threads that run on them, each on one of its own.
//!
//! The thread whose clock is earliest runs next. Before each event it lets those run whose clocks are earlier; so events happen in the
//! order of time. A store does not wait for its line, except if the store buffer is full; a locked operation and a
//! fence wait until the buffer is empty.

use crate::costs;
use crate::lines::{Lines, Transfer, LINE};
use requeue::machine::Event;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::time::Duration;

/// Threads start within this time.
const START: u64 = 100 * costs::NANO;

/// Lines of the reclaimer: the epoch, the queue of garbage, and one for each thread. No allocation is there.
const EPOCH: usize = LINE;
const GARBAGE: usize = 3 * LINE;
const PARTICIPANTS: usize = 16 * LINE;

#[derive(Default)]
struct Core {
    clock: u64,
    /// Time that interrupts have taken from the thread since it ran.
    debt: u64,
    /// When the last store in the buffer reaches memory, and when each does.
    drained: u64,
    stores: VecDeque<u64>,
    /// The entry of the agenda that continues the thread.
    entry: u64,
    is_asleep: bool,
    is_done: bool,
    /// Whether the next sleep ends at once.
    token: bool,
    pins: u32,
    /// The number of pins that are not over, and the epoch of the first of them.
    pinned: u32,
    epoch: u64,
}

/// A simulated machine.
#[derive(Default)]
pub(crate) struct Machine {
    cores: Vec<Core>,
    pub(crate) lines: Lines,
    /// Times, entries and threads; only the last entry of a thread counts.
    agenda: BinaryHeap<Reverse<(u64, u64, usize)>>,
    entries: u64,
    pub(crate) current: usize,
    /// The threads that wait for locks, by address.
    waiting: HashMap<usize, VecDeque<usize>>,
    epoch: u64,
    random: u64,
    pub(crate) events: u64,
    pub(crate) transfers: u64,
}

impl Machine {
    pub(crate) fn new(threads: usize, seed: u64) -> Self {
        let mut machine = Self {
            random: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            ..Self::default()
        };
        machine.cores.resize_with(threads, Core::default);
        for thread in 0..threads {
            let start = machine.random() % START;
            machine.schedule(thread, start);
            machine.cores[thread].clock = start;
        }
        machine
    }

    /// Marsaglia's 64-bit xorshift.
    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random >> 8
    }

    pub(crate) fn now(&self) -> u64 {
        self.cores[self.current].clock
    }

    fn schedule(&mut self, thread: usize, at: u64) {
        self.entries += 1;
        self.cores[thread].entry = self.entries;
        self.agenda.push(Reverse((at, self.entries, thread)));
    }

    /// Chooses the thread that runs next. `None`: all are done.
    ///
    /// # Panics
    ///
    /// All threads that are left sleep.
    pub(crate) fn next(&mut self) -> Option<usize> {
        while let Some(Reverse((at, entry, thread))) = self.agenda.pop() {
            let core = &mut self.cores[thread];
            if core.entry != entry || core.is_done {
                continue;
            }
            let debt = std::mem::take(&mut core.debt);
            core.clock = core.clock.max(at) + debt;
            if debt > 0 {
                let clock = core.clock;
                self.schedule(thread, clock);
                continue;
            }
            core.is_asleep = false;
            self.current = thread;
            return Some(thread);
        }
        let asleep = |thread: &usize| !self.cores[*thread].is_done;
        let asleep: Vec<_> = (0..self.cores.len()).filter(asleep).collect();
        assert!(asleep.is_empty(), "threads sleep for ever: {asleep:?}");
        None
    }

    pub(crate) fn end(&mut self) {
        self.cores[self.current].is_done = true;
    }

    /// Whether another thread has to run before the current one goes on, which is then scheduled.
    pub(crate) fn must_wait(&mut self) -> bool {
        let now = self.now();
        let is_earlier = |Reverse((at, ..)): &Reverse<(u64, u64, usize)>| *at < now;
        let waits = self.agenda.peek().is_some_and(is_earlier);
        if waits {
            self.schedule(self.current, now);
        }
        waits
    }

    pub(crate) fn pass(&mut self, time: u64) {
        self.cores[self.current].clock += time;
    }

    /// Waits until the store buffer is empty.
    pub(crate) fn drain(&mut self) {
        let core = &mut self.cores[self.current];
        core.clock = core.clock.max(core.drained);
        core.stores.clear();
    }

    /// Asks for a line, for which the thread waits from then on. `None`: the core has it.
    pub(crate) fn request(&mut self, address: usize, is_write: bool) -> Option<Transfer> {
        self.events += 1;
        let (now, jitter) = (self.now(), self.random());
        let transfer = self
            .lines
            .request(address, self.current, is_write, now, jitter);
        self.cores[self.current].clock =
            transfer.map_or(now + costs::HIT, |transfer| transfer.start);
        transfer
    }

    /// Gets the line for which the thread has waited.
    pub(crate) fn get(&mut self, transfer: Transfer) {
        self.lines.make(transfer);
        self.transfers += u64::from(transfer.is_between_cores);
        self.pass(transfer.cost);
    }

    /// Stores by the store buffer.
    pub(crate) fn store(&mut self, address: usize) {
        let before = self.now();
        let transfer = self.request(address, true);
        let mut end = before + costs::HIT;
        if let Some(transfer) = transfer {
            self.lines.defer(transfer);
            self.transfers += u64::from(transfer.is_between_cores);
            end = transfer.start + transfer.cost;
        }
        let core = &mut self.cores[self.current];
        core.drained = core.drained.max(end);
        core.clock = before + costs::HIT;
        while core.stores.front().is_some_and(|&end| end <= core.clock) {
            core.stores.pop_front();
        }
        core.stores.push_back(core.drained);
        if core.stores.len() > costs::BUFFER {
            core.clock = core
                .stores
                .pop_front()
                .map_or(core.clock, |end| end.max(core.clock));
        }
    }

    /// Falls asleep, for at most a time. False: a wake-up has come before.
    pub(crate) fn sleep(&mut self, span: Option<Duration>) -> bool {
        self.events += 1;
        if std::mem::take(&mut self.cores[self.current].token) {
            self.pass(costs::LOCKED);
            return false;
        }
        self.pass(costs::SLEEP);
        self.cores[self.current].is_asleep = true;
        if let Some(span) = span {
            let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
            let ticks = nanos.saturating_mul(costs::NANO);
            let end = self.now().saturating_add(ticks);
            self.schedule(self.current, end);
        }
        true
    }

    /// Wakes a thread, or makes its next sleep end at once.
    pub(crate) fn wake(&mut self, thread: usize) {
        self.events += 1;
        if !self.cores[thread].is_asleep {
            self.cores[thread].token = true;
            return self.pass(costs::LOCKED);
        }
        self.pass(costs::WAKE);
        let at = self.now() + costs::WAKING;
        self.cores[thread].is_asleep = false;
        self.schedule(thread, at);
    }

    /// Falls asleep until a lock is released.
    pub(crate) fn wait_for_lock(&mut self, address: usize) {
        self.pass(costs::SLEEP);
        self.cores[self.current].is_asleep = true;
        let waiting = self.waiting.entry(address).or_default();
        waiting.push_back(self.current);
    }

    /// Wakes the first thread that waits for a lock.
    pub(crate) fn release(&mut self, address: usize) {
        let waiting = self.waiting.get_mut(&address);
        if let Some(thread) = waiting.and_then(VecDeque::pop_front) {
            self.wake(thread);
        }
    }

    /// Interrupts all cores that run a thread.
    pub(crate) fn interrupt_others(&mut self) {
        self.events += 1;
        self.pass(costs::MEMBARRIER);
        for (number, core) in self.cores.iter_mut().enumerate() {
            if number != self.current && !core.is_asleep && !core.is_done {
                core.debt += costs::INTERRUPT;
            }
        }
    }
}

/// What the reclaimer does at an event, by `crossbeam-epoch`: it makes these accesses one after the other.
impl Machine {
    fn participant(thread: usize) -> usize {
        PARTICIPANTS + 2 * LINE * thread
    }

    pub(crate) fn pin(&mut self) -> Vec<Event> {
        let (current, epoch) = (self.current, self.epoch);
        let core = &mut self.cores[current];
        core.pinned += 1;
        if core.pinned > 1 {
            return Vec::new();
        }
        core.epoch = epoch;
        core.pins += 1;
        let mut accesses = vec![
            Event::Read(EPOCH),
            Event::Locked(Self::participant(current)),
        ];
        if core.pins.is_multiple_of(costs::PINS) {
            accesses.extend(self.advance());
        }
        accesses
    }

    pub(crate) fn unpin(&mut self) -> Vec<Event> {
        let core = &mut self.cores[self.current];
        core.pinned -= 1;
        let is_over = core.pinned == 0;
        let own = Event::Write(Self::participant(self.current));
        is_over.then_some(own).into_iter().collect()
    }

    /// Looks at all participants, and advances the epoch unless one is pinned in an earlier one.
    pub(crate) fn advance(&mut self) -> Vec<Event> {
        let mut accesses = vec![Event::Locked(GARBAGE), Event::Fence];
        for (number, core) in self.cores.iter().enumerate() {
            accesses.push(Event::Read(Self::participant(number)));
            if core.pinned > 0 && core.epoch != self.epoch {
                return accesses;
            }
        }
        self.epoch += 1;
        accesses.push(Event::Write(EPOCH));
        accesses
    }
}
