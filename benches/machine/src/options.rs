//! The command line.

use std::path::PathBuf;

pub(crate) const HELP: &str = "\
Simulates a machine with many cores, on which threads pass items through requeue, and through the protocols of other queues.

    RUSTFLAGS=\"--cfg machine\" cargo run --release -p requeue-machine -- [OPTIONS]

    --only TEXT    only the workloads whose names contain TEXT
    --cores LIST   numbers of cores, at most 64; 1,2,4,8,16,32,64 if not given
    --items N      items for each core, 1000 if not given
    --seeds N      runs, 3 if not given, of which the medians are shown: a seed varies all times and addresses a little
    --plot FILE    plots the throughput of the first workload
";

pub(crate) struct Options {
    pub(crate) only: String,
    pub(crate) cores: Vec<usize>,
    pub(crate) items: usize,
    pub(crate) seeds: u64,
    pub(crate) plot: Option<PathBuf>,
}

impl Options {
    /// `None`, if help is asked for.
    pub(crate) fn parse(
        mut arguments: impl Iterator<Item = String>,
    ) -> Result<Option<Self>, String> {
        let mut options = Self {
            only: String::new(),
            cores: vec![1, 2, 4, 8, 16, 32, 64],
            items: 1000,
            seeds: 3,
            plot: None,
        };
        while let Some(option) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{option} needs a value"));
            match option.as_str() {
                "--only" => options.only = value()?,
                "--cores" => {
                    let list = value()?;
                    let cores = list.split(',').map(|text| number(&option, text, 64));
                    options.cores = cores.collect::<Result<_, _>>()?;
                }
                "--items" => options.items = number(&option, &value()?, 1 << 20)?,
                "--seeds" => options.seeds = number(&option, &value()?, 1 << 20)? as u64,
                "--plot" => options.plot = Some(value()?.into()),
                "--help" => return Ok(None),
                _ => return Err(format!("unknown option: {option}")),
            }
        }
        Ok(Some(options))
    }
}

fn number(option: &str, text: &str, most: usize) -> Result<usize, String> {
    let number = text
        .parse()
        .ok()
        .filter(|number| (1..=most).contains(number));
    number.ok_or(format!("{option} is not a number from 1 to {most}: {text}"))
}
