//! Tasks of tokio: pops and pushes that wait, and are often given up.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use requeue::Handle;
use tokio::runtime::{Builder, Runtime};
use tokio::task::{yield_now, JoinSet};
use tokio::time::timeout;

use super::held::Held;
use super::lanes::{Lane, Put};
use super::ledger::Job;
use super::observer::Observer;
use super::rng::Rng;
use super::whole::Soak;

const PATIENCE: Duration = Duration::from_millis(1);
const MOST: u16 = 8;
/// Steps of a task, after which another one takes its place.
const STEPS: u16 = 200;

pub(crate) fn runtime() -> Runtime {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build();
    runtime.expect("the system starts two threads")
}

/// Keeps `count` tasks running until the round ends. Some are aborted where they happen to wait.
pub(crate) async fn run(soak: Arc<Soak>, count: usize, mut rng: Rng) {
    let mut tasks = JoinSet::new();
    while !soak.is_stopped() {
        while tasks.len() < count {
            tasks.spawn(work(Arc::clone(&soak), rng.fork()));
        }
        if rng.one_in(2) {
            let doomed = tasks.spawn(work(Arc::clone(&soak), rng.fork()));
            tokio::time::sleep(PATIENCE).await; // paces the aborts
            doomed.abort();
        }
        if let Some(ended) = tasks.join_next().await {
            record(&soak, ended);
        }
    }
    while let Some(ended) = tasks.join_next().await {
        record(&soak, ended);
    }
}

fn record(soak: &Soak, ended: Result<(), tokio::task::JoinError>) {
    match ended {
        Ok(()) => {}
        Err(error) if error.is_cancelled() => soak.counts.killed.one(),
        Err(error) => soak.ledger.fault(format_args!("a task: {error}")),
    }
}

/// Some steps on a random queue.
async fn work(soak: Arc<Soak>, mut rng: Rng) {
    let lanes = &soak.lanes;
    match rng.below(7) {
        0 => steps(&soak, &lanes.plain, rng).await,
        1 => steps(&soak, &lanes.bounded, rng).await,
        2 => steps(&soak, &lanes.leased, rng).await,
        3 => steps(&soak, &lanes.leased_by_key, rng).await,
        4 => steps(&soak, &lanes.serial, rng).await,
        5 => steps(&soak, &lanes.fair, rng).await,
        _ => steps(&soak, &lanes.priority, rng).await,
    }
}

async fn steps<O: Put>(soak: &Soak, lane: &Lane<O>, rng: Rng) {
    soak.counts.handles.one();
    let mut user = User {
        soak,
        lane,
        handle: lane.queue.handle(),
        stream: soak.ledger.stream(),
        observer: Observer::default(),
        rng,
    };
    for _ in 0..STEPS {
        if soak.is_stopped() {
            return;
        }
        user.step().await;
        yield_now().await;
    }
}

/// One task's use of one queue. Whatever a call did is recorded before the next `await`, so it is recorded even if
/// the task is aborted.
struct User<'s, O: Put> {
    soak: &'s Soak,
    lane: &'s Lane<O>,
    handle: Handle<Job, O>,
    stream: u32,
    observer: Observer,
    rng: Rng,
}

impl<O: Put> User<'_, O> {
    async fn step(&mut self) {
        match self.rng.below(8) {
            0 => self.push().await,
            1 => self.push_without_handle().await,
            2 => self.push_batch().await,
            3 => self.pop().await,
            4 => self.pop_without_handle().await,
            5 => self.pop_batch().await,
            6 => self.poll_once(),
            _ => self.deliver().await,
        }
    }

    fn record(&self, jobs: &[Job], pushed: Option<bool>) {
        match pushed {
            None => self.soak.counts.cancelled.one(),
            Some(false) => self.soak.counts.refused.one(),
            Some(true) => {
                let accept = |job| self.lane.accept(&self.soak.ledger, &self.soak.counts, job);
                jobs.iter().for_each(accept);
            }
        }
    }

    fn popped(&mut self, job: Job) {
        let (soak, lane) = (self.soak, self.lane);
        self.observer.popped(&soak.ledger, &lane.rules, &job);
        lane.consume(&soak.ledger, &soak.counts, &job);
    }

    async fn push(&mut self) {
        let Some(job) = self.lane.job(&self.soak.ledger, self.stream, &mut self.rng) else {
            return;
        };
        let pushed = timeout(PATIENCE, self.handle.push_async(job)).await;
        self.record(&[job], pushed.ok().map(|pushed| pushed.is_ok()));
    }

    async fn push_without_handle(&mut self) {
        // It may use a handle of any thread, so it is in no order with others.
        let stream = self.soak.ledger.stream();
        let Some(job) = self.lane.job(&self.soak.ledger, stream, &mut self.rng) else {
            return;
        };
        let pushed = timeout(PATIENCE, self.lane.queue.push_async(job)).await;
        self.record(&[job], pushed.ok().map(|pushed| pushed.is_ok()));
    }

    async fn push_batch(&mut self) {
        let Self {
            soak,
            lane,
            stream,
            rng,
            ..
        } = self;
        let count = 1 + rng.below(MOST);
        let jobs: Vec<_> = (0..count)
            .map_while(|_| lane.job(&soak.ledger, *stream, rng))
            .collect();
        let push = self.handle.push_batch_async(jobs.iter().copied());
        let pushed = timeout(PATIENCE, push).await;
        self.record(&jobs, pushed.ok().map(|pushed| pushed.is_ok()));
    }

    async fn pop(&mut self) {
        match timeout(PATIENCE, self.handle.pop_async()).await {
            Ok(popped) => popped.into_iter().for_each(|job| self.popped(job)),
            Err(_) => self.soak.counts.cancelled.one(),
        }
    }

    async fn pop_without_handle(&mut self) {
        match timeout(PATIENCE, self.lane.queue.pop_async()).await {
            Ok(popped) => popped.into_iter().for_each(|job| self.popped(job)),
            Err(_) => self.soak.counts.cancelled.one(),
        }
    }

    /// Waits for several items, but not for long: those that it has by then stay in the vector.
    async fn pop_batch(&mut self) {
        let Self {
            soak,
            lane,
            handle,
            observer,
            ..
        } = self;
        let mut popped = Popped {
            soak,
            lane,
            observer,
            jobs: Vec::new(),
        };
        let pop = handle.pop_batch_async(2, MOST.into(), &mut popped.jobs);
        if timeout(PATIENCE, pop).await.is_err() {
            soak.counts.cancelled.one();
        }
    }

    /// Futures that are polled once and dropped.
    fn poll_once(&mut self) {
        match self.handle.pop_async().now_or_never() {
            Some(popped) => popped.into_iter().for_each(|job| self.popped(job)),
            None => self.soak.counts.cancelled.one(),
        }
        let Some(job) = self.lane.job(&self.soak.ledger, self.stream, &mut self.rng) else {
            return;
        };
        let pushed = self.handle.push_async(job).now_or_never();
        self.record(&[job], pushed.map(|pushed| pushed.is_ok()));
    }

    /// A transaction that stays open while the task waits for something else.
    async fn deliver(&mut self) {
        let (soak, lane) = (self.soak, self.lane);
        let tx = self.handle.begin();
        let mut held = Held::new(&lane.rules);
        let mut count = 0;
        for _ in 0..=self.rng.below(2) {
            match timeout(PATIENCE, tx.pop_async()).await {
                Ok(Ok(item)) => {
                    held.add(&soak.ledger, &item);
                    self.observer.delivered(&soak.ledger, &lane.rules, &item);
                    count += 1;
                }
                Ok(Err(_)) => break,
                Err(_) => soak.counts.cancelled.one(),
            }
        }
        let mut staged = Vec::new();
        let job = lane.job(&soak.ledger, self.stream, &mut self.rng);
        if let Some(job) = job.filter(|_| self.rng.one_in(4)) {
            let pushed = timeout(PATIENCE, tx.push_async(job)).await;
            staged.extend(pushed.is_ok_and(|pushed| pushed.is_ok()).then_some(job));
        }
        yield_now().await;
        drop(held);
        if self.rng.one_in(5) {
            soak.counts.aborted.add(usize::from(count > 0));
            return tx.abort();
        }
        soak.ended(lane, tx.try_commit(), count, &staged);
    }
}

/// Items that a batch has popped. They are recorded when it is dropped, also if its task is aborted.
struct Popped<'u, O: Put> {
    soak: &'u Soak,
    lane: &'u Lane<O>,
    observer: &'u mut Observer,
    jobs: Vec<Job>,
}

impl<O: Put> Drop for Popped<'_, O> {
    fn drop(&mut self) {
        let Self {
            soak,
            lane,
            observer,
            jobs,
        } = self;
        for job in jobs.drain(..) {
            observer.popped(&soak.ledger, &lane.rules, &job);
            lane.consume(&soak.ledger, &soak.counts, &job);
        }
    }
}
