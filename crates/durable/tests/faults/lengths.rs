//! Each length in the files of a store becomes another one.
//!
//! What is reserved for a length that a file only says to have may be more than there is, which ends the process.

use crate::allocator::largest_of;
use crate::damage::{closed, copy_to, cut_zeros, files, is_journal, read, Content};
use crate::{count, options};
use requeue_durable::{DurableQueue, StoreError};
use std::fs::{self, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// More than the store has.
const MOST: usize = 16 << 20;

/// A length or a count in a file.
struct Length {
    what: String,
    at: Range<usize>,
    /// Whether something is reserved for it before its checksum is compared.
    is_count: bool,
}

impl Length {
    fn new(what: impl Into<String>, at: usize, bytes: usize) -> Self {
        Self {
            what: what.into(),
            at: at..at + bytes,
            is_count: false,
        }
    }

    fn count(what: impl Into<String>, at: usize, bytes: usize) -> Self {
        Self {
            is_count: true,
            ..Self::new(what, at, bytes)
        }
    }

    /// Other values of it: none, one more, as many as there can be, and one more than the file has bytes.
    fn others(&self, bytes: &[u8]) -> [u64; 4] {
        let bits = 8 * self.at.len();
        let most = u64::MAX >> (64 - bits);
        let more = number(bytes, &self.at).wrapping_add(1) & most;
        [0, more, most, (bytes.len() as u64 + 1) & most]
    }
}

fn number(bytes: &[u8], at: &Range<usize>) -> u64 {
    let little = bytes[at.clone()].iter().rev();
    little.fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// A table or a list of tables: the places in its table of contents and its trailer.
fn of_archive(bytes: &[u8]) -> Vec<Length> {
    let trailer = bytes.len() - 38;
    let start = number(bytes, &(trailer + 22..trailer + 30));
    let start = usize::try_from(start).unwrap();
    assert_eq!(bytes[start..start + 4], *b"TOC!");
    let mut lengths = vec![
        Length::new("start of the contents", trailer + 22, 8),
        Length::new("length of the contents", trailer + 30, 8),
        Length::count("sections", start + 4, 4),
    ];
    let mut at = start + 8;
    while at < trailer {
        let name_len = usize::try_from(number(bytes, &(at + 16..at + 18))).unwrap();
        let name = String::from_utf8_lossy(&bytes[at + 18..at + 18 + name_len]).into_owned();
        let section = usize::try_from(number(bytes, &(at..at + 8))).unwrap();
        let of_name = |what: &str| format!("{what} of {name}");
        lengths.push(Length::new(of_name("start"), at, 8));
        lengths.push(Length::new(of_name("length"), at + 8, 8));
        lengths.push(Length::new(of_name("length of the name"), at + 16, 2));
        lengths.extend(match &*name {
            "tables" => of_tables(bytes, section),
            "blob_files" | "blob_gc_stats" => vec![Length::count(of_name("count"), section, 4)],
            _ => Vec::new(),
        });
        at += 18 + name_len;
    }
    lengths
}

/// The tables of a list: levels, runs in each, tables in each.
fn of_tables(bytes: &[u8], at: usize) -> Vec<Length> {
    let mut lengths = vec![Length::new("levels", at, 1)];
    let mut at_run = at + 1;
    for _ in 0..bytes[at] {
        let runs = bytes[at_run];
        lengths.push(Length::new("runs", at_run, 1));
        at_run += 1;
        for _ in 0..runs {
            lengths.push(Length::count("tables", at_run, 4));
            let count = number(bytes, &(at_run..at_run + 4));
            at_run += 4 + 33 * usize::try_from(count).unwrap();
        }
    }
    lengths
}

/// The blocks of a table.
fn of_blocks(bytes: &[u8]) -> Vec<Length> {
    let blocks = bytes.windows(4).enumerate();
    let blocks = blocks.filter(|(_, magic)| *magic == b"LSM\x03");
    let lengths = |(at, _)| {
        let length =
            |what, after| Length::new(format!("{what} of the block at {at}"), at + after, 4);
        [length("length", 21), length("true length", 25)]
    };
    blocks.flat_map(lengths).collect()
}

/// The first batch of a journal, and the first change in it.
fn of_journal(_: &[u8]) -> Vec<Length> {
    vec![
        Length::new("changes", 1, 4),
        Length::new("length of a key", 13 + 11, 2),
        Length::new("true length of a value", 13 + 13, 4),
        Length::new("length of a value", 13 + 17, 4),
    ]
}

fn of_file(file: &Path, bytes: &[u8]) -> Vec<Length> {
    let name = file.file_name().unwrap().to_str().unwrap();
    let mut lengths = Vec::new();
    if is_journal(file) {
        lengths.extend(of_journal(bytes));
    } else if name == "current" || name == "acknowledged" {
        lengths.push(Length::new("number", 0, 8));
    } else if bytes.len() > 38 && bytes[bytes.len() - 38..].starts_with(b"SFA!") {
        lengths.extend(of_archive(bytes));
        lengths.extend(of_blocks(bytes));
    }
    lengths
}

/// The files with lengths: one of each kind, or all that the variable asks for.
fn chosen(store: &Path) -> Vec<PathBuf> {
    let kind = |file: &Path| {
        let parent = file.parent().unwrap().file_name().unwrap();
        let name = file.file_name().unwrap().to_str().unwrap();
        let numbers: &[char] = &['0', '1', '2', '3', '4', '5', '6', '7', '8', '9'];
        (parent.to_owned(), name.trim_end_matches(numbers).to_owned())
    };
    let mut chosen = files(&store.join("db/keyspaces/1"));
    chosen.extend(files(store).into_iter().filter(|file| is_journal(file)));
    chosen.push(store.join("acknowledged"));
    if count("DURABLE_LENGTHS", 0) > 0 {
        return files(store);
    }
    chosen.dedup_by_key(|file| kind(file));
    chosen
}

/// Opens a store with a file that was changed: first as it is, then what is left of it.
fn check(store: &Path, how: &str) {
    let (found, largest) = largest_of(|| read(store, true));
    assert!(largest < MOST, "{how}: {largest} bytes were asked for");
    // A future version is not damage.
    let is_refused = matches!(found, Err(StoreError::Version { .. }));
    assert!(found.is_ok() || is_refused, "{how}: {found:?}");
}

#[test]
fn a_wrong_length_never_reserves_more_than_there_is() {
    let base = tempfile::tempdir().unwrap();
    let store = base.path().join("store");
    closed(&store);
    cut_zeros(&store);
    let mut planted = 0;
    for file in chosen(&store) {
        let name = file.strip_prefix(&store).unwrap();
        let bytes = fs::read(&file).unwrap();
        for length in of_file(&file, &bytes) {
            // What is read after its checksum gets one value each, unless all are asked for.
            let all = length.is_count || count("DURABLE_LENGTHS", 0) > 0;
            let others = length.others(&bytes);
            let others = if all {
                &others[..]
            } else {
                &others[planted % 4..][..1]
            };
            for value in others {
                let mut changed = bytes.clone();
                let little = value.to_le_bytes();
                changed[length.at.clone()].copy_from_slice(&little[..length.at.len()]);
                let copy = base.path().join("copy");
                copy_to(&store, &copy);
                fs::write(copy.join(name), changed).unwrap();
                check(
                    &copy,
                    &format!("{}: {}: {value}", name.display(), length.what),
                );
                fs::remove_dir_all(&copy).unwrap();
                planted += 1;
            }
        }
    }
    println!("{planted} planted");
}

#[test]
fn a_file_of_another_length_never_reserves_more_than_there_is() {
    let base = tempfile::tempdir().unwrap();
    let store = base.path().join("store");
    closed(&store);
    cut_zeros(&store);
    for file in files(&store) {
        let name = file.strip_prefix(&store).unwrap();
        let len = file.metadata().unwrap().len();
        for other in [0, len.saturating_sub(1), len + 1, len + (1 << 27)] {
            let copy = base.path().join("copy");
            copy_to(&store, &copy);
            let open = OpenOptions::new().write(true).open(copy.join(name));
            open.unwrap().set_len(other).unwrap();
            check(&copy, &format!("{} with {other} bytes", name.display()));
            fs::remove_dir_all(&copy).unwrap();
        }
    }
}

/// The storage engine panics, and once more while it unwinds.
#[test]
fn a_stray_directory_does_not_end_the_process() {
    for stray in ["db/keyspaces/stray", "db/keyspaces/1/tables/77"] {
        let base = tempfile::tempdir().unwrap();
        let store = base.path().join("store");
        closed(&store);
        let content = without_journals(&store);
        fs::create_dir(store.join(stray)).unwrap();
        let refused = read(&store, false);
        assert!(
            matches!(refused, Err(StoreError::Damaged(_))),
            "{refused:?}"
        );
        assert_eq!(read(&store, true).unwrap(), content, "{stray}");
    }
}

/// Lets the tables have all of a store, and the journals nothing; returns what it has then.
fn without_journals(path: &Path) -> Content {
    // The disk is taken for full, so that the tables are written.
    let store = options().reserve(u64::MAX).open(path).unwrap();
    let done: DurableQueue<(u64, String)> = store.queue("done").unwrap();
    done.pop().unwrap();
    drop((done, store));
    for file in files(path).iter().filter(|file| is_journal(file)) {
        fs::write(file, "").unwrap();
    }
    read(path, false).unwrap()
}

#[test]
fn a_stray_file_among_the_keyspaces_is_ignored() {
    let base = tempfile::tempdir().unwrap();
    let store = base.path().join("store");
    let content = closed(&store);
    fs::write(store.join("db/keyspaces/.DS_Store"), "x").unwrap();
    assert_eq!(read(&store, false).unwrap(), content);
}

#[test]
fn a_path_of_another_kind_is_damage() {
    for path in ["2", "2/current", "2/tables"] {
        let base = tempfile::tempdir().unwrap();
        let store = base.path().join("store");
        closed(&store);
        let path = store.join("db/keyspaces").join(path);
        if path.is_dir() {
            fs::remove_dir_all(&path).unwrap();
            fs::write(&path, "x").unwrap();
        } else {
            fs::remove_file(&path).unwrap();
            fs::create_dir(&path).unwrap();
        }
        let refused = read(&store, false);
        assert!(
            matches!(refused, Err(StoreError::Damaged(_))),
            "{refused:?}"
        );
        read(&store, true).unwrap();
    }
}

/// What the system refuses to read may be there all the same.
#[test]
fn an_error_of_the_system_loses_nothing() {
    let base = tempfile::tempdir().unwrap();
    let store = base.path().join("store");
    let content = closed(&store);
    let [damaged, refused] = [1, 3].map(|keyspace| {
        let current = store.join(format!("db/keyspaces/{keyspace}/current"));
        let kept = base.path().join(keyspace.to_string());
        fs::rename(&current, &kept).unwrap();
        (kept, current)
    });
    fs::write(&damaged.1, "x").unwrap();
    // A loop of links.
    symlink(&refused.1, &refused.1).unwrap();
    let found = read(&store, true);
    assert!(matches!(found, Err(StoreError::Io(_))), "{found:?}");
    assert!(found.unwrap_err().to_string().contains("keyspaces/3"));
    assert!(!store.join("damaged-1").exists());
    for (kept, current) in [damaged, refused] {
        fs::remove_file(&current).unwrap();
        fs::rename(kept, current).unwrap();
    }
    assert_eq!(read(&store, false).unwrap(), content);
}
