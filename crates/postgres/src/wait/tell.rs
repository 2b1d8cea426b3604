//! Notifications of other processes, which a task sends: the server has one transaction with notifications commit at a time, and no
//! call waits for that.

use crate::background::Task;
use crate::connect::{Params, Shared};
use crate::error::Error;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::mem;
use std::sync::{Arc, Weak};
use tokio::sync::Notify;

/// Queues, and how many items others are to be told of; 0 if that is unknown.
type News = BTreeMap<i32, i64>;

#[derive(Debug, Default)]
pub(super) struct Teller {
    task: Task,
    news: Mutex<News>,
}

impl Shared {
    /// Tells the other processes that listen of items of these queues, or of 0 if it is unknown how many. If that fails, their
    /// waiters see them at the next poll.
    pub(crate) fn tell(self: &Arc<Self>, counts: Vec<(i32, i64)>) {
        if counts.is_empty() {
            return;
        }
        let teller = &self.hub.teller;
        let mut news = teller.news.lock();
        for (queue, items) in counts {
            let is_unknown = items == 0 || news.get(&queue) == Some(&0);
            let sum = news.entry(queue).or_insert(0);
            *sum = if is_unknown { 0 } else { *sum + items };
        }
        drop(news);
        teller.task.nudge();
        teller.task.start(self, tell);
    }

    async fn send_news(&self, news: News) -> Result<(), Error> {
        let process = self.process().await?;
        let (queues, items): (Vec<i32>, Vec<i64>) = news.into_iter().unzip();
        // It may wait for a lock.
        let params: Params<'_> = &[&queues, &items, &process];
        self.run_aside(&self.sql.tell, params).await.map(drop)
    }
}

async fn tell(shared: Weak<Shared>, added: Arc<Notify>) {
    loop {
        added.notified().await;
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let news = mem::take(&mut *shared.hub.teller.news.lock());
        let _ = shared.send_news(news).await; // they look again after a second
    }
}
