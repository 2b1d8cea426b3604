//! A rate that several processes share.

use super::slots::{nanos, Plan, Slots};
use super::source::Source;
use super::{Supplied, Supply, AGAIN};
use crate::connect::{Params, Postgres};
use crate::error::Error;
use requeue::{Limiter, Pace, RateSlot};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// How late a slot may be used, unless it is set.
const LATE: Duration = Duration::from_millis(100);
/// The greatest interval and tolerance: 36 years.
const LONGEST: i64 = 1 << 60;
/// How long to retry returning the slots of a dropped pace.
const LAST: Duration = Duration::from_secs(10);
/// The least wait after a refused start.
const LEAST: Duration = Duration::from_micros(1);

/// A rate that several processes share, from [`Postgres::rate`].
///
/// ```no_run
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use requeue::Queue;
/// use requeue_postgres::Postgres;
/// use std::time::Duration;
///
/// let db = Postgres::connect("postgres://app@localhost/app").await?;
/// let pace = db.rate("mail", 100, Duration::from_secs(1)).burst(20).pace().await?;
/// let mails = Queue::builder().pace(pace).build(); // all processes together start 100 a second
/// mails.push("hello")?;
/// assert_eq!(mails.handle().pop_async().await?, "hello");
/// # Ok(()) }
/// ```
#[must_use = "a rate does nothing until its pace is used"]
#[derive(Clone)]
pub struct Rate {
    source: Source,
    spacing: i64,
    burst: u32,
    late: Duration,
}

impl Postgres {
    /// Returns a rate of `n` starts per period over all processes that use the same name, as a builder: evenly spaced unless a
    /// [burst](Rate::burst) is allowed. The name has 1 to 1,000 bytes.
    ///
    /// # Panics
    ///
    /// If `n` is 0; to start nothing, pause the queue.
    #[track_caller]
    pub fn rate(&self, name: &str, n: u32, per: Duration) -> Rate {
        assert!(n > 0, "rate of 0: nothing would ever start");
        let spacing = per.as_nanos().div_ceil(n.into());
        let spacing = i64::try_from(spacing).map_or(LONGEST, |spacing| spacing.clamp(1, LONGEST));
        Rate {
            source: Source {
                db: self.clone(),
                name: name.into(),
            },
            spacing,
            burst: 1,
            late: LATE,
        }
    }
}

impl Rate {
    /// Allows up to `burst` starts at once after a time without starts; 1 is no burst.
    ///
    /// # Panics
    ///
    /// If `burst` is 0.
    #[track_caller]
    pub fn burst(mut self, burst: u32) -> Self {
        assert!(burst > 0, "burst of 0: nothing would ever start");
        self.burst = burst;
        self
    }

    /// Sets how late after its time a slot of the rate may be used; 100 milliseconds by default. It must be longer than a round
    /// trip to the server, else no slot arrives in time.
    ///
    /// Within a time *x*, all processes together start at most *burst* + *x* / *interval* items if *burst* - 1 intervals are
    /// at least this long. A shorter burst counts as one that is this long: with 100 starts per second and no burst, up to 11
    /// items are started at once if a process was late.
    ///
    /// # Panics
    ///
    /// If `late` is shorter than a millisecond.
    #[track_caller]
    pub fn lateness(mut self, late: Duration) -> Self {
        assert!(
            late >= Duration::from_millis(1),
            "no slot would arrive in time"
        );
        self.late = late;
        self
    }

    /// Returns a pace with this rate, for any number of queues of this process.
    ///
    /// The rate is created in the database if there is none of its name. If there is one, it is changed only if it was declared
    /// with other numbers before: what was [set](Self::set) since holds until a program declares another rate.
    ///
    /// A task asks the server for slots ahead of their use, in batches that grow with the use, and returns those that are not used. While
    /// the server cannot be reached, nothing is started beyond the slots that this process has: those of half a second at most.
    /// The pace keeps the database connected. Its times are real ones, also in a queue with a manual clock.
    ///
    /// # Errors
    ///
    /// [`Error::Name`], [`Error::NotInstalled`], [`Error::Version`], and [`Error::Database`].
    pub async fn pace(self) -> Result<Pace, Error> {
        self.write("declare_rate($1, $2, $3)").await?;
        let slots = Slots::new(self.late, self.burst > 1, Instant::now());
        let late = nanos(self.late);
        Ok(Supply::pace(self.source, slots, |shared| {
            supply(shared, late)
        }))
    }

    /// Sets the rate and the burst for all processes, within a second. Slots that they have already keep their times.
    ///
    /// # Errors
    ///
    /// As for [`pace`](Self::pace).
    pub async fn set(self) -> Result<(), Error> {
        self.write("change_rate($1, $2, $3)").await
    }

    async fn write(&self, call: &str) -> Result<(), Error> {
        let tolerance = self.spacing.saturating_mul(i64::from(self.burst - 1));
        let params: Params<'_> = &[&&*self.source.name, &self.spacing, &tolerance.min(LONGEST)];
        self.source.set(call, params).await
    }
}

requeue::debug_struct!([] Rate, |rate| name: rate.source.name, spacing: rate.spacing, burst: rate.burst);

impl Limiter for Supplied<Slots> {
    /// The time of the queue may be that of a manual clock; the times of slots are not.
    fn start(&self, now: Instant) -> Result<RateSlot, Instant> {
        let mut slots = self.0.granted.lock();
        let taken = slots.take(Instant::now());
        let is_low = slots.is_low();
        drop(slots);
        if is_low {
            self.0.changed.notify_one();
        }
        let slot = taken.map(|time| RateSlot::new(now, time.unsigned_abs()));
        slot.map_err(|wait| {
            let wait = wait.map_or(AGAIN, |wait| wait.max(LEAST));
            now.checked_add(wait).unwrap_or(now + AGAIN)
        })
    }

    fn cancel(&self, slot: RateSlot, _: Instant) {
        let time = i64::try_from(slot.mark()).unwrap_or(i64::MAX);
        self.0.granted.lock().put_back(time);
        self.0.changed.notify_one();
    }

    fn give_back(&self, slot: RateSlot, now: Instant) {
        if self.0.granted.lock().has_burst {
            self.cancel(slot, now);
        }
    }
}

/// Asks the server for slots until the pace is dropped.
async fn supply(shared: Arc<Supply<Slots>>, late: i64) {
    let source = &shared.source;
    while shared.used().is_some() {
        let Plan { unused, ask, wait } = shared.granted.lock().plan(Instant::now());
        if !unused.is_empty() {
            let _ = source.return_slots(&unused).await; // they are lost otherwise
        }
        if ask == 0 {
            shared.changed(wait).await;
            continue;
        }
        let answer = source.take_slots(ask, late).await.ok();
        let has_more = shared.granted.lock().answered(answer, Instant::now());
        if has_more {
            shared.wake_waiters();
        }
    }
    let unused = shared.granted.lock().take_all();
    if !unused.is_empty() {
        let _ = timeout(LAST, source.return_slots(&unused)).await;
    }
}
