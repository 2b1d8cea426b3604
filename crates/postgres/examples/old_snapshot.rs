//! What an old snapshot costs: the latencies of claims without one, and with one that is open meanwhile.
//!
//! `cargo run --release -p requeue-postgres --example old_snapshot [JOBS]` starts a server in a temporary folder, and does 20,000 jobs in each
//! way, or as many as it is told. It prints how many buffers a claim reads at the end, from its fronts and from the start.

#[allow(dead_code, unreachable_pub)] // the tests use more of it
#[path = "../tests/it/server.rs"]
mod server;

use requeue_postgres::tokio_postgres::{Client, Error as Failed, NoTls};
use requeue_postgres::{Error, PgQueue, Postgres};
use server::Server;
use std::time::{Duration, Instant};

/// Jobs between two claims that are measured.
const BATCH: usize = 99;
const SNAPSHOT: &str = "begin isolation level repeatable read; select count(*) from pg_class";

#[tokio::main]
async fn main() -> Result<(), Error> {
    let jobs = std::env::args()
        .nth(1)
        .map(|count| count.parse().expect("a number of jobs"));
    let jobs = jobs.unwrap_or(20_000);
    let server = Server::start("off");
    let (snapshot, look) = (client(&server).await?, client(&server).await?);
    for leased in [false, true] {
        let name = if leased { "leased" } else { "locked" };
        let db = Postgres::options(&server.url())
            .schema(name)
            .connect()
            .await?;
        db.install().await?;
        let builder = db.builder(name);
        let queue = if leased {
            builder.leased(Duration::from_secs(60)).build()
        } else {
            builder.build()
        };
        let without = done(&queue, jobs).await?;
        look.batch_execute("vacuum analyze").await?;
        let buffers = buffers(&look, name).await?;
        println!(
            "{name}, without: {without}; a claim reads {} buffers",
            buffers.1
        );
        snapshot.batch_execute(SNAPSHOT).await?;
        let under = done(&queue, jobs).await?;
        let buffers = self::buffers(&look, name).await?;
        snapshot.batch_execute("commit").await?;
        println!(
            "{name}, under a snapshot for {jobs} jobs: {under}; a claim reads {} buffers, from the start {}",
            buffers.0, buffers.1
        );
    }
    Ok(())
}

async fn client(server: &Server) -> Result<Client, Failed> {
    let (client, connection) =
        requeue_postgres::tokio_postgres::connect(&server.url(), NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Pushes jobs, does them, and returns the latencies of some of the claims.
async fn done(queue: &PgQueue<u64>, jobs: u64) -> Result<String, Error> {
    for first in (0..jobs).step_by(1000) {
        queue.push_batch(first..(first + 1000).min(jobs)).await?;
    }
    let (mut left, mut latencies) = (jobs, Vec::new());
    while left > 0 {
        let begun = Instant::now();
        let mut tx = queue.database().begin().await?;
        let one = tx.pop(queue).await?;
        latencies.push(begun.elapsed());
        let more = tx.pop_batch(queue, BATCH).await?;
        left -= u64::from(one.is_some()) + more.len() as u64;
        tx.commit().await?;
    }
    latencies.sort_unstable();
    let count = latencies.len();
    let at = |percent: usize| latencies[count * percent / 100].as_secs_f64() * 1e3;
    Ok(format!(
        "{count} claims, p50 {:.2} ms, p99 {:.2} ms",
        at(50),
        at(99)
    ))
}

/// How many buffers a claim reads from fronts, and from the start.
async fn buffers(client: &Client, schema: &str) -> Result<(String, String), Failed> {
    let id = format!("select id from {schema}.queues");
    let front = format!(
        "do $$ declare p record; begin p := {schema}.propose_front();
            perform set_config('front.low', ({schema}.find_fronts(({id}), p.below, p.writers, '{{5000}}', '{{0}}'))[1]::text, false);
        end $$"
    );
    client.batch_execute(&front).await?;
    let from = |low: &str| {
        format!(
            "explain (analyze, buffers, costs off, timing off) select * from {schema}.take_from_fronts(({id}), 1, '{{-1,5000}}',
                array[0, {low}], '{{5000,65536}}', pg_postmaster_start_time())"
        )
    };
    let mut read = Vec::new();
    for low in ["current_setting('front.low')::bigint", "0"] {
        client.batch_execute("begin").await?;
        client.query(&from(low), &[]).await?; // plans the statement of the function
        let plan = client.query(&from(low), &[]).await?;
        client.batch_execute("rollback").await?;
        let lines = plan.iter().map(|row| row.get::<_, String>(0));
        let mut hit = lines
            .filter(|line| line.contains("Buffers"))
            .map(|line| line.trim().replace("Buffers: shared hit=", ""));
        read.push(hit.next().unwrap_or_default()); // the others are of the planning
    }
    Ok((read[0].clone(), read[1].clone()))
}
