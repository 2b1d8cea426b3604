//! Threads that commit in all ways at the same time.

use super::*;
use futures::FutureExt;
use std::path::Path;
use std::sync::mpsc;

const HOUR: Duration = Duration::from_secs(3600);

fn open(path: &Path) -> Log {
    let directory = Directory::enter(path, false).unwrap();
    Log::new(
        Disk::open(
            directory,
            &crate::StoreOptions::new().memtable(1 << 20).reserve(0),
        )
        .unwrap(),
        1 << 20,
    )
    .unwrap()
}

fn commit(log: &Log, durability: Durability) {
    log.commit(&mut [Batch::default()], durability).unwrap();
}

#[test]
fn a_commit_that_may_be_lost_for_less_brings_the_sync_forward() {
    let files = tempfile::tempdir().unwrap();
    let log = open(files.path());
    let sync_by = |at_most| {
        commit(&log, Durability::Buffered { at_most });
        log.inner.state.lock().sync_by.unwrap().0
    };
    let first = sync_by(HOUR);
    assert_eq!(sync_by(2 * HOUR), first);
    assert!(sync_by(HOUR / 2) < first);
}

/// A commit that is not woken would make the test hang.
#[test]
fn every_commit_ends_when_its_group_is_synced() {
    threads_commit(4);
}

/// The writer has nothing to do, so it wakes nobody by chance.
#[test]
fn synced_commits_write_each_other() {
    threads_commit(2);
}

/// Threads commit in turn in the first `ways` of four ways: synced, synced again, asynchronous, buffered.
fn threads_commit(ways: u64) {
    const THREADS: u64 = 4;
    const COMMITS: u64 = 200;
    let files = tempfile::tempdir().unwrap();
    let log = open(files.path());
    let (send, written) = mpsc::channel();
    let asynchronous = || {
        let send = send.clone();
        let then = Box::new(move |written: Result<(), StoreError>| send.send(written).unwrap());
        log.add_then(&mut Batch::default(), Urgency::Sync, then);
    };
    let synced = || {
        let before = log.inner.state.lock().number;
        commit(&log, Durability::Synced);
        assert!(log.inner.state.lock().synced >= before);
    };
    let work = |thread| {
        for number in 0..COMMITS {
            match (thread + number) % ways {
                2 => asynchronous(),
                3 => commit(&log, Durability::Buffered { at_most: HOUR }),
                _ => synced(),
            }
        }
    };
    thread::scope(|scope| {
        for number in 0..THREADS {
            let work = &work;
            scope.spawn(move || work(number));
        }
    });
    log.reach(Urgency::Sync).unwrap();
    let state = log.inner.state.lock();
    assert_eq!((state.synced + 1, state.group.waiters), (state.number, 0));
    drop(state);
    drop(send);
    let written: Vec<_> = written.iter().collect();
    let expected = if ways > 2 {
        THREADS * COMMITS / ways
    } else {
        0
    };
    assert_eq!(written.len() as u64, expected);
    assert!(written.iter().all(Result::is_ok));
}

#[test]
fn opening_and_inspecting_write_nothing_and_visit_no_other_queues() {
    let files = tempfile::tempdir().unwrap();
    let store = crate::Store::open(files.path()).unwrap();
    let names: Vec<_> = (0..50).map(|number| format!("queue {number}")).collect();
    for name in &names {
        store
            .queue::<u32>(name)
            .unwrap()
            .push_batch([1, 2])
            .unwrap();
    }
    drop(store);
    let store = crate::Store::open(files.path()).unwrap();
    let log = &store.inner.log;
    let visited = || log.disk().catalog().queues.visited();
    let (groups, before) = (log.groups(), visited());
    let open = names.iter().map(|name| store.queue::<u32>(name).unwrap());
    let queues: Vec<_> = open.collect();
    let inspector = store.inspector();
    assert!(inspector.dead_letters("queue 7").unwrap().is_empty());
    store.flush().unwrap();
    assert_eq!((log.groups(), visited()), (groups, before));
    assert_eq!(inspector.queues().unwrap().len(), 50);
    assert_eq!((log.groups(), visited()), (groups, before + 50));

    for queue in &queues {
        queue.push(3).unwrap();
        queue.pop_batch(2).unwrap();
    }
    drop(queues);
    assert!(store.remove("queue 8").unwrap());
    assert_eq!((log.groups(), visited()), (groups + 101, before + 50));
}

/// What waits for a write is content with it; what waits for the disk is not.
#[test]
fn a_write_is_synced_only_if_a_commit_waits_for_that() {
    let files = tempfile::tempdir().unwrap();
    let log = open(files.path());
    log.write(&mut Batch::default()).unwrap();
    assert!(log.is_written() && !log.is_on_disk());
    log.settle().unwrap();
    assert!(!log.is_on_disk());
    log.reach(Urgency::Sync).unwrap();
    assert!(log.is_on_disk());
    let groups = log.groups();
    log.reach(Urgency::Sync).unwrap();
    log.settle().unwrap();
    assert_eq!(log.groups(), groups);
}

/// Those who wait for a write and those who wait for the disk share groups, and all of them are woken.
#[test]
fn writes_and_commits_write_each_other() {
    const WRITES: u64 = 300;
    let files = tempfile::tempdir().unwrap();
    let log = open(files.path());
    thread::scope(|scope| {
        for number in 0..4 {
            let log = &log;
            scope.spawn(move || {
                for _ in 0..WRITES {
                    match number % 2 {
                        0 => log.write(&mut Batch::default()).unwrap(),
                        _ => commit(log, Durability::Synced),
                    }
                }
            });
        }
    });
    assert!(log.is_written());
}

/// Each of two commits has room, and both have not.
#[test]
fn a_group_that_is_being_written_takes_room() {
    let files = tempfile::tempdir().unwrap();
    let store = crate::StoreOptions::new().reserve(1 << 10);
    let jobs = store.open(files.path()).unwrap().queue("jobs").unwrap();
    let log = jobs.shared.log();
    let push = || {
        let tx = jobs.begin_owned();
        tx.push(vec![7_u8; 100_000]).unwrap();
        tx
    };
    let (first, second) = (push(), push());
    log.disk().pretend_free(300_000);
    // Each group needs them, so that none ends.
    let catalog = log.disk().catalog();
    thread::scope(|scope| {
        let first = scope.spawn(move || first.commit().map(drop));
        while log.inner.state.lock().in_flight == 0 {
            thread::yield_now();
        }
        let mut second = Box::pin(second.commit_async());
        let refused = second.as_mut().now_or_never();
        drop(catalog);
        assert!(
            matches!(refused, Some(Err(StoreError::DiskFull))),
            "{refused:?}"
        );
        first.join().unwrap().unwrap();
    });
    assert_eq!(jobs.len(), 1);
}

#[test]
fn a_poisoned_store_ends_all_workers() {
    let files = tempfile::tempdir().unwrap();
    let store = crate::Store::open(files.path()).unwrap();
    let jobs = store.builder("jobs").paused().build().unwrap();
    jobs.push(7).unwrap();
    let workers = crate::Workers::builder(&jobs).threads(2);
    let workers = workers.run(|_job, _tx| Ok::<_, ()>(()));
    let poison = StoreError::Poisoned("no such device".into());
    store.inner.log.inner.state.lock().failed = Some(poison);
    jobs.resume();
    let report = workers.join();
    assert!(report.failed > 0 && report.done == 0 && report.left == 1);
    assert!(report.error.unwrap().contains("no such device"));
}
