//! Processes of the tests: this test program again, with a role.

use crate::base::{options, Db, Mode};
use crate::{crashes, history, mixed};
use requeue_postgres::Postgres;
use std::env;
use std::io::{self, BufRead, BufReader, Lines, Read};
use std::process::{self, ChildStdout, Command, Stdio};
use std::thread;

const ROLE: &str = "REQUEUE_FAULTS_ROLE";
const URL: &str = "REQUEUE_FAULTS_URL";
const SCHEMA: &str = "REQUEUE_FAULTS_SCHEMA";
const MODE: &str = "REQUEUE_FAULTS_MODE";
/// The argument of a role.
const ARGUMENT: &str = "REQUEUE_FAULTS_ARGUMENT";

/// A process. Dropping it kills it.
pub(crate) struct Child {
    process: process::Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Child {
    /// Starts a process whose sessions have the name of its role.
    pub(crate) fn start(db: &Db, mode: Mode, role: &str, argument: &str) -> Self {
        Self::start_by(&db.url, db, mode, role, argument)
    }

    /// The same, with connections by this URL.
    pub(crate) fn start_by(url: &str, db: &Db, mode: Mode, role: &str, argument: &str) -> Self {
        let mut command = Command::new(env::current_exe().expect("the program"));
        command
            .args(["--exact", "child::role", "--nocapture"])
            .env(ROLE, role)
            .env(URL, format!("{url} application_name={}", name(db, role)))
            .env(SCHEMA, &db.schema)
            .env(MODE, format!("{mode:?}"))
            .env(ARGUMENT, argument)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut process = command.spawn().expect("a process");
        let out = process.stdout.take().expect("a pipe");
        let lines = BufReader::new(out).lines();
        Self { process, lines }
    }

    /// Waits until the process has printed this line.
    pub(crate) fn prints(&mut self, line: &str) {
        let mut lines = self.lines.by_ref().map_while(Result::ok);
        assert!(
            lines.any(|printed| printed == line),
            "it ended before {line:?}"
        );
    }

    /// Whether the process has not ended.
    pub(crate) fn runs(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    /// Waits until the process has ended by itself.
    pub(crate) fn ends(mut self) {
        let _open = self.process.stdin.take(); // `wait` would close it
        let _ = self.process.wait();
    }
}

/// The name of the sessions of a role.
pub(crate) fn name(db: &Db, role: &str) -> String {
    format!("{}_{role}", db.schema)
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill(); // kill -9
        let _ = self.process.wait();
    }
}

/// Prints a line for [`Child::prints`]. The test harness may have begun one.
pub(crate) fn print(line: &str) {
    println!("\n{line}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn role() {
    let Ok(role) = env::var(ROLE) else {
        return; // not a child
    };
    thread::spawn(|| {
        let _ = io::stdin().read(&mut [0]); // until the parent ends
        process::exit(0);
    });
    let get = |name| env::var(name).expect("set by the parent");
    if role == mixed::ROLE {
        return mixed::process::run(&get(URL), &get(SCHEMA), &get(ARGUMENT)).await;
    }
    let db: Postgres = options(&get(URL), &get(SCHEMA)).connect().await.unwrap();
    let mode = match &*get(MODE) {
        "Locked" => Mode::Locked,
        "Leased" => Mode::Leased,
        _ => Mode::Prefetched,
    };
    match &*role {
        "hold" => crashes::hold(&db, mode).await,
        "crash" => crashes::crash(&db, mode, &get(ARGUMENT)).await,
        "history" => history::process::run(&db, mode, &get(ARGUMENT)).await,
        _ => panic!("no role"),
    }
}
