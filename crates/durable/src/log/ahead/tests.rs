use super::*;
use crate::log::journal::{paths, Reader};
use crate::{DurableQueue, Store};
use std::fs::OpenOptions;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

const GROUPS: usize = 60;

/// Pushes items and pops some of them; each is a synced group. Returns how many are left.
fn work(store: &Store) -> usize {
    let jobs: DurableQueue<Vec<u8>> = store.queue("jobs").unwrap();
    for number in 0..GROUPS / 3 {
        jobs.push(vec![1; 10 * number]).unwrap();
        jobs.push(vec![2; number]).unwrap();
        jobs.pop().unwrap();
    }
    jobs.len()
}

fn journals(store: &Path) -> Vec<PathBuf> {
    paths(&store.join("db")).unwrap()
}

/// Where the batches of a journal end.
fn end(journal: &Path) -> u64 {
    let (mut reader, mut end) = (Reader::open(journal).unwrap(), 0);
    while reader.batch().unwrap().is_some() {
        end = reader.at();
    }
    end
}

#[test]
fn zeros_are_ahead_of_what_is_written() {
    let files = tempfile::tempdir().unwrap();
    let store = Store::open(files.path()).unwrap();
    work(&store);
    let ahead = store.inner.log.disk().ahead();
    let journal = &journals(files.path())[0];
    assert_eq!(ahead.written, end(journal));
    assert_eq!(ahead.end, AHEAD);
    assert!(journal.metadata().unwrap().blocks() * 512 >= AHEAD);
}

#[test]
fn nothing_is_written_over_what_is_there() {
    let files = tempfile::tempdir().unwrap();
    let store = Store::open(files.path()).unwrap();
    let left = work(&store);
    let mut ahead = store.inner.log.disk().ahead();
    (ahead.written, ahead.end) = (100, 0);
    ahead.reserve(100, true);
    assert!(ahead.file.is_none());
    drop(ahead);
    drop(store);
    assert_eq!(work(&Store::open(files.path()).unwrap()), left + GROUPS / 3);
}

#[test]
fn zeros_do_not_make_a_journal_longer() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(AHEAD).unwrap();
    assert!(write_zeros(&file, 1).is_err());
    assert_eq!(file.metadata().unwrap().len(), AHEAD);
    write_zeros(&file, 0).unwrap();
}

#[test]
fn what_is_in_a_later_page_stays() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(AHEAD).unwrap();
    let at = AHEAD / 2;
    file.write_all_at(b"row", at).unwrap();
    assert!(write_zeros(&file, 0).is_err());
    let mut there = [0; 3];
    file.read_exact_at(&mut there, at).unwrap();
    assert_eq!(&there, b"row");
}

#[test]
fn a_journal_that_was_found_is_replaced() {
    let files = tempfile::tempdir().unwrap();
    let left = work(&Store::open(files.path()).unwrap());
    let store = Store::open(files.path()).unwrap();
    let [found] = &journals(files.path())[..] else {
        panic!("there is one journal");
    };
    assert_eq!(work(&store), 2 * left);
    assert_eq!(found.metadata().unwrap().len(), end(found));
    let found = File::open(found).unwrap();
    assert_eq!(work(&store), 3 * left);
    assert!(found.metadata().unwrap().len() < FULL);
    let newest = journals(files.path()).pop().unwrap();
    let ahead = store.inner.log.disk().ahead();
    let over = ahead.written - end(&newest); // at most the last group in the journal before
    assert!(ahead.number == 2 && over < 1_000, "{over}");
    assert_eq!(2 * GROUPS, FOUND as usize + groups(&newest));
    drop(ahead);
    drop(store);
    assert_eq!(work(&Store::open(files.path()).unwrap()), 4 * left);
}

fn groups(journal: &Path) -> usize {
    let mut reader = Reader::open(journal).unwrap();
    let mut groups = 0;
    while reader.batch().unwrap().is_some() {
        groups += 1;
    }
    groups
}

/// A crash while a journal that was found is replaced: before the next one is created, and after.
#[test]
fn a_row_behind_a_gap_is_cut_off() {
    for has_next in [false, true] {
        let files = tempfile::tempdir().unwrap();
        let left = work(&Store::open(files.path()).unwrap());
        let store = Store::open(files.path()).unwrap();
        let db = files.path().join("db");
        let journal = OpenOptions::new().write(true).open(db.join("1.jnl"));
        drop(store);
        let journal = journal.unwrap();
        journal.write_all_at(b"\x01\x01\0\0\0", FULL).unwrap();
        if has_next {
            let next = File::create(db.join("2.jnl")).unwrap();
            next.set_len(64 << 20).unwrap();
        }
        let store = Store::open(files.path()).unwrap();
        assert!(journal.metadata().unwrap().len() < FULL);
        assert_eq!(work(&store), 2 * left);
    }
}

/// The first journal of a database is number 0.
#[test]
fn a_journal_is_found_whatever_its_number_is() {
    let files = tempfile::tempdir().unwrap();
    let left = work(&Store::open(files.path()).unwrap());
    let db = files.path().join("db");
    std::fs::rename(db.join("1.jnl"), db.join("0.jnl")).unwrap();
    let store = Store::open(files.path()).unwrap();
    let ahead = store.inner.log.disk().ahead();
    assert_eq!((ahead.number, ahead.found), (0, Some(0)));
    assert!(ahead.file.is_none() && ahead.written == end(&db.join("0.jnl")));
    drop(ahead);
    assert_eq!(work(&store), 2 * left);
}
