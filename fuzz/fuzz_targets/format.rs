//! Decodes arbitrary bytes as rows and as journals of a durable queue.
//!
//! A repeatable smoke run, with long inputs from the start:
//!
//! ```text
//! cargo +nightly fuzz run format -- -runs=20000 -seed=1 -len_control=0 -rss_limit_mb=2048
//! ```

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use requeue_durable::fuzzing::{changes, mend, rows, store_row};
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;
use xxhash_rust::xxh3::Xxh3;

#[derive(Arbitrary, Debug)]
enum Case<'b> {
    Row { key: &'b [u8], value: &'b [u8] },
    Journal(Journal<'b>),
}

/// Groups of commits, and what follows them.
#[derive(Arbitrary, Debug)]
struct Journal<'b> {
    groups: Vec<Group<'b>>,
    rest: &'b [u8],
    /// A byte that is changed, and how.
    damage: Option<(u16, u8)>,
    acknowledged: usize,
}

#[derive(Arbitrary, Debug)]
struct Group<'b> {
    /// How much greater the number of its batch is than the one before.
    step: u8,
    rows: Vec<(u64, &'b [u8], Option<&'b [u8]>)>,
}

type Change = (u64, Vec<u8>, Option<Vec<u8>>);

/// A directory in which there are no other files.
static DIRECTORY: LazyLock<PathBuf> = LazyLock::new(|| {
    let name = format!("requeue-fuzz-{}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    fs::create_dir_all(&directory).expect("a directory");
    directory
});

fuzz_target!(|case: Case| match case {
    Case::Row { key, value } => rows(key, value),
    Case::Journal(journal) => journal.check(),
});

impl Journal<'_> {
    fn check(&self) {
        let acknowledged = self.acknowledged % (self.groups.len() + 1);
        let (mut bytes, mut expected, mut number) = (Vec::new(), Vec::new(), 0);
        // The changes that must be there.
        let mut least = 0;
        for (group, index) in self.groups.iter().zip(1..) {
            number += 1 + u64::from(group.step);
            let rows = group.changes(index);
            write_batch(number, &rows, &mut bytes);
            expected.extend(rows);
            if index == acknowledged as u64 {
                least = expected.len();
            }
        }
        bytes.extend_from_slice(self.rest);
        match self.damage.filter(|_| !bytes.is_empty()) {
            Some((at, change)) => {
                let at = usize::from(at) % bytes.len();
                bytes[at] ^= change;
            }
            None => least = expected.len(),
        }
        let file = DIRECTORY.join("0.jnl");
        fs::write(&file, &bytes).expect("the journal is written");
        let readable = changes(&DIRECTORY).expect("the journal is read");
        if mend(&DIRECTORY, acknowledged as u64).is_err() {
            assert_eq!(fs::read(&file).expect("the journal is read"), bytes);
            return;
        }
        // If it has no group, the tables tell which are missing.
        assert!(readable.starts_with(&expected[..least]));
        let left = changes(&DIRECTORY).expect("the journal is read");
        assert!(readable.starts_with(&left));
        let mended = fs::read(&file).expect("the journal is read");
        assert!(bytes.starts_with(&mended));
        mend(&DIRECTORY, 0).expect("the journal is mended");
        assert_eq!(fs::read(&file).expect("the journal is read"), mended);
    }
}

impl Group<'_> {
    fn changes(&self, group: u64) -> Vec<Change> {
        let rows = self.rows.iter().map(|(table, key, value)| {
            let key = &key[..key.len().min(usize::from(u16::MAX))];
            (*table, key.to_vec(), value.map(<[u8]>::to_vec))
        });
        let (key, value) = store_row(group);
        rows.chain([(5, key.to_vec(), Some(value))]).collect()
    }
}

/// Writes a batch as the storage engine does.
fn write_batch(number: u64, rows: &[Change], bytes: &mut Vec<u8>) {
    bytes.push(1);
    bytes.extend((rows.len() as u32).to_le_bytes());
    bytes.extend(number.to_le_bytes());
    let start = bytes.len();
    for (table, key, value) in rows {
        let value = value.as_deref();
        let len = (value.unwrap_or_default().len() as u32).to_le_bytes();
        bytes.extend([2, u8::from(value.is_none()), 0]);
        bytes.extend(table.to_le_bytes());
        bytes.extend((key.len() as u16).to_le_bytes());
        bytes.extend([len, len].concat());
        bytes.extend_from_slice(key);
        bytes.extend_from_slice(value.unwrap_or_default());
    }
    let mut checksum = Xxh3::new();
    checksum.update(&bytes[start..]);
    bytes.push(3);
    bytes.extend(checksum.digest().to_le_bytes());
    bytes.extend(b"FJL\x03");
}
