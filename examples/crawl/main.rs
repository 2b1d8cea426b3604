//! A polite crawler: each host is asked at a pace, and asked again, later and later, for what fails.
//!
//! The pages of a host wait in a queue of their own, with a pace, a limit of requests at once, a backoff and a
//! limit of attempts. What a page links to is committed together with the page, by `commit_all`: so no page is
//! lost, and its links are told once. The web that is crawled is a server in this process.
//!
//! Run it with `cargo run --release --example crawl`.

mod client;
mod crawler;
mod page;
mod report;
mod web;

use std::io;
use std::time::Instant;

use client::Client;
use web::Web;

fn main() -> io::Result<()> {
    let web = Web::start()?;
    let client = Client::new(web.address());
    let begun = Instant::now();
    let hosts = crawler::crawl(&client, web::home());
    println!("crawled in {} ms", begun.elapsed().as_millis());
    report::report(&hosts, &client, &web.visits(), begun);
    Ok(())
}
