//! Throw-away servers: in a temporary folder, reached by a Unix socket. One for the whole test program is [`SERVER`].

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::LazyLock;

/// The server of this test program, without fsync.
pub(crate) static SERVER: LazyLock<Server> = LazyLock::new(|| Server::start("off"));

/// Waits until the test program has ended, in whatever way: then its end of the pipe is closed.
const REMOVE: &str = r#"cat; "$0" stop -D "$1/data" -m immediate; rm -rf "$1""#;

/// Starts a pooler, and ends it when the standard input is closed.
const POOL: &str = r#""$0" -q "$1" & cat; kill $!"#;

/// `pgbouncer` before a server: each transaction gets one of a few sessions. It ends when it is dropped.
pub(crate) struct Pooler {
    folder: PathBuf,
    process: Child,
}

impl Pooler {
    /// Starts a pooler that does not know the settings of this crate.
    pub(crate) fn start(server: &Server, sessions: u32) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = server.folder.join(format!("pooler_{count}"));
        std::fs::create_dir(&folder).expect("a folder");
        if is_root() {
            run(Command::new("chown").arg("postgres").arg(&folder));
        }
        let program = program("pgbouncer", &[PathBuf::from("/usr/sbin")]);
        let program = program.expect("pgbouncer is not installed: apt-get install pgbouncer");
        let config = format!(
            "[databases]\npostgres = host={} user=postgres\n[pgbouncer]\nunix_socket_dir = {}\n\
            auth_type = any\npool_mode = transaction\ndefault_pool_size = {sessions}\nmax_client_conn = 1000\nserver_login_retry = 1\nserver_connect_timeout = 2\nlisten_port = 5432\n{}",
            server.folder.display(),
            folder.display(),
            unnamed(&program)
        );
        let file = folder.join("pgbouncer.ini");
        std::fs::write(&file, config).expect("a file");
        let mut start = as_owner("sh");
        let process = start
            .args(["-c", POOL])
            .args([program, file])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("a shell");
        Self { folder, process }
    }

    pub(crate) fn url(&self) -> String {
        format!(
            "host={} user=postgres dbname=postgres",
            self.folder.display()
        )
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// The setting by which a pooler of 1.21 or later does not keep the names of prepared statements apart.
fn unnamed(pooler: &Path) -> &'static str {
    let version = Command::new(pooler).arg("--version").output();
    let version = String::from_utf8(version.expect("a version").stdout).expect("a text");
    let number = version.split_whitespace().nth(1).expect("a number");
    let mut parts = number
        .split('.')
        .map(|part| part.parse::<u32>().unwrap_or(0));
    if (parts.next(), parts.next()) < (Some(1), Some(21)) {
        return "";
    }
    "max_prepared_statements = 0\n"
}

/// A server. It is stopped and removed when it is dropped, or when this process ends.
pub(crate) struct Server {
    folder: PathBuf,
    programs: PathBuf,
    /// Of the socket.
    pub(crate) port: u16,
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
            port: 5432,
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

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
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
            "host={} port={} user=postgres dbname=postgres",
            self.folder().display(),
            self.port
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
pub(crate) fn as_owner(program: impl AsRef<std::ffi::OsStr>) -> Command {
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
    let mut folders: Vec<PathBuf> = packaged.collect();
    folders.sort();
    folders.reverse();
    let initdb = program("initdb", &folders);
    let initdb = initdb.expect("PostgreSQL is not installed: apt-get install postgresql");
    initdb.parent().expect("a folder").into()
}

/// A program in the path, or else in the first of these folders that has it.
fn program(name: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    let in_path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&in_path).chain(folders.iter().cloned());
    let mut files = folders.map(|folder| folder.join(name));
    files.find(|file| file.is_file())
}

pub(crate) fn run(command: &mut Command) {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let status = command
        .status()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}
