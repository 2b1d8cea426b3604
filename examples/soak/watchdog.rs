//! Ends the process if a round does not end: then a wake-up was lost, or there is a deadlock.

use std::process;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::lanes::each_lane;
use super::whole::Soak;

/// Far longer than a round and its drain, also on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

/// Expects a message at the end of each round, until the sender is dropped.
pub(crate) fn start(soak: Arc<Soak>) -> Sender<()> {
    let (beat, beats) = mpsc::channel();
    thread::spawn(move || loop {
        match beats.recv_timeout(LIMIT) {
            Ok(()) => {}
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => give_up(&soak),
        }
    });
    beat
}

fn give_up(soak: &Soak) -> ! {
    each_lane!(soak.lanes, lane => println!("{}: {:?}", lane.rules.name, lane.queue.stats()));
    for fault in soak.ledger.take_faults().described {
        println!("fault: {fault}");
    }
    println!(
        "verdict: WRONG: a round has not ended for {} s",
        LIMIT.as_secs()
    );
    process::exit(1)
}
