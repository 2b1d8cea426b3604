//! A polite crawler: requests to each host are rate limited, and failed ones are retried with backoff.
//!
//! The pages of a host are in a queue with a rate limit, a concurrency limit, a backoff and a limit of attempts. The
//! links of a page are committed together with the page, by `commit_all`: so no page is lost, and its links are sent
//! once. The crawled web is a server in this process.
//!
//! Run it with `cargo run --release --example crawl`.

mod client;
mod crawler;
mod diary;
mod page;
mod report;
mod web;

use std::env;
use std::io;
use std::process::ExitCode;
use std::time::Instant;

use client::Client;
use web::Web;

const USAGE: &str = "\
Usage: crawl

Crawls a small web that it serves itself, each host at a pace of 50 ms, and
prints what became of the pages. The least gap is that between two starts; on
its way to the host a request may be held up, and come nearer to the next one.

Options:
  -h, --help  print this help

Exit codes: 0 no page was lost and no host asked too often, 1 it cannot serve,
2 a bad argument.
";

fn main() -> ExitCode {
    if let Some(answer) = answer_to(env::args().nth(1).as_deref()) {
        return answer;
    }
    match crawl() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("crawl: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Handles the arguments: `None` if there are none.
fn answer_to(argument: Option<&str>) -> Option<ExitCode> {
    match argument? {
        "-h" | "--help" => {
            print!("{USAGE}");
            Some(ExitCode::SUCCESS)
        }
        other => {
            eprintln!("crawl: what is \"{other}\"?\n\n{}", USAGE.trim_end());
            Some(ExitCode::from(2))
        }
    }
}

fn crawl() -> io::Result<()> {
    let web = Web::start()?;
    let client = Client::new(web.address());
    let begun = Instant::now();
    let hosts = crawler::crawl(&client, web::home());
    println!("crawled in {} ms", begun.elapsed().as_millis());
    report::report(&hosts, &web.visits());
    Ok(())
}
