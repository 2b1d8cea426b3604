//! What queues of jobs need besides: defaults, the cancellation of runs, periodic jobs, and those that are done and kept.

mod cancel;
mod finished;
#[cfg(feature = "cron")]
mod periodic;

pub(crate) use cancel::{Cancellation, Running};
pub use finished::Finished;
#[cfg(feature = "cron")]
pub use periodic::{Firing, Periodic, Schedule};

use crate::connect::Postgres;
use crate::queue::Builder;
use requeue::Backoff;
use std::time::Duration;

const TERM: Duration = Duration::from_secs(60);
const ATTEMPTS: u32 = 20;
const FIRST_DELAY: Duration = Duration::from_secs(1);
const LONGEST_DELAY: Duration = Duration::from_secs(3600);
const RUN_TIMEOUT: Duration = Duration::from_secs(3600);

impl Postgres {
    /// Returns a builder of a queue of jobs, with defaults that suit most of them: they are [leased](Builder::leased) for a minute, which
    /// is renewed while they run; a run that takes an hour [fails](Builder::run_timeout); a job that fails is tried again after
    /// a second, doubled each time up to an hour, with [jitter](Backoff::with_jitter), and is a [dead letter](crate::PgQueue::dead_letters)
    /// after 20 attempts. Each of them can be set otherwise.
    ///
    /// ```no_run
    /// # #[tokio::main] async fn main() -> Result<(), requeue_postgres::Error> {
    /// use requeue_postgres::{PgQueue, Postgres};
    /// use std::time::Duration;
    ///
    /// let db = Postgres::connect("postgres://app@localhost/app").await?;
    /// let mails: PgQueue<String> = db.jobs("mails").run_timeout(Duration::from_secs(30)).build();
    /// # Ok(()) }
    /// ```
    pub fn jobs<T>(&self, name: &str) -> Builder<T> {
        let backoff = Backoff::exponential(FIRST_DELAY, LONGEST_DELAY).with_jitter();
        let builder = self.builder(name).leased(TERM).max_attempts(ATTEMPTS);
        builder.backoff(backoff).run_timeout(RUN_TIMEOUT)
    }
}
