//! Interrupts a service under load.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::lines::LONGEST;
use super::server;
use super::tally::Tally;

/// More clients than room: some wait for it when the interrupt arrives.
const CLIENTS: usize = 32;
/// After this many accepted jobs the interrupt is sent.
const MIDDLE: u64 = 200;
const PATIENCE: Duration = Duration::from_secs(60);

/// The replies to the clients.
#[derive(Default)]
struct Replies {
    accepted: AtomicU64,
    rejected: AtomicU64,
    middle: Notify,
}

pub(crate) async fn run() -> io::Result<Arc<Tally>> {
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, "the self-test does not end");
    timeout(PATIENCE, load()).await.map_err(late)?
}

async fn load() -> io::Result<Arc<Tally>> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    let service = tokio::spawn(server::serve(listener, server::interrupted()));
    let replies = Arc::new(Replies::default());
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        clients.spawn(client(address, Arc::clone(&replies)));
    }

    replies.middle.notified().await;
    interrupt()?;
    let tally = service.await??;
    for left in clients.join_all().await {
        left.or_else(hung_up)?;
    }
    compare(&replies, &tally)?;
    Ok(tally)
}

/// Sends some lines at once, reads the replies, and repeats until the service says that it is closing, or closes the
/// connection, but never between two replies.
async fn client(address: SocketAddr, replies: Arc<Replies>) -> io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    let (input, mut output) = stream.split();
    let mut incoming = BufReader::new(input).lines();
    let long = "x".repeat(LONGEST + 1);
    let lines = [
        &b"a job\n"[..],
        b"\xff\n",
        long.as_bytes(),
        b"\nanother job\n",
    ]
    .concat();
    let expected = ["", "not UTF-8", "1024 bytes", ""];
    let mut closing = false;
    while !closing {
        output.write_all(&lines).await?;
        for (place, reason) in expected.into_iter().enumerate() {
            match incoming.next_line().await? {
                Some(reply) => {
                    replies.count(&reply, reason)?;
                    closing |= reply.ends_with("closing");
                }
                None if place == 0 => return Ok(()),
                None => return Err(io::Error::other("a line has no answer")),
            }
        }
    }
    Ok(())
}

impl Replies {
    /// Counts a reply. A rejection must give a reason.
    fn count(&self, reply: &str, reason: &str) -> io::Result<()> {
        if reply.starts_with("rejected: ") && reply.contains(reason) {
            self.rejected.fetch_add(1, Relaxed);
        } else if reason.is_empty() && reply.starts_with("accepted ") {
            if self.accepted.fetch_add(1, Relaxed) + 1 == MIDDLE {
                self.middle.notify_one();
            }
        } else {
            return Err(io::Error::other(format!("the answer is \"{reply}\"")));
        }
        Ok(())
    }
}

/// A client that writes to a stopped service gets an error, and all replies before.
fn hung_up(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Ok(()),
        _ => Err(error),
    }
}

/// Like Ctrl-C: the parent of the shell is this process.
#[cfg(unix)]
fn interrupt() -> io::Result<()> {
    let mut kill = std::process::Command::new("sh");
    let status = kill.args(["-c", "kill -INT $PPID"]).status()?;
    if status.success() {
        return Ok(());
    }
    Err(io::Error::other("cannot send a SIGINT"))
}

#[cfg(not(unix))]
fn interrupt() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The reply of each job has reached its client.
fn compare(replies: &Replies, tally: &Tally) -> io::Result<()> {
    let replies = (
        replies.accepted.load(Relaxed),
        replies.rejected.load(Relaxed),
    );
    let counted = (tally.accepted(), tally.rejected());
    if replies == counted {
        return Ok(());
    }
    let message = format!("clients got {replies:?}, accepted and rejected were {counted:?}");
    Err(io::Error::other(message))
}
