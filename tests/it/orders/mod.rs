//! Queues of other orders: fair by key, by priority and schedule, last in first out.

mod fair;
mod lifo;
mod own_queue;
mod priority;
mod retain;
mod schedule;
mod snapshot;
mod ttl;
mod unique;
mod unique_model;
mod unique_once;
