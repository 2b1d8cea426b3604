//! Stores whose processes are killed, whose files are damaged, and whose disks fail.
//!
//! | variable | is | default |
//! |---|---|---|
//! | `DURABLE_KILLS` | how often a process under load is killed | 10 |
//! | `DURABLE_DAMAGES` | how many damaged copies of a store are opened | 20 |
//! | `DURABLE_CUTS` | how many power losses are simulated | 10 |
//! | `DURABLE_FAILURES` | how often a write or a sync fails | 10 |
//! | `DURABLE_LENGTHS` | 1: all lengths in all files of a store become other ones | 0: some |
//! | `DURABLE_MEMORY` | the bytes of memory of the queues that have pages | unlimited, without pages |
//! | `DURABLE_SEED` | the seed of all random choices | of the clock, and printed |
//! | `DURABLE_KEPT` | with the seed repeats a test of damaged copies: the store that it has kept when it failed | a new one |

#![cfg(target_os = "linux")]

mod allocator;
mod damage;
mod failing;
mod kill;
mod lengths;
mod load;
mod poison;
mod power;
#[path = "../common/random.rs"]
mod random;
#[cfg(feature = "metrics")]
#[path = "../common/recorder.rs"]
mod recorder;
mod shim;
mod tmpfs;

use random::Random;
use requeue_durable::{Store, StoreError, StoreOptions};
use std::env;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

/// Says to a child what it is.
const ROLE: &str = "DURABLE_ROLE";
/// Says to a child where its store is.
const STORE: &str = "DURABLE_STORE";

/// This program again, as a child in a role.
fn child(role: &str, store: &Path) -> Command {
    let mut command = Command::new(env::current_exe().expect("the path of this program"));
    command
        .args(["--exact", "in_a_role", "--nocapture", "--ignored"])
        .env(ROLE, role)
        .env(STORE, store)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    command
}

#[test]
#[ignore = "it is the part of the children"]
fn in_a_role() {
    let role = env::var(ROLE).unwrap_or_default();
    let store = env::var(STORE).unwrap_or_default();
    let store = Path::new(&store);
    match role.as_str() {
        "load" | "large" => load::run(store, &role),
        "fill" => damage::fill_until_killed(store),
        "fail" => failing::run(store),
        "poison" => poison::run(store),
        "second" => println!("second: {:?}", options().open(store).map(drop)),
        _ => {}
    }
}

/// Stores that need little room, and flush their tables often.
fn options() -> StoreOptions {
    let options = StoreOptions::new().memtable(256 << 10).reserve(0);
    match env::var("DURABLE_MEMORY") {
        Ok(bytes) => options.memory(bytes.parse().expect("a number")),
        Err(_) => options,
    }
}

fn open(path: &Path) -> Result<Store, StoreError> {
    options().open(path)
}

/// A number from the environment.
fn count(variable: &str, default: u64) -> u64 {
    let value = env::var(variable).ok();
    value.map_or(default, |value| value.parse().expect("a number"))
}

/// Random choices by the seed in the environment, or by a new one, which is printed.
fn random(test: &str) -> Random {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = count("DURABLE_SEED", clock.subsec_nanos().into());
    println!("{test}: DURABLE_SEED={seed}");
    Random::new(seed)
}

#[test]
fn a_second_process_is_locked_out() {
    let directory = tempfile::tempdir().unwrap();
    let _store = open(directory.path()).unwrap();
    let output = child("second", directory.path()).output().unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    assert!(output.contains("second: Err(Locked("), "{output}");
}
