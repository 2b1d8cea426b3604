//! Compares requeue with other queues and channels, and with what one writes by hand:
//! `cargo run --release -p requeue-compare -- --help`.
//!
//! All subjects of a workload run in turn, round by round, in one process, so that noise affects all of them alike, and
//! what each has received is checked against what was sent. `docs/performance.md` says how to read the results.

// A `receiver` is what items are `received` from.
#![allow(clippy::similar_names)]

mod alloc;
mod calls;
mod goals;
mod measure;
mod options;
mod output;
mod peers;
mod results;
mod tally;
mod threads;
mod watchdog;
mod workloads;

use options::Options;
use results::Table;
use std::process::ExitCode;
use watchdog::Watchdog;
use workloads::workloads;

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
    let machine = output::machine();
    println!("{machine}");
    let tables = run(&options);
    goals::print(&tables);
    if let Some(folder) = &options.out {
        if let Err(error) = output::write(folder, &machine, &options, &tables) {
            eprintln!(
                "nothing or not all was written to {}: {error}",
                folder.display()
            );
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Runs the selected workloads and prints each.
fn run(options: &Options) -> Vec<Table> {
    let watchdog = Watchdog::start();
    let mut all = Vec::new();
    for workload in workloads(options.sizes) {
        if workload.name.contains(&options.only) {
            let tables = workload.run(options.rounds, &watchdog);
            tables.iter().for_each(Table::print);
            all.extend(tables);
        }
    }
    all
}

#[cfg(test)]
mod tests;
