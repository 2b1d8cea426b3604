//! A server of its own: a new cluster in a folder, reached by a Unix socket, with fsync.

use crate::Failure;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tokio_postgres::{Client, Config, NoTls};

/// Sizes for the backlogs and for runs without a checkpoint in between; what is durable is as PostgreSQL has it by default.
const SETTINGS: &str = "
listen_addresses = ''
max_connections = 1000
shared_buffers = 512MB
max_wal_size = 8GB
checkpoint_timeout = 30min
";

const USER: &str = "postgres";

/// Stopped, and its folder removed, when it is dropped.
pub(crate) struct Server {
    bin: PathBuf,
    dir: PathBuf,
}

impl Server {
    pub(crate) fn start(dir: &Path, bin: Option<&Path>) -> Result<Self, Failure> {
        let bin = match bin {
            Some(bin) => bin.to_path_buf(),
            None => newest()?,
        };
        fs::create_dir_all(dir)?;
        let dir = fs::canonicalize(dir)?.join(format!("server-{}", std::process::id()));
        fs::create_dir(&dir)?;
        let server = Self { bin, dir };
        server.initialize()?;
        Ok(server)
    }

    fn initialize(&self) -> Result<(), Failure> {
        if rustix::process::geteuid().is_root() {
            run(Command::new("chown").arg(USER).arg(&self.dir))?;
        }
        let data = self.data();
        let sync = "--no-sync"; // the cluster is new: a crash now costs nothing
        self.command("initdb", ["-A", "trust", "-U", USER, sync, "-D"], &data)?;
        let settings = data.join("postgresql.conf");
        let text = fs::read_to_string(&settings)?;
        let socket = self.dir.display();
        let text = format!("{text}{SETTINGS}unix_socket_directories = '{socket}'\n");
        fs::write(settings, text)?;
        let log = self.dir.join("log");
        let log = log.to_str().ok_or("the folder's name is not UTF-8")?;
        self.command("pg_ctl", ["start", "-w", "-s", "-l", log, "-D"], &data)
    }

    /// As the user `postgres` if this is root, since the server refuses to run as root.
    fn command<'a>(
        &self,
        program: &str,
        arguments: impl IntoIterator<Item = &'a str>,
        data: &Path,
    ) -> Result<(), Failure> {
        let program = self.bin.join(program);
        let mut command = if rustix::process::geteuid().is_root() {
            let mut command = Command::new("setpriv");
            let user = ["--reuid", USER, "--regid", USER, "--clear-groups"];
            command.args(user).arg(program);
            command
        } else {
            Command::new(program)
        };
        run(command.args(arguments).arg(data).current_dir(&self.dir))
    }

    fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// The folder of the socket.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// A connection of tokio-postgres.
    pub(crate) async fn connect(&self, database: &str) -> Result<Client, Failure> {
        let (client, connection) = self.config(database).connect(NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    pub(crate) fn config(&self, database: &str) -> Config {
        let mut config = Config::new();
        config.host_path(&self.dir).user(USER).dbname(database);
        config
    }

    /// A pool of sqlx.
    pub(crate) async fn pool(
        &self,
        database: &str,
        connections: u32,
    ) -> Result<sqlx::PgPool, Failure> {
        let options = sqlx::postgres::PgConnectOptions::new()
            .socket(&self.dir)
            .username(USER)
            .database(database);
        let pool = sqlx::postgres::PgPoolOptions::new()
            .max_connections(connections)
            .connect_with(options);
        Ok(pool.await?)
    }

    /// Creates an empty database.
    pub(crate) async fn create(&self, database: &str) -> Result<(), Failure> {
        let client = self.connect(USER).await?;
        client
            .batch_execute(&format!("create database {database}"))
            .await?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let stop = ["stop", "-m", "immediate", "-s", "-D"];
        let stopped = self.command("pg_ctl", stop, &self.data());
        let removed = fs::remove_dir_all(&self.dir);
        if let Err(error) = stopped.and(removed.map_err(Into::into)) {
            eprintln!("the server is not cleaned up: {error}");
        }
    }
}

/// The folder of the newest server, as Debian and Ubuntu install it.
fn newest() -> Result<PathBuf, Failure> {
    let versions = fs::read_dir("/usr/lib/postgresql")
        .ok()
        .into_iter()
        .flatten();
    let version = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.join("bin/initdb").exists())
        .max_by_key(version);
    let newest = newest
        .ok_or("no PostgreSQL in /usr/lib/postgresql: install it, or name its folder with --bin")?;
    Ok(newest.join("bin"))
}

fn run(command: &mut Command) -> Result<(), Failure> {
    let name = command.get_program().to_os_string();
    let output = command
        .output()
        .map_err(|error| format!("{}: {error}", name.display()))?;
    if output.status.success() {
        return Ok(());
    }
    let arguments: Vec<_> = command.get_args().map(OsStr::to_string_lossy).collect();
    let text = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "{} {}: {}",
        name.display(),
        arguments.join(" "),
        text.trim()
    )
    .into())
}
