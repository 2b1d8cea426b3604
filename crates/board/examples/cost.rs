//! What a board of 100 queues costs with no viewer and with one: the time of processors of this process, which is the viewer too.

use requeue::Queue;
use requeue_board::{serve, Board, InMemory};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

const SPAN: Duration = Duration::from_secs(30);

/// The time of processors so far, in hundredths of a second.
fn ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    let fields = fields.split_whitespace().skip(11).take(2);
    fields
        .map(|field| field.parse::<u64>().expect("a number"))
        .sum()
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut board = Board::new();
    for number in 0..100 {
        let queue = Queue::builder().timestamps().build();
        queue.push_batch(0..1000_u32)?;
        board = board.queue(&format!("queue-{number:02}"), InMemory::new(&queue));
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(serve(listener, board.into_router()));
    let before = ticks();
    sleep(SPAN).await;
    println!(
        "no viewer: {} ms of {} s",
        (ticks() - before) * 10,
        SPAN.as_secs()
    );
    for path in ["/live", "/live?queue=queue-00"] {
        let mut viewer = TcpStream::connect(address).await?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        viewer.write_all(request.as_bytes()).await?;
        let (before, mut count, mut bytes) = (ticks(), 0, vec![0; 1 << 16]);
        let read = async {
            loop {
                count += viewer.read(&mut bytes).await.unwrap_or(0);
            }
        };
        let _ = timeout(SPAN, read).await as Result<(), _>;
        let time = (ticks() - before) * 10;
        println!(
            "one viewer of {path}: {time} ms of {} s, {} KB",
            SPAN.as_secs(),
            count / 1000
        );
    }
    Ok(())
}
