//! The files of a run.

mod json;
mod markdown;
mod plot;

use crate::options::Options;
use crate::results::Table;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::thread;

/// The processor, the number of its threads, the kernel and the compiler, and how busy the machine is.
pub(crate) fn machine() -> String {
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processors
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown processor", |(_, model)| model);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let threads = thread::available_parallelism().map_or(0, usize::from);
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    format!(
        "{model}, {threads} hardware threads, kernel {}, {}, load average {}",
        kernel.trim(),
        env!("COMPARE_RUSTC"),
        load.split(' ').next().unwrap_or_default()
    )
}

/// Writes `results.json`, `summary.md`, `chosen.md`, `chosen.svg` and a plot for each table.
pub(crate) fn write(
    folder: &Path,
    machine: &str,
    options: &Options,
    tables: &[Table],
) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(folder)?;
    let results = json::results(machine, options, tables);
    fs::write(
        folder.join("results.json"),
        serde_json::to_string_pretty(&results)?,
    )?;
    fs::write(folder.join("summary.md"), markdown::summary(tables))?;
    fs::write(folder.join("chosen.md"), markdown::chosen(tables))?;
    plot::chosen(&folder.join("chosen.svg"), tables)?;
    for table in tables {
        let name = file_name(&table.workload);
        plot::plot(&folder.join(name), &[table])?;
    }
    Ok(())
}

fn file_name(workload: &str) -> String {
    let words: Vec<_> = workload
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    format!("{}.svg", words.join("-"))
}
