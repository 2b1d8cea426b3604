//! A database: its pool, and what the process shares.

mod connection;
mod in_turn;
mod options;
mod params;
mod postgres;
mod server;

pub(crate) use connection::{Connection, Manner, Owner};
pub use options::Options;
pub(crate) use params::{Param, Params};
pub use postgres::Postgres;
pub(crate) use postgres::{in_task, Shared};
pub(crate) use server::Server;
