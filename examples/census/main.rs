//! A census of a directory tree: its files, lines and bytes by extension.
//!
//! Every entry of the tree is a job in one [`requeue::Queue`]. A directory pushes its children in the transaction
//! that took it; an entry that cannot be read aborts its transaction, is retried, and finally reported.
//!
//! Run it with `cargo run --release --example census -- [DIR]`.

mod args;
mod balance;
mod report;
mod tally;
mod visit;
mod walk;

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;

use args::Request;
use balance::Balance;
use walk::Walked;

fn main() -> ExitCode {
    let mut out = io::stdout();
    match args::parse(env::args_os().skip(1)) {
        Ok(Request::Help) => exit(print(&mut out, args::USAGE)),
        Ok(Request::Census(root)) => exit(conclude(&mut out, &walk::walk(root, visit::visit))),
        Err(message) => {
            eprintln!("census: {message}\n\n{}", args::USAGE.trim_end());
            ExitCode::from(2)
        }
    }
}

/// Prints the report, and fails if the conservation check fails.
fn conclude(out: &mut impl Write, walked: &Walked) -> Result<(), String> {
    let balance = Balance::of(&walked.tally);
    print(out, &report::report(&walked.tally, &balance))?;
    balance.check(&walked.stats)
}

fn print(out: &mut impl Write, text: &str) -> Result<(), String> {
    let written = out.write_all(text.as_bytes());
    written.map_err(|error| format!("cannot write to standard output: {error}"))
}

fn exit(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("census: {message}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_census_that_does_not_balance_is_printed_and_fails() {
        let mut walked = walk::walk("root".into(), |_, _| Ok(tally::Kind::Other));
        assert_eq!(conclude(&mut Vec::new(), &walked), Ok(()));

        walked.tally.pushed += 1;
        let mut out = Vec::new();
        assert!(conclude(&mut out, &walked).is_err());
        let printed = String::from_utf8(out).unwrap();
        assert!(
            printed.ends_with("conservation: 2 pushed != 1 committed + 0 reported\n"),
            "{printed}"
        );
    }
}
