//! What a board of 100 queues costs with no viewer and with one: the time of processors of this process, which is the viewer too. The
//! queues are in memory, or in the database that `COST_POSTGRES` names, in the schema `cost`.

use requeue::Queue;
use requeue_board::{serve, Board, InMemory};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

const QUEUES: usize = 100;
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

async fn board() -> Result<Board, Box<dyn std::error::Error>> {
    let mut board = Board::new();
    #[cfg(feature = "postgres")]
    if let Ok(url) = std::env::var("COST_POSTGRES") {
        use requeue_postgres::Postgres;

        let database = Postgres::options(&url).schema("cost").connect().await?;
        database.install().await?;
        for number in 0..QUEUES {
            let queue = database.queue::<u32>(&name(number));
            queue.push_batch(0..1000).await?;
        }
        return Ok(board.source(requeue_board::InPostgres::of(database, "cost")));
    }
    for number in 0..QUEUES {
        let queue = Queue::builder().timestamps().build();
        queue.push_batch(0..1000_u32)?;
        board = board.queue(&name(number), InMemory::new(&queue));
    }
    Ok(board)
}

fn name(number: usize) -> String {
    format!("queue-{number:02}")
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let board = board().await?;
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
