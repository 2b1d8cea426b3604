//! The example `durable_census`, killed again and again, counts what it counts undisturbed.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

#[path = "../../examples/durable_census.rs"]
mod durable_census;

/// Set for the child processes: they are this program too, and run the example.
const CHILD: &str = "DURABLE_CENSUS_CHILD";

fn main() -> ExitCode {
    if std::env::var_os(CHILD).is_some() {
        return durable_census::main();
    }
    a_census_that_is_killed_counts_each_file_once();
    ExitCode::SUCCESS
}

/// A tree of 20 x 30 directories.
fn plant(root: &Path) {
    for branch in 0..20 {
        for twig in 0..30 {
            let directory = root.join(format!("{branch}/{twig}"));
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join(format!("a.{}", twig % 4)), "text").unwrap();
            fs::write(directory.join("b.txt"), vec![b'x'; branch]).unwrap();
        }
    }
}

fn command(root: &Path, store: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([root, store]).env(CHILD, "");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn undisturbed(root: &Path, store: &Path) -> String {
    let output = command(root, store).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn files(progress: &str) -> u64 {
    let number = progress.split(' ').next().unwrap();
    number.parse().unwrap_or_else(|_| panic!("{progress}"))
}

/// Kills it after so many lines of progress; the number of files in the last one. `Err`: it ended, and said this.
fn killed(root: &Path, store: &Path, lines: u64, at_least: u64) -> Result<u64, String> {
    let mut child = command(root, store).spawn().unwrap();
    let mut progress = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut last = files(&progress.next().unwrap().unwrap());
    assert!(
        last >= at_least,
        "{at_least} files were on the disk, {last} are there"
    );
    for _ in 0..lines {
        let Some(line) = progress.next() else {
            let mut report = String::new();
            let mut output = child.stdout.take().unwrap();
            output.read_to_string(&mut report).unwrap();
            assert!(child.wait().unwrap().success());
            return Err(report);
        };
        last = last.max(files(&line.unwrap()));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    Ok(last)
}

fn a_census_that_is_killed_counts_each_file_once() {
    let directory = tempfile::tempdir().unwrap();
    let (root, store) = (
        directory.path().join("tree"),
        directory.path().join("store"),
    );
    plant(&root);
    let expected = undisturbed(&root, &directory.path().join("other"));
    assert!(
        expected.contains("directories 621, unreadable 0"),
        "{expected}"
    );
    assert!(
        expected.contains(&format!("{:<16} {:>9}", "total", 1_200)),
        "{expected}"
    );

    let (mut kills, mut counted, random) = (0_u64, 0, RandomState::new());
    let report = loop {
        let lines = random.hash_one(kills) % 3;
        match killed(&root, &store, lines, counted) {
            Ok(files) => (kills, counted) = (kills + 1, files),
            Err(report) => break report,
        }
    };
    assert_eq!(report, expected, "after {kills} kills");
    assert!(kills >= 3, "{kills} kills");
    assert_eq!(
        undisturbed(&root, &store),
        expected,
        "started again at the end"
    );
}
