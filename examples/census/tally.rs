//! The findings of the workers: each worker has its own tally, and they are merged at the end.

use std::collections::BTreeMap;
use std::io;
use std::ops::AddAssign;
use std::path::{Path, PathBuf};

use super::report::printable;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Directory,
    File(Count),
    Symlink,
    Other,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Count {
    pub(crate) files: u64,
    pub(crate) lines: u64,
    pub(crate) bytes: u64,
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.files += other.files;
        self.lines += other.lines;
        self.bytes += other.bytes;
    }
}

/// An entry that was given up.
#[derive(Debug)]
pub(crate) struct Unreadable {
    pub(crate) path: PathBuf,
    pub(crate) attempts: u32,
    pub(crate) error: io::Error,
}

#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Number of pushed jobs.
    pub(crate) pushed: u64,
    pub(crate) extensions: BTreeMap<String, Count>,
    pub(crate) directories: u64,
    pub(crate) symlinks: u64,
    pub(crate) others: u64,
    pub(crate) unreadable: Vec<Unreadable>,
}

impl Tally {
    pub(crate) fn count(&mut self, path: &Path, kind: Kind) {
        match kind {
            Kind::Directory => self.directories += 1,
            Kind::File(count) => *self.extensions.entry(extension(path)).or_default() += count,
            Kind::Symlink => self.symlinks += 1,
            Kind::Other => self.others += 1,
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.pushed += other.pushed;
        for (extension, count) in other.extensions {
            *self.extensions.entry(extension).or_default() += count;
        }
        self.directories += other.directories;
        self.symlinks += other.symlinks;
        self.others += other.others;
        self.unreadable.extend(other.unreadable);
    }

    /// The sum over all extensions.
    pub(crate) fn total(&self) -> Count {
        let mut total = Count::default();
        self.extensions.values().for_each(|count| total += *count);
        total
    }
}

fn extension(path: &Path) -> String {
    path.extension().map_or_else(|| "(none)".into(), printable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_are_printable() {
        assert_eq!(extension(Path::new("a.tar.gz")), "gz");
        assert_eq!(extension(Path::new("README")), "(none)");
        assert_eq!(extension(Path::new(".gitignore")), "(none)");
        assert_eq!(extension(Path::new("a.b\n\u{1b}c")), "b\\n\\u{1b}c");
    }
}
