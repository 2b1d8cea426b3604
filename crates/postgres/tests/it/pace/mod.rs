//! Limits that several processes share.

mod limits;
mod process;
mod queues;
mod rates;

use crate::Db;
use requeue::{Limiter, Pace, RateSlot};
use std::time::Instant;

/// Starts something, as soon as the pace permits.
async fn start(pace: &Pace) -> RateSlot {
    let waits = async {
        loop {
            match pace.start(Instant::now()) {
                Ok(slot) => return slot,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    tokio::time::timeout(crate::LONG, waits)
        .await
        .expect("nothing is started")
}

/// Whether the pace permits a start now.
fn starts(pace: &Pace) -> Option<RateSlot> {
    pace.start(Instant::now()).ok()
}

impl Db {
    /// The server's clock, in nanoseconds.
    async fn nanos(&self) -> i64 {
        self.number("select @.nanos()").await
    }
}
