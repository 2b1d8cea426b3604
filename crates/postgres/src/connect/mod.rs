//! A database: its pool, and what the process shares.

mod control;
mod options;
mod postgres;

pub use options::Options;
pub use postgres::Postgres;
pub(crate) use postgres::Shared;

use crate::error::{has_conflict, Error};
use deadpool_postgres::ClientWrapper;
use tokio_postgres::types::ToSql;
use tokio_postgres::Row;

pub(crate) type Params<'p> = &'p [&'p (dyn ToSql + Sync)];

/// How often a statement of this crate is repeated after a serialization failure or a deadlock.
const REPEATS: u32 = 10;

/// Runs a statement, prepared once per connection, in a transaction of its own or in the open one.
pub(crate) async fn query(
    client: &ClientWrapper,
    sql: &str,
    params: Params<'_>,
) -> Result<Vec<Row>, Error> {
    let statement = client.prepare_cached(sql).await?;
    Ok(client.query(&statement, params).await?)
}

/// Runs a statement in a transaction of its own, again after a conflict with another transaction.
pub(crate) async fn query_alone(
    client: &ClientWrapper,
    sql: &str,
    params: Params<'_>,
) -> Result<Vec<Row>, Error> {
    let mut repeats = 0;
    loop {
        match query(client, sql, params).await {
            Err(Error::Database(error)) if repeats < REPEATS && has_conflict(&error) => {
                repeats += 1;
            }
            ended => return ended,
        }
    }
}
