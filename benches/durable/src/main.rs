//! A table of jobs on disk: requeue-durable next to fjall alone, redb and SQLite.
//!
//! `cargo run --release -p requeue-durable-bench -- --help`. All contestants run in turn, round by round, in one process,
//! so that noise affects all of them alike; what each gave back is checked against what it got.

// Counts and nanoseconds of a run are far below 2^52.
#![allow(clippy::cast_precision_loss)]
// The names of products.
#![allow(clippy::doc_markdown)]

mod backlog;
mod cell;
mod contestants;
mod machine;
mod options;
mod recovery;
mod report;
mod results;
mod single;

use options::Options;
use results::Results;
use std::error::Error;
use std::process::ExitCode;

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
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
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the run failed: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    if let Some((contestant, count)) = &options.fill {
        return recovery::fill(contestant, &options.dir, *count);
    }
    std::fs::create_dir_all(&options.dir)?;
    let machine = machine::describe(&options.dir);
    println!("{machine}");
    let mut results = Results::default();
    for round in 0..options.rounds {
        eprintln!("round {} of {}", round + 1, options.rounds);
        cell::round(options, round, &mut results)?;
        single::round(options, &mut results)?;
        backlog::round(options, round, &mut results)?;
        recovery::round(options, round, &mut results)?;
    }
    let text = report::text(&results, options);
    println!("{text}");
    if let Some(folder) = &options.out {
        report::write(folder, &machine, &text, &results, options)?;
    }
    Ok(())
}
