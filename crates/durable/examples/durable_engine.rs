//! What the storage engine alone does with the rows of a fair queue that has a backlog: it is the bound of `durable_backlog` with
//! `BACKLOG_KEYS`.
//!
//! `cargo run --release -p requeue-durable --example durable_engine -- DIRECTORY`, with `ENGINE_ROWS` (1,000,000) rows that are there, of
//! `ENGINE_ITEMS` (1) items of 100 bytes, by `ENGINE_KEYS` (1,000) keys. A thread reads pages of the next `ENGINE_PAGE` (48) rows of the keys,
//! which take turns, and another one writes groups: each has rows of random keys, behind those that are there, and removals of rows that were
//! read, for 32 items, if there are rows for them. Nothing is synced, decoded or delivered.

use fjall::compaction::Leveled;
use fjall::config::FilterPolicy;
use fjall::{Database, Keyspace, KeyspaceCreateOptions};
use std::collections::VecDeque;
use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const BATCH: usize = 32;
const ITEM: usize = 100;
/// As in a store with a memory of 64 MiB.
const MEMTABLE: u64 = (64 << 20) / 48;
const TIME: Duration = Duration::from_secs(4);

type Key = [u8; 12];

/// The keys of rows to be written, and of those to be removed.
type Group = (Vec<Key>, Vec<Key>);

fn main() -> Result<(), Box<dyn Error>> {
    let directory = env::args().nth(1).ok_or("a directory for the tables")?;
    let directory = Path::new(&directory).join("engine.db");
    let _ = fs::remove_dir_all(&directory);
    let [rows, items, keys, page] = [
        ("ENGINE_ROWS", 1_000_000),
        ("ENGINE_ITEMS", 1),
        ("ENGINE_KEYS", 1_000),
        ("ENGINE_PAGE", 48),
    ]
    .map(|(variable, default)| number(variable, default));
    let (database, table) = open(&directory)?;
    let mut serials = 0..;
    let mut next = move || {
        let serial: u64 = serials.next().unwrap_or(0);
        row(mix(serial) % keys as u64, serial)
    };
    for _ in 0..rows.div_ceil(1_000) {
        write(
            &database,
            &table,
            items,
            ((0..1_000).map(|_| next()).collect(), Vec::new()),
        )?;
    }

    let (send, groups) = sync_channel::<Group>(64);
    let (database, written) = (database, table.clone());
    let writer = thread::spawn(move || {
        groups
            .into_iter()
            .try_for_each(|group| write(&database, &written, items, group))
    });
    let (mut pages, mut level) = (vec![Page::default(); keys], 0);
    let (start, mut count) = (Instant::now(), 0_u32);
    while start.elapsed() < TIME {
        let pushed = (0..BATCH.div_ceil(items)).map(|_| next()).collect();
        let mut removed = Vec::new();
        while removed.len() < BATCH.div_ceil(items) {
            level = (level + 1) % keys;
            removed.extend(pages[level].pop(&table, level as u64, page)?);
        }
        count += u32::try_from(removed.len() * items)?;
        send.send((pushed, removed))?;
    }
    let rate = f64::from(count) / start.elapsed().as_secs_f64();
    drop(send);
    writer.join().map_err(|_| "the writer panicked")??;
    println!("{rate:.0} items/s");
    fs::remove_dir_all(&directory)?;
    Ok(())
}

fn open(directory: &Path) -> fjall::Result<(Database, Keyspace)> {
    let database = Database::builder(directory)
        .manual_journal_persist(true)
        .max_journaling_size(64 << 20)
        .worker_threads(4)
        .cache_size(2 * MEMTABLE)
        .open()?;
    let compaction = Leveled::default()
        .with_l0_threshold(8)
        .with_table_target_size(8 << 20);
    let options = KeyspaceCreateOptions::default()
        .max_memtable_size(MEMTABLE)
        .compaction_strategy(Arc::new(compaction))
        .filter_policy(FilterPolicy::disabled());
    let table = database.keyspace("items", || options)?;
    Ok((database, table))
}

fn write(
    database: &Database,
    table: &Keyspace,
    items: usize,
    (pushed, removed): Group,
) -> fjall::Result<()> {
    let mut batch = database.batch();
    for key in pushed {
        batch.insert(table, key, value(key, items * ITEM));
    }
    for key in removed {
        batch.remove(table, key);
    }
    batch.commit()
}

/// The rows of a key that were read and not taken.
#[derive(Clone, Default)]
struct Page {
    rows: VecDeque<Key>,
    next: u64,
}

impl Page {
    fn pop(&mut self, table: &Keyspace, level: u64, most: usize) -> fjall::Result<Option<Key>> {
        if self.rows.is_empty() {
            let range = row(level, self.next)..row(level + 1, 0);
            for read in table.range(range).take(most) {
                let (key, _value) = read.into_inner()?;
                let key = Key::try_from(&*key).unwrap_or_default();
                let serial = key[6..]
                    .iter()
                    .fold(0, |serial, byte| serial << 8 | u64::from(*byte));
                self.next = serial + 1;
                self.rows.push_back(key);
            }
        }
        Ok(self.rows.pop_front())
    }
}

/// The key of a row.
fn row(level: u64, serial: u64) -> Key {
    let mut key = [0; 12];
    key[4..].copy_from_slice(&(level << 48 | serial).to_be_bytes());
    key
}

/// Bytes that cannot be compressed.
fn value(key: Key, len: usize) -> Vec<u8> {
    let seed = u64::from_le_bytes(key[4..].try_into().unwrap_or_default());
    let words = (1..).flat_map(|place: u64| mix(seed ^ place).to_le_bytes());
    words.take(len).collect()
}

fn number(variable: &str, default: usize) -> usize {
    let value = env::var(variable).ok().and_then(|value| value.parse().ok());
    value.unwrap_or(default)
}

/// The finalizer of `SplitMix64`.
fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}
