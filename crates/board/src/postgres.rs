//! Queues in `PostgreSQL`.

/// The queues of a database.
#[derive(Debug)]
pub struct InPostgres;
