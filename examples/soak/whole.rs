//! The whole run: its rounds, its progress, its verdict.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::args::Settings;
use super::counts::Counts;
use super::lanes::Lanes;
use super::ledger::Ledger;
use super::memory::{self, Memory};
use super::rng::Rng;
use super::{round, tasks, watchdog};

const PROGRESS: Duration = Duration::from_secs(3);
/// The samples of the memory count from this part of the time on.
const WARM_UP: u32 = 4;
/// The warm-up has at least this number of rounds.
const WARM_ROUNDS: u32 = 4;

/// What all threads and tasks share.
pub(crate) struct Soak {
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) counts: Arc<Counts>,
    pub(crate) lanes: Lanes,
    stop: AtomicBool,
}

impl Soak {
    fn new() -> Self {
        let (ledger, counts) = (Arc::new(Ledger::new()), Arc::default());
        Self {
            lanes: Lanes::new(&ledger, &counts),
            ledger,
            counts,
            stop: AtomicBool::new(false),
        }
    }

    /// Ends the round, or begins one.
    pub(crate) fn set_stopped(&self, stopped: bool) {
        // ORDERING: Relaxed; the flag guards nothing, and may be seen late.
        self.stop.store(stopped, Ordering::Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        // ORDERING: as above.
        self.stop.load(Ordering::Relaxed) || self.ledger.is_used_up()
    }
}

/// Runs the soak, prints its progress and its verdict.
pub(crate) fn run(settings: &Settings) -> ExitCode {
    let Settings {
        time,
        threads,
        seed,
    } = settings;
    println!("soak: {} s, {threads} threads, seed {seed}", time.as_secs());
    let soak = Arc::new(Soak::new());
    let beat = watchdog::start(Arc::clone(&soak));
    let mut progress = Progress::new(*time);
    let (mut rng, runtime) = (Rng::new(*seed), tasks::runtime());
    loop {
        let last = progress.is_over();
        let plan = round::Plan {
            threads: *threads,
            closing: last,
        };
        round::run(&soak, &runtime, &plan, &mut rng);
        // The watchdog lives as long as this sender.
        let _ = beat.send(());
        progress.after_round(&soak);
        if last {
            return progress.conclude(&soak);
        }
    }
}

struct Progress {
    start: Instant,
    time: Duration,
    printed: Instant,
    rounds: u32,
    memory: Memory,
}

impl Progress {
    fn new(time: Duration) -> Self {
        let start = Instant::now();
        Self {
            start,
            time,
            printed: start,
            rounds: 0,
            memory: Memory::default(),
        }
    }

    fn is_over(&self) -> bool {
        self.start.elapsed() >= self.time
    }

    fn after_round(&mut self, soak: &Soak) {
        self.rounds += 1;
        let warm = self.rounds > WARM_ROUNDS && self.start.elapsed() > self.time / WARM_UP;
        self.memory.sample(memory::resident(), warm);
        if self.printed.elapsed() >= PROGRESS {
            self.printed = Instant::now();
            self.print(soak);
        }
    }

    #[allow(clippy::cast_precision_loss)] // printed with few digits
    fn print(&self, soak: &Soak) {
        let (seconds, committed) = (
            self.start.elapsed().as_secs_f64(),
            soak.counts.committed.get(),
        );
        println!(
            "{seconds:6.1} s: {} rounds, {committed} items, {:.0} a second, {:.1} MiB, {} faults",
            self.rounds,
            committed as f64 / seconds,
            memory::mib(memory::resident().unwrap_or_default()),
            soak.ledger.fault_count()
        );
    }

    fn conclude(&self, soak: &Soak) -> ExitCode {
        self.print(soak);
        print!("{}", soak.counts);
        let memory = self.memory.check();
        let (Ok(line) | Err(line)) = &memory;
        println!("{line}");
        let faults = soak.ledger.take_faults();
        for fault in &faults.described {
            println!("fault: {fault}");
        }
        if faults.count == 0 && memory.is_ok() {
            println!("verdict: nothing is wrong");
            return ExitCode::SUCCESS;
        }
        let grew = if memory.is_ok() {
            ""
        } else {
            ", and the memory grew"
        };
        println!("verdict: WRONG: {} faults{grew}", faults.count);
        ExitCode::FAILURE
    }
}
