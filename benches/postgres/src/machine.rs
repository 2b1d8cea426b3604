//! What the run ran on.

use crate::server::Server;
use crate::Failure;
use rustix::fs::statfs;
use std::fs;
use std::path::Path;
use std::thread;

/// The processor, the kernel, the server, and the file system that it is on.
pub(crate) async fn describe(server: &Server) -> Result<String, Failure> {
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processors
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown processor", |(_, model)| model);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let threads = thread::available_parallelism().map_or(0, usize::from);
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let client = server.connect("postgres").await?;
    let version = client.query_one("show server_version", &[]).await?;
    let fsync = client.query_one("show fsync", &[]).await?;
    Ok(format!(
        "{model}, {threads} hardware threads, kernel {}, load average {}; PostgreSQL {}, fsync {}, data on {}",
        kernel.trim(),
        load.split(' ').next().unwrap_or_default(),
        version.get::<_, &str>(0),
        fsync.get::<_, &str>(0),
        file_system(server.dir())
    ))
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
