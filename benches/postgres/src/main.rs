//! Queues in PostgreSQL, on one server: graphile_worker, apalis-postgres and hand-written SKIP LOCKED.
//!
//! `cargo run --release -p requeue-postgres-bench -- --help`. All contestants run in turn, round by round, in one process,
//! so that noise affects all of them alike; after each run, what is left is compared with what was pushed and done.
//!
//! Jobs do nothing. Jobs per second are of workers by the public interface of each: loops of batches, and the pools of each crate
//! with one setting each: what they can take ahead is 1,000 jobs. One producer pushes as many jobs as are done, by its bulk push, so that with a small
//! backlog a slow push shows too. The claim is then called by itself.

// Counts and nanoseconds of a run are far below 2^52.
#![allow(clippy::cast_precision_loss)]
// The names of products.
#![allow(clippy::doc_markdown)]

mod bench;
mod cell;
mod contestants;
mod jobs;
mod latency;
mod machine;
mod options;
mod report;
mod results;
mod server;

use bench::Bench;
use options::Options;
use server::Server;
use std::error::Error;
use std::process::ExitCode;

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => {
            print!("{}", options::HELP);
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("{error}\n\n{}", options::HELP);
            return ExitCode::FAILURE;
        }
    };
    let outcome = tokio::select! {
        outcome = run(&options) => outcome,
        _ = tokio::signal::ctrl_c() => Err("interrupted".into()), // the server is stopped
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the run failed: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: &Options) -> Result<(), Failure> {
    let server = Server::start(&options.dir, options.bin.as_deref())?;
    let machine = machine::describe(&server).await?;
    println!("{machine}");
    let mut bench = Bench::new(options, &server);
    for round in 0..options.rounds {
        eprintln!("round {} of {}", round + 1, options.rounds);
        bench.round(round).await?;
    }
    let text = report::text(&bench.results, options);
    println!("{text}");
    if let Some(folder) = &options.out {
        report::write(folder, &machine, &text, &bench.results, options)?;
    }
    match bench
        .results
        .failures
        .iter()
        .find(|failure| failure.contains(" requeue"))
    {
        Some(failure) => Err(failure.as_str().into()),
        None => Ok(()), // the failures of peers are in the report
    }
}
