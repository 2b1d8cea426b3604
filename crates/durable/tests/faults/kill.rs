//! A process under load is killed, and its store opened.

use crate::count;
use crate::load::{check, Loaded, ROLES};

/// The number of kills after which a new store is used.
const ROUNDS: u64 = 10;

#[test]
fn all_that_was_acknowledged_survives_a_kill() {
    let mut random = crate::random("kill");
    let (kills, mut total) = (count("DURABLE_KILLS", 10), 0);
    let mut directory = tempfile::tempdir().unwrap();
    for kill in 0..kills {
        let round = kill % ROUNDS;
        if round == 0 {
            directory = tempfile::tempdir().unwrap();
        }
        let path = directory.path().join("store");
        // Now and then while it opens the store.
        let role = random.pick(&ROLES);
        let most = random.pick(match role {
            "load" => &[2, 100, 1_000, 2_000],
            _ => &[2, 4, 10, 20],
        });
        let acknowledgements = 1 + random.below(most);
        let child = Loaded::start((&path, role), round, |_| ());
        let acknowledged = child.kill_after(acknowledgements);
        check(&path, round, &acknowledged);
        total += acknowledged.count;
    }
    println!("{kills} kills, {total} acknowledgements");
}
