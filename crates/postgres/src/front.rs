//! Fronts: where the claims of a queue begin to look.
//!
//! An item that is taken leaves a dead row, and a dead entry of each index. The server removes them, unless a snapshot is open that may see
//! the row: then each claim passes over all that were taken since. A front spares it that.
//!
//! The front of a queue and a priority is an id: no ready row that is not `late` has a lower one, now or ever. From the front on, claims read
//! the index of the order; before it only the index of late rows. Which rows can come to be before a front?
//!
//! - Those that are pushed. A push draws an id of the sequence and writes a row that is not late, in one statement. Its transaction has
//!   locked the sequence since before it drew the id, and until it ends. So
//!   1. an id is drawn that is above all earlier ones: the proposal;
//!   2. then, who has locked the sequence: the writers;
//!   3. when all of them have ended, a new snapshot sees each row below the proposal that is not late, unless it will never be there. The
//!      front is the lowest id that this snapshot sees, or the proposal.
//! - All others are late, by the default of the column, wherever their ids are: delayed items that are due, those that are given back,
//!   retried, recovered, replaced, moved to the tail or to another priority, dead letters that are requeued, and whatever programs
//!   of version 4 write.
//! - An item held by a lock is a row whose deletion is not committed: the snapshot sees it, and the front does not pass it.
//!
//! A front stays true, so each process keeps its own in memory, and nothing is to be told to others. Only a server that was started again may
//! draw ids anew, of a copy that had not all of them: a claim says for which start of the server its fronts are.
//!
//! A process looks for fronts after each [`STEP`] of ids, and uses them while a look without them takes [`LONG_LOOK`]: dead rows that
//! nobody may see are removed anyway.

use crate::background::Task;
use crate::connect::{Param, Params, Shared};
use crate::error::Result;
use crate::item::Record;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};
use std::time::SystemTime;
use tokio::sync::Notify;

/// How far the ids of a priority go between two looks for its front, and how many items this process takes.
const STEP: i64 = 1000;
const TAKEN: u32 = 100;
/// In microseconds.
const LONG_LOOK: i64 = 200;
/// After this number of looks for fronts it is asked whether they are needed.
const ASK: u32 = 64;
/// The priorities of a queue that have fronts: each is a look of its own.
const PRIORITIES: usize = 16;
/// Above all priorities.
const NO_PRIORITY: i32 = 65_536;

/// The fronts that a process knows.
#[derive(Debug, Default)]
pub(crate) struct Fronts {
    queues: Mutex<HashMap<i32, Queue>>,
    task: Task,
}

#[derive(Debug, Default)]
struct Queue {
    /// By priority.
    places: BTreeMap<i32, Place>,
    /// Of which start of the server the fronts are.
    server: Option<SystemTime>,
    proposal: Option<Proposal>,
    /// Whether claims use the fronts.
    used: bool,
    looks: u32,
}

/// How far a priority has come.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// The front.
    low: i64,
    /// The greatest id that was taken, and that at the last look for the front.
    last: i64,
    looked: i64,
    /// Items that were taken since then.
    taken: u32,
}

impl Place {
    fn is_far(&self) -> bool {
        self.last - self.looked >= STEP && self.taken >= TAKEN
    }
}

#[derive(Clone, Debug)]
struct Proposal {
    below: i64,
    writers: Vec<String>,
}

/// The ranges of a claim, in their order: priorities, fronts, the next priorities; and the start of the server.
pub(crate) struct Ranges(Vec<i32>, Vec<i64>, Vec<i32>, SystemTime);

impl Ranges {
    pub(crate) fn params(&self) -> [&dyn Param; 4] {
        [&self.0, &self.1, &self.2, &self.3]
    }
}

impl Fronts {
    /// Where a claim of the queue begins, if not at the start.
    pub(crate) fn ranges(&self, queue: i32) -> Option<Ranges> {
        let queues = self.queues.lock();
        let queue = queues.get(&queue).filter(|queue| queue.used)?;
        let places = queue.places.iter().filter(|(_, place)| place.low > 0);
        let (mut priorities, mut lows) = (vec![-1], vec![0]);
        for (priority, place) in places {
            priorities.push(*priority);
            lows.push(place.low);
        }
        let mut next = priorities[1..].to_vec();
        next.push(NO_PRIORITY);
        Some(Ranges(priorities, lows, next, queue.server?))
    }

    /// The queues that have come far.
    fn far(&self) -> Vec<i32> {
        let is_far = |queue: &Queue| queue.places.values().any(Place::is_far);
        let queues = self.queues.lock();
        let far = queues.iter().filter(|(_, queue)| is_far(queue));
        far.map(|(id, _)| *id).collect()
    }
}

impl Shared {
    /// Items of a queue were taken, in the order of their ids.
    pub(crate) fn took_in_order(self: &Arc<Self>, queue: i32, records: &[Record]) {
        let mut queues = self.fronts.queues.lock();
        let queue = queues.entry(queue).or_default();
        let mut far = false;
        for record in records {
            let known = queue.places.len();
            if known < PRIORITIES || queue.places.contains_key(&record.priority) {
                let place = queue.places.entry(record.priority).or_default();
                place.last = place.last.max(record.id);
                place.taken = place.taken.saturating_add(1);
                far |= place.is_far();
            }
        }
        drop(queues);
        if far {
            self.fronts.task.start(self, look);
            self.fronts.task.nudge();
        }
    }

    /// Looks for the fronts of all queues that have come far.
    async fn look_for_fronts(self: &Arc<Self>) -> Result<()> {
        let far = self.fronts.far();
        for queue in far {
            if self.needs_fronts(queue).await? {
                self.move_fronts(queue).await?;
            }
        }
        Ok(())
    }

    /// Whether looks without fronts take long. The priorities have been looked at.
    async fn needs_fronts(self: &Arc<Self>, queue: i32) -> Result<bool> {
        let ask = self.with_fronts(queue, |of| {
            for place in of.places.values_mut() {
                (place.looked, place.taken) = (place.last, 0);
            }
            of.looks = of.looks.wrapping_add(1);
            !of.used || of.looks % ASK == 0
        });
        if ask {
            let rows = self.run_aside(&self.sql.time_to_look, &[&queue]).await?;
            let is_long = rows[0].get::<_, i64>(0) >= LONG_LOOK;
            self.with_fronts(queue, |of| of.used = is_long);
            return Ok(is_long);
        }
        Ok(true)
    }

    /// Moves the fronts of a queue to a proposal whose writers have ended.
    async fn move_fronts(self: &Arc<Self>, queue: i32) -> Result<()> {
        let proposal = match self.with_fronts(queue, |of| of.proposal.clone()) {
            Some(proposal) => proposal,
            None => self.propose(queue).await?,
        };
        let known = self.with_fronts(queue, |of| of.places.clone());
        let priorities: Vec<i32> = known.keys().copied().collect();
        let lows: Vec<i64> = known.values().map(|place| place.low).collect();
        let writers: Vec<&str> = proposal.writers.iter().map(|writer| &**writer).collect();
        let params: Params<'_> = &[&queue, &proposal.below, &writers, &priorities, &lows];
        let found = self.run_aside(&self.sql.find_fronts, params).await?;
        let Some(lows) = found[0].get::<_, Option<Vec<i64>>>(0) else {
            return Ok(()); // they have not: it stays
        };
        self.with_fronts(queue, |of| {
            of.proposal = None;
            for (priority, low) in priorities.iter().zip(lows) {
                of.places.entry(*priority).or_default().low = low;
            }
        });
        Ok(())
    }

    async fn propose(self: &Arc<Self>, queue: i32) -> Result<Proposal> {
        let rows = self.run_aside(&self.sql.propose_front, &[]).await?;
        let (below, writers, server) = (rows[0].get(0), rows[0].get(1), rows[0].get(2));
        let proposal = Proposal { below, writers };
        self.with_fronts(queue, |of| {
            if of.server != Some(server) {
                of.places.values_mut().for_each(|place| place.low = 0);
                of.server = Some(server);
            }
            of.proposal = Some(proposal.clone());
        });
        Ok(proposal)
    }

    fn with_fronts<R>(&self, queue: i32, then: impl FnOnce(&mut Queue) -> R) -> R {
        then(self.fronts.queues.lock().entry(queue).or_default())
    }
}

async fn look(shared: Weak<Shared>, nudged: Arc<Notify>) {
    loop {
        nudged.notified().await;
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let _ = shared.look_for_fronts().await; // otherwise after another step
    }
}
