//! The connection that listens for notifications: one per process.

use crate::background::Task;
use crate::connect::{Postgres, Shared};
use crate::error::Error;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::join;
use tokio::sync::watch;
use tokio::time::{sleep, timeout, Instant};
use tokio_postgres::{AsyncMessage, Config, NoTls};

/// How long a process is registered as listener is a minute; after this time it registers again.
const REGISTERED: Duration = Duration::from_secs(30);
/// The pause before another connection, and how long waiters wait for one.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Listening {
    task: Task,
    /// Whether the connection listens.
    up: Arc<watch::Sender<bool>>,
    /// When this process registered as listener of each queue.
    registered: Mutex<HashMap<i32, Instant>>,
}

impl Default for Listening {
    fn default() -> Self {
        Self {
            task: Task::default(),
            up: Arc::new(watch::Sender::new(false)),
            registered: Mutex::default(),
        }
    }
}

impl Postgres {
    /// Sees to it that this process is notified of items of a queue, from now on.
    pub(crate) async fn wait_for(&self, queue: i32) -> Result<(), Error> {
        self.start_promoter();
        let shared = &self.shared;
        let Some(config) = shared.config.clone() else {
            return Ok(());
        };
        let listening = &shared.hub.listening;
        let (weak, up) = (Arc::downgrade(shared), Arc::clone(&listening.up));
        let channel = shared.schema.channel();
        listening.task.start(|| listen(config, channel, weak, up));
        let mut up = listening.up.subscribe();
        let _ = timeout(PAUSE, up.wait_for(|up| *up)).await;
        let registered = listening.registered.lock().get(&queue).copied();
        if registered.is_none_or(|since| since.elapsed() > REGISTERED) {
            let process = shared.process().await?;
            let now = Instant::now();
            shared.run(&shared.sql.forget_listeners, &[]).await?;
            shared.run(&shared.sql.listen, &[&queue, &process]).await?;
            listening.registered.lock().insert(queue, now);
        }
        Ok(())
    }
}

/// Listens, again after a failure, until the process no longer uses the database.
async fn listen(
    config: Config,
    channel: String,
    shared: Weak<Shared>,
    up: Arc<watch::Sender<bool>>,
) {
    while shared.strong_count() > 0 {
        let _ = listen_once(&config, &channel, &shared, &up).await;
        up.send_replace(false);
        sleep(PAUSE).await;
    }
}

async fn listen_once(
    config: &Config,
    channel: &str,
    shared: &Weak<Shared>,
    up: &watch::Sender<bool>,
) -> Result<(), Error> {
    let (client, mut connection) = config.connect(NoTls).await?;
    let statement = format!(
        "listen {}",
        postgres_protocol::escape::escape_identifier(channel)
    );
    let notified = async {
        while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
            let AsyncMessage::Notification(notification) = message? else {
                continue;
            };
            let Some(shared) = shared.upgrade() else {
                return Ok(());
            };
            shared.notified(notification.payload()).await;
        }
        Ok(())
    };
    let started = async {
        client.batch_execute(&statement).await?;
        up.send_replace(true);
        if let Some(shared) = shared.upgrade() {
            shared.hub.nudge_all(); // what was missed
        }
        Ok::<_, Error>(())
    };
    let (ended, _) = join!(notified, started);
    ended
}

impl Shared {
    /// Wakes waiters for a notification: a queue, a number of items or 0 if it is unknown, and the
    /// process that has pushed them.
    async fn notified(&self, payload: &str) {
        let mut numbers = payload.split(' ').map(str::parse::<i64>);
        let (Some(Ok(queue)), Some(Ok(items)), Some(Ok(process))) =
            (numbers.next(), numbers.next(), numbers.next())
        else {
            return; // of another program
        };
        if self.process().await.is_ok_and(|own| own == process) {
            return; // they are woken already
        }
        if let (Ok(queue), Ok(items)) = (i32::try_from(queue), usize::try_from(items)) {
            match items {
                0 => self.hub.nudge(queue),
                items => self.hub.wake(queue, items),
            }
        }
    }
}
