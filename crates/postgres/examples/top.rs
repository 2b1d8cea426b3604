//! A live view of queues in a database: what is ready, held, delayed and dead, and how old the oldest item is.
//!
//! `cargo run -p requeue-postgres --example top -- postgres://app@localhost/app jobs receipts`

use requeue_postgres::{Error, PgQueue, Postgres, Stats};
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "\
Usage: top [--frames N] [--schema NAME] URL QUEUE...

Prints a table of the queues each second.

Options:
  --frames N     end after N tables
  --schema NAME  the schema of the tables, `requeue` if not given
";

/// Any item: the view does not look at them.
type Queue = PgQueue<serde_json::Value>;

struct Arguments {
    frames: u64,
    schema: String,
    url: String,
    queues: Vec<String>,
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Arguments> {
    let (mut frames, mut schema) = (u64::MAX, "requeue".to_string());
    loop {
        match arguments.next()?.as_str() {
            "--frames" => frames = arguments.next()?.parse().ok()?,
            "--schema" => schema = arguments.next()?,
            url => {
                let queues: Vec<_> = arguments.collect();
                return (!url.starts_with('-') && !queues.is_empty()).then(|| Arguments {
                    frames,
                    schema,
                    url: url.into(),
                    queues,
                });
            }
        }
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let Some(arguments) = parse(std::env::args().skip(1)) else {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    };
    match watch(&arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("top: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn watch(arguments: &Arguments) -> Result<(), Error> {
    let options = Postgres::options(&arguments.url).schema(&arguments.schema);
    let db = options.connect().await?;
    let queues: Vec<Queue> = arguments.queues.iter().map(|name| db.queue(name)).collect();
    let mut second = tokio::time::interval(Duration::from_secs(1));
    for _ in 0..arguments.frames {
        second.tick().await;
        println!(
            "{:<20}{:>10}{:>10}{:>10}{:>10}{:>12}",
            "queue", "ready", "held", "delayed", "dead", "oldest"
        );
        for queue in &queues {
            println!("{}", line(queue.name(), &queue.stats().await?));
        }
        println!();
    }
    Ok(())
}

fn line(name: &str, stats: &Stats) -> String {
    let oldest = stats.oldest.unwrap_or_default().as_secs_f64();
    let paused = if stats.paused { "  paused" } else { "" };
    let Stats {
        ready,
        held,
        delayed,
        dead,
        ..
    } = stats;
    format!("{name:<20}{ready:>10}{held:>10}{delayed:>10}{dead:>10}{oldest:>10.1} s{paused}")
}
