//! What the run ran on.

use rustix::fs::{major, minor, statfs, syncfs};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;

/// The processor, the kernel, and the file system of `dir`.
pub(crate) fn describe(dir: &Path) -> String {
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processors
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown processor", |(_, model)| model);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let threads = thread::available_parallelism().map_or(0, usize::from);
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    format!(
        "{model}, {threads} hardware threads, kernel {}, load average {}; tables on {}",
        kernel.trim(),
        load.split(' ').next().unwrap_or_default(),
        file_system(dir)
    )
}

fn file_system(dir: &Path) -> String {
    // The magic numbers of linux/magic.h.
    match statfs(dir).map(|stat| stat.f_type) {
        Ok(0xef53) => "ext4".into(),
        Ok(0x5846_5342) => "xfs".into(),
        Ok(0x9123_683e) => "btrfs".into(),
        Ok(0x0102_1994) => "tmpfs, whose syncs do nothing".into(),
        Ok(0x794c_7630) => "overlayfs".into(),
        Ok(other) => format!("a file system with number {other:#x}"),
        Err(error) => format!("an unknown file system ({error})"),
    }
}

/// How many bytes were written to the disk of a directory, whoever wrote them, once all is there; without a block device, those that
/// this process has caused to be written. (Of a folio of 2 MiB the kernel counts all for a process that changes a page of it.)
pub(crate) fn bytes_written(dir: &Path) -> u64 {
    if let Ok(dir) = fs::File::open(dir) {
        let _ = syncfs(dir);
    }
    sectors_written(dir).map_or_else(bytes_of_process, |sectors| sectors * 512)
}

fn sectors_written(dir: &Path) -> Option<u64> {
    let device = fs::metadata(dir).ok()?.dev();
    let device = format!("/sys/dev/block/{}:{}/stat", major(device), minor(device));
    // The seventh number of Documentation/block/stat.rst.
    let stat = fs::read_to_string(device).ok()?;
    stat.split_whitespace().nth(6)?.parse().ok()
}

fn bytes_of_process() -> u64 {
    let text = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let bytes = text
        .lines()
        .find_map(|line| line.strip_prefix("write_bytes: "));
    bytes.and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}
