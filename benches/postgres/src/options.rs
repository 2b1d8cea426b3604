//! The command line.

use std::path::PathBuf;
use std::time::Duration;

pub(crate) const HELP: &str = "\
Compares queues in PostgreSQL on one server, which it starts in a folder and stops at the end.

    cargo run --release -p requeue-postgres-bench -- [OPTIONS]

    --rounds N     rounds, 5 if not given; the contestants take turns in each
    --only TEXT    only what has TEXT in its name, such as \"empty, 4x10\", \"backlog 1000\", \"round trip\", \"old snapshot\"
                   or \"graphile\"
    --millis N     how long a contestant runs in a cell, 1000 if not given
    --backlog N    jobs in the largest backlog, 1000000 if not given
    --smoke        one short round: shows that all works, measures nothing
    --dir FOLDER   where the server has its data, target/postgres-bench if not given; name a real disk
    --bin FOLDER   where initdb and postgres are; the newest of /usr/lib/postgresql if not given
    --out FOLDER   writes results.json and summary.md
";

pub(crate) struct Options {
    pub(crate) rounds: usize,
    pub(crate) only: String,
    pub(crate) length: Duration,
    pub(crate) backlog: u64,
    pub(crate) dir: PathBuf,
    pub(crate) bin: Option<PathBuf>,
    pub(crate) out: Option<PathBuf>,
}

impl Options {
    /// `None`, if help is asked for.
    pub(crate) fn parse(
        mut arguments: impl Iterator<Item = String>,
    ) -> Result<Option<Self>, String> {
        let (mut rounds, mut millis, mut backlog, mut smoke) = (None, None, None, false);
        let (mut only, mut dir, mut bin, mut out) = (String::new(), None, None, None);
        while let Some(option) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{option} needs a value"));
            match option.as_str() {
                "--rounds" => rounds = Some(positive(&option, &value()?)?),
                "--millis" => millis = Some(positive(&option, &value()?)?),
                "--backlog" => backlog = Some(positive(&option, &value()?)?),
                "--only" => only = value()?,
                "--dir" => dir = Some(value()?.into()),
                "--bin" => bin = Some(value()?.into()),
                "--out" => out = Some(value()?.into()),
                "--smoke" => smoke = true,
                "--help" => return Ok(None),
                _ => return Err(format!("unknown option: {option}")),
            }
        }
        let rounds = rounds.unwrap_or(if smoke { 1 } else { 5 });
        Ok(Some(Self {
            rounds: usize::try_from(rounds).unwrap_or(usize::MAX),
            only,
            length: Duration::from_millis(millis.unwrap_or(if smoke { 10 } else { 1_000 })),
            backlog: backlog.unwrap_or(if smoke { 5_000 } else { 1_000_000 }),
            dir: dir.unwrap_or_else(default_dir),
            bin,
            out,
        }))
    }

    pub(crate) fn wants(&self, name: &str) -> bool {
        name.contains(&self.only)
    }
}

fn default_dir() -> PathBuf {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    target.join("postgres-bench")
}

fn positive(option: &str, value: &str) -> Result<u64, String> {
    let number = value.parse().ok().filter(|number| *number > 0);
    number.ok_or(format!("{option} is not a positive number: {value}"))
}
