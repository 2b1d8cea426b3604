//! What a backlog beyond the memory costs: how long a store takes to open after its process was killed and how much memory then, and
//! the throughput with the backlog and without.
//!
//! `cargo run --release -p requeue-durable --example durable_backlog -- DIRECTORY`, with `BACKLOG_ITEMS` (1,000,000) items of 100
//! bytes that cannot be compressed, `BACKLOG_MEMORY` (64 MiB; `none`: no pages), memtables of `BACKLOG_MEMTABLE` bytes, and
//! `BACKLOG_SECONDS` (2; 0: none) of throughput. With `BACKLOG_KEEP` the store stays there, and is filled only if there is none. With
//! `BACKLOG_PRIORITIES` the queues are by priority, and one batch after the other has the next of so many; with `BACKLOG_KEYS` they are
//! fair by so many keys. With `BACKLOG_UNIQUE` items are unique, and none is like another one. With `BACKLOG_SCHEDULED` they are by
//! priority, each batch of the backlog is due at some time of the next day, and it is two days later when the store is opened again.

use requeue_durable::{
    Builder, ByKey, ByPriority, Durability, DurableQueue, Fifo, Handle, Order, Store, StoreError,
    StoreOptions, Transaction,
};
use std::env;
use std::error::Error;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::process::{abort, Command};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const FILL: &str = "BACKLOG_FILL";
const BATCH: usize = 32;
const DAY: Duration = Duration::from_secs(24 * 3600);
/// So many jobs fit into memory, and each is written before it is popped.
const SHORT: usize = 30_000;
const BUFFERED: Durability = Durability::Buffered {
    at_most: Duration::from_millis(50),
};

type Job = Vec<u8>;

/// The order of the queues.
trait Kind: Order<Job> {
    fn open(store: &Store, name: &str) -> Result<DurableQueue<Job, Self>, StoreError>;
    fn push(handle: &mut Handle<Job, Self>, batch: usize, jobs: Range<usize>) -> bool;

    fn stage(tx: &Transaction<'_, Job, Self>) -> bool {
        tx.push_batch(next_jobs()).is_ok()
    }
}

impl Kind for Fifo {
    fn open(store: &Store, name: &str) -> Result<DurableQueue<Job>, StoreError> {
        builder(store, name).build()
    }

    fn push(handle: &mut Handle<Job>, _batch: usize, jobs: Range<usize>) -> bool {
        handle.push_batch(jobs.map(job)).is_ok()
    }
}

impl Kind for ByPriority {
    fn open(store: &Store, name: &str) -> Result<DurableQueue<Job, Self>, StoreError> {
        builder(store, name).by_priority().build()
    }

    fn push(handle: &mut Handle<Job, Self>, batch: usize, jobs: Range<usize>) -> bool {
        let priority = batch % number("BACKLOG_PRIORITIES", 1);
        let mut handle = handle.priority(u16::try_from(priority).unwrap_or(u16::MAX));
        if is_scheduled() {
            let seconds = mix(batch as u64) % DAY.as_secs();
            handle = handle.after(Duration::from_secs(seconds));
        }
        handle.push_batch(jobs.map(job)).is_ok()
    }

    fn stage(tx: &Transaction<'_, Job, Self>) -> bool {
        let jobs = next_jobs();
        if is_scheduled() {
            tx.after(Duration::ZERO).push_batch(jobs).is_ok()
        } else {
            tx.push_batch(jobs).is_ok()
        }
    }
}

impl Kind for ByKey<usize, Job> {
    fn open(store: &Store, name: &str) -> Result<DurableQueue<Job, Self>, StoreError> {
        let keys = number("BACKLOG_KEYS", 1);
        let key = move |job: &Job| (usize::from(job[0]) << 8 | usize::from(job[1])) % keys;
        builder(store, name).fair_by(key).build()
    }

    fn push(handle: &mut Handle<Job, Self>, _batch: usize, jobs: Range<usize>) -> bool {
        handle.push_batch(jobs.map(job)).is_ok()
    }
}

fn builder(store: &Store, name: &str) -> Builder<Job> {
    let builder = store.builder(name);
    if is_unique() {
        builder.unique_by(|job: &Job| u64::from_le_bytes(job[..8].try_into().unwrap_or_default()))
    } else {
        builder
    }
}

fn is_unique() -> bool {
    env::var_os("BACKLOG_UNIQUE").is_some()
}

fn is_scheduled() -> bool {
    env::var_os("BACKLOG_SCHEDULED").is_some()
}

fn main() -> Result<(), Box<dyn Error>> {
    if env::var_os("BACKLOG_PRIORITIES").is_some() || is_scheduled() {
        run::<ByPriority>()
    } else if env::var_os("BACKLOG_KEYS").is_some() {
        run::<ByKey<usize, Job>>()
    } else {
        run::<Fifo>()
    }
}

fn run<O: Kind>() -> Result<(), Box<dyn Error>> {
    let directory = env::args().nth(1).ok_or("a directory for the store")?;
    let directory = Path::new(&directory).join("backlog.db");
    let items = number("BACKLOG_ITEMS", 1_000_000);
    if env::var_os(FILL).is_some() {
        return fill::<O>(&directory, items);
    }
    let keep = env::var_os("BACKLOG_KEEP").is_some();
    if !keep || !directory.exists() {
        let _ = fs::remove_dir_all(&directory);
        let mut child = Command::new(env::current_exe()?);
        child.args(env::args_os().skip(1)).env(FILL, "1").status()?;
    }

    let before = resident("VmRSS")?;
    let start = Instant::now();
    let store = open(&directory)?;
    let opened = start.elapsed();
    let jobs = O::open(&store, "jobs")?;
    let first = jobs.pop()?;
    let (elapsed, after) = (start.elapsed(), resident("VmHWM")?);
    println!(
        "{} jobs: store {opened:.3?}, first job {elapsed:.3?}; {before} MiB resident before, {after} then",
        jobs.len() + 1
    );
    assert_eq!(first.len(), 100);
    assert!(keep || jobs.len() == items - 1, "{:?}", jobs.stats());
    if number("BACKLOG_SECONDS", 2) == 0 {
        return Ok(());
    }

    let [none, short] = ["none", "short"].map(|name| O::open(&store, name));
    let (none, short) = (none?, short?);
    for (is, durability) in [("buffered", BUFFERED), ("synced", Durability::Synced)] {
        while short.len() < SHORT {
            short.push_batch(next_jobs())?;
        }
        let with = throughput(&jobs, durability)?;
        println!("{is}: {with:.0} items/s with the backlog");
        for (jobs, which) in [(&none, 0), (&short, SHORT)] {
            let most = resident("VmHWM")?;
            let without = throughput(jobs, durability)?;
            let times = with / without;
            println!("{is}: {without:.0} with {which} jobs, {times:.2}; {most} MiB before");
        }
    }
    drop((jobs, none, short, store));
    if !keep {
        fs::remove_dir_all(&directory)?;
    }
    Ok(())
}

fn number(variable: &str, default: usize) -> usize {
    let value = env::var(variable).ok().and_then(|value| value.parse().ok());
    value.unwrap_or(default)
}

fn open(directory: &Path) -> Result<Store, StoreError> {
    let mut options = StoreOptions::new().durability(BUFFERED);
    if env::var_os("BACKLOG_MEMTABLE").is_some() {
        options = options.memtable(number("BACKLOG_MEMTABLE", 0) as u64);
    }
    if env::var("BACKLOG_MEMORY").as_deref() != Ok("none") {
        options = options.memory(number("BACKLOG_MEMORY", 64 << 20));
    }
    let time = if env::var_os(FILL).is_some() {
        Duration::ZERO
    } else {
        2 * DAY
    };
    let options = options.wall_clock(move || SystemTime::now() + time);
    options.open(directory)
}

fn job(number: usize) -> Job {
    // Bytes that cannot be compressed.
    let word = |place: usize| mix((number * 13 + place) as u64 + 1).to_le_bytes();
    let mut job: Vec<u8> = (0..13).flat_map(word).collect();
    job.truncate(100);
    job
}

/// The finalizer of `SplitMix64`.
fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Fills the store, and dies.
fn fill<O: Kind>(directory: &Path, items: usize) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let store = open(directory)?;
    let jobs = O::open(&store, "jobs")?;
    let mut handle = jobs.handle();
    for (batch, first) in (0..items).step_by(1_000).enumerate() {
        let is_pushed = O::push(&mut handle, batch, first..items.min(first + 1_000));
        assert!(is_pushed, "the push of {first}");
    }
    store.flush()?;
    println!(
        "filled in {:.3?}; {} MiB resident at most",
        start.elapsed(),
        resident("VmHWM")?
    );
    abort()
}

/// The jobs of a batch. Unique ones are not those of an earlier process.
fn next_jobs() -> impl Iterator<Item = Job> {
    static NEXT: LazyLock<AtomicUsize> = LazyLock::new(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        AtomicUsize::new(now.map_or(0, |now| now.as_micros() as usize))
    });
    let first = if is_unique() {
        NEXT.fetch_add(BATCH, Ordering::Relaxed)
    } else {
        0
    };
    (first..first + BATCH).map(job)
}

/// Pushes and pops for some seconds.
fn throughput<O: Kind>(
    jobs: &DurableQueue<Job, O>,
    durability: Durability,
) -> Result<f64, Box<dyn Error>> {
    let mut handle = jobs.handle();
    let (start, mut count) = (Instant::now(), 0_u32);
    let end = Duration::from_secs(number("BACKLOG_SECONDS", 2) as u64);
    while start.elapsed() < end {
        let tx = handle.begin();
        assert!(O::stage(&tx), "a push");
        tx.commit_with(durability)?;
        let tx = handle.begin();
        count += u32::try_from(tx.pop_batch(BATCH)?.len())?;
        tx.commit_with(durability)?;
    }
    Ok(f64::from(count) / start.elapsed().as_secs_f64())
}

/// The resident memory of this process now, or the most that it was, in MiB.
fn resident(which: &str) -> Result<usize, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with(which));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    Ok(kib.ok_or("no such line")?.parse::<usize>()? / 1024)
}
