//! A copy of a store that is in use.
//!
//! Groups are written to the tables as a whole, and one after the other, so what the storage engine shows at one instant is a prefix
//! of them. It keeps these rows until they are copied, to tables of another database. A directory without the file `version` is not
//! opened as a store: so that comes last.

use super::catalog::Catalog;
use super::directory::{name_version, sync_parent};
use super::disk::Disk;
use super::journal;
use super::tables::{guarded, unreadable, Tables};
use super::witness::Witness;
use crate::error::StoreError;
use fjall::{Readable, Snapshot};
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// The memtable of a copy, which is not written to.
const MEMTABLE: u64 = 1 << 20;

impl Disk {
    /// Copies what is written to a new directory.
    pub(crate) fn snapshot_to(&self, path: &Path) -> Result<(), StoreError> {
        let mut incomplete = path.as_os_str().to_owned();
        incomplete.push(".incomplete");
        let incomplete = Path::new(&incomplete);
        if path.symlink_metadata().is_ok() {
            let exists = io::Error::from(io::ErrorKind::AlreadyExists);
            return Err(StoreError::from(exists).at(path));
        }
        fs::create_dir(incomplete).map_err(|error| StoreError::from(error).at(incomplete))?;
        let copied = self.copy_to(incomplete).and_then(|version| {
            name_version(incomplete, version)?;
            fs::rename(incomplete, path)?;
            Ok(sync_parent(path)?)
        });
        copied.map_err(|error| {
            // What cannot be removed either is incomplete by its name.
            let _ = fs::remove_dir_all(incomplete);
            error.at(path)
        })
    }

    /// Makes all files of a copy except its version, and returns that.
    fn copy_to(&self, to: &Path) -> Result<u32, StoreError> {
        // With the lock, so that no group is being written.
        let catalog = self.catalog();
        let (rows, group) = (self.tables.database.snapshot(), catalog.store.group);
        drop(catalog);
        // What the rows need was named before they were written.
        let version = self.directory().identify()?;
        let db = to.join("db");
        copy_rows(&self.tables, &rows, &db)?;
        let (witness, _) = Witness::open(&to.join("acknowledged"), false)?;
        witness.write(group)?;
        check(&db, group)?;
        sync_all(to)?;
        Ok(version)
    }
}

fn copy_rows(tables: &Tables, rows: &Snapshot, db: &Path) -> Result<(), StoreError> {
    let copy = Tables::open(db, MEMTABLE)?;
    for (from, to) in tables.all().iter().zip(copy.all()) {
        guarded(|| {
            // To tables at once, without a journal.
            let mut to = to.start_ingestion()?;
            for row in rows.iter(from) {
                let (key, value) = row.into_inner().map_err(unreadable)?;
                to.write(key, value)?;
            }
            Ok(to.finish()?)
        })?;
    }
    drop(copy);
    Ok(journal::empty_all(db)?)
}

/// Opens a copy, and compares all rows with the counts and checksums.
fn check(db: &Path, group: u64) -> Result<(), StoreError> {
    Tables::check_lists(db)?;
    let tables = Tables::open(db, MEMTABLE)?;
    Catalog::read(&tables, group)?.check_all(&tables)?;
    drop(tables);
    Ok(journal::empty_all(db)?)
}

/// Ensures that all of a directory is on the disk.
fn sync_all(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            sync_all(&entry?.path())?;
        }
    }
    File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use crate::format::{Key, ITEMS};
    use crate::{Store, StoreError};

    #[test]
    fn a_copy_without_its_last_step_is_no_store() {
        let files = tempfile::tempdir().unwrap();
        let [store, copy] = ["store", "copy"].map(|name| files.path().join(name));
        let store = Store::open(store).unwrap();
        store.queue("jobs").unwrap().push(1).unwrap();
        std::fs::create_dir(&copy).unwrap();
        let version = store.inner.log.disk().copy_to(&copy).unwrap();
        let opened = Store::open(&copy).map(drop);
        assert!(
            matches!(opened, Err(StoreError::NotAStore(_))),
            "{opened:?}"
        );
        super::name_version(&copy, version).unwrap();
        let copy = Store::open(&copy).unwrap();
        assert_eq!(copy.queue::<i32>("jobs").unwrap().pop().unwrap(), 1);
    }
    #[test]
    fn a_copy_that_is_not_right_is_removed() {
        let files = tempfile::tempdir().unwrap();
        let copy = files.path().join("copy");
        let store = Store::open(files.path().join("store")).unwrap();
        let jobs = store.queue("jobs").unwrap();
        (0..3).for_each(|job| jobs.push(job).map(drop).unwrap());
        store.snapshot_to(&copy).unwrap();
        std::fs::remove_dir_all(&copy).unwrap();
        let items = &store.inner.log.disk().tables[ITEMS];
        let (queue, id) = (jobs.shared.id, 2);
        items.remove(Key { queue, id }.to_bytes()).unwrap();
        let copied = store.snapshot_to(&copy);
        assert!(matches!(copied, Err(StoreError::Damaged(_))), "{copied:?}");
        let left = std::fs::read_dir(files.path()).unwrap().count();
        assert_eq!(left, 1);
    }
}
