use super::walker::{walk, Entry, Then};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

/// A directory that is removed at the end, with these files.
struct Tree(PathBuf);

impl Tree {
    fn new(files: &[&str]) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("requeue-walk-{}-{number}", std::process::id());
        let root = std::env::temp_dir().join(name);
        fs::create_dir(&root).unwrap();
        for file in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        Self(root)
    }

    /// What a walk visits, in its order.
    fn visited(&self, then: impl Fn(&str) -> Then + Sync) -> Vec<String> {
        let visited = Mutex::new(Vec::new());
        walk(&self.0, 4, |entry| {
            let name = self.name(entry);
            let then = then(&name);
            visited.lock().unwrap().push(name);
            then
        });
        visited.into_inner().unwrap()
    }

    fn name(&self, entry: io::Result<&Entry>) -> String {
        let path = &entry.unwrap().path;
        path.strip_prefix(&self.0).unwrap().display().to_string()
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

#[test]
fn each_entry_is_visited_once_and_directories_before_what_is_in_them() {
    let tree = Tree::new(&["a/b/c", "a/d", "e", "f/g/h/i"]);
    let visited = tree.visited(|_| Then::Continue);
    let all = [
        "", "a", "a/b", "a/b/c", "a/d", "e", "f", "f/g", "f/g/h", "f/g/h/i",
    ];
    let sorted: BTreeSet<_> = visited.iter().map(String::as_str).collect();
    assert_eq!((visited.len(), sorted), (all.len(), all.into()));
    for (nth, name) in visited.iter().enumerate().skip(1) {
        let parent = Path::new(name).parent().unwrap().display().to_string();
        assert!(visited[..nth].contains(&parent), "{name}");
    }
}

#[test]
fn what_is_below_a_skipped_directory_is_not_visited() {
    let tree = Tree::new(&["a/b/c", "a/d", "e"]);
    let mut visited = tree.visited(|name| {
        if name == "a" {
            Then::Skip
        } else {
            Then::Continue
        }
    });
    visited.sort();
    assert_eq!(visited, ["", "a", "e"]);
}

#[test]
fn a_walk_that_quits_visits_no_more() {
    let tree = Tree::new(&["a/b/c"]);
    assert_eq!(tree.visited(|_| Then::Quit), [""]);
    let files: Vec<_> = (0..1_000).map(|nth| format!("a/{nth}")).collect();
    let tree = Tree::new(&files.iter().map(String::as_str).collect::<Vec<_>>());
    let quits = |name: &str| {
        if name.starts_with("a/") {
            Then::Quit
        } else {
            Then::Continue
        }
    };
    assert!(tree.visited(quits).len() <= 2 + 4); // each thread may be visiting one
}

#[test]
fn a_panic_ends_the_walk() {
    let files: Vec<_> = (0..100).map(|nth| format!("{}/{nth}", nth % 7)).collect();
    let tree = Tree::new(&files.iter().map(String::as_str).collect::<Vec<_>>());
    for last in ["", "3", "3/66"] {
        let walked = catch_unwind(AssertUnwindSafe(|| {
            tree.visited(|name| {
                assert_ne!(name, last);
                Then::Continue
            })
        }));
        assert!(walked.is_err());
    }
}

#[test]
fn a_file_and_nothing_at_all_are_roots_too() {
    let tree = Tree::new(&["a"]);
    let kinds = |root: &str| {
        let kinds = Mutex::new(Vec::new());
        walk(&tree.0.join(root), 2, |entry| {
            kinds
                .lock()
                .unwrap()
                .push(entry.map_err(|error| error.kind()).is_ok());
            Then::Continue
        });
        kinds.into_inner().unwrap()
    };
    assert_eq!(kinds("a"), [true]);
    assert_eq!(kinds("none"), [false]);
}

#[cfg(unix)]
#[test]
fn links_are_not_followed() {
    let tree = Tree::new(&["a/b"]);
    std::os::unix::fs::symlink(&tree.0, tree.0.join("a/loop")).unwrap();
    let mut visited = tree.visited(|_| Then::Continue);
    visited.sort();
    assert_eq!(visited, ["", "a", "a/b", "a/loop"]);
}
