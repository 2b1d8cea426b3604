#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

mod board;
#[cfg(feature = "durable")]
mod durable;
mod history;
mod inspect;
mod memory;
#[cfg(feature = "postgres")]
mod postgres;
mod serve;
mod web;

pub use board::Board;
#[cfg(feature = "durable")]
pub use durable::{InStore, OnDisk};
pub use inspect::{
    Change, Counts, Entry, Error, Holder, Inspect, Page, Pick, Reply, Search, Source, Verb, PAGE,
};
pub use memory::InMemory;
#[cfg(feature = "postgres")]
pub use postgres::InPostgres;
pub use serve::serve;
pub use web::Logged;
