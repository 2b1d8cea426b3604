//! How many bytes the journals take, without asking the file system after each group.
//!
//! To ask for the length of a file asks for its times too. Linux gives the next write a time that differs from those (multigrain
//! timestamps, since 6.13), and so the next sync has the inode to write: a third longer. So it is asked seldom.

use crate::log::tables::guarded;
use fjall::Database;

/// After how many written bytes it is asked again.
const ASK_AFTER: u64 = 1 << 20;

/// What is known of the journals.
#[derive(Default)]
pub(in crate::log) struct Journals {
    count: usize,
    bytes: u64,
    /// How much was written since it was asked.
    written: u64,
}

impl Journals {
    /// A group of this length is written.
    pub(super) fn add(&mut self, length: u64) {
        self.written += length;
    }

    /// How many bytes they take, or took before the last mebibyte was written.
    pub(in crate::log) fn bytes(&mut self, database: &Database) -> u64 {
        let count = database.journal_count();
        if count != self.count || self.written >= ASK_AFTER {
            *self = Self {
                count,
                // It may panic after a failed write.
                bytes: guarded(|| Ok(database.journal_disk_space()?)).unwrap_or(self.bytes),
                written: 0,
            };
        }
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_system_is_asked_seldom() {
        let files = tempfile::tempdir().unwrap();
        let store = crate::Store::open(files.path()).unwrap();
        let database = &store.inner.log.disk().tables.database;
        let mut journals = Journals::default();
        let bytes = journals.bytes(database);
        assert_eq!(bytes, database.journal_disk_space().unwrap());
        journals.bytes = 1;
        journals.add(ASK_AFTER - 1);
        assert_eq!(journals.bytes(database), 1);
        journals.add(1);
        assert_eq!(journals.bytes(database), bytes);
        (journals.bytes, journals.count) = (1, 2);
        assert_eq!(
            journals.bytes(database),
            bytes,
            "the number of journals changed"
        );
    }
}
