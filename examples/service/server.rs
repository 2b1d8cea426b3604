//! The service: it accepts clients until it is stopped, and ends when all accepted jobs are done.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use requeue::{Handle, Queue};
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::jobs::Job;
use super::lines::{Line, Lines, LONGEST};
use super::tally::Tally;
use super::workers::work;

const CAPACITY: usize = 16;
const WORKERS: usize = 4;
/// After the stop, a client that sends nothing for this long is disconnected.
const SILENCE: Duration = Duration::from_millis(50);
/// After the stop, all clients have this long to read their answers and to disconnect.
const PATIENCE: Duration = Duration::from_secs(2);

/// Ready at Ctrl-C.
pub(crate) async fn interrupted() {
    let signal = tokio::signal::ctrl_c().await;
    signal.expect("the system lets a program wait for Ctrl-C");
}

/// Serves until `end` is ready, and then finishes the accepted jobs.
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
    dismiss(clients).await;
    workers.join_all().await;
    result.map(|()| tally)
}

/// A disconnected client does not affect the others.
fn report(left: io::Result<()>) {
    if let Err(error) = left {
        eprintln!("service: a client is gone: {error}");
    }
}

/// Waits until all clients have their answers, but not for those that do not read them, or never stop sending.
async fn dismiss(mut clients: JoinSet<io::Result<()>>) {
    let all = async {
        while let Some(left) = clients.join_next().await {
            report(left.expect("no client panics"));
        }
    };
    if timeout(PATIENCE, all).await.is_err() {
        eprintln!("service: {} clients do not stop", clients.len());
        clients.shutdown().await;
    }
}

/// Answers one client, line by line. While the queue is full, its next line is not read: backpressure.
///
/// After the stop, lines already received are answered too: the closed queue refuses their jobs.
async fn answer(
    mut stream: TcpStream,
    mut queue: Handle<Job>,
    tally: Arc<Tally>,
    mut closing: watch::Receiver<()>,
) -> io::Result<()> {
    let (input, mut output) = stream.split();
    let mut lines = Lines::of(BufReader::new(input));
    loop {
        let line = tokio::select! {
            biased;
            _ = closing.changed() => timeout(SILENCE, lines.next()).await,
            line = lines.next() => Ok(line),
        };
        match line {
            Ok(line) => match line? {
                Some(line) => {
                    let reply = reply(line, &mut queue, &tally).await;
                    output.write_all(reply.as_bytes()).await?;
                }
                None => return Ok(()),
            },
            Err(_silent) => break,
        }
    }
    // Closing a socket with unread input would discard output that the client has not read.
    output.shutdown().await?;
    while let Ok(Some(_)) = timeout(SILENCE, lines.next()).await.unwrap_or(Ok(None)) {}
    Ok(())
}

async fn reply(line: Line, queue: &mut Handle<Job>, tally: &Tally) -> String {
    let number = tally.receive();
    let refused = match line {
        Line::Job => match queue.push_async(Job::new(number)).await {
            Ok(()) => return format!("accepted {number}\n"),
            // Also for jobs that waited for room at the close.
            Err(_) => "the service is closing".to_owned(),
        },
        Line::TooLong => format!("the line has more than {LONGEST} bytes"),
        Line::NotText => "the line is not UTF-8".to_owned(),
    };
    tally.reject(number);
    format!("rejected: {refused}\n")
}
