//! Stores of all versions of the format. Each file `version-N` is a store as the crate has written it when N was the newest version,
//! or the first one that needed it: the files of its directory, without the zeros at their ends. It is never written again.
//!
//! A new version gets one by `DURABLE_FIXTURE=N cargo test --test it formats::write_a_store -- --ignored`.

use super::{directory, options};
use requeue_durable::{ByPriority, DurableQueue, ManualClock, OnDuplicate, Store};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::str;
use std::time::{Duration, UNIX_EPOCH};

/// When the stores were written.
const WRITTEN: Duration = Duration::from_secs(1_800_000_000);
const HOUR: Duration = Duration::from_secs(3600);

fn open_at(path: &Path, time: Duration) -> Store {
    let options = options().wall_clock(move || UNIX_EPOCH + time);
    options.open(path).unwrap()
}

/// Writes all that a version has.
fn fill(path: &Path, version: u32) {
    let store = open_at(path, WRITTEN);
    let clock = ManualClock::new();
    let jobs = store.builder::<String>("jobs").max_attempts(3);
    let jobs = jobs.clock(clock.clone()).build().unwrap();
    jobs.push_batch(["done", "failed", "bad", "delayed", "ready"].map(String::from))
        .unwrap();
    let tx = jobs.begin_owned();
    tx.pop().unwrap();
    tx.commit().unwrap();
    let tx = jobs.begin_owned();
    let failed = tx.pop().unwrap();
    tx.fail(tx.pop().unwrap(), "no such page").unwrap();
    tx.retry_after(tx.pop().unwrap(), HOUR).unwrap();
    tx.retry(failed).unwrap();
    tx.commit().unwrap();

    let alarms = store.builder::<u32>("alarms").by_priority();
    let alarms = alarms.clock(clock.clone()).build().unwrap();
    alarms.push(1).unwrap();
    alarms.priority(3).push(2).unwrap();
    alarms.priority(9).after(HOUR).push(3).unwrap();

    let tenants = store.builder::<(u8, u8)>("tenants");
    let tenants = tenants.fair_by(|item| item.0).build().unwrap();
    tenants.push_batch([(1, 1), (1, 2), (2, 3)]).unwrap();
    tenants.close().unwrap();

    let once = unique(&store);
    once.push("taken".to_string()).unwrap();
    once.pop().unwrap();
    store.queue::<u8>("empty").unwrap().push(1).unwrap();
    store.queue::<u8>("empty").unwrap().pop().unwrap();
    if version >= 2 {
        let news = store.builder::<String>("news").ttl(2 * HOUR);
        let news = news.clock(clock).build().unwrap();
        news.push("old".to_string()).unwrap();
    }
    if version >= 3 {
        let pages = store.builder::<u32>("pages").memory(0).build().unwrap();
        pages.push_batch(0..20).unwrap();
        assert_eq!(pages.pop_batch(3).unwrap().len(), 3);
        assert_eq!(pages.retain(|number, _| number % 5 > 0).unwrap(), 3);
    }
    if version >= 4 {
        let keys = keyed(&store);
        keys.push_batch(0..20).unwrap();
        assert!(keys.push(107).unwrap_err().is_duplicate());
        assert_eq!(keys.pop_batch(3).unwrap(), [0, 1, 2]);
        keys.push(101).unwrap();
    }
    if version >= 5 {
        let later = scheduled(&store);
        later.priority(2).after(HOUR).push_batch(10..14).unwrap();
        let tickets = later.priority(1).after(HOUR / 2).push_batch(0..12).unwrap();
        assert_eq!(later.cancel(tickets[1]).unwrap(), Some(1));
        later.after(3 * HOUR).push(30).unwrap();
        assert_eq!(later.retain(|number, _| *number != 11).unwrap(), 2);
    }
    if version >= 6 {
        let consumed = consumed(&store);
        consumed.push_batch(0..20).unwrap();
        consumed.push_batch(20..40).unwrap();
        assert_eq!(consumed.pop_batch(30).unwrap().len(), 30);
        assert_eq!(consumed.retain(|number, _| *number != 35).unwrap(), 1);
    }
    if version >= 7 {
        let (plain, urgent) = without_pages(&store);
        plain.push_batch(0..20).unwrap();
        assert_eq!(plain.pop_batch(5).unwrap().len(), 5);
        urgent.push_batch(0..20).unwrap();
        assert_eq!(urgent.retain(|number, _| *number != 7).unwrap(), 1);
    }
    if version >= 8 {
        let later = scheduled(&store);
        later.priority(8).after(HOUR).push_batch(40..60).unwrap();
        assert_eq!(later.retain(|number, _| *number != 45).unwrap(), 1);
    }
}

/// Whose rows are chunks.
fn without_pages(store: &Store) -> (DurableQueue<u32>, DurableQueue<u32, ByPriority>) {
    let urgent = store.builder("urgent").by_priority().build();
    (store.queue("plain").unwrap(), urgent.unwrap())
}

fn consumed(store: &Store) -> DurableQueue<u32> {
    store.builder("consumed").memory(0).build().unwrap()
}

fn scheduled(store: &Store) -> DurableQueue<u32, ByPriority> {
    let later = store.builder("later").by_priority();
    later.memory(0).build().unwrap()
}

fn keyed(store: &Store) -> DurableQueue<u32> {
    let keys = store.builder("keys").memory(0);
    keys.unique_by(|number| number % 100).build().unwrap()
}

fn unique(store: &Store) -> DurableQueue<String> {
    let once = store.builder::<String>("once").unique_by(String::clone);
    let once = once.on_duplicate(OnDuplicate::Refuse).unique_for(2 * HOUR);
    once.build().unwrap()
}

/// What [`fill`] has written is there, an hour later.
fn check(path: &Path, version: u32) {
    let time = UNIX_EPOCH + WRITTEN + HOUR;
    let options = options().wall_clock(move || time);
    let store = options.check().open(path).unwrap();
    let jobs = store.builder::<String>("jobs").max_attempts(3);
    let jobs = jobs.build().unwrap();
    let tx = jobs.begin_owned();
    let items = tx.pop_batch(9).unwrap();
    let items: Vec<_> = items
        .map(|item| ((*item).clone(), item.attempts()))
        .collect();
    let expected = [("failed", 2), ("delayed", 2), ("ready", 1)];
    assert_eq!(
        items,
        expected.map(|(item, attempts)| (item.to_string(), attempts))
    );
    let letter = jobs.dead_letters().oldest().unwrap().unwrap();
    assert_eq!((&*letter.item, letter.attempts), ("bad", 1));
    assert_eq!(letter.error.as_deref(), Some("no such page"));
    assert_eq!(letter.died_at, UNIX_EPOCH + WRITTEN);

    let alarms = store.builder::<u32>("alarms").by_priority().build();
    assert_eq!(alarms.unwrap().pop_batch(9).unwrap(), [2, 3, 1]);
    let tenants = store.builder::<(u8, u8)>("tenants");
    let tenants = tenants.fair_by(|item| item.0).build().unwrap();
    assert!(tenants.is_closed());
    assert_eq!(tenants.pop_batch(9).unwrap(), [(1, 1), (2, 3), (1, 2)]);
    assert!(unique(&store).push("taken".to_string()).is_err());
    assert!(store.queue::<u8>("empty").unwrap().is_empty());
    if version >= 2 {
        let news = store.builder::<String>("news").ttl(2 * HOUR);
        assert_eq!(news.build().unwrap().pop().unwrap(), "old");
    }
    if version >= 3 {
        let pages = store.builder::<u32>("pages").memory(0).build().unwrap();
        assert_eq!(pages.pop_batch(4).unwrap(), [3, 4, 6, 7]);
        drop(pages);
        let pages = store.queue::<u32>("pages").unwrap();
        let left = [8, 9, 11, 12, 13, 14, 16, 17, 18, 19];
        assert_eq!(pages.pop_batch(99).unwrap(), left);
    }
    if version >= 4 {
        let keys = keyed(&store);
        let there = (3..20).chain([1]);
        assert!(there.clone().all(|key| keys.push(key + 200).is_err()));
        keys.push_batch([200, 202]).unwrap();
        let left = there.map(|key| if key == 1 { 101 } else { key });
        let left: Vec<_> = left.chain([200, 202]).collect();
        assert_eq!(keys.pop_batch(99).unwrap(), left);
    }
    if version >= 5 {
        let later = scheduled(&store);
        let due = [0].into_iter().chain(2..11).chain([10, 12, 13]);
        let together = (40..60).filter(|number| version >= 8 && *number != 45);
        let due: Vec<_> = due.chain(together).collect();
        assert_eq!((later.len(), later.stats().delayed), (due.len(), 1));
        assert_eq!(later.pop_batch(99).unwrap(), due);
        assert_eq!(later.clear_all().unwrap(), 1);
    }
    if version >= 6 {
        let left = consumed(&store).pop_batch(99).unwrap();
        assert!(left.into_iter().eq((30..35).chain(36..40)));
    }
    if version >= 7 {
        let (plain, urgent) = without_pages(&store);
        assert!(plain.pop_batch(99).unwrap().into_iter().eq(5..20));
        assert_eq!(urgent.pop_batch(5).unwrap(), [0, 1, 2, 3, 4]);
        drop(urgent);
        let urgent = store.builder::<u32>("urgent").by_priority().memory(0);
        let left = urgent.build().unwrap().pop_batch(99).unwrap();
        assert!(left.into_iter().eq([5, 6].into_iter().chain(8..20)));
    }
}

/// The files of a directory, as one: a line with the name of each, its length and that of what follows, without zeros at the end.
fn pack(directory: &Path, within: &Path, packed: &mut Vec<u8>) {
    let mut entries: Vec<_> = fs::read_dir(directory.join(within)).unwrap().collect();
    entries.sort_by_key(|entry| entry.as_ref().unwrap().file_name());
    for entry in entries {
        let entry = entry.unwrap();
        let name = within.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            pack(directory, &name, packed);
            continue;
        }
        let bytes = fs::read(entry.path()).unwrap();
        let kept = bytes
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |last| last + 1);
        let (name, len) = (name.display(), bytes.len());
        writeln!(packed, "{len} {kept} {name}").unwrap();
        packed.extend_from_slice(&bytes[..kept]);
    }
}

fn unpack(mut packed: &[u8], directory: &Path) {
    while let Some(end) = packed.iter().position(|byte| *byte == b'\n') {
        let line = str::from_utf8(&packed[..end]).unwrap();
        let [len, kept, name] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let file = directory.join(name);
        let (bytes, rest) = packed[end + 1..].split_at(kept.parse().unwrap());
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, bytes).unwrap();
        let file = fs::OpenOptions::new().write(true).open(file).unwrap();
        file.set_len(len.parse().unwrap()).unwrap();
        packed = rest;
    }
}

fn fixture(version: u32) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/formats");
    tests.join(format!("version-{version}"))
}

fn version(store: &Path) -> u32 {
    let text = fs::read_to_string(store.join("version")).unwrap();
    let version = text.strip_prefix("requeue-durable, version ").unwrap();
    version.trim().parse().unwrap()
}

#[test]
fn all_versions_are_read() {
    for number in 1.. {
        let Ok(packed) = fs::read(fixture(number)) else {
            assert_eq!(number, 9, "a version has no store");
            return;
        };
        for upgrades in [false, true] {
            let directory = directory();
            unpack(&packed, directory.path());
            assert_eq!(version(directory.path()), number);
            if upgrades {
                let newest = open_at(directory.path(), WRITTEN).upgrade().unwrap();
                assert_eq!(version(directory.path()), newest);
            }
            check(directory.path(), number);
        }
    }
}

#[test]
#[ignore = "writes a file that is kept"]
fn write_a_store() {
    let number: u32 = std::env::var("DURABLE_FIXTURE").unwrap().parse().unwrap();
    let (directory, mut packed) = (directory(), Vec::new());
    fill(directory.path(), number);
    assert_eq!(version(directory.path()), number);
    pack(directory.path(), Path::new(""), &mut packed);
    fs::write(fixture(number), packed).unwrap();
}
