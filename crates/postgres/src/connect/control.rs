//! The connection for short statements of their own, which all tasks of the process share: the statements are pipelined. So a
//! transaction that has a connection never waits for a second one.

use crate::error::Error;
use deadpool_postgres::{ClientWrapper, Object, Pool};
use std::sync::Arc;
use tokio::sync::Mutex;

#[derive(Debug, Default)]
pub(crate) struct Control {
    client: Mutex<Option<Arc<Client>>>,
}

/// A connection out of the pool.
pub(crate) struct Client(pub(crate) ClientWrapper);

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

impl Control {
    /// The connection; a new one if it was closed.
    pub(crate) async fn get(&self, pool: &Pool) -> Result<Arc<Client>, Error> {
        let mut client = self.client.lock().await;
        if let Some(open) = client.as_ref().filter(|client| !client.0.is_closed()) {
            return Ok(Arc::clone(open));
        }
        let new = Arc::new(Client(Object::take(pool.get().await?)));
        *client = Some(Arc::clone(&new));
        Ok(new)
    }
}
