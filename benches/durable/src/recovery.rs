//! How long it takes until a table whose process was killed gives its first job.

use crate::contestants::{Contestant, ALL};
use crate::options::Options;
use crate::results::{Results, Sample};
use crate::Failure;
use std::env;
use std::fs;
use std::path::Path;
use std::process::{self, Command, Stdio};
use std::time::Instant;

pub(crate) const NAME: &str = "recovery";

/// Runs all contestants.
pub(crate) fn round(options: &Options, round: usize, results: &mut Results) -> Result<(), Failure> {
    for turn in 0..ALL.len() {
        let contestant = &ALL[(round + turn) % ALL.len()];
        if contestant.on_disk && options.wants(&format!("{NAME} {}", contestant.name)) {
            let sample = run(contestant, &options.dir.join("recovery"), options.items)?;
            results.add(NAME.into(), contestant.name, sample);
        }
    }
    Ok(())
}

fn run(contestant: &Contestant, dir: &Path, items: u64) -> Result<Sample, Failure> {
    let _ = fs::remove_dir_all(dir);
    let child = Command::new(env::current_exe()?)
        .args(["--fill", contestant.name, "--items", &items.to_string()])
        .arg("--dir")
        .arg(dir)
        .stderr(Stdio::null())
        .status()?;
    if child.success() || !dir.exists() {
        return Err(format!("{}: the child was not killed", contestant.name).into());
    }
    let start = Instant::now();
    let jobs = (contestant.open)(dir, true)?;
    let mut first = Vec::new();
    jobs.user().pop(1, &mut first)?;
    let elapsed = start.elapsed();
    if first != [0] || jobs.len()? != items - 1 {
        return Err(format!("{}: jobs are missing after a crash", contestant.name).into());
    }
    drop(jobs);
    let _ = fs::remove_dir_all(dir);
    Ok(Sample::of_nanos(elapsed.as_nanos() as f64))
}

/// Fills a table, and dies.
pub(crate) fn fill(name: &str, dir: &Path, items: u64) -> Result<(), Failure> {
    let contestant = ALL.iter().find(|contestant| contestant.name == name);
    let contestant = contestant.ok_or("no such contestant")?;
    let jobs = (contestant.open)(dir, false)?;
    let numbers: Vec<_> = (0..items).collect();
    let mut user = jobs.user();
    for jobs in numbers.chunks(1_000) {
        user.push(jobs)?;
    }
    jobs.flush()?;
    process::abort()
}
