//! Faults, against a real server: see `server`. After each of them nothing is lost, nothing is done twice, and the order is as
//! promised.

mod base;
mod calls;
mod child;
mod clocks;
mod conflicts;
mod crashes;
mod hanging;
mod history;
mod missed;
mod mixed;
mod names;
mod payloads;
mod poolers;
mod pools;
mod proxy;
mod restarts;
#[allow(dead_code, unreachable_pub)] // the other tests use more of it
#[path = "../it/server.rs"]
mod server;
mod terminated;
mod timeouts;
mod within;
