//! The connection that listens for notifications: one per process.

use crate::background::Task;
use crate::connect::{Server, Shared};
use crate::error::{Error, Result};
use parking_lot::Mutex;
use postgres_protocol::escape::escape_identifier;
use std::collections::HashMap;
use std::convert::Infallible;
use std::future::{poll_fn, Future};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::select;
use tokio::sync::watch;
use tokio::time::{sleep, timeout, Instant};
use tokio_postgres::{AsyncMessage, Client};

/// How long a process is registered as listener is a minute; after this time it registers again.
const REGISTERED: Duration = Duration::from_secs(30);
/// The pause before another connection, and how long waiters wait for one.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct Listening {
    task: Task,
    /// Whether the connection listens.
    up: watch::Sender<bool>,
    /// When this process registered as listener of each queue.
    registered: Mutex<HashMap<i32, Instant>>,
}

impl Shared {
    /// Sees to it that this process is notified, from some time on. Returns whether it can be.
    pub(crate) fn start_listening(self: &Arc<Self>) -> bool {
        let Some(server) = self.server.clone() else {
            return false;
        };
        let limit = self.manner.limit;
        self.hub.listening.task.start(self, |weak, _| async move {
            while weak.strong_count() > 0 {
                let _ = listen(&weak, &server, limit).await;
                if let Some(shared) = weak.upgrade() {
                    shared.hub.listening.up.send_replace(false);
                }
                sleep(PAUSE).await;
            }
        });
        true
    }

    /// Sees to it that this process is notified of items of a queue, from now on.
    pub(crate) async fn wait_for(self: &Arc<Self>, queue: i32) -> Result<()> {
        self.start_promoter();
        if !self.start_listening() {
            return Ok(());
        }
        let listening = &self.hub.listening;
        let mut up = listening.up.subscribe();
        let _ = timeout(PAUSE, up.wait_for(|up| *up)).await;
        let registered = listening.registered.lock().get(&queue).copied();
        if registered.is_none_or(|since| since.elapsed() > REGISTERED) {
            let process = self.process().await?;
            let now = Instant::now();
            self.run(&self.sql.forget_listeners, &[]).await?;
            self.run(&self.sql.listen, &[&queue, &process]).await?;
            listening.registered.lock().insert(queue, now);
        }
        Ok(())
    }
}

/// Listens until a failure. The answer to a statement may take this long.
async fn listen(shared: &Weak<Shared>, server: &Server, limit: Duration) -> Result<()> {
    let (client, mut messages) = in_time(limit, server.connect()).await?;
    let notified = async {
        while let Some(message) = poll_fn(&mut messages).await {
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
    select! {
        ended = notified => ended,
        Err(error) = keep(shared, &client, limit) => Err(error),
    }
}

/// Has the server notify this session, and asks it now and then: nothing else tells a connection that hangs from one without
/// notifications.
async fn keep(shared: &Weak<Shared>, client: &Client, limit: Duration) -> Result<Infallible> {
    let channel = shared.upgrade().map(|shared| shared.schema.channel());
    let statement = format!("listen {}", escape_identifier(&channel.unwrap_or_default()));
    in_time(limit, client.batch_execute(&statement)).await?;
    if let Some(shared) = shared.upgrade() {
        shared.hub.listening.up.send_replace(true);
        shared.hub.nudge_all(); // what was missed
    }
    loop {
        sleep(limit).await;
        in_time(limit, client.batch_execute("")).await?;
    }
}

async fn in_time<T>(
    limit: Duration,
    answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T> {
    let answer = timeout(limit, answer).await;
    Ok(answer.map_err(|_| Error::TimedOut(limit))??)
}

impl Shared {
    /// Wakes waiters for a notification: a queue, a number of items or 0 if it is unknown, and the process that has pushed them. Or
    /// cancels the run of an item.
    async fn notified(self: &Arc<Self>, payload: &str) {
        if let Some(Ok(ticket)) = payload.strip_prefix("cancel ").map(str::parse) {
            return self.running.cancel(ticket);
        }
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
            self.hub.wake(queue, items);
        }
    }
}
