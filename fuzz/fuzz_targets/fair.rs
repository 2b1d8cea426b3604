//! Runs sequences of operations on fair queues and plain ones against the sequential model.
//!
//! A repeatable smoke run, with long sequences from the start:
//!
//! ```text
//! cargo +nightly fuzz run fair -- -runs=20000 -seed=1 -len_control=0 -rss_limit_mb=2048
//! ```

#![no_main]

#[path = "../../tests/it/differential/model/mod.rs"]
mod model;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|case: model::Fair| model::run(&case));
