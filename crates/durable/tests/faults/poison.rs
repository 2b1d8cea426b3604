//! A job that kills its process.

use crate::{child, count, open};
use requeue_durable::{Cause, DurableQueue, Store};
use std::path::Path;
use std::process::{abort, Stdio};

const ROUND: &str = "DURABLE_ROUND";

fn queue(store: &Store) -> DurableQueue<String> {
    let queue = store.builder("jobs").max_attempts(3).build();
    queue.expect("the queue opens")
}

/// The child: takes the job, and dies.
pub(crate) fn run(path: &Path) {
    let store = open(path).expect("the store opens");
    let queue = queue(&store);
    let tx = queue.begin_owned();
    let Ok(job) = tx.pop() else {
        return;
    };
    assert_eq!(*job, "poison");
    if count(ROUND, 0).is_multiple_of(2) {
        // Otherwise the mark may be written or not.
        store.flush().expect("a flush");
    }
    abort();
}

#[test]
fn a_job_that_kills_its_process_becomes_a_dead_letter() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = open(&path).unwrap();
    let jobs = queue(&store);
    jobs.push("poison".into()).unwrap();
    jobs.push("good".into()).unwrap();
    drop((jobs, store));
    for round in 0..6 {
        let store = open(&path).unwrap();
        let jobs = queue(&store);
        if !jobs.dead_letters().is_empty() {
            break;
        }
        assert_eq!(jobs.len(), 2);
        drop((jobs, store));
        let mut child = child("poison", &path);
        let status = child.env(ROUND, round.to_string()).stderr(Stdio::null());
        assert!(!status.status().unwrap().success(), "it died");
    }
    let store = open(&path).unwrap();
    let jobs = queue(&store);
    let letters = jobs.dead_letters().all().unwrap();
    let [letter] = &*letters else {
        panic!("{letters:?}");
    };
    assert_eq!((letter.item.as_str(), letter.attempts), ("poison", 3));
    assert_eq!(letter.reason, Cause::Crashed);
    assert_eq!(jobs.pop().unwrap(), "good");
}
