//! The record of a process: a file with a line for each step, written before the next step.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

/// A step of a process. Consumers have numbers in their process, and items are those of one producer: that of their process.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum Step {
    /// Items from `first` on are to be pushed.
    Push {
        first: i64,
        count: i64,
    },
    Pushed {
        first: i64,
        count: i64,
    },
    /// The consumer has got an item.
    Popped {
        consumer: usize,
        producer: i64,
        seq: i64,
        attempts: u32,
    },
    /// The transaction with this item was committed.
    Committed {
        producer: i64,
        seq: i64,
    },
}

pub(crate) struct Record(File);

impl Record {
    pub(crate) fn create(path: &Path) -> Self {
        let file = OpenOptions::new().create_new(true).append(true).open(path);
        Self(file.expect("a new file"))
    }

    /// Writes a step, in one call, so that a kill leaves whole lines.
    pub(crate) fn write(&self, step: &Step) {
        let line = serde_json::to_string(step).expect("JSON") + "\n";
        (&self.0)
            .write_all(line.as_bytes())
            .expect("the file is written");
    }
}
