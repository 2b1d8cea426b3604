use crate::{hold_any, hold_any_async, DurableQueue, Store};
use futures::executor::block_on;
use futures::task::noop_waker;
use std::future::Future;
use std::pin::pin;
use std::task::Context;
use tempfile::TempDir;

fn open(files: &TempDir, memory: Option<usize>) -> DurableQueue<u32> {
    let store = Store::open(files.path()).unwrap();
    let builder = store.builder("jobs").max_attempts(9);
    let jobs = match memory {
        Some(bytes) => builder.memory(bytes).build(),
        None => builder.build(),
    };
    jobs.unwrap()
}

#[test]
fn a_delivery_that_counts_is_written_before_the_item_is_handed_out() {
    let forms: [fn(&DurableQueue<u32>) -> u32; 9] = [
        |jobs| jobs.begin_owned().pop().unwrap().attempts(),
        |jobs| jobs.begin_owned().pop_blocking().unwrap().attempts(),
        |jobs| {
            jobs.begin_owned()
                .pop_batch(2)
                .unwrap()
                .next()
                .unwrap()
                .attempts()
        },
        |jobs| {
            let tx = jobs.begin_owned();
            let attempts = block_on(tx.pop_async()).unwrap().attempts();
            attempts
        },
        |jobs| {
            let tx = jobs.begin_owned();
            let mut items = block_on(tx.pop_batch_async(1, 2)).unwrap();
            items.next().unwrap().attempts()
        },
        |jobs| jobs.begin_owned().peek().unwrap().take().attempts(),
        |jobs| {
            let tx = jobs.begin_owned();
            let item = block_on(async { tx.peek_async().await.unwrap().take_async().await });
            item.attempts()
        },
        |jobs| {
            let tx = jobs.begin_owned();
            let attempts = hold_any([&tx]).unwrap().1.attempts();
            attempts
        },
        |jobs| {
            let tx = jobs.begin_owned();
            let attempts = block_on(hold_any_async([&tx])).unwrap().1.attempts();
            attempts
        },
    ];
    for memory in [None, Some(0)] {
        let files = tempfile::tempdir().unwrap();
        let jobs = open(&files, memory);
        jobs.push(7).unwrap();
        for (form, deliver) in (1..).zip(forms) {
            let log = jobs.shared.log();
            let groups = log.groups();
            assert_eq!(deliver(&jobs), form);
            assert!(log.is_written(), "form {form}");
            assert_eq!(log.groups(), groups + 1, "form {form}");
            jobs.push_batch([]).unwrap();
            if form == 8 {
                break; // the ninth delivery is the last
            }
        }
        // The next process knows of all of them.
        let known = jobs.begin_owned().peek().unwrap().take().attempts();
        drop(jobs);
        assert!(known == 9 && open(&files, memory).dead_letters().len() == 1);
        let jobs = open(&files, memory);
        assert_eq!(jobs.dead_letters().requeue_all().unwrap(), 1);
        let deliver = forms[8];
        assert_eq!(deliver(&jobs), 1);
        assert!(jobs.shared.log().is_written());
    }
}

#[test]
fn a_pop_that_commits_writes_one_group() {
    let files = tempfile::tempdir().unwrap();
    let jobs = open(&files, None);
    jobs.push_batch(1..=6).unwrap();
    let groups = jobs.shared.log().groups();
    jobs.pop().unwrap();
    jobs.pop_batch(1).unwrap();
    jobs.handle().pop().unwrap();
    block_on(jobs.pop_async()).unwrap();
    block_on(jobs.pop_batch_async(1, 1)).unwrap();
    crate::pop_any(&mut [jobs.handle()]).unwrap();
    assert_eq!(jobs.shared.log().groups(), groups + 6);
    assert!(jobs.shared.log().disk().catalog().marks.is_empty());
}

/// A future that waits for the log is dropped: its item is back, and was not delivered.
#[test]
fn a_dropped_future_delivers_nothing() {
    let files = tempfile::tempdir().unwrap();
    let jobs = open(&files, None);
    jobs.push_batch([1, 2]).unwrap();
    let waker = noop_waker();
    let mut context = Context::from_waker(&waker);
    let tx = jobs.begin_owned();
    // Each group needs them, so that none ends.
    let catalog = jobs.shared.log().disk().catalog();
    assert!(pin!(tx.pop_async()).poll(&mut context).is_pending());
    assert_eq!((tx.held(), jobs.len()), (0, 2));
    let mut peeking = Box::pin(tx.peek_async());
    let std::task::Poll::Ready(Ok(peek)) = peeking.as_mut().poll(&mut context) else {
        panic!("there is an item");
    };
    drop(peeking);
    assert!(pin!(peek.take_async()).poll(&mut context).is_pending());
    assert_eq!((tx.held(), jobs.len()), (0, 2));
    assert!(pin!(hold_any_async([&tx])).poll(&mut context).is_pending());
    assert_eq!((tx.held(), jobs.len()), (0, 2));
    drop(catalog);
    drop(tx);
    drop(jobs);
    let jobs = open(&files, None);
    let tx = jobs.begin_owned();
    for item in [1, 2] {
        let popped = tx.pop().unwrap();
        assert_eq!((*popped, popped.attempts()), (item, 1));
    }
}
