//! A soak test: everything that the crate can do, at the same time, for as long as asked.
//!
//! Threads and tokio tasks push, pop, commit, abort, panic and give up in long-lived queues of several orders. Their
//! work is divided into rounds of a bounded number of items. After each round the queues are drained and a ledger is
//! audited: no item is lost, none is committed twice. The memory after the first rounds is compared with that at the
//! end.
//!
//! Run it with `cargo run --release --example soak -- --seconds 180`.

mod args;
mod chaos;
mod consume;
mod counts;
mod drain;
mod ending;
mod held;
mod joint;
mod lanes;
mod ledger;
mod letters;
mod memory;
mod observer;
mod planned;
mod pool;
mod probe;
mod produce;
mod rng;
mod round;
mod tasks;
mod watchdog;
mod whole;
mod worker;

use std::env;
use std::process::ExitCode;

use args::Request;

fn main() -> ExitCode {
    match args::parse(env::args().skip(1)) {
        Ok(Request::Help) => {
            print!("{}", args::USAGE);
            ExitCode::SUCCESS
        }
        Ok(Request::Soak(settings)) => whole::run(&settings),
        Err(message) => {
            eprintln!("soak: {message}\n\n{}", args::USAGE.trim_end());
            ExitCode::from(2)
        }
    }
}
