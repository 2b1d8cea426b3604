//! The command line.

use crate::workloads::Sizes;
use std::path::PathBuf;

pub(crate) const HELP: &str = "\
Compares requeue with other queues and channels, and with what one writes by hand.

    cargo run --release -p requeue-compare [--features cpp] -- [OPTIONS]

    --rounds N     measured rounds of each workload, 9 if not given
    --only TEXT    only the workloads whose names contain TEXT
    --items N      items in a round, 500000 if not given
    --quick        few items and one round: shows that all works, measures nothing
    --out FOLDER   writes results.json, summary.md, chosen.md and a plot for each table
";

pub(crate) struct Options {
    pub(crate) rounds: usize,
    pub(crate) only: String,
    pub(crate) sizes: Sizes,
    pub(crate) out: Option<PathBuf>,
}

impl Options {
    /// `None`, if help is asked for.
    pub(crate) fn parse(
        mut arguments: impl Iterator<Item = String>,
    ) -> Result<Option<Self>, String> {
        let (mut rounds, mut items, mut quick) = (None, None, false);
        let (mut only, mut out) = (String::new(), None);
        while let Some(option) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{option} needs a value"));
            match option.as_str() {
                "--rounds" => rounds = Some(positive(&option, &value()?)?),
                "--items" => items = Some(positive(&option, &value()?)?),
                "--only" => only = value()?,
                "--out" => out = Some(value()?.into()),
                "--quick" => quick = true,
                "--help" => return Ok(None),
                _ => return Err(format!("unknown option: {option}")),
            }
        }
        let mut sizes = if quick { Sizes::QUICK } else { Sizes::FULL };
        sizes.items = items.map_or(sizes.items, |items| items as u64);
        Ok(Some(Self {
            rounds: rounds.unwrap_or(if quick { 1 } else { 9 }),
            only,
            sizes,
            out,
        }))
    }
}

fn positive(option: &str, value: &str) -> Result<usize, String> {
    let number = value.parse().ok().filter(|number| *number > 0);
    number.ok_or(format!("{option} is not a positive number: {value}"))
}
