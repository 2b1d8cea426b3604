//! How many items this process has finished, which it tells the server every two seconds, if there are any: for rates of queues.

use crate::background::Task;
use crate::connect::{Params, Shared};
use crate::error::Result;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::sleep;

/// How often the server is told.
const INTERVAL: Duration = Duration::from_secs(2);

/// The finished items that the server was not told of, by queue.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    finished: Mutex<HashMap<i32, i64>>,
    task: Task,
}

impl Activity {
    fn add(&self, queue: i32, items: i64) {
        *self.finished.lock().entry(queue).or_insert(0) += items;
    }
}

impl Shared {
    /// An item of a queue was finished.
    pub(crate) fn note_finished(self: &Arc<Self>, queue: i32) {
        self.activity.add(queue, 1);
        self.activity.task.start(self, tell);
        self.activity.task.nudge();
    }

    /// Tells the server what was finished.
    async fn tell_finished(self: &Arc<Self>) {
        let finished = mem::take(&mut *self.activity.finished.lock());
        if finished.is_empty() {
            return; // a nudge came before the last ones were told
        }
        let (queues, items): (Vec<_>, Vec<_>) = finished.into_iter().unzip();
        let told = async {
            let params: Params<'_> = &[&self.process().await?, &queues, &items];
            self.run(&self.sql.add_finished, params).await
        };
        let told: Result<_> = told.await;
        if told.is_err() {
            // In doubt it is told twice.
            for (queue, items) in queues.into_iter().zip(items) {
                self.activity.add(queue, items);
            }
            self.activity.task.nudge();
        }
    }
}

async fn tell(shared: Weak<Shared>, finished: Arc<Notify>) {
    loop {
        finished.notified().await;
        sleep(INTERVAL).await;
        let Some(shared) = shared.upgrade() else {
            return;
        };
        shared.tell_finished().await;
    }
}
