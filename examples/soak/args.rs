//! The command line.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::str::FromStr;
use std::thread;
use std::time::Duration;

pub(crate) const USAGE: &str = "\
Usage: soak [--seconds N] [--threads N] [--seed N]

Uses queues of several orders in all ways at once, in rounds, and checks after
each round that no item was lost or committed twice, and at the end that the
memory did not grow.

Options:
  --seconds N  how long to run (default 10)
  --threads N  worker threads, and tokio tasks (default: twice the cores, at least 4)
  --seed N     seed of the random choices (default: random, printed)
  -h, --help   print this help

The seed repeats the choices of each thread, not how the threads interleave.

Exit codes: 0 nothing is wrong, 1 something is, 2 a bad argument.
";

const MOST_THREADS: usize = 1_000;

#[derive(Debug, PartialEq)]
pub(crate) enum Request {
    Help,
    Soak(Settings),
}

#[derive(Debug, PartialEq)]
pub(crate) struct Settings {
    pub(crate) time: Duration,
    pub(crate) threads: usize,
    pub(crate) seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(2, usize::from);
        Self {
            time: Duration::from_secs(10),
            threads: (2 * cores).clamp(4, MOST_THREADS),
            seed: RandomState::new().build_hasher().finish(),
        }
    }
}

pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> Result<Request, String> {
    let mut settings = Settings::default();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "-h" | "--help" => return Ok(Request::Help),
            "--seconds" => {
                let seconds: u32 = number(&arg, args.next())?;
                settings.time = Duration::from_secs(seconds.into());
            }
            "--threads" => settings.threads = threads(number(&arg, args.next())?)?,
            "--seed" => settings.seed = number(&arg, args.next())?,
            _ => return Err(format!("unknown argument {arg:?}")),
        }
    }
    Ok(Request::Soak(settings))
}

fn number<N: FromStr>(option: &str, value: Option<String>) -> Result<N, String> {
    let value = value.ok_or_else(|| format!("{option} needs a number"))?;
    let parsed = value.parse();
    parsed.map_err(|_| format!("{option} needs a number, not {value:?}"))
}

fn threads(threads: usize) -> Result<usize, String> {
    if (1..=MOST_THREADS).contains(&threads) {
        return Ok(threads);
    }
    Err(format!(
        "--threads is from 1 to {MOST_THREADS}, not {threads}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Result<Request, String> {
        parse(args.iter().map(ToString::to_string))
    }

    #[test]
    fn help_wins_over_what_follows_it() {
        assert_eq!(parsed(&["--help", "--nonsense"]), Ok(Request::Help));
    }

    #[test]
    fn all_options_are_read() {
        let expected = Settings {
            time: Duration::from_secs(3),
            threads: 2,
            seed: 7,
        };
        let args = ["--seconds", "3", "--threads", "2", "--seed", "7"];
        assert_eq!(parsed(&args), Ok(Request::Soak(expected)));
    }

    #[test]
    fn bad_numbers_are_refused() {
        for args in [
            &["--seconds"][..],
            &["--seconds", "-1"],
            &["--threads", "0"],
        ] {
            assert!(parsed(args).is_err(), "{args:?}");
        }
    }
}
