//! How many items this process has finished, which it tells the server while there are any: for rates of queues.

use crate::background::Task;
use crate::connect::{Params, Shared};
use crate::error::Result;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Weak};
use std::time::Duration;
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
        self.activity.task.start(self, |shared, _| tell(shared));
    }

    /// Tells the server what was finished, and returns whether there was anything.
    async fn tell_finished(self: &Arc<Self>) -> Result<bool> {
        let finished = mem::take(&mut *self.activity.finished.lock());
        if finished.is_empty() {
            return Ok(false);
        }
        let (queues, items): (Vec<_>, Vec<_>) = finished.into_iter().unzip();
        let told = async {
            let params: Params<'_> = &[&self.process().await?, &queues, &items];
            self.run(&self.sql.add_finished, params).await
        };
        let told = told.await;
        if told.is_err() {
            // In doubt it is told twice.
            for (queue, items) in queues.into_iter().zip(items) {
                self.activity.add(queue, items);
            }
        }
        told.map(|_| true)
    }
}

/// Ends when nothing was finished for an interval: what is finished next starts it again.
async fn tell(shared: Weak<Shared>) {
    loop {
        sleep(INTERVAL).await;
        let Some(shared) = shared.upgrade() else {
            return;
        };
        if let Ok(false) = shared.tell_finished().await {
            return;
        }
    }
}
