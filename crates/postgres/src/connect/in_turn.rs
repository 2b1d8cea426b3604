//! Statements through a pooler, one after the other.
//!
//! `pgbouncer` has a session go when an answer says that its transaction has ended. A statement that is sent before that answer has come may
//! be given to two sessions, the second of which runs what it has parsed for others; and when its client dies then, the session is given
//! to another client, who takes the answer for that to its own statement. So behind a pooler nothing is sent while the answer to what has
//! ended a transaction is owed. A statement alone is such a transaction.

use super::Param;
use crate::codec::CodecError;
use crate::error::Result;
use bytes::BytesMut;
use deadpool_postgres::ClientWrapper;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_postgres::types::{to_sql_checked, IsNull, ToSql, Type};
use tokio_postgres::Row;

/// Whether the connection hangs. Locked while an answer is owed.
pub(super) type Hangs = Arc<Mutex<bool>>;

/// A parameter as it is sent.
#[derive(Debug)]
pub(super) struct Encoded {
    ty: Type,
    /// `None` is null.
    value: Option<BytesMut>,
}

impl Encoded {
    pub(super) fn new(param: &dyn Param) -> Result<Self> {
        let (ty, mut value) = (param.ty(), BytesMut::new());
        let encoded = param.to_sql_checked(&ty, &mut value);
        let value = match encoded.map_err(CodecError::new)? {
            IsNull::No => Some(value),
            IsNull::Yes => None,
        };
        Ok(Self { ty, value })
    }
}

impl ToSql for Encoded {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        let Some(value) = &self.value else {
            return Ok(IsNull::Yes);
        };
        out.extend_from_slice(value);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// Sends a statement when those before it are answered, in a task: others wait for its answer, also if its caller is polled no more.
/// What waits for a connection that hangs is not sent; its caller misses its time.
pub(super) async fn run_in_turn(
    client: Arc<ClientWrapper>,
    hangs: Hangs,
    limit: Duration,
    sql: String,
    params: Vec<Encoded>,
) -> Result<Vec<Row>, tokio_postgres::Error> {
    let run = tokio::spawn(async move {
        let mut hangs = hangs.lock().await;
        if *hangs {
            return None;
        }
        let typed = params
            .iter()
            .map(|param| (param as &(dyn ToSql + Sync), param.ty.clone()));
        let params: Vec<_> = typed.collect();
        let answer = timeout(limit, client.query_typed(&sql, &params)).await;
        *hangs = answer.is_err();
        answer.ok()
    });
    match run.await {
        Ok(Some(answer)) => answer,
        _ => pending().await,
    }
}
