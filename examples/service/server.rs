//! The service: it accepts clients until it is told to end, and ends when all accepted jobs are done.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;

use requeue::{Handle, Queue};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::jobs::Job;
use super::tally::Tally;
use super::workers::work;

const CAPACITY: usize = 16;
const WORKERS: usize = 4;

/// Ready at Ctrl-C.
pub(crate) async fn interrupted() {
    let signal = tokio::signal::ctrl_c().await;
    signal.expect("the system lets a program wait for Ctrl-C");
}

/// Serves until `end` is ready, and then does what was accepted.
pub(crate) async fn serve(
    listener: TcpListener,
    end: impl Future<Output = ()>,
) -> io::Result<Arc<Tally>> {
    let queue = Queue::bounded(CAPACITY);
    let tally = Arc::new(Tally::default());
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        workers.spawn(work(queue.handle(), Arc::clone(&tally)));
    }

    let (open, closing) = watch::channel(());
    let mut clients = JoinSet::new();
    let mut end = pin!(end);
    let result = loop {
        tokio::select! {
            biased;
            () = &mut end => break Ok(()),
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let (queue, tally) = (queue.handle(), Arc::clone(&tally));
                    clients.spawn(answer(stream, queue, tally, closing.clone()));
                }
                Err(error) => break Err(error),
            },
            Some(left) = clients.join_next() => report(left.expect("no client panics")),
        }
    };

    drop(listener);
    queue.close();
    drop(open);
    clients.join_all().await.into_iter().for_each(report);
    workers.join_all().await;
    result.map(|()| tally)
}

/// A client that goes away is no trouble to the others.
fn report(left: io::Result<()>) {
    if let Err(error) = left {
        eprintln!("service: a client is gone: {error}");
    }
}

/// Answers one client, line by line. While the queue is full its next line is not read: it has to wait.
async fn answer(
    mut stream: TcpStream,
    mut queue: Handle<Job>,
    tally: Arc<Tally>,
    mut closing: watch::Receiver<()>,
) -> io::Result<()> {
    let (input, mut output) = stream.split();
    let mut lines = BufReader::new(input).lines();
    loop {
        let line = tokio::select! {
            biased;
            _ = closing.changed() => return Ok(()),
            line = lines.next_line() => line?,
        };
        if line.is_none() {
            return Ok(());
        }
        let reply = accept(&mut queue, &tally).await;
        output.write_all(reply.as_bytes()).await?;
    }
}

/// Waits for room. The closed queue gives the job back, also to those who waited when it was closed.
async fn accept(queue: &mut Handle<Job>, tally: &Tally) -> String {
    let number = tally.receive();
    match queue.push_async(Job::new(number)).await {
        Ok(()) => format!("accepted {number}\n"),
        Err(refused) => {
            tally.reject(refused.into_inner().number);
            "rejected: the service is closing\n".into()
        }
    }
}
