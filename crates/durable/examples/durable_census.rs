//! A census of a directory tree that survives Ctrl-C, `kill -9` and a power failure: start it again, and it goes on where
//! it was. Each file is counted exactly once.
//!
//! ```text
//! cargo run --release -p requeue-durable --example durable_census -- DIR STORE
//! ```
//!
//! Every directory is a job. A worker takes up to 8 jobs in a transaction, stages the directories in them as new jobs, and
//! adds what it counted to a total, which is an item of a second queue: it takes the old total and pushes the new one. One
//! commit over both queues makes all of that durable, or nothing. So whenever the process dies, the totals count exactly the
//! directories that are no longer jobs.

use requeue_durable::{commit_all, Durability, DurableQueue, PopError, Store, StoreOptions};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use std::{env, fs, io, thread};

const WORKERS: usize = 2;
/// The number of jobs in one commit.
const JOBS: usize = 8;
/// A job that cannot be done is tried so often.
const ATTEMPTS: u32 = 3;

type Failure = Box<dyn Error + Send + Sync>;

/// What a worker has counted, by extension. Only its commits are ever seen by others.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Total {
    directories: u64,
    files: BTreeMap<String, Count>,
    unreadable: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Count {
    files: u64,
    bytes: u64,
}

struct Census {
    store: Store,
    directories: DurableQueue<PathBuf>,
    totals: DurableQueue<Total>,
    /// For the progress.
    files: AtomicU64,
}

pub(crate) fn main() -> ExitCode {
    let arguments: Vec<_> = env::args_os().skip(1).map(PathBuf::from).collect();
    let [root, store] = &arguments[..] else {
        eprintln!("usage: durable_census DIR STORE");
        return ExitCode::from(2);
    };
    match census(root, store) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("durable_census: {error}");
            ExitCode::FAILURE
        }
    }
}

fn census(root: &Path, store: &Path) -> Result<(), Failure> {
    let census = Census::open(root, store)?;
    eprintln!("{}", census.progress());
    thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|_| scope.spawn(|| census.work()))
            .collect();
        let mut ended = workers
            .into_iter()
            .map(|worker| worker.join().expect("a worker panicked"));
        ended.try_for_each(|result| result)
    })?;
    print!("{}", census.report()?);
    Ok(())
}

impl Census {
    /// Opens the store. In a new one the root is the first job, and the totals are empty.
    fn open(root: &Path, store: &Path) -> Result<Self, Failure> {
        // A crash loses the commits of the last moments, but whole ones: their directories are jobs again.
        let at_most = Duration::from_millis(100);
        let durability = Durability::Buffered { at_most };
        let store = StoreOptions::new().durability(durability).open(store)?;
        let census = Self {
            directories: store.builder("directories").build()?,
            totals: store.builder("totals").build()?,
            store,
            files: AtomicU64::new(0),
        };
        if !census.directories.is_closed() && census.totals.is_empty() {
            let (directories, totals) = (
                census.directories.begin_owned(),
                census.totals.begin_owned(),
            );
            directories.push(fs::canonicalize(root)?)?;
            totals.push_batch((0..WORKERS).map(|_| Total::default()))?;
            commit_all((directories, totals))?;
        }
        // Workers can still push what they find, and all ends when the last job is done.
        census.directories.close()?;
        census.files.store(census.all()?.sum().files, Relaxed);
        Ok(census)
    }

    /// Works until all jobs are done.
    fn work(&self) -> Result<(), Failure> {
        let (mut directories, mut totals) = (self.directories.handle(), self.totals.handle());
        let mut commits = 0_u64;
        loop {
            let (jobs, counts) = (directories.begin(), totals.begin());
            let first = match jobs.pop_blocking() {
                Ok(first) => first,
                Err(PopError::Closed) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let rest = jobs.pop_batch(JOBS - 1)?;
            let mut total = counts.pop_blocking()?.clone();
            let before = total.sum().files;
            for job in std::iter::once(first).chain(rest) {
                for directory in total.visit(&job) {
                    jobs.push(directory)?;
                }
            }
            let counted = total.sum().files - before;
            counts.push(total)?;
            commit_all((jobs, counts))?;
            self.files.fetch_add(counted, Relaxed);
            commits += 1;
            if commits.is_multiple_of(4) {
                let progress = self.progress();
                self.store.flush()?; // what is printed is on the disk
                eprintln!("{progress}");
            }
        }
    }

    fn all(&self) -> Result<Total, Failure> {
        let mut sum = Total::default();
        self.totals.peek_each(|total| sum.add(total))?;
        Ok(sum)
    }

    fn progress(&self) -> String {
        let (files, left) = (self.files.load(Relaxed), self.directories.len());
        format!("{files} files, {left} directories are waiting")
    }

    /// The most frequent extensions, and the sums.
    fn report(&self) -> Result<String, Failure> {
        let (total, mut text) = (self.all()?, String::new());
        let mut rows: Vec<_> = total.files.iter().map(|(k, v)| (k.as_str(), *v)).collect();
        rows.sort_by_key(|(_, count)| Reverse(count.files));
        rows.truncate(5);
        rows.push(("total", total.sum()));
        for (extension, Count { files, bytes }) in rows {
            writeln!(text, "{extension:<16} {files:>9} {bytes:>15}")?;
        }
        let (directories, unreadable) = (total.directories, total.unreadable.len());
        writeln!(text, "directories {directories}, unreadable {unreadable}")?;
        Ok(text)
    }
}

impl Total {
    /// Counts the files of a directory, and returns the directories in it.
    fn visit(&mut self, directory: &Path) -> Vec<PathBuf> {
        let read = (0..ATTEMPTS).find_map(|_| read(directory).ok());
        let Some((files, directories)) = read else {
            self.unreadable.push(directory.to_owned());
            return Vec::new();
        };
        self.directories += 1;
        for (extension, bytes) in files {
            let count = self.files.entry(extension).or_default();
            count.files += 1;
            count.bytes += bytes;
        }
        directories
    }

    fn add(&mut self, other: &Self) {
        self.directories += other.directories;
        self.unreadable.extend_from_slice(&other.unreadable);
        for (extension, Count { files, bytes }) in &other.files {
            let count = self.files.entry(extension.clone()).or_default();
            count.files += files;
            count.bytes += bytes;
        }
    }

    fn sum(&self) -> Count {
        self.files
            .values()
            .fold(Count::default(), |sum, count| Count {
                files: sum.files + count.files,
                bytes: sum.bytes + count.bytes,
            })
    }
}

/// The extension of a file, and its length.
type Found = (String, u64);

/// The files of a directory, by extension and length, and its directories. Symbolic links are not followed.
fn read(directory: &Path) -> io::Result<(Vec<Found>, Vec<PathBuf>)> {
    let (mut files, mut directories) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            directories.push(entry.path());
        } else if kind.is_file() {
            let path = entry.path();
            let extension = path
                .extension()
                .map_or("(none)".into(), |name| name.to_string_lossy());
            files.push((
                extension.escape_debug().to_string(),
                entry.metadata()?.len(),
            ));
        }
    }
    Ok((files, directories))
}
