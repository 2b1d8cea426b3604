//! What can fail.

use crate::codec::CodecError;
#[cfg(feature = "sqlx")]
use sqlx::{error::DatabaseError, postgres::PgDatabaseError};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::error::{DbError, SqlState};

/// The code of the exception that `require_held` raises.
const EXPIRED: &str = "RQ001";
/// The code of the exception that `require_unique` raises. Its detail is the key.
const DUPLICATE: &str = "RQ003";

/// What a call returns.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// What failed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The server refused a statement, or the connection failed. The text of the server is kept.
    Database(Arc<tokio_postgres::Error>),
    /// The same, of a transaction of `sqlx`.
    #[cfg(feature = "sqlx")]
    Sqlx(Arc<sqlx::Error>),
    /// The connection failed during the commit, or the answer did not come in time: it is unknown whether the server has
    /// committed. With the reason. Also of calls that are a commit of their own: [`cancel`](crate::PgQueue::cancel),
    /// [`reprioritize`](crate::PgQueue::reprioritize), [`recover`](crate::PgQueue::recover), [`retain`](crate::PgQueue::retain),
    /// [`clear_all`](crate::PgQueue::clear_all), and those that remove or requeue [dead letters](crate::DeadLetters).
    InDoubt(Arc<str>),
    /// The server did not answer in [this time](crate::Options::statement_timeout), before the commit. The connection is replaced.
    TimedOut(Duration),
    /// The pool gave no connection.
    Pool(Arc<str>),
    /// An item could not be encoded.
    Codec(CodecError),
    /// The name of a schema, a queue or a limit is empty, too long, reserved, or has a NUL in it.
    Name(Arc<str>),
    /// The key of an item is empty, too long, or has a NUL in it.
    Key(Arc<str>),
    /// A cron expression or a time zone is invalid, or there is no next time.
    Schedule(Arc<str>),
    /// An item with this key is in the queue, staged by the transaction, or was committed [a short time ago](crate::Builder::unique_for),
    /// and items of the queue are [unique](crate::Builder::unique_by) by key.
    Duplicate(Arc<str>),
    /// The lease of an item expired, so that it is delivered again: the transaction was aborted.
    Expired,
    /// A call failed, or was dropped before it was ready, so that it is unknown what the transaction holds: it can only be
    /// aborted.
    Broken,
    /// The task of the call was stopped, since its runtime ends.
    Ended,
    /// The item belongs to another transaction.
    OtherTransaction,
    /// The schema has no tables; see [`Postgres::install`](crate::Postgres::install).
    NotInstalled(Arc<str>),
    /// The tables have a version that this version of the crate does not read.
    Version {
        /// The version of the tables.
        found: i32,
        /// The version that this crate reads and writes.
        supported: i32,
    },
}

impl Error {
    /// Whether the same transaction may succeed when it is run again: after a serialization failure or a deadlock, and if the
    /// connection failed, was terminated or did not answer before the commit.
    ///
    /// ```
    /// assert!(!requeue_postgres::Error::Expired.is_retryable());
    /// ```
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Database(error) => error.is_closed() || error.code().is_some_and(may_pass),
            Self::Pool(_) | Self::TimedOut(_) => true,
            #[cfg(feature = "sqlx")]
            Self::Sqlx(error) => {
                let code = error.as_database_error().and_then(DatabaseError::code);
                code.is_some_and(|code| may_pass(&SqlState::from_code(&code)))
            }
            _ => false,
        }
    }

    /// The code of the server's error.
    ///
    /// ```
    /// assert_eq!(requeue_postgres::Error::Expired.code(), None);
    /// ```
    pub fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Database(error) => error.code(),
            _ => None,
        }
    }

    /// This error, of a commit: if the server did not answer, it may have committed.
    pub(crate) fn of_commit(self) -> Self {
        match self {
            Self::Database(error) if error.as_db_error().is_none() => {
                Self::InDoubt(text(&error).into())
            }
            Self::TimedOut(_) => Self::InDoubt(self.to_string().into()),
            error => error,
        }
    }
}

/// Whether the same transaction may succeed after an error of this code.
fn may_pass(code: &SqlState) -> bool {
    is_conflict(code) || was_terminated(code)
}

/// Whether the server has ended the session, or does not take new ones.
fn was_terminated(code: &SqlState) -> bool {
    *code == SqlState::ADMIN_SHUTDOWN
        || *code == SqlState::CRASH_SHUTDOWN
        || *code == SqlState::CANNOT_CONNECT_NOW
}

/// Whether the server undid the transaction because of another one.
pub(crate) fn has_conflict(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(is_conflict)
}

fn is_conflict(code: &SqlState) -> bool {
    *code == SqlState::T_R_SERIALIZATION_FAILURE || *code == SqlState::T_R_DEADLOCK_DETECTED
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Database(error) => write!(f, "the database failed: {}", text(error)),
            #[cfg(feature = "sqlx")]
            Self::Sqlx(error) => write!(f, "the database failed: {error}"),
            Self::InDoubt(why) => write!(f, "it is unknown whether the commit succeeded: {why}"),
            Self::TimedOut(limit) => write!(f, "the server did not answer within {limit:?}"),
            Self::Pool(why) => write!(f, "the pool gave no connection: {why}"),
            Self::Codec(error) => write!(f, "an item cannot be encoded: {error}"),
            Self::Name(name) => write!(f, "{name:?} cannot name a schema, a queue or a limit"),
            Self::Key(key) => write!(f, "{key:?} cannot be the key of an item"),
            Self::Schedule(reason) => write!(f, "the schedule is invalid: {reason}"),
            Self::Duplicate(key) => write!(f, "the key {key:?} is taken by another item"),
            Self::Expired => f.write_str("the lease of an item expired: it is delivered again"),
            Self::Broken => f.write_str("after a failed or dropped call it can only be aborted"),
            Self::Ended => f.write_str("the task of the call was stopped"),
            Self::OtherTransaction => f.write_str("the item belongs to another transaction"),
            Self::NotInstalled(schema) => {
                write!(
                    f,
                    "the schema {schema:?} has no tables: install() creates them"
                )
            }
            Self::Version { found, supported } => {
                write!(
                    f,
                    "the tables have version {found}, this program reads {supported}"
                )
            }
        }
    }
}

/// What to do about an error of a pooler.
const POOLER: &str =
    ": for a pooler that gives each transaction another session, see Options::transaction_pooling; \
    pgbouncer in session mode needs ignore_startup_parameters = options";

/// Whether a pooler of transactions refused the settings of a session, or a statement was prepared in another session.
fn is_of_pooler(error: &DbError) -> bool {
    let code = error.code();
    *code == SqlState::DUPLICATE_PSTATEMENT
        || *code == SqlState::INVALID_SQL_STATEMENT_NAME
        || *code == SqlState::PROTOCOL_VIOLATION && error.message().contains("startup parameter")
}

/// The text of the server, if it sent one.
fn text(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(server) => {
            let hint = if is_of_pooler(server) { POOLER } else { "" };
            format!("{server} ({}){hint}", server.code().code())
        }
        None => match std::error::Error::source(error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        },
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Database(error) => Some(&**error),
            #[cfg(feature = "sqlx")]
            Self::Sqlx(error) => Some(&**error),
            Self::Codec(error) => Some(error),
            _ => None,
        }
    }
}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.code().map(SqlState::code) {
            Some(EXPIRED) => Self::Expired,
            Some(DUPLICATE) => {
                let detail = error.as_db_error().and_then(DbError::detail);
                Self::Duplicate(detail.unwrap_or_default().into())
            }
            _ => Self::Database(Arc::new(error)),
        }
    }
}

#[cfg(feature = "sqlx")]
impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        let server = error.as_database_error();
        let server = server.and_then(|error| error.try_downcast_ref::<PgDatabaseError>());
        match server.filter(|error| error.code() == DUPLICATE) {
            Some(server) => Self::Duplicate(server.detail().unwrap_or_default().into()),
            None => Self::Sqlx(Arc::new(error)),
        }
    }
}

impl From<deadpool_postgres::PoolError> for Error {
    fn from(error: deadpool_postgres::PoolError) -> Self {
        match error {
            deadpool_postgres::PoolError::Backend(error) => error.into(),
            error => Self::Pool(error.to_string().into()),
        }
    }
}

impl From<CodecError> for Error {
    fn from(error: CodecError) -> Self {
        Self::Codec(error)
    }
}
