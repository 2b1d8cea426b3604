//! Uses every public name once, in groups: a removed name fails to compile. Their behaviour is tested elsewhere.

mod backend;
mod owned;
mod priorities;
mod queues;
mod transactions;
mod types;
mod verbs;
mod workers;
