//! The command line.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::report::printable;

pub(crate) const USAGE: &str = "\
Usage: census [DIR]

Counts the files, lines and bytes under DIR by extension. Symbolic links are
counted, not followed. Files are read up to their length: those of /proc, which
say that they are empty, are not. Without DIR it walks the repository that it was
built from.

Options:
  -h, --help  print this help

Exit codes: 0 counted (entries that cannot be read are listed), 1 the result
cannot be trusted or written, 2 a bad argument.
";

#[derive(Debug, PartialEq)]
pub(crate) enum Request {
    Help,
    Census(PathBuf),
}

pub(crate) fn parse(args: impl Iterator<Item = OsString>) -> Result<Request, String> {
    let mut root = None;
    for arg in args {
        let name = printable(&arg);
        match name.as_str() {
            "-h" | "--help" => return Ok(Request::Help),
            _ if name.starts_with('-') => return Err(format!("unknown option {name}")),
            _ if root.is_some() => {
                return Err(format!("one directory at a time, not \"{name}\" too"))
            }
            _ => root = Some(PathBuf::from(arg)),
        }
    }
    directory(&root.unwrap_or_else(repository)).map(Request::Census)
}

/// The package that cargo runs, or the one that was compiled.
fn repository() -> PathBuf {
    let running = env::var_os("CARGO_MANIFEST_DIR");
    running.map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from)
}

/// Resolves symbolic links in `path`, since the walk would not follow them.
fn directory(path: &Path) -> Result<PathBuf, String> {
    let name = printable(path.as_os_str());
    match fs::canonicalize(path) {
        Ok(found) if found.is_dir() => Ok(found),
        Ok(_) => Err(format!("\"{name}\" is not a directory")),
        Err(error) => Err(format!("cannot use \"{name}\": {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Result<Request, String> {
        parse(args.iter().map(OsString::from))
    }

    #[test]
    fn help_wins_over_what_follows_it() {
        assert_eq!(parsed(&["-h"]), Ok(Request::Help));
        assert_eq!(parsed(&["--help", "--nonsense"]), Ok(Request::Help));
    }

    #[test]
    fn a_directory_is_taken_by_its_real_path() {
        let here = fs::canonicalize(".").unwrap();
        assert_eq!(parsed(&["."]), Ok(Request::Census(here)));
    }

    #[test]
    fn an_empty_argument_is_no_directory() {
        assert!(parsed(&[""]).unwrap_err().contains("\"\""));
    }
}
