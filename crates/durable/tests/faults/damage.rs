//! The files of a store are cut, and their bits flipped.
//!
//! A damaged store has all that was acknowledged, or it says that it is damaged. One that is accepted has what is left, once.

use crate::random::Random;
use crate::{child, count, open, options};
use requeue_durable::{commit_all, ByPriority, DurableQueue, Store, StoreError};
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

type Job = (u64, String);

const HOUR: Duration = Duration::from_secs(3600);

fn job(number: u64) -> Job {
    (number, format!("the job with the number {number}"))
}

struct Queues {
    jobs: DurableQueue<Job>,
    done: DurableQueue<Job>,
    later: DurableQueue<Job, ByPriority>,
    /// Closed.
    old: DurableQueue<Job>,
}

impl Queues {
    fn open(store: &Store) -> Result<Self, StoreError> {
        Ok(Self {
            jobs: store.builder("jobs").max_attempts(2).build()?,
            done: store.queue("done")?,
            later: store.builder("later").by_priority().build()?,
            old: store.queue("old")?,
        })
    }
}

/// All that is in a store.
#[derive(Debug, PartialEq, Eq, Clone)]
pub(crate) struct Content {
    jobs: Vec<Job>,
    letters: Vec<Job>,
    done: Vec<Job>,
    later: Vec<Job>,
    old: Vec<Job>,
    is_old_closed: bool,
}

impl Content {
    fn read(queues: &Queues) -> Result<Self, StoreError> {
        // Readers abort, so that they change nothing but the counts of deliveries.
        let letters = queues.jobs.dead_letters().all()?;
        let mut later = Vec::new();
        let mut jobs = Vec::new();
        let mut done = Vec::new();
        let mut old = Vec::new();
        queues.jobs.peek_each(|item| jobs.push(item.clone()))?;
        queues.done.peek_each(|item| done.push(item.clone()))?;
        // Those that are not due too.
        queues.later.retain(|item, _| {
            later.push(item.clone());
            true
        })?;
        later.sort();
        queues.old.peek_each(|item| old.push(item.clone()))?;
        Ok(Self {
            jobs,
            letters: letters.into_iter().map(|letter| letter.item).collect(),
            done,
            later,
            old,
            is_old_closed: queues.old.is_closed(),
        })
    }

    /// All places of each job.
    fn places(&self) -> BTreeMap<u64, Vec<&'static str>> {
        let mut places = BTreeMap::<_, Vec<_>>::new();
        let queues = [
            ("jobs", &self.jobs),
            ("letters", &self.letters),
            ("done", &self.done),
            ("later", &self.later),
            ("old", &self.old),
        ];
        for (name, items) in queues {
            for (number, text) in items {
                assert_eq!(*text, job(*number).1, "an item is as it was pushed");
                places.entry(*number).or_default().push(name);
            }
        }
        places
    }
}

/// Fills a store: some of it goes to the tables, some stays in the journal.
fn fill(path: &Path) -> (Store, Queues) {
    let store = options().memtable(8 << 10).open(path).unwrap();
    let queues = Queues::open(&store).unwrap();
    for start in (0..400).step_by(20) {
        queues
            .jobs
            .push_batch((start..start + 20).map(job))
            .unwrap();
        let number = 1_000 + start;
        let urgency = u16::try_from(1 + start).unwrap();
        let later = queues.later.priority(urgency);
        later.push(job(number)).unwrap();
        let together = [1, 2].map(|it| job(number + it));
        later.after(HOUR).push_batch(together).unwrap();
        queues.old.push(job(2_000 + start)).unwrap();
        move_some(&queues, 8);
    }
    queues.old.close().unwrap();
    let tx = queues.jobs.begin_owned();
    for item in tx.pop_batch(5).unwrap() {
        tx.fail(item, "it is of no use").unwrap();
    }
    drop(tx);
    // Delivered once, and given back.
    queues.jobs.begin_owned().pop_batch(3).map(drop).unwrap();
    store.flush().unwrap();
    (store, queues)
}

fn move_some(queues: &Queues, count: usize) {
    let (take, give) = (queues.jobs.begin_owned(), queues.done.begin_owned());
    let moved: Vec<_> = take
        .pop_batch(count)
        .unwrap()
        .map(|item| item.clone())
        .collect();
    give.push_batch(moved).unwrap();
    commit_all((take, give)).unwrap();
}

/// The child.
pub(crate) fn fill_until_killed(path: &Path) {
    let _filled = fill(path);
    println!("filled");
    std::thread::park();
}

/// A store that was closed, and its content.
pub(crate) fn closed(path: &Path) -> Content {
    let (store, queues) = fill(path);
    let content = Content::read(&queues).unwrap();
    drop((queues, store));
    content
}

/// A store whose process was killed, and its content.
fn killed(path: &Path) -> Content {
    let mut child = child("fill", path).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("filled")));
    child.kill().unwrap();
    child.wait().unwrap();
    let copy = tempfile::tempdir().unwrap();
    copy_to(path, &copy.path().join("store"));
    Content::read(&Queues::open(&open(&copy.path().join("store")).unwrap()).unwrap()).unwrap()
}

pub(crate) fn copy_to(from: &Path, to: &Path) {
    let mut copy = Command::new("cp");
    let copied = copy
        .args(["-r", "--sparse=always"])
        .arg(from)
        .arg(to)
        .status();
    assert!(copied.unwrap().success());
}

/// The files below a directory.
pub(crate) fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The files below a directory, except locks, and what is in them. The storage engine cuts the zeros at the end of a journal
/// when it opens it.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = files(directory);
    files.retain(|file| file.file_name().is_some_and(|name| name != "lock"));
    let read = |file: PathBuf| {
        let mut bytes = fs::read(&file).unwrap();
        if is_journal(&file) {
            let zeros = bytes.iter().rev().take_while(|byte| **byte == 0).count();
            bytes.truncate(bytes.len() - zeros);
        }
        (file, bytes)
    };
    files.into_iter().map(read).collect()
}

fn assert_same_files(
    before: &BTreeMap<PathBuf, Vec<u8>>,
    after: &BTreeMap<PathBuf, Vec<u8>>,
    is_compared: impl Fn(&Path) -> bool,
    how: &str,
) {
    for file in before.keys().chain(after.keys()) {
        let is_same = before.get(file) == after.get(file);
        assert!(
            is_same || !is_compared(file),
            "{how}: {} was changed",
            file.display()
        );
    }
}

fn is_in_tables(file: &Path) -> bool {
    file.components()
        .any(|part| part.as_os_str() == "keyspaces")
}

/// Where the content of a file ends; zeros follow.
fn end(file: &Path) -> u64 {
    let bytes = fs::read(file).unwrap();
    let last = bytes
        .chunks(4096)
        .rposition(|part| *part != [0; 4096][..part.len()]);
    last.map_or(0, |last| (last as u64 + 1) * 4096)
        .min(bytes.len() as u64)
}

/// Damages a file in a store; says how.
fn damage(random: &mut Random, store: &Path) -> (String, bool) {
    let mut files = files(store);
    files.retain(|file| file.metadata().unwrap().len() > 0);
    let journals: Vec<_> = files.iter().filter(|file| is_journal(file)).collect();
    // A store has many files, and most of its changes in few.
    let file = match random.below(3) {
        0 => random.pick(&journals).clone(),
        _ => random.pick(&files),
    };
    let end = end(&file);
    let at = random.below(end);
    let open = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&file)
        .unwrap();
    let how = match random.below(5) {
        0 => {
            open.set_len(at).unwrap();
            "cut"
        }
        1 => {
            let len = usize::try_from((end - at).min(64)).unwrap();
            open.write_all_at(&vec![0; len], at).unwrap();
            "zeroed"
        }
        _ => {
            flip(&open, at, random.below(8));
            "flipped"
        }
    };
    let name = file.strip_prefix(store).unwrap().display();
    (format!("{name} {how} at {at} of {end}"), is_journal(&file))
}

pub(crate) fn is_journal(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "jnl")
}

fn flip(file: &File, at: u64, bit: u64) {
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1 << bit], at).unwrap();
}

pub(crate) fn read(path: &Path, accept: bool) -> Result<Content, StoreError> {
    let options = if accept {
        options().accept_damage()
    } else {
        options()
    };
    Content::read(&Queues::open(&options.open(path)?)?)
}

/// What becomes of a damaged store.
#[derive(Debug, Default)]
struct Outcomes {
    intact: u64,
    reported: u64,
    accepted: u64,
    refused: u64,
    doubled: u64,
    lost: u64,
}

impl Outcomes {
    fn of(&mut self, path: &Path, content: &Content, how: &str, in_journal: bool) {
        let before = contents(path);
        if options().open(path).is_err() {
            // Otherwise the storage engine may have opened the tables, and written them anew.
            let is_compared = |file: &Path| in_journal || !is_in_tables(file);
            assert_same_files(&before, &contents(path), is_compared, how);
        }
        match read(path, false) {
            Ok(found) => {
                assert_eq!(found, *content, "silently lost: {how}");
                self.intact += 1;
                return;
            }
            Err(StoreError::Damaged(_) | StoreError::Version { .. }) => {}
            Err(error) => panic!("{how}: {error:?}"),
        }
        self.reported += 1;
        match read(path, true) {
            Ok(found) => self.accept(path, &found, content, how, in_journal),
            Err(StoreError::Version { .. }) => self.refused += 1,
            Err(error) => panic!("{how}: it is not accepted: {error:?}"),
        }
    }

    /// What is left is once there, can be used, and opens again.
    fn accept(
        &mut self,
        path: &Path,
        found: &Content,
        content: &Content,
        how: &str,
        in_journal: bool,
    ) {
        self.accepted += 1;
        let places = found.places();
        let mut doubled = places.clone();
        doubled.retain(|_, places| places.len() > 1);
        assert!(doubled.is_empty() || !in_journal, "{how}: {doubled:?}");
        self.doubled += u64::from(!doubled.is_empty());
        for items in [&found.jobs, &found.done, &found.later, &found.old] {
            let numbers: HashSet<_> = items.iter().map(|(number, _)| number).collect();
            assert_eq!(numbers.len(), items.len(), "{how}: once in each queue");
        }
        assert!(
            !is_named_lost(path) || !in_journal,
            "{how}: the row of a queue is lost"
        );
        let known = content.places();
        assert!(
            places.keys().all(|number| known.contains_key(number)),
            "{how}"
        );
        self.lost += u64::from(places.len() < known.len());
        assert_eq!(read(path, false).expect(how), *found, "{how}");
        use_it(path, found.clone(), how);
    }
}

/// Whether a queue has lost its name.
fn is_named_lost(path: &Path) -> bool {
    let queues = open(path).unwrap().queues();
    queues.iter().any(|name| name.starts_with("lost"))
}

fn use_it(path: &Path, mut content: Content, how: &str) {
    let store = open(path).expect(how);
    let queues = Queues::open(&store).expect(how);
    queues.done.push(job(5_000)).expect(how);
    content.done.push(job(5_000));
    if !content.jobs.is_empty() {
        let taken = queues.jobs.pop().expect(how);
        content.jobs.retain(|job| *job != taken);
    }
    drop((queues, store));
    assert_eq!(read(path, false).expect(how), content, "{how}");
}

/// Cuts off the zeros at the end of the journals, which only take time.
pub(crate) fn cut_zeros(store: &Path) {
    for file in files(store).iter().filter(|file| is_journal(file)) {
        let open = OpenOptions::new().write(true).open(file).unwrap();
        open.set_len(end(file)).unwrap();
    }
}

fn damage_often(name: &str, make: fn(&Path) -> Content) {
    let mut random = crate::random(name);
    let base = tempfile::tempdir().unwrap();
    let store = base.path().join("store");
    let content = match std::env::var("DURABLE_KEPT") {
        Ok(kept) => kept_store(Path::new(&kept), &store),
        Err(_) => make(&store),
    };
    assert!(
        files(&store).len() > 12,
        "there are tables: {:?}",
        files(&store)
    );
    cut_zeros(&store);
    let mut outcomes = Outcomes::default();
    for _ in 0..count("DURABLE_DAMAGES", 20) / 2 {
        let copy = base.path().join("copy");
        copy_to(&store, &copy);
        let (how, in_journal) = damage(&mut random, &copy);
        println!("{name}: {how}");
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            outcomes.of(&copy, &content, &how, in_journal);
        }));
        if let Err(panic) = outcome {
            // The threads of the storage engine decide what is in which file, so the seed alone does not repeat it.
            println!("{name}: DURABLE_KEPT={}", base.keep().display());
            resume_unwind(panic);
        }
        fs::remove_dir_all(&copy).unwrap();
    }
    println!("{name}: {outcomes:?}");
}

/// A store that a failed test has kept, in `store` there, and its content.
fn kept_store(kept: &Path, store: &Path) -> Content {
    copy_to(&kept.join("store"), store);
    let copy = tempfile::tempdir().unwrap();
    copy_to(store, &copy.path().join("store"));
    read(&copy.path().join("store"), false).unwrap()
}

#[test]
fn damage_of_a_closed_store_is_never_silent() {
    damage_often("closed", closed);
}

#[test]
fn damage_of_a_killed_store_is_never_silent() {
    damage_often("killed", killed);
}

/// A store with two commits, all in its journal; returns the journal, and where the commits end in it.
fn two_commits(path: &Path) -> (PathBuf, [u64; 2]) {
    let store = requeue_durable::Store::open(path).unwrap();
    let queue: DurableQueue<u32> = store.queue("numbers").unwrap();
    let journal = files(path)
        .into_iter()
        .find(|file| is_journal(file))
        .unwrap();
    let ends = [1, 2].map(|number| {
        queue.push(number).unwrap();
        let bytes = fs::read(&journal).unwrap();
        bytes.iter().rposition(|byte| *byte != 0).unwrap() as u64 + 1
    });
    drop((queue, store));
    assert_eq!(acknowledged(path), 2, "another group was written");
    (journal, ends)
}

/// The last acknowledged group.
fn acknowledged(path: &Path) -> u64 {
    let bytes = fs::read(path.join("acknowledged")).unwrap();
    let slots = [0, 16].map(|slot| u64::from_le_bytes(*bytes[slot..].first_chunk().unwrap()));
    slots[0].max(slots[1])
}

fn numbers(store: &Store) -> Vec<u32> {
    let queue: DurableQueue<u32> = store.queue("numbers").unwrap();
    queue.pop_batch(10).unwrap()
}

#[test]
fn a_missing_commit_is_reported_and_nothing_is_changed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let (journal, [first, _]) = two_commits(&path);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&journal)
        .unwrap();
    flip(&file, first + 30, 3);
    let before = fs::read(&journal).unwrap();
    for _ in 0..2 {
        let Err(StoreError::Damaged(damage)) = Store::open(&path) else {
            panic!("it is damaged");
        };
        assert_eq!(damage.commits, 1, "{damage}");
        assert!(fs::read(&journal).unwrap() == before, "it was changed");
    }
    let store = options().accept_damage().open(&path).unwrap();
    assert_eq!(store.salvaged().unwrap().commits, 1);
    assert_eq!(numbers(&store), [1]);
    drop(store);
    let store = Store::open(&path).unwrap();
    assert!(store.salvaged().is_none());
    assert!(numbers(&store).is_empty());
}

/// A damaged journal whose first batch cannot be read.
#[test]
fn nothing_is_changed_until_damage_is_accepted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let (journal, _) = two_commits(&path);
    let open = OpenOptions::new().read(true).write(true).open(&journal);
    flip(&open.unwrap(), 30, 3);
    let before = contents(&path);
    let Err(StoreError::Damaged(damage)) = Store::open(&path) else {
        panic!("it is damaged");
    };
    assert_eq!(damage.commits, 1, "{damage}");
    assert_same_files(&before, &contents(&path), |_| true, "flipped");
    let store = options().accept_damage().open(&path).unwrap();
    // The second batch has a checksum of its own.
    assert_eq!(store.salvaged().unwrap().commits, 1);
    assert_eq!(numbers(&store), [2]);
    let name = journal.file_name().unwrap();
    let aside = path.join("damaged-1");
    let is_same = contents(&aside)[&aside.join(name)] == before[&journal];
    assert!(is_same, "it is put aside as it was");
}

/// The tables have all that was acknowledged, and of the next journal only a torn write is there.
#[test]
fn the_torn_start_of_a_journal_is_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = open(&path).unwrap();
    let queue: DurableQueue<u32> = store.queue("numbers").unwrap();
    queue.push_batch(1..=4).unwrap();
    drop((queue, store));
    // The disk is taken for full, so that the tables are written.
    let store = options().reserve(u64::MAX).open(&path).unwrap();
    let queue: DurableQueue<u32> = store.queue("numbers").unwrap();
    assert_eq!(queue.pop_batch(3).unwrap(), [1, 2, 3]);
    drop((queue, store));
    let mut journals = files(&path);
    journals.retain(|file| is_journal(file));
    let [journal] = &*journals else {
        panic!("{journals:?}");
    };
    let torn = fs::read(journal).unwrap()[..30].to_vec();
    fs::write(journal, torn).unwrap();
    assert_eq!(numbers(&Store::open(&path).unwrap()), [4]);
}

/// The storage engine takes a table for newer than all journals, and runs out of numbers.
#[test]
fn a_damaged_list_of_tables_is_reported_and_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let content = closed(&path);
    let keyspace = path.join("db/keyspaces/1");
    let current = fs::read(keyspace.join("current")).unwrap();
    let (number, _) = current.split_first_chunk().unwrap();
    let list = keyspace.join(format!("v{}", u64::from_le_bytes(*number)));
    let bytes = fs::read(&list).unwrap();
    let table = &files(&keyspace.join("tables"))[0];
    let table: u64 = table
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    // Its number, a checksum with its kind, and the number that is added to those of its rows.
    let is_entry = |at: &[u8]| at[..8] == table.to_le_bytes() && at[8] == 0 && at[25..] == [0; 8];
    let at = bytes.windows(33).position(is_entry).unwrap() as u64;
    let file = OpenOptions::new().read(true).write(true).open(&list);
    flip(&file.unwrap(), at + 32, 7);
    let before = contents(&path);
    let refused = open(&path);
    assert!(
        matches!(refused, Err(StoreError::Damaged(_))),
        "{refused:?}"
    );
    assert_same_files(&before, &contents(&path), |_| true, "flipped");
    assert_eq!(read(&path, true).unwrap(), content);
    use_it(&path, content, "flipped");
}

/// What a store has after each of its commits, all of which are in one journal.
fn eight_groups(path: &Path) -> (PathBuf, Vec<u64>) {
    let store = requeue_durable::Store::open(path).unwrap();
    let queue: DurableQueue<u32> = store.queue("numbers").unwrap();
    let files = files(path);
    let journal = files.iter().find(|file| is_journal(file)).unwrap();
    let ends = (0..8).map(|number| {
        // Groups that push, and groups that remove what an earlier one has pushed.
        if number % 4 == 3 {
            assert_eq!(queue.pop().unwrap(), number / 4);
        } else {
            queue.push(number - number / 4).unwrap();
        }
        let bytes = fs::read(journal).unwrap();
        bytes.iter().rposition(|byte| *byte != 0).unwrap() as u64 + 1
    });
    let ends = ends.collect();
    (journal.clone(), ends)
}

/// A flipped bit costs its own group, wherever it is: the later ones are there, and what they removed is not.
#[test]
fn a_gap_in_a_journal_costs_the_group_that_it_is_in() {
    let base = tempfile::tempdir().unwrap();
    let store = base.path().join("store");
    let (journal, ends) = eight_groups(&store);
    cut_zeros(&store);
    let name = journal.strip_prefix(&store).unwrap();
    let mut random = crate::random("gap");
    // The groups push 0, 1, 2, remove 0, push 3, 4, 5, remove 1.
    let pushed = [
        Some(0),
        Some(1),
        Some(2),
        None,
        Some(3),
        Some(4),
        Some(5),
        None,
    ];
    for group in 1..ends.len() {
        for _ in 0..3 {
            let copy = base.path().join("copy");
            copy_to(&store, &copy);
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .open(copy.join(name));
            let at = ends[group - 1] + random.below(ends[group] - ends[group - 1]);
            flip(&file.unwrap(), at, random.below(8));
            let how = format!("group {group} at {at}");
            println!("{how}");
            // The number of a group has no checksum: another one costs nothing.
            let opened = options().accept_damage().open(&copy).expect(&how);
            let lost = opened.salvaged().map_or(0, |damage| damage.commits);
            assert!(lost <= 1, "{how}: {lost}");
            let found: HashSet<_> = numbers(&opened).into_iter().collect();
            let lost = (lost == 1).then_some(group);
            let is_there = |at: usize| lost != Some(at);
            // 0 and 1 come back only if the group that removed them is lost.
            let is_left = |item: u32| match item {
                0 => !is_there(3),
                1 => !is_there(7),
                _ => true,
            };
            let pushed = pushed.iter().enumerate();
            let pushed = pushed.filter_map(|(at, item)| item.filter(|_| is_there(at)));
            assert_eq!(
                found,
                pushed.filter(|item| is_left(*item)).collect(),
                "{how}"
            );
            drop(opened);
            fs::remove_dir_all(&copy).unwrap();
        }
    }
}

/// Nothing else looks like a store, so what is left of one is not taken for files of another program.
#[test]
fn a_lost_or_damaged_version_is_restored() {
    let base = tempfile::tempdir().unwrap();
    let store = base.path().join("store");
    let content = closed(&store);
    for text in [
        None,
        Some(""),
        Some("requeue-durable, versiom 1\n"),
        Some("requeue-durable, version 0\n"),
        Some("\0\0\0"),
    ] {
        match text {
            None => fs::remove_file(store.join("version")).unwrap(),
            Some(text) => fs::write(store.join("version"), text).unwrap(),
        }
        let refused = read(&store, false);
        assert!(
            matches!(&refused, Err(StoreError::Damaged(damage)) if damage.details.contains("version")),
            "{refused:?}"
        );
        assert_eq!(read(&store, true).unwrap(), content, "{text:?}");
        assert_eq!(read(&store, false).unwrap(), content, "{text:?}");
    }
    let photos = base.path().join("photos");
    fs::create_dir_all(photos.join("db")).unwrap();
    let refused = options().accept_damage().open(&photos);
    assert!(
        matches!(refused, Err(StoreError::NotAStore(_))),
        "{refused:?}"
    );
}

#[test]
fn the_torn_end_of_a_write_is_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let (journal, [first, second]) = two_commits(&path);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&journal)
        .unwrap();
    // A copy of the second commit, of which a sector is missing.
    let bytes = fs::read(&journal).unwrap();
    let (start, end) = (
        usize::try_from(first).unwrap(),
        usize::try_from(second).unwrap(),
    );
    let mut torn = bytes[start..end].to_vec();
    torn[30..50].fill(0);
    // Its number is that of the next batch.
    torn[5] += 1;
    file.write_all_at(&torn, second).unwrap();
    let store = Store::open(&path).unwrap();
    assert_eq!(numbers(&store), [1, 2]);
}
