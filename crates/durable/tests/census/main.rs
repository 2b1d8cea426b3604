//! The example `durable_census`, killed or interrupted again and again, counts what it counts undisturbed.

use rustix::process::{Pid, Signal};
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
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
    for signal in [Signal::KILL, Signal::INT] {
        a_census_that_is_ended_counts_each_file_once(signal);
    }
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

/// Ends it by a signal after this number of lines of progress; the number of files in the last one. `Err`: it ended before, and said
/// this.
fn ended(
    root: &Path,
    store: &Path,
    signal: Signal,
    lines: u64,
    at_least: u64,
) -> Result<u64, String> {
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
    rustix::process::kill_process(Pid::from_child(&child), signal).unwrap();
    let status = child.wait().unwrap();
    // It may have ended by itself meanwhile.
    let by_signal = status.signal() == Some(signal.as_raw());
    assert!(by_signal || status.success(), "{status}");
    Ok(last)
}

fn a_census_that_is_ended_counts_each_file_once(signal: Signal) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("tree");
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

    // On a busy machine a census may end before it is told to: then there are more of them.
    let (mut ends, mut censuses, random) = (0_u64, 0, RandomState::new());
    while ends < 3 {
        let store = directory.path().join(format!("store-{censuses}"));
        let mut counted = 0;
        let report = loop {
            let lines = random.hash_one(ends) % 3;
            match ended(&root, &store, signal, lines, counted) {
                Ok(files) => (ends, counted) = (ends + 1, files),
                Err(report) => break report,
            }
        };
        assert_eq!(report, expected, "after {ends} signals {signal:?}");
        assert_eq!(
            undisturbed(&root, &store),
            expected,
            "started again at the end"
        );
        censuses += 1;
        assert!(censuses < 50, "{ends} signals {signal:?}");
    }
}
