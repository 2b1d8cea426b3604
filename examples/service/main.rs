//! A small service: jobs arrive over TCP, are queued in a bounded queue, and worker tasks run them.
//!
//! A worker takes a job in a transaction that stays open while the job runs. A failure aborts, and the job is
//! retried; a success commits, together with the job's next step. Ctrl-C closes the queue: no more jobs are accepted,
//! accepted ones are still done, and at the end accepted = done must hold.
//!
//! Run it with `cargo run --release --example service -- [--self-test | PORT]`.

mod jobs;
mod lines;
mod self_test;
mod server;
mod tally;
mod workers;

use std::env;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use tally::Tally;
use tokio::net::TcpListener;

const USAGE: &str = "\
Usage: service [PORT]
       service --self-test

Listens on 127.0.0.1 (PORT 7878 if none is given). Each line that a client sends
is a job; each is answered with \"accepted N\" or with \"rejected\" and the reason:
the service is closing, or the line is no UTF-8, or has more than 1024 bytes.
Ctrl-C ends it when all lines are answered and all accepted jobs are done.

Options:
  --self-test  load a service on a free port, interrupt it meanwhile, and check
               that nothing was lost
  -h, --help   print this help

Exit codes: 0 all that was accepted is done, 1 it is not, 2 a bad argument.
";

const DEFAULT_PORT: u16 = 7878;

#[derive(Debug, PartialEq)]
enum Request {
    Help,
    SelfTest,
    Serve(u16),
}

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    let result = match parse(env::args().skip(1)) {
        Ok(Request::Help) => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Ok(Request::SelfTest) => self_test::run().await,
        Ok(Request::Serve(port)) => serve(port).await,
        Err(message) => {
            eprintln!("service: {message}\n\n{}", USAGE.trim_end());
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(tally) => conclude(&tally),
        Err(error) => {
            eprintln!("service: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Request, String> {
    let request = match args.next().as_deref() {
        None => Request::Serve(DEFAULT_PORT),
        Some("-h" | "--help") => return Ok(Request::Help),
        Some("--self-test") => Request::SelfTest,
        Some(port) => match port.parse() {
            Ok(port) => Request::Serve(port),
            Err(_) => return Err(format!("\"{port}\" is no port")),
        },
    };
    match args.next() {
        None => Ok(request),
        Some(extra) => Err(format!("one argument at a time, not \"{extra}\" too")),
    }
}

async fn serve(port: u16) -> io::Result<Arc<Tally>> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!("listening on {}; Ctrl-C ends it", listener.local_addr()?);
    server::serve(listener, server::interrupted()).await
}

/// Prints the counts, and fails if a job was lost.
fn conclude(tally: &Tally) -> ExitCode {
    println!("{tally}");
    match tally.check() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("service: {message}");
            ExitCode::FAILURE
        }
    }
}
