//! Throw-away servers: in a temporary folder, reached by a Unix socket. One for the whole test program is [`SERVER`].

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;

/// The server of this test program, without fsync.
pub(crate) static SERVER: LazyLock<Server> = LazyLock::new(|| Server::start("off"));

/// Waits until the test program has ended, in whatever way: then its end of the pipe is closed.
const REMOVE: &str = r#"cat; "$0" stop -D "$1/data" -m immediate; rm -rf "$1""#;

/// A server. It is stopped and removed when it is dropped, or when this process ends.
pub(crate) struct Server {
    folder: PathBuf,
    programs: PathBuf,
    /// Removes the server when its standard input is closed.
    remover: Child,
}

impl Server {
    /// Starts a server with `fsync` on or off.
    pub(crate) fn start(fsync: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder").keep();
        let programs = programs();
        let mut remove = as_owner("sh");
        if is_root() {
            run(Command::new("chown").arg("postgres").arg(&folder));
        }
        let remover = remove
            .args(["-c", REMOVE])
            .arg(programs.join("pg_ctl"))
            .arg(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0) // an interrupt from the keyboard is not for it
            .spawn()
            .expect("a shell");
        let server = Self {
            folder,
            programs,
            remover,
        };
        let data = server.folder.join("data");
        let initdb = server.programs.join("initdb");
        run(as_owner(initdb)
            .args(["-U", "postgres", "-A", "trust", "--no-sync", "-D"])
            .arg(data));
        server.control(&["start"], &format!("-c fsync={fsync}"));
        server
    }

    /// Runs `pg_ctl` with these arguments, and waits for it.
    pub(crate) fn control(&self, arguments: &[&str], options: &str) {
        let options = format!(
            "-c listen_addresses= -c max_connections=400 -c shared_buffers=32MB -k {} {options}",
            self.folder.display()
        );
        run(as_owner(self.programs.join("pg_ctl"))
            .args(["-w", "-D"])
            .arg(self.folder.join("data"))
            .arg("-l")
            .arg(self.folder.join("log"))
            .args(["-o", &options])
            .args(arguments));
    }

    pub(crate) fn url(&self) -> String {
        format!(
            "host={} user=postgres dbname=postgres",
            self.folder.display()
        )
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.remover.stdin.take());
        let _ = self.remover.wait();
    }
}

/// A command run by a user who may own a server: not by root.
fn as_owner(program: impl AsRef<std::ffi::OsStr>) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=postgres", "--regid=postgres", "--clear-groups"])
        .arg(program);
    command.current_dir("/");
    command
}

fn is_root() -> bool {
    let own = std::fs::metadata("/proc/self").map(|process| process.uid());
    own.is_ok_and(|owner| owner == 0)
}

/// The folder of the programs of the newest server that is installed.
fn programs() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let packaged = versions.flatten().map(|version| version.path().join("bin"));
    let in_path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = packaged.collect();
    folders.sort();
    let folders = std::env::split_paths(&in_path).chain(folders.into_iter().rev());
    let has_programs = |folder: &PathBuf| Path::is_file(&folder.join("initdb"));
    let mut found = folders.filter(has_programs);
    found
        .next()
        .expect("PostgreSQL is not installed: apt-get install postgresql")
}

fn run(command: &mut Command) {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let status = command
        .status()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}
