//! The board, asked as a browser would.

mod attacks;
mod changes;
mod client;
#[cfg(feature = "postgres")]
mod database;
#[cfg(feature = "durable")]
mod disk;
mod live;
mod pages;
#[cfg(feature = "postgres")]
#[allow(dead_code)] // it has what the tests of that crate need
#[path = "../../../postgres/tests/it/server.rs"]
mod server;
mod slow;
