//! Many tenants share a service, and one of them is noisy: how long do the jobs of each tenant wait?
//!
//! The same load goes through a plain queue and through one that is fair by tenant. In the plain one the quiet
//! tenants wait behind the whole burst of the noisy one; the fair one serves all tenants round-robin.
//!
//! Run it with `cargo run --release --example tenants`.

use std::env;
use std::hint::spin_loop;
use std::process::ExitCode;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use requeue::{FairQueue, Order, Queue, Workers};

const USAGE: &str = "\
Usage: tenants

Puts the load of ten tenants, one of them noisy, through a plain queue and
through one that is fair by tenant, and prints how long the jobs of each waited.

Options:
  -h, --help  print this help

Exit codes: 0 no quiet tenant waited for the noisy one, 2 a bad argument.
";

/// The noisy tenant comes first.
const TENANTS: usize = 10;
const NOISY: usize = 0;
/// Number of jobs that the noisy tenant pushes at once, and each other tenant a little later.
const BURST: usize = 2000;
const FEW: usize = 20;
const LATER: Duration = Duration::from_millis(10);

const WORKERS: usize = 2;
/// The duration of a job.
const WORK: Duration = Duration::from_micros(100);

struct Job {
    tenant: usize,
    pushed: Instant,
}

/// The waits of the jobs of a tenant, in ascending order.
type Waits = Vec<Duration>;

fn main() -> ExitCode {
    if let Some(answer) = answer_to(env::args().nth(1).as_deref()) {
        return answer;
    }
    let plain = serve(&Queue::unbounded());
    let fair = serve(&FairQueue::by(|job: &Job| job.tenant));

    print(&plain, &fair);
    check(&plain, &fair);
    ExitCode::SUCCESS
}

/// Handles the arguments: `None` if there are none.
fn answer_to(argument: Option<&str>) -> Option<ExitCode> {
    match argument? {
        "-h" | "--help" => {
            print!("{USAGE}");
            Some(ExitCode::SUCCESS)
        }
        other => {
            eprintln!("tenants: what is \"{other}\"?\n\n{}", USAGE.trim_end());
            Some(ExitCode::from(2))
        }
    }
}

/// Passes the load through a queue, and returns the waits of each tenant.
fn serve<O: Order<Job> + 'static>(queue: &Queue<Job, O>) -> Vec<Waits> {
    let (done, waits) = channel();
    let workers = Workers::builder(queue)
        .threads(WORKERS)
        .run(move |job, _tx| {
            let waited = job.pushed.elapsed();
            work();
            done.send((job.tenant, waited))
        });

    push(queue, NOISY, BURST);
    thread::sleep(LATER);
    for tenant in 1..TENANTS {
        push(queue, tenant, FEW);
    }
    queue.close();
    workers.join();

    let mut tenants = vec![Waits::new(); TENANTS];
    for (tenant, waited) in waits {
        tenants[tenant].push(waited);
    }
    for waits in &mut tenants {
        waits.sort();
    }
    tenants
}

/// From one thread: then the plain queue is strictly FIFO.
fn push<O: Order<Job>>(queue: &Queue<Job, O>, tenant: usize, jobs: usize) {
    for _ in 0..jobs {
        let pushed = Instant::now();
        let taken = queue.push(Job { tenant, pushed });
        taken.expect("the queue is open and unbounded");
    }
}

fn work() {
    let end = Instant::now() + WORK;
    while Instant::now() < end {
        spin_loop();
    }
}

fn print(plain: &[Waits], fair: &[Waits]) {
    println!("                         plain queue      fair by tenant");
    println!("tenant    jobs    median   longest    median   longest");
    for (tenant, (plain, fair)) in plain.iter().zip(fair).enumerate() {
        let name = match tenant {
            NOISY => "noisy".to_owned(),
            _ => format!("quiet {tenant}"),
        };
        let times = [plain, fair].map(|waits| {
            let [median, longest] = [median(waits), longest(waits)].map(millis);
            format!("{median:7.1} ms{longest:7.1} ms")
        });
        println!("{name:9}{:5}{}{}", plain.len(), times[0], times[1]);
    }
}

/// Checks that all jobs were done, and that no quiet tenant of a fair queue waited for the noisy one.
fn check(plain: &[Waits], fair: &[Waits]) {
    for waits in [plain, fair] {
        let jobs: Vec<_> = waits.iter().map(Vec::len).collect();
        assert_eq!(jobs[NOISY], BURST);
        assert_eq!(jobs[1..], [FEW; TENANTS - 1]);
    }
    for quiet in &fair[1..] {
        assert!(
            median(quiet) < median(&fair[NOISY]),
            "a quiet tenant waited"
        );
    }
}

fn median(waits: &Waits) -> Duration {
    waits[waits.len() / 2]
}

fn longest(waits: &Waits) -> Duration {
    waits[waits.len() - 1]
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
