//! Runs sequences of operations against the sequential model.
//!
//! A repeatable smoke run, with long sequences from the start:
//!
//! ```text
//! cargo +nightly fuzz run operations -- -runs=20000 -seed=1 -len_control=0 -rss_limit_mb=2048
//! ```

#![no_main]

#[path = "../../tests/it/differential/model/mod.rs"]
mod model;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|case: model::Plain| model::run(&case));
