//! The directory of a store: its lock, and the file that says what it is.
//!
//! | file | is |
//! |---|---|
//! | `lock` | locked by the process that has the store open |
//! | `version` | the name of this crate, and the version of the format |
//! | `acknowledged` | the [witness](super::witness) |
//! | `db` | the files of the storage engine |
//! | `db.new` | those that are to take its place, or are not complete |
//! | `db.copy` | a copy of `db`, which is read when it may be damaged |
//! | `db.journals` | the journals of `db` as they were, until it is open |
//! | `damaged-1`, … | damaged files of the storage engine, replaced by what could be salvaged |

use crate::error::StoreError;
use crate::format::{FIRST_VERSION, VERSION};
use parking_lot::Mutex;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The first line of the file that names the version of a store.
const MAGIC: &str = "requeue-durable, version ";
const MOST_VERSION: u64 = 64;

/// The directory of a store, locked until this is dropped.
pub(crate) struct Directory {
    path: PathBuf,
    lock: File,
    /// The version of the format.
    version: Mutex<u32>,
}

impl Directory {
    /// Locks the directory of a store, which is created if nothing is there. With `accept_damage` a damaged version is taken for
    /// this one.
    pub(crate) fn enter(path: &Path, accept_damage: bool) -> Result<Self, StoreError> {
        if !path.is_dir() {
            fs::create_dir_all(path)?;
            sync_parent(path)?;
        }
        let is_new = is_new(path)?;
        if !path.join("version").exists() && !is_new && !is_store(path) {
            return Err(StoreError::NotAStore(path.to_owned()));
        }
        let mut options = OpenOptions::new();
        let lock = options.create(true).truncate(false).write(true);
        let file = path.join("lock");
        let lock = lock
            .open(&file)
            .map_err(|error| StoreError::from(error).at(&file))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::Locked(path.to_owned())),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        let directory = Self {
            path: path.to_owned(),
            lock,
            version: Mutex::new(FIRST_VERSION),
        };
        let named = |version| name_version(path, version).map(|()| version);
        *directory.version.lock() = match directory.identify() {
            _ if is_new => named(VERSION)?,
            Err(StoreError::Damaged(_)) if accept_damage => named(VERSION)?,
            identified => identified?,
        };
        Ok(directory)
    }

    /// Makes sure that versions of this crate that do not know this version of the format refuse the store.
    pub(super) fn upgrade(&self, version: u32) -> Result<(), StoreError> {
        let mut known = self.version.lock();
        if *known < version {
            name_version(&self.path, version)?;
            *known = version;
        }
        Ok(())
    }

    /// Checks the version, and returns it.
    pub(super) fn identify(&self) -> Result<u32, StoreError> {
        let version = self.at("version");
        let text = match read_at_most(&version, MOST_VERSION) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(StoreError::from(error).at(&version));
            }
            text => String::from_utf8(text.unwrap_or_default()).unwrap_or_default(),
        };
        let found = text.strip_prefix(MAGIC);
        match found.and_then(|found| found.trim().parse().ok()) {
            Some(found @ FIRST_VERSION..=VERSION) => Ok(found),
            // Version 0 never existed.
            Some(found @ 1..) => Err(StoreError::Version {
                found,
                supported: VERSION,
            }),
            _ if is_store(&self.path) => Err(StoreError::damaged(
                "the file `version` is missing or cannot be read",
            )),
            _ => Err(StoreError::NotAStore(self.path.clone())),
        }
    }

    pub(super) fn version(&self) -> u32 {
        *self.version.lock()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A file or a directory in it.
    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Ensures that a power loss does not take back what was created and renamed.
    pub(super) fn sync(&self) -> io::Result<()> {
        sync(Some(&self.path))
    }

    /// Completes what a crash has interrupted. Returns whether there is a database.
    pub(super) fn tidy(&self) -> io::Result<bool> {
        self.remove_copies()?;
        let (db, new) = (self.at("db"), self.at("db.new"));
        if !db.exists() && new.exists() && self.aside(1).exists() {
            // The damaged one was put aside, so the new one is complete.
            self.put_in_place()?;
        } else if new.exists() {
            fs::remove_dir_all(new)?;
        }
        Ok(db.exists())
    }

    /// An empty place for a database.
    pub(super) fn empty(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.at(name);
        if path.exists() {
            fs::remove_dir_all(&path)?;
        }
        Ok(path)
    }

    /// Copies the database, except its journals: the storage engine changes what it opens.
    pub(super) fn copy_tables(&self) -> io::Result<PathBuf> {
        let copy = self.empty("db.copy")?;
        link_tables(&self.at("db"), &copy)?;
        Ok(copy)
    }

    /// Where the journals are put aside while a store is opened.
    pub(super) fn journals(&self) -> PathBuf {
        self.at("db.journals")
    }

    pub(super) fn remove_copies(&self) -> io::Result<()> {
        self.empty("db.journals")?;
        self.empty("db.copy").map(drop)
    }

    /// Makes `db.new` the database.
    pub(super) fn put_in_place(&self) -> io::Result<()> {
        fs::rename(self.at("db.new"), self.at("db"))?;
        self.sync()
    }

    /// Puts the database aside; returns where it is.
    pub(super) fn put_aside(&self) -> io::Result<PathBuf> {
        let free = (1..).map(|number| self.aside(number));
        let mut free = free.skip_while(|path| path.exists());
        let aside = free.next().unwrap_or_else(|| self.aside(0));
        fs::rename(self.at("db"), &aside)?;
        self.sync()?;
        Ok(aside)
    }

    fn aside(&self, number: u32) -> PathBuf {
        self.at(&format!("damaged-{number}"))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // A process that is just being started has a copy of the file, so it is not enough to close this one.
        let _ = self.lock.unlock();
    }
}

/// Writes the version of a store.
pub(super) fn name_version(store: &Path, version: u32) -> io::Result<()> {
    let new = store.join("version.new");
    let mut file = File::create(&new)?;
    writeln!(file, "{MAGIC}{version}")?;
    file.sync_all()?;
    fs::rename(&new, store.join("version"))?;
    sync(Some(store))
}

/// Whether a directory is empty, apart from what an interrupted creation leaves.
fn is_new(path: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        if name != "lock" && name != "version.new" {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a directory without a version is that of a store: nothing else has these.
fn is_store(path: &Path) -> bool {
    let has_db = ["db", "db.new"].map(|db| path.join(db).join("keyspaces").is_dir());
    path.join("lock").is_file() && has_db.contains(&true)
}

/// Links what is in a directory, except journals. The storage engine does not write to a table again.
fn link_tables(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            link_tables(&path, &to)?;
        } else if !is_journal(&path) {
            link(&path, &to)?;
        }
    }
    Ok(())
}

/// Gives a file another name. Not all file systems have links.
pub(super) fn link(file: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(file, to).or_else(|_| fs::copy(file, to).map(drop))
}

/// The first bytes of a file, which is short unless it is damaged.
pub(super) fn read_at_most(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether a file of the storage engine is a journal.
pub(super) fn is_journal(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "jnl")
}

/// Ensures that a power loss does not take back the name of a directory.
pub(super) fn sync_parent(path: &Path) -> io::Result<()> {
    sync(path.parent().filter(|parent| *parent != Path::new("")))
}

fn sync(directory: Option<&Path>) -> io::Result<()> {
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}
