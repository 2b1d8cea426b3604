use crate::{
    commit_all, Codec, CodecError, Durability, DurableQueue, OnDuplicate, Store, Transaction,
    Workers,
};
use futures::executor::block_on;
use requeue::Backoff;
use std::sync::mpsc::channel;
use std::time::Duration;
use tempfile::TempDir;

const HOUR: Duration = Duration::from_secs(3600);

/// A queue with three items.
fn jobs(files: &TempDir) -> (Store, DurableQueue<u32>) {
    let store = Store::open(files.path()).unwrap();
    let jobs = store.builder("jobs").backoff(Backoff::fixed(HOUR));
    let jobs = jobs.max_attempts(9).build().unwrap();
    jobs.push_batch([1, 2, 3]).unwrap();
    (store, jobs)
}

type Tx = Transaction<'static, u32>;

/// The ways in which a transaction gives items back or up.
const WAYS: [fn(&mut Tx); 5] = [
    |tx| tx.fail(tx.pop().unwrap(), "no good").unwrap(),
    |tx| tx.retry_after(tx.pop().unwrap(), HOUR).unwrap(),
    |tx| tx.retry(tx.pop().unwrap()).unwrap(),
    |tx| {
        tx.pop_batch(2).unwrap();
        tx.fail_all("no good").unwrap();
    },
    |tx| {
        tx.pop_batch(2).unwrap();
        tx.retry_all_after(HOUR).unwrap();
    },
];

#[test]
fn a_commit_that_only_gives_items_back_or_up_waits_for_the_log() {
    for (way, give) in WAYS.into_iter().enumerate() {
        let commits: [fn(Tx, &Store); 3] = [
            |tx, _| drop(tx.commit().unwrap()),
            |tx, _| drop(block_on(tx.commit_async()).unwrap()),
            |tx, store| {
                let other = store.queue::<u32>("other").unwrap();
                commit_all((other.begin_owned(), tx)).unwrap();
            },
        ];
        for (form, commit) in commits.into_iter().enumerate() {
            let files = tempfile::tempdir().unwrap();
            let (store, jobs) = jobs(&files);
            let mut tx = jobs.begin_owned();
            give(&mut tx);
            commit(tx, &store);
            assert!(store.inner.log.is_on_disk(), "way {way}, form {form}");
        }
    }
}

#[test]
fn a_buffered_commit_that_gives_an_item_up_does_not_wait() {
    let files = tempfile::tempdir().unwrap();
    let (store, jobs) = jobs(&files);
    let tx = jobs.begin_owned();
    tx.fail(tx.pop().unwrap(), "no good").unwrap();
    let catalog = store.inner.log.disk().catalog(); // which each group needs
    tx.commit_with(Durability::Buffered { at_most: HOUR })
        .unwrap();
    drop(catalog);
    assert_eq!(jobs.dead_letters().len(), 1);
}

#[test]
fn a_commit_that_gives_an_item_back_at_once_has_nothing_to_wait_for() {
    let files = tempfile::tempdir().unwrap();
    let store = Store::open(files.path()).unwrap();
    let jobs = store.queue::<u32>("jobs").unwrap();
    jobs.push(1).unwrap();
    let groups = store.inner.log.groups();
    let tx = jobs.begin_owned();
    tx.retry(tx.pop().unwrap()).unwrap();
    tx.commit().unwrap();
    assert_eq!(store.inner.log.groups(), groups);
}

/// A handle whose transaction has given an item up has nothing to wait for in the next one.
#[test]
fn a_transaction_does_not_wait_for_what_an_earlier_one_has_given_up() {
    let files = tempfile::tempdir().unwrap();
    let (store, jobs) = jobs(&files);
    let mut handle = jobs.handle();
    let tx = handle.begin();
    tx.fail(tx.pop().unwrap(), "no good").unwrap();
    tx.abort();
    store.flush().unwrap();
    let groups = store.inner.log.groups();
    handle.begin().commit().unwrap();
    assert_eq!(store.inner.log.groups(), groups);
}

#[test]
fn a_hook_is_called_when_the_letters_of_the_run_are_on_the_disk() {
    let files = tempfile::tempdir().unwrap();
    let store = Store::open(files.path()).unwrap();
    let jobs = store.builder("jobs").max_attempts(1).build().unwrap();
    let (send, seen) = channel();
    let observed = jobs.clone();
    let builder = || {
        let (send, jobs) = (send.clone(), observed.clone());
        Workers::builder(&observed)
            .threads(1)
            .on_error(move |failure| {
                let letters = jobs.dead_letters().len();
                let log = jobs.shared.log();
                send.send((log.is_on_disk(), letters, failure.error.clone()))
                    .unwrap();
            })
    };
    let spawn = |task| drop(std::thread::spawn(move || block_on(task)));
    let pools: [(&str, &dyn Fn() -> Workers); 5] = [
        ("\"not now\"", &|| builder().run(|_job, _tx| Err("not now"))),
        ("\"not now\"", &|| {
            builder().run_batches(1, |mut jobs, tx| {
                tx.fail(jobs.remove(0), "no good").unwrap();
                Err("not now")
            })
        }),
        ("\"not now\"", &|| {
            builder().run_on(spawn, |_job, _tx| async { Err("not now") })
        }),
        // The commit fails.
        ("the disk is full", &|| {
            builder().run(|job, tx| tx.push(*job))
        }),
        ("the disk is full", &|| {
            builder().run_on(spawn, |job, tx| async move { tx.push(*job) })
        }),
    ];
    for (pool, (error, run)) in pools.into_iter().enumerate() {
        jobs.push(7).unwrap();
        if error.contains("full") {
            store.inner.log.disk().pretend_free(0);
        }
        let workers = run();
        let (is_on_disk, letters, found) = seen.recv().unwrap();
        assert_eq!((is_on_disk, letters), (true, pool + 1), "pool {pool}");
        assert!(found.starts_with(error), "pool {pool}: {found}");
        workers.stop();
        store.inner.log.disk().pretend_free(u64::MAX);
    }
}

/// An item that cannot be read becomes a letter too.
#[test]
fn a_hook_is_called_when_the_letter_of_an_unread_item_is_on_the_disk() {
    let files = tempfile::tempdir().unwrap();
    let store = Store::open(files.path()).unwrap();
    let jobs = store.builder("jobs").max_attempts(1);
    let jobs = jobs.memory(0).weigh(|_| 1); // so it has no pages
    let jobs: DurableQueue<u32> = jobs.codec(Unlucky).build().unwrap();
    jobs.push(7).unwrap();
    let (send, seen) = channel();
    let observed = jobs.clone();
    let workers = Workers::builder(&jobs).threads(1);
    let workers = workers.on_error(move |_| {
        let letters = observed.dead_letters().len();
        send.send((observed.shared.log().is_on_disk(), letters))
            .unwrap();
    });
    let workers = workers.run(|_job, _tx| Ok::<_, ()>(()));
    assert_eq!(seen.recv().unwrap(), (true, 1));
    workers.stop();
}

/// Cannot decode.
struct Unlucky;

impl Codec<u32> for Unlucky {
    fn encode(&self, item: &u32, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
        bytes.extend(item.to_le_bytes());
        Ok(())
    }

    fn decode(&self, _: &[u8]) -> Result<u32, CodecError> {
        Err(CodecError::new("bad luck"))
    }
}

#[test]
fn what_replaces_or_follows_is_on_the_disk_when_its_push_returns() {
    let files = tempfile::tempdir().unwrap();
    let store = Store::open(files.path()).unwrap();
    let jobs = store.builder::<u32>("jobs").unique_by(|_| ());
    let jobs = jobs.on_duplicate(OnDuplicate::Follow).build().unwrap();
    let on_disk = || store.inner.log.is_on_disk();
    jobs.push(1).unwrap();
    jobs.push(2).unwrap();
    assert!(on_disk());
    let held = jobs.begin_owned();
    assert_eq!(*held.pop().unwrap(), 2);
    for job in [3, 4] {
        jobs.push(job).unwrap();
        assert!(on_disk());
        block_on(jobs.push_async(10 + job)).unwrap();
        assert!(on_disk());
    }
    let at_most = HOUR;
    store.flush().unwrap();
    held.commit_with(Durability::Buffered { at_most }).unwrap();
    assert!(!on_disk());
    assert_eq!(jobs.pop().unwrap(), 14);
}
