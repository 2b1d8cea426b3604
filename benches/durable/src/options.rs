//! The command line.

use std::path::PathBuf;
use std::time::Duration;

pub(crate) const HELP: &str = "\
Compares requeue-durable with fjall alone, redb and SQLite on the same table of jobs.

    cargo run --release -p requeue-durable-bench -- [OPTIONS]

    --rounds N     rounds, 5 if not given; the contestants take turns in each
    --only TEXT    only what has TEXT in its name, such as \"synced 4x1\", \"single\", \"backlog\", \"recovery\" or \"buffered 1x32 redb\"
    --millis N     how long a contestant runs in a cell, 400 if not given
    --items N      items in the recovery and the backlog, 1000000 if not given
    --smoke        one short round: shows that all works, measures nothing
    --dir FOLDER   where the tables are, target/durable-bench if not given; name a real disk
    --out FOLDER   writes results.json and summary.md
";

pub(crate) struct Options {
    pub(crate) rounds: usize,
    pub(crate) only: String,
    pub(crate) length: Duration,
    pub(crate) items: u64,
    pub(crate) dir: PathBuf,
    pub(crate) out: Option<PathBuf>,
    /// Fill a table of this contestant with this number of items, and exit: the recovery does so in a child process.
    pub(crate) fill: Option<(String, u64)>,
}

impl Options {
    /// `None`, if help is asked for.
    pub(crate) fn parse(
        mut arguments: impl Iterator<Item = String>,
    ) -> Result<Option<Self>, String> {
        let (mut rounds, mut millis, mut items, mut smoke) = (None, None, None, false);
        let (mut only, mut out, mut dir, mut fill) = (String::new(), None, None, None);
        while let Some(option) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{option} needs a value"));
            match option.as_str() {
                "--rounds" => rounds = Some(positive(&option, &value()?)?),
                "--millis" => millis = Some(positive(&option, &value()?)?),
                "--items" => items = Some(positive(&option, &value()?)?),
                "--only" => only = value()?,
                "--out" => out = Some(value()?.into()),
                "--dir" => dir = Some(value()?.into()),
                "--fill" => fill = Some(value()?),
                "--smoke" => smoke = true,
                "--help" => return Ok(None),
                _ => return Err(format!("unknown option: {option}")),
            }
        }
        let items = items.unwrap_or(if smoke { 5_000 } else { 1_000_000 });
        let rounds = rounds.unwrap_or(if smoke { 1 } else { 5 });
        Ok(Some(Self {
            rounds: usize::try_from(rounds).unwrap_or(usize::MAX),
            only,
            length: Duration::from_millis(millis.unwrap_or(if smoke { 10 } else { 400 })),
            items,
            dir: dir.unwrap_or_else(default_dir),
            out,
            fill: fill.map(|contestant| (contestant, items)),
        }))
    }

    pub(crate) fn wants(&self, name: &str) -> bool {
        name.contains(&self.only)
    }
}

fn default_dir() -> PathBuf {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    target.join("durable-bench")
}

fn positive(option: &str, value: &str) -> Result<u64, String> {
    let number = value.parse().ok().filter(|number| *number > 0);
    number.ok_or(format!("{option} is not a positive number: {value}"))
}
