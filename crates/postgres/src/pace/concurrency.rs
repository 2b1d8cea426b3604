//! A concurrency limit that several processes share.

use super::places::{Places, Question};
use super::source::Source;
use super::{Supplied, Supply, AGAIN};
use crate::connect::Postgres;
use crate::error::Error;
use requeue::{Limiter, Pace, RateSlot};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// How long the places of a silent process are kept, unless it is set.
const TERM: Duration = Duration::from_secs(10);

/// A limit on the items in flight that several processes share, from [`Postgres::concurrency`].
///
/// ```no_run
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use requeue::Queue;
/// use requeue_postgres::Postgres;
///
/// let db = Postgres::connect("postgres://app@localhost/app").await?;
/// let mails = Queue::builder().pace(db.concurrency("mail", 8).pace().await?).build();
/// mails.push("hello")?;
/// let mut handle = mails.handle();
/// let tx = handle.begin();
/// tx.pop_async().await?; // one of 8 mails in flight, in all processes together
/// tx.commit();
/// # Ok(()) }
/// ```
#[must_use = "a limit does nothing until its pace is used"]
#[derive(Clone)]
pub struct Concurrency {
    source: Source,
    places: u32,
    term: Duration,
}

impl Postgres {
    /// Returns a limit on the items in flight in all processes that use the same name, as a builder. The name has 1 to 1,000 bytes.
    ///
    /// # Panics
    ///
    /// If `places` is 0; to start nothing, pause the queue.
    #[track_caller]
    pub fn concurrency(&self, name: &str, places: u32) -> Concurrency {
        assert!(
            places > 0,
            "a concurrency limit of 0: nothing would ever start"
        );
        Concurrency {
            source: Source {
                db: self.clone(),
                name: name.into(),
            },
            places,
            term: TERM,
        }
    }
}

impl Concurrency {
    /// Sets how long after the last sign of life of a process its items count as in flight; 10 seconds by default. A process
    /// gives a sign of life three times in this time, and every second.
    ///
    /// # Panics
    ///
    /// If `term` is shorter than a millisecond.
    #[track_caller]
    pub fn term(mut self, term: Duration) -> Self {
        assert!(term >= Duration::from_millis(1), "a process without a term");
        self.term = term.min(Duration::from_secs(86_400));
        self
    }

    /// Returns a pace with this limit, for any number of queues of this process: an item is in flight from its start until its
    /// transaction ends.
    ///
    /// The limit is created in the database if there is none of its name. If there is one, it is changed only if it was declared
    /// with another number before: what was [set](Self::set) since holds until a program declares another limit.
    ///
    /// The places of a process that dies are free after the [term](Self::term). A process that the server has not heard of for
    /// this time starts nothing, but cannot stop what it has started: these items may exceed the limit. If not all processes
    /// can have the places that they need, each gets an equal share.
    /// The pace keeps the database connected.
    ///
    /// # Errors
    ///
    /// [`Error::Name`], [`Error::NotInstalled`], [`Error::Version`], and [`Error::Database`].
    pub async fn pace(self) -> Result<Pace, Error> {
        self.write("declare_limit($1, $2)").await?;
        let holder = self.source.db.shared.next_id().await?;
        let (places, term) = (Places::new(self.term, Instant::now()), self.term);
        Ok(Supply::pace(self.source, places, |shared| {
            supply(shared, holder, term)
        }))
    }

    /// Sets the limit for all processes, within a second. Items that are in flight already may exceed a lower one.
    ///
    /// # Errors
    ///
    /// As for [`pace`](Self::pace).
    pub async fn set(self) -> Result<(), Error> {
        self.write("change_limit($1, $2)").await
    }

    async fn write(&self, call: &str) -> Result<(), Error> {
        let places = i32::try_from(self.places).unwrap_or(i32::MAX);
        self.source.set(call, &[&&*self.source.name, &places]).await
    }
}

requeue::debug_struct!([] Concurrency, |limit| name: limit.source.name, places: limit.places, term: limit.term);

impl Limiter for Supplied<Places> {
    fn start(&self, now: Instant) -> Result<RateSlot, Instant> {
        if self.0.granted.lock().take(Instant::now()) {
            return Ok(RateSlot::new(now, 0));
        }
        self.0.changed.notify_one();
        Err(now + AGAIN)
    }

    fn cancel(&self, slot: RateSlot, _: Instant) {
        self.spend(slot);
    }

    fn give_back(&self, slot: RateSlot, _: Instant) {
        self.spend(slot);
    }

    fn spend(&self, _: RateSlot) {
        let mut places = self.0.granted.lock();
        let has_room = places.free();
        let is_pressing = places.is_pressing();
        drop(places);
        if has_room {
            self.0.wake_waiters();
        }
        if is_pressing {
            self.0.changed.notify_one();
        }
    }
}

/// Asks the server for places, and tells it that this process is alive, until the pace is dropped.
async fn supply(shared: Arc<Supply<Places>>, holder: i64, term: Duration) {
    while shared.used().is_some() {
        let asked = Instant::now();
        let wait = shared.granted.lock().wait(asked);
        if wait != Some(Duration::ZERO) {
            shared.changed(wait).await;
            continue;
        }
        let question = shared.granted.lock().question(asked);
        let answer = shared.source.take_places(holder, question, term).await;
        let has_room = shared.granted.lock().answered(question, answer.ok(), asked);
        if has_room {
            shared.wake_waiters();
        }
    }
    let none = Question { kept: 0, more: 0 };
    let _ = timeout(term, shared.source.take_places(holder, none, term)).await;
}
