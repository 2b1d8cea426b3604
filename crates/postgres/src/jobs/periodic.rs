//! Periodic jobs: items that are pushed at times of a schedule, by one of all processes.
//!
//! The table has the next time of each job. Whoever finds it over changes it to the one after, if it still is what was read, and pushes
//! the item in the same transaction: so there is one item, whoever else looks and whoever dies meanwhile.

use crate::connect::Params;
use crate::error::{Error, Result};
use crate::queue::{Core, PgQueue};
use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use croner::parser::{CronParser, Seconds};
use croner::Cron;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::task::AbortHandle;
use tokio::time::sleep;
use tokio_postgres::types::ToSql;

/// The longest pause before another look: another process may have changed the schedule, or the clock of the server has.
const LOOK: Duration = Duration::from_secs(30);
/// The pause after an error.
const AGAIN: Duration = Duration::from_secs(1);
/// How many missed times are counted.
const MISSED: usize = 1000;

/// A cron expression in a time zone, for [`PgQueue::periodic`]. Feature `cron`.
///
/// Five fields, or six with seconds as the first one: see the crate [`croner`], also for what becomes of local times that occur
/// twice or never.
///
/// ```
/// use requeue_postgres::Schedule;
///
/// let schedule = Schedule::new("30 3 * * MON-FRI", "Europe/Berlin")?;
/// assert!(Schedule::new("30 3 * *", "UTC").is_err());
/// assert!(Schedule::new("30 3 * * *", "Europe/Atlantis").is_err());
/// # Ok::<(), requeue_postgres::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Schedule {
    cron: Cron,
    zone: Tz,
    text: String,
}

impl Schedule {
    /// Creates a schedule of a cron expression, and the name of a time zone of the IANA database.
    ///
    /// # Errors
    ///
    /// [`Error::Schedule`] if one of them is invalid.
    pub fn new(cron: &str, zone: &str) -> Result<Self> {
        let text = format!("{cron} {zone}");
        let parser = CronParser::builder().seconds(Seconds::Optional).build();
        let parsed = parser.parse(cron);
        let cron = parsed.map_err(|error| Error::Schedule(error.to_string().into()))?;
        let zone = zone.parse();
        let zone =
            zone.map_err(|error: chrono_tz::ParseError| Error::Schedule(error.to_string().into()))?;
        Ok(Self { cron, zone, text })
    }

    /// The first time after this one.
    fn after(&self, time: SystemTime) -> Result<SystemTime> {
        let time = DateTime::<Utc>::from(time).with_timezone(&self.zone);
        let next = self.cron.find_next_occurrence(&time, false);
        next.map(SystemTime::from)
            .map_err(|error| Error::Schedule(error.to_string().into()))
    }

    /// What a look at `now` finds due, of the times from `next` on.
    fn firing(&self, next: SystemTime, now: SystemTime) -> Result<Firing> {
        let (mut due, mut missed) = (next, 0);
        while missed < MISSED {
            let later = self.after(due)?;
            if later > now {
                break;
            }
            due = later;
            missed += 1;
        }
        Ok(Firing { due, missed })
    }
}

/// Why a periodic job is pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Firing {
    /// The time at which it was due: the last one that is over, or the 1,000th of those that were missed.
    pub due: SystemTime,
    /// How many times before were missed, since no process ran: up to 1,000.
    pub missed: usize,
}

/// Has this process look after a periodic job, from [`PgQueue::periodic`], until it is dropped. The job stays in the database, until
/// [`forget_periodic`](PgQueue::forget_periodic).
#[derive(Debug)]
#[must_use = "a process that drops it does not fire"]
pub struct Periodic(AbortHandle);

impl Drop for Periodic {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<T: Send + 'static> PgQueue<T> {
    /// Pushes an item at each time of a schedule. Feature `cron`.
    ///
    /// All processes that call it with one name fire once together: the item is pushed by one of them, a moment after its time by the
    /// clock of the server. The schedule that was declared last counts, for all of them; a process with another one does not fire.
    /// Times that were missed, since no process ran, are made up for by one firing, which [says](Firing::missed) how many. `item`
    /// is called in a transaction, and again if that fails; a panic of it ends the firing of this process.
    ///
    /// ```no_run
    /// # async fn example(reports: requeue_postgres::PgQueue<String>) -> Result<(), requeue_postgres::Error> {
    /// use requeue_postgres::Schedule;
    ///
    /// let schedule = Schedule::new("0 7 * * MON", "Europe/Berlin")?;
    /// let _weekly = reports.periodic("weekly", schedule, |firing| format!("the report of {:?}", firing.due)).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Schedule`] if the schedule has no next time, [`Error::Database`] and [`Error::Pool`].
    #[doc(alias("cron", "schedule", "recurring"))]
    pub async fn periodic(
        &self,
        name: &str,
        schedule: Schedule,
        item: impl Fn(Firing) -> T + Send + Sync + 'static,
    ) -> Result<Periodic> {
        let job = Job {
            name: name.into(),
            schedule,
            item,
        };
        job.declare(&self.core).await?;
        let queue = self.clone();
        let task = tokio::spawn(async move {
            loop {
                sleep(job.look(&queue).await.unwrap_or(AGAIN)).await;
            }
        });
        Ok(Periodic(task.abort_handle()))
    }

    /// Forgets a periodic job, for all processes. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// [`Error::Database`], [`Error::InDoubt`] and [`Error::Pool`].
    pub async fn forget_periodic(&self, name: &str) -> Result<bool> {
        let rows = self
            .core
            .change(|sql| &sql.forget_periodic, &[&name])
            .await?;
        Ok(!rows.is_empty())
    }
}

struct Job<F> {
    name: String,
    schedule: Schedule,
    item: F,
}

impl<F> Job<F> {
    /// Writes the schedule. The next time stays as it is, unless the schedule is another one.
    async fn declare(&self, core: &Arc<Core>) -> Result<()> {
        let now = core.run(|sql| &sql.server_time, &[]).await?[0].get(0);
        let next = self.schedule.after(now)?;
        let params: Params<'_> = &[&self.name, &self.schedule.text, &next];
        core.change(|sql| &sql.declare_periodic, params).await?;
        Ok(())
    }

    /// Fires, if it is time. Returns when to look again.
    async fn look<T: Send + 'static>(&self, queue: &PgQueue<T>) -> Result<Duration>
    where
        F: Fn(Firing) -> T,
    {
        let own: Params<'_> = &[&self.name, &self.schedule.text];
        let found = queue.core.run(|sql| &sql.find_periodic, own).await?;
        let Some(row) = found.first() else {
            return Ok(LOOK); // forgotten, or another process has another schedule
        };
        let (next, now): (SystemTime, SystemTime) = (row.get(0), row.get(1));
        if next > now {
            let wait = next.duration_since(now).unwrap_or_default();
            return Ok(wait.min(LOOK));
        }
        self.fire(queue, next, now).await?;
        Ok(Duration::ZERO)
    }

    /// Pushes the item, unless another process has done so.
    async fn fire<T: Send + 'static>(
        &self,
        queue: &PgQueue<T>,
        next: SystemTime,
        now: SystemTime,
    ) -> Result<()>
    where
        F: Fn(Firing) -> T,
    {
        let db = queue.database();
        let (id, following) = (queue.core.id().await?, self.schedule.after(now)?);
        let mut tx = db.begin().await?;
        let advance = &*db.shared.sql.advance_periodic;
        let job: &[&(dyn ToSql + Sync)] =
            &[&id, &self.name, &self.schedule.text, &next, &following];
        if tx.client().execute(advance, job).await? == 0 {
            return tx.abort().await;
        }
        let firing = self.schedule.firing(next, now)?;
        tx.push(queue, (self.item)(firing)).await?;
        tx.commit().await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::{Firing, Schedule};
    use std::time::{Duration, SystemTime};

    /// 2026-03-28 at this hour, of UTC.
    fn at(hours: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_774_656_000 + hours * 3600)
    }

    #[test]
    fn times_are_those_of_the_time_zone_in_summer_and_winter() {
        let schedule = Schedule::new("0 9 * * *", "Europe/Berlin").unwrap();
        assert_eq!(schedule.after(at(0)).unwrap(), at(8));
        assert_eq!(schedule.after(at(8)).unwrap(), at(31)); // summer time begins in between
    }

    #[test]
    fn missed_times_are_counted_and_made_up_for_once() {
        let schedule = Schedule::new("0 * * * *", "UTC").unwrap();
        let firing = |next, now| schedule.firing(at(next), at(now)).unwrap();
        assert_eq!(
            firing(1, 1),
            Firing {
                due: at(1),
                missed: 0
            }
        );
        assert_eq!(
            firing(1, 5),
            Firing {
                due: at(5),
                missed: 4
            }
        );
        let often = Schedule::new("* * * * * *", "UTC").unwrap();
        assert_eq!(often.firing(at(0), at(5)).unwrap().missed, 1000);
    }
}
