//! A job that kills its process.

use crate::{child, count, open};
use futures::executor::block_on;
use requeue_durable::{hold_any, hold_any_async, Cause, DurableQueue, Store, Workers};
use std::path::Path;
use std::process::{abort, Stdio};
use std::thread;

const FORM: &str = "DURABLE_FORM";
const MOST: u32 = 3;

fn queue(store: &Store) -> DurableQueue<String> {
    let queue = store.builder("jobs").max_attempts(MOST).build();
    queue.expect("the queue opens")
}

fn die(job: &str) {
    let _ = run_on(job);
}

/// A run of a pool.
fn run_on(job: &str) -> Result<(), ()> {
    assert_eq!(job, "poison");
    abort()
}

/// How a job is handed out. Each of them dies with the first one.
const FORMS: [fn(&DurableQueue<String>); 11] = [
    |jobs| die(&jobs.begin_owned().pop().unwrap()),
    |jobs| die(&jobs.begin_owned().pop_blocking().unwrap()),
    |jobs| {
        let tx = jobs.begin_owned();
        die(&tx.pop_batch(1).unwrap().next().unwrap());
    },
    |jobs| die(&block_on(jobs.begin_owned().pop_async()).unwrap()),
    |jobs| {
        let tx = jobs.begin_owned();
        let mut batch = block_on(tx.pop_batch_async(1, 1)).unwrap();
        die(&batch.next().unwrap());
    },
    |jobs| die(&jobs.begin_owned().peek().unwrap().take()),
    |jobs| die(&hold_any([&jobs.begin_owned()]).unwrap().1),
    |jobs| {
        let tx = jobs.begin_owned();
        die(&block_on(hold_any_async([&tx])).unwrap().1);
    },
    |jobs| {
        let workers = Workers::builder(jobs).threads(1);
        let run = workers.run(|job, _tx| run_on(&job));
        drop(run.join());
    },
    |jobs| {
        let workers = Workers::builder(jobs).threads(1);
        let run = workers.run_batches(1, |jobs, _tx| run_on(&jobs[0]));
        drop(run.join());
    },
    |jobs| {
        let workers = Workers::builder(jobs).threads(1);
        let spawn = |task| drop(thread::spawn(move || block_on(task)));
        let workers = workers.run_on(spawn, |job, _tx| async move { run_on(&job) });
        drop(workers.join());
    },
];

/// The child: takes the job, and dies.
pub(crate) fn run(path: &Path) {
    let store = open(path).expect("the store opens");
    let form = usize::try_from(count(FORM, 0)).expect("a form");
    FORMS[form](&queue(&store));
}

#[test]
fn a_job_that_kills_its_process_kills_as_many_as_it_may_be_delivered() {
    for form in 0..FORMS.len() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store");
        let store = open(&path).unwrap();
        let jobs = queue(&store);
        jobs.push("poison".into()).unwrap();
        jobs.push("good".into()).unwrap();
        drop((jobs, store));
        for _ in 0..MOST {
            let mut child = child("poison", &path);
            let child = child.env(FORM, form.to_string()).stderr(Stdio::null());
            assert!(!child.status().unwrap().success(), "it died");
        }
        let store = open(&path).unwrap();
        let jobs = queue(&store);
        let letters = jobs.dead_letters().all().unwrap();
        let [letter] = &*letters else {
            panic!("form {form}: {letters:?}");
        };
        assert_eq!((letter.item.as_str(), letter.attempts), ("poison", MOST));
        assert_eq!(letter.reason, Cause::Crashed);
        assert_eq!(jobs.pop().unwrap(), "good");
    }
}
