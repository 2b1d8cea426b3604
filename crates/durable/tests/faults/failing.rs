//! Writes and syncs that fail.

use crate::load::{check, Loaded};
use crate::shim::{put_between, shim};
use crate::{child, count, open};
use requeue_durable::{Durability, DurableQueue, StoreError};
use std::path::Path;
use std::time::Duration;

/// The child under load ends by itself when commits fail. What was acknowledged is there.
#[test]
fn all_that_was_acknowledged_survives_failing_calls() {
    let Some(shim) = shim() else {
        return;
    };
    let mut random = crate::random("failing");
    for _ in 0..count("DURABLE_FAILURES", 10) {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("store");
        drop(open(&store).unwrap());
        let variable = random.pick(&["SHIM_FAIL_WRITE", "SHIM_FAIL_SYNC"]);
        let at = 20 + random.below(300);
        let child = Loaded::start((&store, "load"), 0, |command| {
            put_between(command, shim, &store);
            command.env(variable, at.to_string());
        });
        let acknowledged = child.kill_when_quiet();
        println!(
            "failing: {variable}={at}, {} acknowledgements",
            acknowledged.count
        );
        check(&store, 0, &acknowledged);
    }
}

/// The child.
pub(crate) fn run(path: &Path) {
    #[cfg(feature = "metrics")]
    let number = observed(path);
    #[cfg(not(feature = "metrics"))]
    let number = fail(path);
    println!("poisoned {number}");
}

/// As `fail`, with a recorder: the store is poisoned from the first failure on.
#[cfg(feature = "metrics")]
fn observed(path: &Path) -> u64 {
    let log = crate::recorder::Log::default();
    let number = metrics::with_local_recorder(&log, || fail(path));
    let poisoned = log.of("requeue_disk_poisoned store");
    // Once at the start, then once for each group of commits, and once for the one that failed.
    let groups = log.of("requeue_disk_group_commits store").len();
    assert_eq!(poisoned.len(), 1 + groups + 1);
    let (last, healthy) = poisoned.split_last().expect("a group");
    assert!(*last > 0.5, "{poisoned:?}");
    assert!(healthy.iter().all(|value| *value < 0.5), "{poisoned:?}");
    number
}

/// Commits until that fails, and checks what it sees then. Returns the number of commits.
fn fail(path: &Path) -> u64 {
    let store = open(path).expect("the store opens");
    let queue: DurableQueue<u64> = store.queue("numbers").expect("the queue opens");
    let mut handle = queue.handle();
    let mut number = 0;
    let error = loop {
        let tx = handle.begin();
        if number > 0 {
            assert_eq!(*tx.pop().expect("an item"), number - 1);
        }
        tx.push(number).expect("a push");
        match tx.commit() {
            Ok(_) => number += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::Poisoned(_)), "{error:?}");
    assert!(matches!(store.failure(), Some(StoreError::Poisoned(_))));
    // The items of the failed transaction are at the head, and what it pushed is gone.
    assert_eq!(queue.len(), 1);
    let tx = handle.begin();
    assert_eq!(*tx.pop().expect("an item"), number - 1);
    tx.abort();
    assert_eq!(queue.len(), 1);
    let buffered = Durability::Buffered {
        at_most: Duration::from_secs(1),
    };
    let tx = handle.begin();
    tx.push(number).expect("a push");
    assert!(matches!(
        tx.commit_with(buffered),
        Err(StoreError::Poisoned(_))
    ));
    assert!(handle.push(number).is_err());
    assert!(store.flush().is_err());
    assert!(store.queue::<u64>("others").is_err());
    assert_eq!(queue.len(), 1);
    assert!(matches!(queue.clear_all(), Err(StoreError::Poisoned(_))));
    assert_eq!(queue.len(), 1);
    number
}

#[test]
fn a_failed_write_poisons_the_store_until_it_is_opened_again() {
    let Some(shim) = shim() else {
        return;
    };
    for variable in ["SHIM_FAIL_WRITE", "SHIM_FAIL_SYNC"] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store");
        drop(open(&path).unwrap());
        let mut command = child("fail", &path);
        put_between(&mut command, shim, &path);
        let output = command.env(variable, "40").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let number = text.lines().find_map(|line| line.strip_prefix("poisoned "));
        let errors = String::from_utf8_lossy(&output.stderr);
        let number: u64 = number
            .unwrap_or_else(|| panic!("{errors}{text}"))
            .parse()
            .unwrap();
        assert!(number > 0);
        let store = open(&path).unwrap();
        let queue: DurableQueue<u64> = store.queue("numbers").unwrap();
        // Whether the commit that failed is on the disk is unknown.
        let last = queue.pop().unwrap();
        assert!(last == number - 1 || last == number, "{last} of {number}");
        assert!(queue.is_empty());
        queue.push(7).unwrap();
    }
}
