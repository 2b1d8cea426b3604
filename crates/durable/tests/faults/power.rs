//! Power losses: what was not synced is lost, or some of it.
//!
//! A child under load ends before its n-th write or sync. Then each file has what it had at its last sync; or, of what was
//! written later, some sectors. What this does not show: the names of files (creations, renames) are on the disk at once.

use crate::count;
use crate::load::{check, Loaded, ROLES};
use crate::random::Random;
use crate::shim::{put_between, shim};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

const SECTOR: usize = 512;

/// Makes the files below a directory what a power loss leaves of them.
fn lose(random: &mut Random, directory: &Path, synced: &Path, keeps_some: bool) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            lose(random, &path, synced, keeps_some);
            continue;
        }
        let inode = path.metadata().unwrap().ino().to_string();
        let kept = fs::read(synced.join(inode)).unwrap_or_default();
        let left = if keeps_some {
            torn(random, kept, &fs::read(&path).unwrap())
        } else {
            kept
        };
        write(&path, &left);
    }
}

/// What was synced, with some of the sectors that were written later.
fn torn(random: &mut Random, synced: Vec<u8>, written: &[u8]) -> Vec<u8> {
    let mut left = synced;
    if random.below(2) == 0 {
        left.resize(written.len(), 0);
    }
    for (new, old) in written.chunks(SECTOR).zip(left.chunks_mut(SECTOR)) {
        let len = new.len().min(old.len());
        if new[..len] != old[..len] && random.below(2) == 0 {
            old[..len].copy_from_slice(&new[..len]);
        }
    }
    left
}

/// Writes a file, without the zeros.
fn write(path: &Path, bytes: &[u8]) {
    let file = File::create(path).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
    for (index, part) in bytes.chunks(4096).enumerate() {
        if *part != [0; 4096][..part.len()] {
            file.write_all_at(part, index as u64 * 4096).unwrap();
        }
    }
}

#[test]
fn all_that_was_acknowledged_survives_a_power_loss() {
    let Some(shim) = shim() else {
        return;
    };
    let mut random = crate::random("power");
    let (cuts, mut total) = (count("DURABLE_CUTS", 10), 0);
    for cut in 0..cuts {
        let directory = tempfile::tempdir().unwrap();
        let (store, synced) = (
            directory.path().join("store"),
            directory.path().join("synced"),
        );
        fs::create_dir(&synced).unwrap();
        fs::create_dir(&store).unwrap();
        // All points of the creation, and some of the load.
        let most = random.pick(&[200, 1_000, 3_000]);
        let at = 1 + random.below(most);
        let role = random.pick(&ROLES);
        let child = Loaded::start((&store, role), 0, |command| {
            put_between(command, shim, &store);
            command
                .env("SHIM_SYNCED", &synced)
                .env("SHIM_CUT", at.to_string());
        });
        let acknowledged = child.end();
        let keeps_some = cut % 2 == 1;
        println!(
            "power: cut at {at}, {} acknowledgements, keeps some: {keeps_some}",
            acknowledged.count
        );
        lose(&mut random, &store, &synced, keeps_some);
        check(&store, 0, &acknowledged);
        total += acknowledged.count;
    }
    println!("{cuts} power losses, {total} acknowledgements");
}
