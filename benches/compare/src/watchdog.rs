//! Ends the process when a round does not end, as that of a queue whose waiters are never woken.

use std::process;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

/// Longer than any round takes.
const LIMIT: Duration = Duration::from_secs(100);

pub(crate) struct Watchdog(Sender<Option<String>>);

impl Watchdog {
    pub(crate) fn start() -> Self {
        let (sender, receiver) = mpsc::channel::<Option<String>>();
        thread::spawn(move || {
            let mut watched = None;
            loop {
                let next = match &watched {
                    Some(_) => receiver.recv_timeout(LIMIT),
                    None => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
                };
                match (next, &watched) {
                    (Ok(next), _) => watched = next,
                    (Err(RecvTimeoutError::Timeout), Some(round)) => {
                        eprintln!("no end after {} s: {round}", LIMIT.as_secs());
                        process::exit(2);
                    }
                    (Err(_), _) => return,
                }
            }
        });
        Self(sender)
    }

    /// A round begins.
    pub(crate) fn watch(&self, workload: &str, subject: &str) {
        self.tell(Some(format!("{workload}, {subject}")));
    }

    /// No round runs.
    pub(crate) fn rest(&self) {
        self.tell(None);
    }

    fn tell(&self, round: Option<String>) {
        self.0.send(round).expect("the watchdog is alive");
    }
}
