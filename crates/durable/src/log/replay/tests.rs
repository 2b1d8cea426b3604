use super::*;
use crate::{DurableQueue, Store, StoreOptions};

/// Fills a store, and closes it. Returns how many items it has, and the number of its last group.
fn fill(store: &Path) -> (usize, u64) {
    let store = Store::open(store).unwrap();
    let jobs: DurableQueue<Vec<u8>> = store.queue("jobs").unwrap();
    for number in 0..40 {
        jobs.push_batch((0..100).map(|_| vec![number; 100]))
            .unwrap();
        jobs.pop_batch(30).unwrap();
    }
    let last = store.inner.log.disk().catalog().store.group;
    (jobs.len(), last)
}

fn check(store: &Path, count: usize) {
    let store = StoreOptions::new().check().open(store).unwrap();
    let jobs: DurableQueue<Vec<u8>> = store.queue("jobs").unwrap();
    assert_eq!(jobs.pop_batch(usize::MAX).unwrap().len(), count);
}

fn replay(store: &Path) {
    let replayed = Replayed::new(&store.join("db"), store.join("db.journals"));
    replayed.unwrap().unwrap().keep().unwrap();
}

/// The numbers of the groups in a journal.
fn groups(journal: &Path) -> Vec<u64> {
    let (mut reader, mut groups) = (Reader::open(journal).unwrap(), Vec::new());
    while reader.batch().unwrap().is_some() {
        groups.extend(reader.group());
    }
    groups
}

/// What is in the journals of a store.
fn journals(db: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let read = |path: PathBuf| {
        let bytes = fs::read(&path).unwrap();
        (path, bytes)
    };
    journal::paths(db).unwrap().into_iter().map(read).collect()
}

#[test]
fn the_last_group_is_left_of_the_journals() {
    let files = tempfile::tempdir().unwrap();
    let (count, last) = fill(files.path());
    let db = files.path().join("db");
    assert!(groups(&journals(&db)[0].0).len() > 1);
    replay(files.path());
    let [(journal, _)] = &journals(&db)[..] else {
        panic!("there is one journal");
    };
    assert_eq!(groups(journal), [last]);
    check(files.path(), count);
}

/// A crash after the rows were written, before the journals are shorter: of one journal, and of the last group's, which is not the
/// newest.
#[test]
fn rows_that_the_tables_have_are_not_brought_again() {
    for has_next in [false, true] {
        let files = tempfile::tempdir().unwrap();
        let (count, last) = fill(files.path());
        let db = files.path().join("db");
        let before = journals(&db);
        replay(files.path());
        let tables = Trees::open(&db).unwrap();
        let counts = tables.all.iter().map(|(tree, _)| tree.table_count());
        let counts: Vec<_> = counts.collect();
        drop(tables);
        for (path, bytes) in before {
            fs::write(path, bytes).unwrap();
        }
        if has_next {
            fs::write(db.join("2.jnl"), []).unwrap();
        }
        replay(files.path());
        let tables = Trees::open(&db).unwrap();
        let again = tables.all.iter().map(|(tree, _)| tree.table_count());
        assert!(again.eq(counts));
        drop(tables);
        let (journal, _) = &journals(&db)[0];
        assert_eq!(journal.ends_with("2.jnl"), has_next);
        assert_eq!(groups(journal), [last]);
        check(files.path(), count);
    }
}

#[test]
fn a_store_that_was_opened_again_is_read_from_short_journals() {
    let files = tempfile::tempdir().unwrap();
    let (count, _) = fill(files.path());
    let db = files.path().join("db");
    let length = |(_, bytes): &(PathBuf, Vec<u8>)| bytes.len() as u64;
    drop(Store::open(files.path()).unwrap());
    assert!(journals(&db).iter().map(length).sum::<u64>() < LEAST);
    check(files.path(), count);
}

#[test]
fn journals_are_put_back() {
    let files = tempfile::tempdir().unwrap();
    let (count, _) = fill(files.path());
    let (db, aside) = (files.path().join("db"), files.path().join("db.journals"));
    fs::write(db.join("2.jnl"), []).unwrap();
    let before = journals(&db);
    let replayed = Replayed::new(&db, aside.clone()).unwrap().unwrap();
    assert_eq!(journals(&db).len(), 1);
    replayed.undo().unwrap();
    assert!(journals(&db) == before && !aside.exists());
    check(files.path(), count);
}
