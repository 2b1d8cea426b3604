//! A throw-away server: one for the whole test program, in a temporary folder, reached by a Unix socket.
//!
//! `supervise` makes this process the child of one that removes the server when the tests have ended, in whatever way.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::LazyLock;
use tempfile::TempDir;

const FOLDER: &str = "REQUEUE_POSTGRES_TEST";

/// A server in a folder.
pub struct Server {
    folder: PathBuf,
    programs: PathBuf,
}

/// The server of this test program.
pub static SERVER: LazyLock<Server> = LazyLock::new(|| {
    let folder = std::env::var_os(FOLDER).expect("started by `supervise`");
    Server::in_folder(PathBuf::from(folder))
});
