//! One queue used from several executors, which need not know of each other: no item is lost.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use crate::common::ends;
use crate::common::futures::block_on;
use crate::common::rng::Rng;
use crate::common::waits::Boxed;
use requeue::{commit_all, Handle, PopError, Queue};

type Job = Boxed<'static, ()>;

fn on_tokio(mut builder: tokio::runtime::Builder, jobs: Vec<Job>) {
    let runtime = builder.enable_time().build().unwrap();
    runtime.block_on(async {
        let tasks: Vec<_> = jobs.into_iter().map(tokio::spawn).collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
}

fn on_threads_of_tokio(jobs: Vec<Job>) {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(4);
    on_tokio(builder, jobs);
}

fn on_one_thread_of_tokio(jobs: Vec<Job>) {
    on_tokio(tokio::runtime::Builder::new_current_thread(), jobs);
}

fn on_smol(jobs: Vec<Job>) {
    smol::block_on(async {
        let tasks: Vec<_> = jobs.into_iter().map(smol::spawn).collect();
        for task in tasks {
            task.await;
        }
    });
}

fn on_a_thread_each(jobs: Vec<Job>) {
    thread::scope(|scope| {
        for job in jobs {
            scope.spawn(|| block_on(job));
        }
    });
}

const TOKIO: [fn(Vec<Job>); 2] = [on_threads_of_tokio, on_one_thread_of_tokio];
const EXECUTORS: [fn(Vec<Job>); 4] = [
    on_threads_of_tokio,
    on_one_thread_of_tokio,
    on_smol,
    on_a_thread_each,
];

/// Yields to the other tasks of the executor.
async fn pause() {
    let mut paused = false;
    poll_fn(|context| {
        if paused {
            return Poll::Ready(());
        }
        paused = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

const PRODUCERS: u32 = 4;
const SHARE: u32 = 200;

/// Room for all but one of the items that the producers may stage at the same time, so that one of them always makes
/// progress.
const ROOM: usize = PRODUCERS as usize + 1;

/// The numbers that one producer pushes.
fn share(producer: u32) -> std::ops::Range<u32> {
    producer * SHARE..(producer + 1) * SHARE
}

/// The items that the consumers have received, and the number of active producers.
#[derive(Clone, Default)]
struct Board {
    received: Arc<Mutex<Vec<u32>>>,
    finished: Arc<Mutex<u32>>,
}

impl Board {
    fn receive(&self, items: impl IntoIterator<Item = u32>) {
        self.received.lock().unwrap().extend(items);
    }

    /// The last producer closes the queue.
    fn finish(&self, queue: &Queue<u32>) {
        let mut finished = self.finished.lock().unwrap();
        *finished += 1;
        if *finished == PRODUCERS {
            assert!(queue.close());
        }
    }

    fn assert_complete(&self) {
        let mut received = self.received.lock().unwrap();
        received.sort_unstable();
        assert!(received.iter().copied().eq(0..PRODUCERS * SHARE));
    }
}

/// Pushes its share in all ways, some of it in transactions that are aborted first.
async fn produce(queue: Queue<u32>, producer: u32, board: Board) {
    let mut handle = queue.handle();
    let mut items = share(producer);
    while let Some(item) = items.next() {
        match item % 5 {
            0 => assert_eq!(handle.push_async(item).await, Ok(())),
            1 => assert_eq!(handle.push_batch_async([item]).await, Ok(1)),
            2 => {
                let tx = handle.begin();
                tx.push_async(item).await.unwrap();
                pause().await;
                tx.abort();
                handle.push_async(item).await.unwrap();
            }
            _ => {
                let tx = handle.begin();
                tx.push_async(item).await.unwrap();
                pause().await;
                if let Some(other) = items.next() {
                    tx.push_async(other).await.unwrap();
                }
                tx.commit();
            }
        }
    }
    board.finish(&queue);
}

/// Receives in all ways until the end, some items after an abort.
async fn consume(queue: Queue<u32>, number: usize, board: Board) {
    let mut handle = queue.handle();
    for round in number.. {
        if round % 4 == 0 {
            match handle.pop_async().await {
                Ok(item) => board.receive([item]),
                Err(PopError::Closed) => break,
                Err(PopError::Empty) => panic!("a pop that waits said Empty"),
            }
            continue;
        }
        let tx = handle.begin();
        if tx.pop_async().await.is_err() {
            break;
        }
        pause().await;
        if round % 3 == 0 {
            tx.pop_batch(round % 5);
        }
        if round % 4 == 1 {
            tx.abort();
        } else {
            board.receive(tx.commit());
        }
    }
}

#[test]
fn producers_and_consumers() {
    for run in EXECUTORS {
        for queue in [Queue::unbounded(), Queue::bounded(ROOM)] {
            ends(move || {
                let board = Board::default();
                let job = |job: Job| job;
                let producers = (0..PRODUCERS)
                    .map(|producer| job(Box::pin(produce(queue.clone(), producer, board.clone()))));
                let consumers = (0..4)
                    .map(|number| job(Box::pin(consume(queue.clone(), number, board.clone()))));
                run(consumers.chain(producers).collect());
                board.assert_complete();
                assert_eq!(queue.pop(), Err(PopError::Closed));
            });
        }
    }
}

/// Moves items from one queue to the other, each by one commit over both; some transactions are aborted.
async fn forward(mut from: Handle<u32>, mut to: Handle<u32>) {
    for round in 0.. {
        let (take, give) = (from.begin(), to.begin());
        let item = match take.pop_async().await {
            Ok(item) => *item,
            Err(_) => break,
        };
        give.push_async(item).await.unwrap();
        pause().await;
        if round % 3 > 0 {
            commit_all((take, give));
        }
    }
}

#[test]
fn a_chain_of_two_queues() {
    for run in EXECUTORS {
        ends(move || {
            let (first, second) = (Queue::bounded(ROOM), Queue::bounded(ROOM));
            let board = Board::default();
            let mut jobs: Vec<Job> = Vec::new();
            for producer in 0..PRODUCERS {
                jobs.push(Box::pin(produce(first.clone(), producer, board.clone())));
            }
            let forwarders = Arc::new(());
            for _ in 0..3 {
                let (from, to) = (first.handle(), second.handle());
                let (second, last) = (second.clone(), Arc::clone(&forwarders));
                jobs.push(Box::pin(async move {
                    forward(from, to).await;
                    if Arc::into_inner(last).is_some() {
                        second.close();
                    }
                }));
            }
            drop(forwarders);
            jobs.push(Box::pin(consume(second.clone(), 0, board.clone())));
            run(jobs);
            board.assert_complete();
        });
    }
}

/// Receives until the end, with a timeout for every pop that often elapses.
async fn consume_in_time(queue: Queue<u32>, mut rng: Rng, board: Board) {
    let mut handle = queue.handle();
    loop {
        let limit = Duration::from_micros(rng.pick(&[0, 1, 50, 500, 5_000]));
        if rng.percent(50) {
            match tokio::time::timeout(limit, handle.pop_async()).await {
                Ok(Ok(item)) => board.receive([item]),
                Ok(Err(error)) => {
                    assert_eq!(error, PopError::Closed);
                    break;
                }
                Err(_) => {}
            }
            continue;
        }
        let tx = handle.begin();
        let popped = tokio::time::timeout(limit, tx.pop_async()).await;
        if popped.is_ok_and(|popped| popped.is_ok()) && rng.percent(80) {
            board.receive(tx.commit());
        }
    }
}

/// Pushes its share; an item whose push times out is pushed again.
async fn produce_in_time(queue: Queue<u32>, producer: u32, mut rng: Rng, board: Board) {
    let mut handle = queue.handle();
    for item in share(producer) {
        loop {
            let limit = Duration::from_micros(rng.pick(&[0, 1, 50, 500]));
            let pushed = tokio::time::timeout(limit, handle.push_async(item)).await;
            if pushed.is_ok_and(|pushed| pushed.is_ok()) {
                break;
            }
        }
    }
    board.finish(&queue);
}

#[test]
fn timeouts_that_cancel_lose_nothing() {
    for run in TOKIO {
        for seed in 0..3 {
            ends(move || {
                let mut rng = Rng::new(seed);
                let queue = Queue::bounded(1 + rng.below(4));
                let board = Board::default();
                let mut jobs: Vec<Job> = Vec::new();
                for producer in 0..PRODUCERS {
                    let (queue, board) = (queue.clone(), board.clone());
                    jobs.push(Box::pin(produce_in_time(
                        queue,
                        producer,
                        rng.fork(),
                        board,
                    )));
                }
                for _ in 0..3 {
                    let (queue, board) = (queue.clone(), board.clone());
                    jobs.push(Box::pin(consume_in_time(queue, rng.fork(), board)));
                }
                run(jobs);
                board.assert_complete();
            });
        }
    }
}

/// Receives from two queues, from whichever has an item, until both have ended.
async fn select_with_tokio(a: Queue<u32>, b: Queue<u32>, board: Board) {
    let (mut a, mut b) = (a.handle(), b.handle());
    let (mut a_open, mut b_open) = (true, true);
    while a_open || b_open {
        tokio::select! {
            popped = a.pop_async(), if a_open => match popped {
                Ok(item) => board.receive([item]),
                Err(_) => a_open = false,
            },
            popped = b.pop_async(), if b_open => match popped {
                Ok(item) => board.receive([item]),
                Err(_) => b_open = false,
            },
        }
    }
}

/// The same in transactions, one for each queue, with the other macro.
async fn select_with_futures(a: Queue<u32>, b: Queue<u32>, board: Board) {
    use futures::FutureExt;

    let (mut a, mut b) = (a.handle(), b.handle());
    let mut open = 2;
    while open == 2 {
        let (tx_a, tx_b) = (a.begin(), b.begin());
        let popped = futures::select! {
            popped = tx_a.pop_async().fuse() => popped.map(drop),
            popped = tx_b.pop_async().fuse() => popped.map(drop),
        };
        match popped {
            Ok(()) => {
                let (from_a, from_b) = commit_all((tx_a, tx_b));
                board.receive(from_a.chain(from_b));
            }
            Err(_) => open -= 1,
        }
    }
    for handle in [&mut a, &mut b] {
        while let Ok(item) = handle.pop_async().await {
            board.receive([item]);
        }
    }
}

#[test]
fn selections_over_two_queues_lose_nothing() {
    for run in EXECUTORS {
        ends(move || {
            let (a, b) = (Queue::bounded(3), Queue::unbounded());
            let board = Board::default();
            let mut jobs: Vec<Job> = vec![
                Box::pin(select_with_tokio(a.clone(), b.clone(), board.clone())),
                Box::pin(select_with_futures(b.clone(), a.clone(), board.clone())),
            ];
            for producer in 0..PRODUCERS {
                let (a, b, board) = (a.clone(), b.clone(), board.clone());
                jobs.push(Box::pin(async move {
                    let (mut to_a, mut to_b) = (a.handle(), b.handle());
                    for item in share(producer) {
                        let to = if item % 2 == 0 { &mut to_a } else { &mut to_b };
                        to.push_async(item).await.unwrap();
                        pause().await;
                    }
                    if producer == 0 {
                        yield_to_others(&board).await;
                        b.close();
                    }
                    board.finish(&a);
                }));
            }
            run(jobs);
            board.assert_complete();
        });
    }
}

/// Waits until all other producers have finished.
async fn yield_to_others(board: &Board) {
    while *board.finished.lock().unwrap() < PRODUCERS - 1 {
        pause().await;
    }
}

/// Blocking threads and tasks share a queue.
#[test]
fn threads_and_tasks_share_one_wait_queue() {
    for run in EXECUTORS {
        ends(move || {
            let queue = Queue::bounded(ROOM);
            let board = Board::default();
            thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| board.receive(queue.iter().collect::<Vec<_>>()));
                }
                scope.spawn(|| {
                    let mut handle = queue.handle();
                    for item in share(0) {
                        handle.push_blocking(item).unwrap();
                    }
                    board.finish(&queue);
                });
                let job = |job: Job| job;
                let producers = (1..PRODUCERS)
                    .map(|producer| job(Box::pin(produce(queue.clone(), producer, board.clone()))));
                let consumers = (0..2)
                    .map(|number| job(Box::pin(consume(queue.clone(), number, board.clone()))));
                run(producers.chain(consumers).collect());
            });
            board.assert_complete();
        });
    }
}

/// A future that is polled repeatedly without success has one entry in the wait queue.
#[test]
fn a_pinned_future_is_polled_again_and_again() {
    let queue = Queue::unbounded();
    let mut handle = queue.handle();
    let item = block_on(async {
        let mut pop = pin!(handle.pop_async());
        for _ in 0..3 {
            assert!(futures::poll!(pop.as_mut()).is_pending());
        }
        queue.push(1).unwrap();
        pop.await
    });
    assert_eq!(item, Ok(1));
}
