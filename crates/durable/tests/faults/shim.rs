//! A library between a child and its files.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tempfile::TempDir;

/// The shim, compiled once. `None`: there is no compiler of C.
pub(crate) fn shim() -> Option<&'static Path> {
    static SHIM: OnceLock<Option<(TempDir, PathBuf)>> = OnceLock::new();
    let shim = SHIM.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        let library = directory.path().join("shim.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/shim.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-D_FILE_OFFSET_BITS=64", "-o"]);
        compiler
            .arg(&library)
            .arg(source)
            .args(["-ldl", "-lpthread"]);
        match compiler.status() {
            Ok(status) => assert!(status.success(), "the shim is compiled"),
            Err(error) => {
                println!("skipped, since there is no compiler of C: {error}");
                return None;
            }
        }
        Some((directory, library))
    });
    shim.as_ref().map(|(_, library)| &**library)
}

/// Puts the shim between a child and the files in a directory.
pub(crate) fn put_between(command: &mut Command, shim: &Path, directory: &Path) {
    let directory = directory.canonicalize().expect("the directory");
    command
        .env("LD_PRELOAD", shim)
        .env("SHIM_DIRECTORY", directory);
}
