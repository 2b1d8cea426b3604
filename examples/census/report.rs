//! Prints the census.

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::fmt::{self, Write};

use super::balance::Balance;
use super::tally::{Count, Tally};

/// A name without line breaks and control characters; invalid UTF-8 is replaced.
pub(crate) fn printable(name: &OsStr) -> String {
    name.to_string_lossy().escape_debug().to_string()
}

pub(crate) fn report(tally: &Tally, balance: &Balance) -> String {
    let mut text = String::new();
    write(&mut text, tally, balance).expect("a string takes all that is written to it");
    text
}

fn write(out: &mut String, tally: &Tally, balance: &Balance) -> fmt::Result {
    write_table(out, tally)?;
    let Tally {
        directories,
        symlinks,
        others,
        ..
    } = tally;
    writeln!(
        out,
        "\ndirectories {directories}, symbolic links {symlinks}, others {others}"
    )?;
    write_unreadable(out, tally)?;
    writeln!(out, "conservation: {balance}")
}

fn write_table(out: &mut String, tally: &Tally) -> fmt::Result {
    let mut rows: Vec<(&str, Count)> = tally
        .extensions
        .iter()
        .map(|(name, count)| (name.as_str(), *count))
        .collect();
    rows.sort_by_key(|(_, count)| Reverse(count.bytes));
    rows.push(("total", tally.total()));

    let names = rows.iter().map(|(name, _)| name.chars().count());
    let width = names.fold("extension".len(), usize::max);
    writeln!(
        out,
        "{:width$} {:>10} {:>12} {:>15}",
        "extension", "files", "lines", "bytes"
    )?;
    for (
        name,
        Count {
            files,
            lines,
            bytes,
        },
    ) in rows
    {
        writeln!(out, "{name:width$} {files:>10} {lines:>12} {bytes:>15}")?;
    }
    Ok(())
}

fn write_unreadable(out: &mut String, tally: &Tally) -> fmt::Result {
    writeln!(out, "unreadable {}", tally.unreadable.len())?;
    for entry in &tally.unreadable {
        let (path, attempts, error) = (
            printable(entry.path.as_os_str()),
            entry.attempts,
            &entry.error,
        );
        writeln!(out, "  {path}, {attempts} attempts: {error}")?;
    }
    Ok(())
}
