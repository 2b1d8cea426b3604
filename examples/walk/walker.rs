//! A walk over a directory tree by several threads, depth first.

use requeue::{Lifo, Queue};
use std::fs;
use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// How many entries of a directory are an item of the queue. With one, each file is a transaction of its own.
const CHUNK: usize = 16;

/// What comes after an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Then {
    /// The entries below it, if it is a directory.
    Continue,
    /// Not those below it.
    Skip,
    /// Nothing any more.
    Quit,
}

/// A file, a directory, or a symbolic link, which is not followed.
pub(crate) struct Entry {
    pub(crate) path: PathBuf,
    pub(crate) is_dir: bool,
}

impl Entry {
    fn root(path: &Path) -> io::Result<Self> {
        let is_dir = fs::symlink_metadata(path)?.is_dir();
        let path = path.to_path_buf();
        Ok(Self { path, is_dir })
    }

    /// Calls `each` with the entries of a directory, or with the error for one.
    pub(crate) fn children(&self, mut each: impl FnMut(io::Result<Self>)) {
        if !self.is_dir {
            return;
        }
        match fs::read_dir(&self.path) {
            Err(error) => each(Err(error)),
            Ok(entries) => entries.for_each(|entry| {
                each(entry.and_then(|entry| {
                    let is_dir = entry.file_type()?.is_dir();
                    let path = entry.path();
                    Ok(Self { path, is_dir })
                }));
            }),
        }
    }
}

/// Visits all entries below `root`, and itself. A directory is visited before what is in it; otherwise in any order.
///
/// If the visitor panics, all threads end, and so does this, with the panic.
pub(crate) fn walk(root: &Path, threads: usize, visit: impl Fn(io::Result<&Entry>) -> Then + Sync) {
    let walk = Walk {
        queue: Queue::builder().lifo().build(),
        quit: AtomicBool::new(false),
        visit,
    };
    match Entry::root(root) {
        Err(error) => {
            walk.visit(Err(error));
        }
        Ok(root) => walk.queue.push(vec![root]).expect("it is open"),
    }
    walk.queue.close(); // from now on entries are pushed by those who hold others
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| walk.work());
        }
    });
}

struct Walk<V> {
    queue: Queue<Vec<Entry>, Lifo>,
    quit: AtomicBool,
    visit: V,
}

/// Ends the walk if the visitor panics.
struct EndsIfPanicking<'w>(&'w AtomicBool);

impl Drop for EndsIfPanicking<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

impl<V: Fn(io::Result<&Entry>) -> Then> Walk<V> {
    fn work(&self) {
        let mut handle = self.queue.handle();
        loop {
            let tx = handle.begin();
            // Before the transaction gives back what it holds: nobody visits that.
            let _end = EndsIfPanicking(&self.quit);
            let Ok(chunk) = tx.pop_blocking() else {
                return;
            };
            for entry in chunk.iter().take_while(|_| !self.ends()) {
                if self.visit(Ok(entry)) == Then::Continue {
                    self.push_children(entry, |chunk| {
                        tx.push(chunk).expect("the transaction holds the directory");
                    });
                }
            }
            tx.commit();
            if self.ends() {
                self.queue.clear();
            }
        }
    }

    fn push_children(&self, entry: &Entry, push: impl Fn(Vec<Entry>)) {
        let mut chunk = Vec::new();
        entry.children(|child| {
            match child {
                Ok(child) => chunk.push(child),
                Err(error) => drop(self.visit(Err(error))),
            }
            if chunk.len() == CHUNK {
                push(mem::take(&mut chunk));
            }
        });
        if !chunk.is_empty() {
            push(chunk);
        }
    }

    fn ends(&self) -> bool {
        self.quit.load(Ordering::Relaxed)
    }

    fn visit(&self, entry: io::Result<&Entry>) -> Then {
        let then = (self.visit)(entry);
        if then == Then::Quit {
            self.quit.store(true, Ordering::Relaxed);
        }
        then
    }
}
