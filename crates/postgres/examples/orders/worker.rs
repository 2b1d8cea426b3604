//! A worker process.

use crate::shop::Shop;
use requeue_postgres::Error;
use std::future::Future;
use std::io::{self, Read};
use std::process::{self, Child, Command, Stdio};
use std::thread;

/// The first argument of a worker process.
pub(crate) const ARGUMENT: &str = "worker";

/// Works until the process is killed.
pub(crate) async fn run(url: &str) -> Result<(), Error> {
    thread::spawn(end_with_parent);
    let shop = Shop::connect(&format!("{url} application_name=worker")).await?;
    tokio::join!(forever(|| shop.pay()), forever(|| shop.send()));
    Ok(())
}

/// An error is no end: what the job did is undone, and the job is there again.
async fn forever<F: Future<Output = Result<(), Error>>>(job: impl Fn() -> F) {
    loop {
        let _ = job().await;
    }
}

/// The parent holds the other end of the standard input.
fn end_with_parent() {
    let _ = io::stdin().read(&mut [0]);
    process::exit(0);
}

/// A worker process, as its parent sees it. Dropping it kills the process.
pub(crate) struct Worker {
    url: String,
    process: Child,
}

impl Worker {
    pub(crate) fn start(url: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("the program"));
        let command = command.args([ARGUMENT, url]).stdin(Stdio::piped());
        Self {
            url: url.into(),
            process: command.spawn().expect("a process"),
        }
    }

    /// Kills the process, and starts another.
    pub(crate) fn replace(&mut self) {
        *self = Self::start(&self.url);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill(); // kill -9
        let _ = self.process.wait();
    }
}
