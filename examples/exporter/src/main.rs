//! Queues with names, workers that fail now and then, and their metrics for Prometheus at `/metrics`.
//!
//! `dashboard.json` is a dashboard for Grafana that shows them: see the README beside it. Run the program with
//! `cargo run --release -p requeue-exporter`.

mod http;
mod invoices;
mod site;

use std::env;
use std::error::Error;
use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use invoices::Place;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use site::Site;

const USAGE: &str = "\
Usage: requeue-exporter [PORT]
       requeue-exporter --self-test

Runs some queues under load, and serves their metrics for Prometheus at
http://127.0.0.1:PORT/metrics (PORT 9000 if none is given) until it is killed.

Options:
  --self-test  run one round of load, scrape the metrics once from a free port,
               print them, and exit
  -h, --help   print this help

Exit codes: 0 the self-test has passed, 1 it has not, 2 a bad argument.
";

const DEFAULT_PORT: u16 = 9000;

/// The pause between two rounds of load.
const PAUSE: Duration = Duration::from_secs(1);

/// Upper bounds of the buckets, in seconds: from a millisecond to five minutes.
const SECONDS: [f64; 14] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0,
];
const ATTEMPTS: [f64; 5] = [1.0, 2.0, 3.0, 5.0, 10.0];
const COMMITS: [f64; 6] = [1.0, 2.0, 4.0, 8.0, 16.0, 64.0];

fn main() -> ExitCode {
    let port = match env::args().nth(1).as_deref() {
        Some("-h" | "--help") => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Some("--self-test") => None,
        Some(port) => Some(port.parse()),
        None => Some(Ok(DEFAULT_PORT)),
    };
    let Ok(port) = port.transpose() else {
        eprintln!("requeue-exporter: no such port\n\n{}", USAGE.trim_end());
        return ExitCode::from(2);
    };
    match run(port) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("requeue-exporter: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Serves the metrics; without a port, only to itself and once.
fn run(port: Option<u16>) -> Result<(), Box<dyn Error>> {
    let recorder = recorder()?; // before the queues are made, which describe their metrics
    let listener = TcpListener::bind(("127.0.0.1", port.unwrap_or(0)))?;
    let address = listener.local_addr()?;
    let place = Place::new(port.is_none());
    let site = Arc::new(Site::open(&place.store())?);
    let scraped = Arc::clone(&site);
    thread::spawn(move || {
        http::serve(&listener, || {
            scraped.observe();
            recorder.render()
        });
    });
    if port.is_none() {
        site.load()?;
        site.settle();
        print!("{}", http::get(address, "/metrics")?);
        return Ok(site.check()?);
    }
    println!("metrics at http://{address}/metrics");
    loop {
        site.load()?;
        thread::sleep(PAUSE);
    }
}

/// Without buckets the exporter makes summaries, whose quantiles cannot be added up over queues and processes.
fn recorder() -> Result<PrometheusHandle, Box<dyn Error>> {
    let builder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".into()), &SECONDS)?
        .set_buckets_for_metric(Matcher::Full("requeue_attempts".into()), &ATTEMPTS)?
        .set_buckets_for_metric(Matcher::Suffix("_commits".into()), &COMMITS)?;
    Ok(builder.install_recorder()?)
}
