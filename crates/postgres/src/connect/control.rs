//! The connection for short statements of their own, which all tasks of the process share: the statements are pipelined. So a
//! transaction that has a connection never waits for a second one.

use super::connection::{Connection, Manner};
use super::postgres::{none_within, object};
use crate::error::Error;
use deadpool_postgres::{Object, Pool};
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio::time::timeout;

pub(crate) struct Control {
    /// Opens it. Not the pool of the transactions, which may have all its connections.
    opener: Pool,
    open: Mutex<Option<Arc<Connection<'static>>>>,
}

impl Control {
    pub(super) fn new(opener: Pool) -> Self {
        let open = Mutex::default();
        Self { opener, open }
    }

    /// The connection; a new one if it was closed, or hangs. The wait for others that open it counts.
    pub(super) async fn get(&self, manner: Manner) -> Result<Arc<Connection<'static>>, Error> {
        let got = timeout(manner.limit, self.get_or_open(manner)).await;
        got.unwrap_or_else(|_| Err(none_within(manner.limit)))
    }

    async fn get_or_open(&self, manner: Manner) -> Result<Arc<Connection<'static>>, Error> {
        let mut connection = self.open.lock().await;
        if let Some(open) = connection
            .as_ref()
            .filter(|connection| connection.is_open())
        {
            return Ok(Arc::clone(open));
        }
        let client = Object::take(object(&self.opener, manner).await?);
        let new = Arc::new(Connection::of_process(client, manner));
        *connection = Some(Arc::clone(&new));
        Ok(new)
    }
}
