//! A history of several processes that are killed: each records what it did, and the records are compared with what was committed.
//!
//! `REQUEUE_STRESS=500` runs for about an hour.

pub(crate) mod check;
pub(crate) mod process;
pub(crate) mod record;

use crate::base::{Db, Mode, LONG};
use crate::child::{name, Child};
use check::Checker;
use process::{jobs, Done, Job, TERM};
use requeue_postgres::{PgItem, PgQueue};
use std::path::Path;
use tempfile::TempDir;
use tokio::time::timeout;

const PROCESSES: usize = 3;
/// Commits between two faults, at most.
const BETWEEN: usize = 40;
const FAULTS: usize = 12;

/// How much longer than usual.
fn stress() -> usize {
    let factor = std::env::var("REQUEUE_STRESS").ok();
    factor.map_or(1, |factor| factor.parse().expect("a number"))
}

struct Processes<'d> {
    db: &'d Db,
    mode: Mode,
    records: &'d Path,
    running: Vec<Child>,
    /// How many were started.
    started: usize,
}

impl Processes<'_> {
    /// Starts a process, with a number of its own.
    fn start(&mut self) {
        let record = self.records.join(self.started.to_string());
        let argument = record.to_str().expect("a name");
        self.running
            .push(Child::start(self.db, self.mode, "history", argument));
        self.started += 1;
    }

    fn kill_one(&mut self) {
        let victim = fastrand::usize(..self.running.len());
        drop(self.running.swap_remove(victim));
    }
}

/// Takes what was done, at least `count`.
async fn take_done(db: &Db, count: usize, all: &mut Vec<Done>) {
    let done: PgQueue<Done> = db.queue("done");
    let wanted = all.len() + count;
    while all.len() < wanted {
        let mut tx = db.begin().await.unwrap();
        let first = tx
            .pop_wait(&done, LONG)
            .await
            .unwrap()
            .expect("work goes on");
        all.push(first.into_inner());
        let more = tx.pop_batch(&done, 1000).await.unwrap();
        all.extend(more.into_iter().map(PgItem::into_inner));
        tx.commit().await.unwrap();
    }
}

async fn history(mode: Mode) {
    let db = Db::with_clock().await;
    let folder = TempDir::new().unwrap();
    let mut all = Vec::new();
    let mut processes = Processes {
        db: &db,
        mode,
        records: folder.path(),
        running: Vec::new(),
        started: 0,
    };
    (0..PROCESSES).for_each(|_| processes.start());
    let mut cut = 0;
    for _ in 0..FAULTS * stress() {
        take_done(&db, fastrand::usize(1..BETWEEN), &mut all).await;
        match fastrand::u8(..4) {
            0 => cut += db.terminate(&name(&db, "history")).await,
            1 => db.advance(TERM).await, // all leases expire
            _ => {
                processes.kill_one();
                processes.start();
            }
        }
    }
    let started = processes.started;
    drop(processes);
    db.until_gone(&name(&db, "history")).await;
    db.advance(TERM * 2).await;
    let killed = u32::try_from(started).unwrap();
    let rest = timeout(LONG * u32::try_from(stress()).unwrap(), rest(&db, mode)).await;
    all.append(&mut rest.expect("nothing is held for ever"));
    Checker::read(folder.path()).check(&all, mode, i64::from(killed) + cut);
    println!(
        "{mode:?}: {} items, {killed} processes, {cut} sessions terminated",
        all.len()
    );
}

/// What was done, and what is left to do when no process runs.
async fn rest(db: &Db, mode: Mode) -> Vec<Done> {
    let (done, jobs): (PgQueue<Done>, PgQueue<Job>) = (db.queue("done"), jobs(db, mode));
    let mut tx = db.begin().await.unwrap();
    let mut all: Vec<Done> = Vec::new();
    let items = tx.pop_batch(&done, usize::MAX >> 1).await.unwrap();
    all.extend(items.into_iter().map(PgItem::into_inner));
    loop {
        let items = tx.pop_batch(&jobs, 1000).await.unwrap();
        all.extend(items.iter().map(Done::of));
        if items.is_empty() {
            tx.commit().await.unwrap();
            let stats = jobs.stats().await.unwrap();
            assert_eq!(stats.dead, 0);
            // While the task in the background takes back an expired lease, its row is locked for this pop.
            if stats.ready + stats.delayed + stats.held == 0 {
                break;
            }
            tx = db.begin().await.unwrap();
        }
    }
    all
}

#[tokio::test]
async fn locked_items_of_killed_processes() {
    history(Mode::Locked).await;
}

#[tokio::test]
async fn leased_items_of_killed_processes() {
    history(Mode::Leased).await;
}

#[tokio::test]
async fn prefetched_items_of_killed_processes() {
    history(Mode::Prefetched).await;
}
