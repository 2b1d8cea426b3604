//! Every public name, used once, in groups: what does not compile here is not there any more. What the names do is
//! tested elsewhere.

mod owned;
mod priorities;
mod queues;
mod transactions;
mod types;
mod verbs;
mod workers;
