//! A service under load that is interrupted meanwhile.

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

use super::server;
use super::tally::Tally;

/// More than there is room for: some wait for it when the interrupt comes.
const CLIENTS: usize = 32;
/// So many accepted jobs are the middle of the load.
const MIDDLE: u64 = 200;
const PATIENCE: Duration = Duration::from_secs(60);

/// What the clients were told.
#[derive(Default)]
struct Told {
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
    let told = Arc::new(Told::default());
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        clients.spawn(client(address, Arc::clone(&told)));
    }

    told.middle.notified().await;
    interrupt()?;
    let tally = service.await??;
    clients.join_all().await;
    compare(&told, &tally)?;
    Ok(tally)
}

/// Sends jobs, one after the other's answer, until the service hangs up.
async fn client(address: SocketAddr, told: Arc<Told>) -> io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    let (input, mut output) = stream.split();
    let mut replies = BufReader::new(input).lines();
    loop {
        output.write_all(b"a job\n").await?;
        match replies.next_line().await? {
            Some(reply) => told.count(&reply),
            None => return Ok(()),
        }
    }
}

impl Told {
    fn count(&self, reply: &str) {
        if reply.starts_with("rejected") {
            self.rejected.fetch_add(1, Relaxed);
        } else if self.accepted.fetch_add(1, Relaxed) + 1 == MIDDLE {
            self.middle.notify_one();
        }
    }
}

/// As Ctrl-C does: the shell's parent is this process.
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

/// Each job's answer reached its client.
fn compare(told: &Told, tally: &Tally) -> io::Result<()> {
    let told = (told.accepted.load(Relaxed), told.rejected.load(Relaxed));
    let counted = (tally.accepted(), tally.rejected());
    if told == counted {
        return Ok(());
    }
    let message = format!("clients were told {told:?}, accepted and rejected were {counted:?}");
    Err(io::Error::other(message))
}
