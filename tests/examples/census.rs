//! End-to-end tests of the example `census`: small trees on disk, the program, its output.

/// The example's modules, so that their own tests run here.
#[allow(dead_code)]
#[path = "../../examples/census/main.rs"]
mod example;

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Output};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use crate::program;

/// A directory that is removed at the end of the test.
struct Tree(PathBuf);

impl Tree {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("census-{}-{}", process::id(), NEXT.fetch_add(1, Relaxed));
        let root = env::temp_dir().join(name);
        fs::create_dir(&root).unwrap();
        Self(root)
    }

    fn dir(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = self.0.join(path);
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn file(&self, path: impl AsRef<Path>, content: &[u8]) -> PathBuf {
        let path = self.0.join(path);
        fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let removed = fs::remove_dir_all(&self.0);
        assert!(removed.is_ok() || thread::panicking(), "{removed:?}");
    }
}

fn census<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Output {
    program("census").args(args).output().unwrap()
}

/// The output of a successful census, with runs of spaces collapsed.
fn printed(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(text(&output.stderr), "");
    let lines = text(&output.stdout);
    let words = lines
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    words.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_known_tree_is_counted() {
    let tree = Tree::new();
    tree.dir("empty");
    tree.dir("deep/deeper/deepest");
    tree.file("README", b"no extension\n");
    tree.file(".hidden", b"neither here");
    tree.file("a.rs", b"fn main() {\n}\n");
    tree.file("deep/b.rs", b"no newline at the end");
    tree.file("deep/deeper/none.txt", b"");
    tree.file("deep/deeper/deepest/c.tar.gz", &b"\n".repeat(100_000));
    let expected = "\
extension files lines bytes
gz 1 100000 100000
rs 2 2 35
(none) 2 1 25
txt 1 0 0
total 6 100003 100060

directories 5, symbolic links 0, others 0
unreadable 0
conservation: 11 pushed = 11 committed + 0 reported";
    assert_eq!(printed(&census([&tree.0])), expected);
}

#[test]
fn an_empty_directory_is_a_tree() {
    let expected = "\
extension files lines bytes
total 0 0 0

directories 1, symbolic links 0, others 0
unreadable 0
conservation: 1 pushed = 1 committed + 0 reported";
    assert_eq!(printed(&census([&Tree::new().0])), expected);
}

#[test]
fn a_thousand_files_are_counted_once_each() {
    let tree = Tree::new();
    for dir in 0..20 {
        tree.dir(dir.to_string());
        for file in 0..50 {
            tree.file(format!("{dir}/{file}.txt"), b"one\ntwo\n");
        }
    }
    let printed = printed(&census([&tree.0]));
    assert!(printed.contains("\ntxt 1000 2000 8000\n"), "{printed}");
    assert!(printed.contains("\ndirectories 21,"), "{printed}");
    assert!(
        printed.ends_with("1021 pushed = 1021 committed + 0 reported"),
        "{printed}"
    );
}

#[test]
fn the_package_of_the_run_is_the_default() {
    let tree = Tree::new();
    tree.file("Cargo.toml", b"[package]\n");
    let output = program("census")
        .env("CARGO_MANIFEST_DIR", &tree.0)
        .output()
        .unwrap();
    let printed = printed(&output);
    assert!(printed.contains("\ntoml 1 1 10\n"), "{printed}");
    assert!(printed.contains("\ntotal 1 1 10\n"), "{printed}");
}

#[test]
fn help_is_printed() {
    for option in ["-h", "--help"] {
        assert!(printed(&census([option])).starts_with("Usage: census [DIR]"));
    }
}

#[test]
fn a_bad_argument_is_refused() {
    let tree = Tree::new();
    let root = tree.0.to_str().unwrap();
    let file = tree.file("file", b"");
    refused(&["no/such/directory"], "\"no/such/directory\"");
    refused(&[file.to_str().unwrap()], "is not a directory");
    refused(&[root, root], "one directory at a time");
    refused(&["--nonsense"], "unknown option --nonsense");
    refused(&[root, "-x"], "unknown option -x");
}

fn refused(args: &[&str], reason: &str) {
    let output = census(args);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
    assert_eq!(output.stdout, b"", "{args:?}");
    assert!(stderr.starts_with("census: "), "{args:?}: {stderr}");
    assert!(stderr.contains(reason), "{args:?}: {stderr}");
    assert!(stderr.contains("Usage: census [DIR]"), "{args:?}: {stderr}");
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_symbolic_link_is_counted_and_not_followed() {
        let tree = Tree::new();
        let elsewhere = Tree::new();
        let file = elsewhere.file("elsewhere.txt", b"line\n");
        symlink(&elsewhere.0, tree.0.join("directory")).unwrap();
        symlink(file, tree.0.join("file.txt")).unwrap();
        symlink(&tree.0, tree.0.join("loop")).unwrap();
        symlink("nowhere", tree.0.join("dangling")).unwrap();
        let printed = printed(&census([&tree.0]));
        assert!(printed.contains("\ntotal 0 0 0\n"), "{printed}");
        assert!(
            printed.contains("\ndirectories 1, symbolic links 4, others 0\n"),
            "{printed}"
        );
        assert!(
            printed.ends_with("5 pushed = 5 committed + 0 reported"),
            "{printed}"
        );
    }

    #[test]
    fn a_symbolic_link_may_name_the_tree() {
        let tree = Tree::new();
        let links = Tree::new();
        tree.file("a.txt", b"line\n");
        let link = links.0.join("link");
        symlink(&tree.0, &link).unwrap();
        let printed = printed(&census([link]));
        assert!(printed.contains("\ntxt 1 1 5\n"), "{printed}");
    }

    #[test]
    fn special_files_are_not_opened() {
        let tree = Tree::new();
        let _socket = UnixListener::bind(tree.0.join("socket")).unwrap();
        let printed = printed(&census([&tree.0]));
        assert!(
            printed.contains("\ndirectories 1, symbolic links 0, others 1\nunreadable 0\n"),
            "{printed}"
        );
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn a_report_that_cannot_be_written_fails_the_census() {
        let tree = Tree::new();
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut census = program("census");
        let output = census.arg(&tree.0).stdout(full).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.starts_with("census: cannot write"), "{stderr}");
    }

    #[test]
    fn names_need_not_be_utf_8() {
        let tree = Tree::new();
        tree.dir(OsStr::from_bytes(b"caf\xe9"));
        tree.file(OsStr::from_bytes(b"caf\xe9/\xff.rs"), b"one\n");
        tree.file(OsStr::from_bytes(b"caf\xe9/name.\xff"), b"two\nthree\n");
        let printed = printed(&census([&tree.0]));
        assert!(printed.contains("\nrs 1 1 4\n"), "{printed}");
        assert!(printed.contains("\n\u{fffd} 1 2 10\n"), "{printed}");
        assert!(
            printed.ends_with("4 pushed = 4 committed + 0 reported"),
            "{printed}"
        );
    }

    /// The system accepts no path of more than 4,096 bytes; a rename creates one from two halves.
    #[test]
    fn an_unreadable_entry_is_tried_three_times_and_reported() {
        let half = vec!["d".repeat(200); 12].join("/");
        let tree = Tree::new();
        tree.file("readable.txt", b"line\n");
        let upper = tree.dir(&half);
        tree.dir(Path::new("lower").join(&half));
        fs::rename(tree.0.join("lower"), upper.join("lower")).unwrap();

        let printed = printed(&census([&tree.0]));
        assert!(printed.contains("\ntotal 1 1 5\n"), "{printed}");
        let (_, reported) = printed.split_once("\nunreadable 1\n").expect(&printed);
        let [entry, conservation] = reported.lines().collect::<Vec<_>>()[..] else {
            panic!("{printed}")
        };
        assert!(entry.starts_with(upper.to_str().unwrap()), "{entry}");
        assert!(entry.contains("d, 3 attempts: "), "{entry}");
        assert!(
            conservation.ends_with(" committed + 1 reported"),
            "{conservation}"
        );
    }
}
