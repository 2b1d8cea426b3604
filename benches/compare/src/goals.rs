//! What this repository's queue should reach, and whether it does.

use crate::peers::Ends;
use crate::results::{Row, Table};

/// What a subject is compared with.
enum Against {
    /// The best queue with several senders and receivers.
    Mpmc,
    /// The best of these.
    Best(&'static [&'static str]),
    /// The same subject in the column of this name.
    Column(&'static str),
}

struct Goal {
    text: &'static str,
    /// In all tables whose names start so.
    tables: &'static [&'static str],
    subjects: &'static [&'static str],
    against: Against,
    at_most: f64,
}

const PLAIN: &str = "requeue";
const TRANSACTION: &str = "requeue, transaction";
const BULK: &str = "requeue, transaction, bulk";
const DIRECT: &str = "requeue, no handle";
const CROSSBEAM: &str = "crossbeam-channel";
const TOKENS: &str = "moodycamel, tokens";
const DEQUE: &str = "Mutex<VecDeque>";
const LARGE: &[&str] = &["items of 64 bytes", "items of 1,024 bytes"];
/// The peers that allocate as items come.
const UNBOUNDED: &[&str] = &[
    "SegQueue",
    CROSSBEAM,
    "Injector",
    "concurrent-queue",
    "flume",
    "kanal",
    "async-channel",
    DEQUE,
];
const STREAMS_AND_PAIRS: &[&str] = &["stream ", "pairs, "];

const GOALS: &[Goal] = &[
    Goal {
        text: "transactions of one item ahead of the plain operations of every MPMC peer",
        tables: STREAMS_AND_PAIRS,
        subjects: &[TRANSACTION],
        against: Against::Mpmc,
        at_most: 1.0,
    },
    Goal {
        text: "transactions of one item at most 1.5 x the plain operations of a handle",
        tables: STREAMS_AND_PAIRS,
        subjects: &[TRANSACTION],
        against: Against::Best(&[PLAIN]),
        at_most: 1.5,
    },
    Goal {
        text: "without a handle ahead of SegQueue",
        tables: STREAMS_AND_PAIRS,
        subjects: &[DIRECT],
        against: Against::Best(&["SegQueue"]),
        at_most: 1.0,
    },
    Goal {
        text: "batches ahead of the locked deque",
        tables: &["batches of "],
        subjects: &[PLAIN, TRANSACTION, BULK],
        against: Against::Best(&[DEQUE]),
        at_most: 1.0,
    },
    Goal {
        text: "batches by one call on one thread at most 1.5 x the locked deque",
        tables: &[
            "batches of 8, 1 ",
            "batches of 32, 1 ",
            "batches of 256, 1 ",
        ],
        subjects: &[PLAIN, BULK],
        against: Against::Best(&[DEQUE]),
        at_most: 1.5,
    },
    Goal {
        text: "batches by one call with 2P2C ahead of moodycamel's",
        tables: &["batches of 8, 2", "batches of 32, 2", "batches of 256, 2"],
        subjects: &[PLAIN, BULK],
        against: Against::Best(&[TOKENS]),
        at_most: 1.0,
    },
    Goal {
        text: "batches ahead of moodycamel's bulk operations",
        tables: &["batches of "],
        subjects: &[PLAIN, TRANSACTION, BULK],
        against: Against::Best(&[TOKENS]),
        at_most: 1.0,
    },
    Goal {
        text: "bounded no slower than crossbeam",
        tables: &["bounded, "],
        subjects: &[PLAIN, TRANSACTION],
        against: Against::Best(&[CROSSBEAM]),
        at_most: 1.0,
    },
    Goal {
        text: "a bounded pair on one thread no slower than ArrayQueue",
        tables: &["bounded, pairs, 1 thread"],
        subjects: &[PLAIN],
        against: Against::Best(&["ArrayQueue"]),
        at_most: 1.0,
    },
    Goal {
        text: "bounded or waiting transactions at most 1.25 x crossbeam",
        tables: &["bounded, trying", "bounded, never full", "waiting, "],
        subjects: &[TRANSACTION],
        against: Against::Best(&[CROSSBEAM]),
        at_most: 1.25,
    },
    Goal {
        text: "waiting no slower than crossbeam",
        tables: &["waiting, "],
        subjects: &[PLAIN, TRANSACTION],
        against: Against::Best(&[CROSSBEAM]),
        at_most: 1.0,
    },
    Goal {
        text: "round trips of threads no slower than the best of crossbeam and kanal",
        tables: &["round trip, 2 threads"],
        subjects: &[PLAIN],
        against: Against::Best(&[CROSSBEAM, "kanal"]),
        at_most: 1.0,
    },
    Goal {
        text: "half of the items at 10,000 a second arrive in at most 1.1 x crossbeam's time",
        tables: &["latency at 10,000 a second: p50"],
        subjects: &[PLAIN],
        against: Against::Best(&[CROSSBEAM]),
        at_most: 1.1,
    },
    Goal {
        text: "large items no slower than the best unbounded peer",
        tables: LARGE,
        subjects: &[PLAIN],
        against: Against::Best(UNBOUNDED),
        at_most: 1.0,
    },
    Goal {
        text: "large items at most 1.3 x ArrayQueue",
        tables: LARGE,
        subjects: &[PLAIN],
        against: Against::Best(&["ArrayQueue"]),
        at_most: 1.3,
    },
    Goal {
        text: "round trips of tasks no slower than tokio mpsc",
        tables: &["round trip, 2 tasks"],
        subjects: &[PLAIN],
        against: Against::Best(&["tokio mpsc"]),
        at_most: 1.0,
    },
    Goal {
        text: "idle handles cost at most 1.2 x",
        tables: &["2P2C beside idle handles: 10,000 handles"],
        subjects: &[PLAIN, TRANSACTION, DIRECT],
        against: Against::Column("2P2C beside idle handles: 4 handles"),
        at_most: 1.2,
    },
    Goal {
        text: "dropped handles cost at most 1.2 x",
        tables: &["push, pop, Empty after dropped handles: 2,000 handles"],
        subjects: &[PLAIN, TRANSACTION, DIRECT],
        against: Against::Column("push, pop, Empty after dropped handles: 1 handle"),
        at_most: 1.2,
    },
    Goal {
        text: "an item of a closed queue costs at most 5 x with 20 times as many handles and items",
        tables: &["closed drain: 2,000 handles"],
        subjects: &[
            PLAIN,
            "requeue, joint commit",
            "requeue, aborted items",
            "requeue, delayed items",
        ],
        against: Against::Column("closed drain: 100 handles"),
        at_most: 5.0,
    },
    Goal {
        text: "threads that have ended cost at most 1.2 x",
        tables: &["push, pop, Empty after ended threads: 10,000 threads"],
        subjects: &[PLAIN, DIRECT],
        against: Against::Column("push, pop, Empty after ended threads: 64 threads"),
        at_most: 1.2,
    },
    Goal {
        text: "threads that have ended keep at most 1.5 x the memory",
        tables: &["memory after ended threads: 10,000 threads"],
        subjects: &[PLAIN, DIRECT],
        against: Against::Column("memory after ended threads: 64 threads"),
        at_most: 1.5,
    },
    Goal {
        text: "a served waiter that is never polled costs others at most 1.2 x",
        tables: &["served waiter, push and pop: beside one"],
        subjects: &[PLAIN, TRANSACTION, DIRECT],
        against: Against::Column("served waiter, push and pop: without"),
        at_most: 1.2,
    },
    Goal {
        text: "fair by key no slower than the lock by hand",
        tables: &["fair, "],
        subjects: &["requeue, fair"],
        against: Against::Best(&["Mutex<HashMap>"]),
        at_most: 1.0,
    },
    Goal {
        text: "priorities no slower than the lock by hand",
        tables: &["priority, "],
        subjects: &["requeue, priority"],
        against: Against::Best(&["Mutex<BinaryHeap>"]),
        at_most: 1.0,
    },
];

/// A subject in a table, beside what it is compared with.
pub(crate) struct Comparison {
    table: String,
    subject: &'static str,
    against: &'static str,
    pub(crate) ratio: f64,
}

/// What came of a goal.
pub(crate) struct Outcome {
    pub(crate) text: &'static str,
    at_most: f64,
    /// A subject is compared with itself, whose ratio is of interest in any case.
    growth: bool,
    pub(crate) comparisons: Vec<Comparison>,
}

impl Outcome {
    fn is_missed(&self, comparison: &Comparison) -> bool {
        comparison.ratio > self.at_most
    }

    fn missed(&self) -> impl Iterator<Item = &Comparison> {
        let all = self.comparisons.iter();
        all.filter(|comparison| self.is_missed(comparison))
    }

    fn shown(&self) -> impl Iterator<Item = &Comparison> {
        let all = self.comparisons.iter();
        all.filter(|comparison| self.growth || self.is_missed(comparison))
    }

    pub(crate) fn verdict(&self) -> &'static str {
        match self.comparisons.len() {
            0 => "not measured",
            _ if self.missed().next().is_none() => "met",
            _ => "MISSED",
        }
    }
}

/// The outcomes of all goals.
pub(crate) fn outcomes(tables: &[Table]) -> Vec<Outcome> {
    let outcome = |goal: &Goal| Outcome {
        text: goal.text,
        at_most: goal.at_most,
        growth: matches!(goal.against, Against::Column(_)),
        comparisons: goal.comparisons(tables),
    };
    GOALS.iter().map(outcome).collect()
}

/// Prints for each goal whether it is met, all comparisons in which it is not, and how much all costs grow that must not.
pub(crate) fn print(tables: &[Table]) {
    println!("\ngoals, as ratios of medians");
    for outcome in outcomes(tables) {
        let all = outcome.comparisons.len();
        let met = all - outcome.missed().count();
        println!(
            "  {:<13}{} ({met} of {all})",
            outcome.verdict(),
            outcome.text
        );
        for Comparison {
            table,
            subject,
            against,
            ratio,
        } in outcome.shown()
        {
            println!("{:>15}{table}: {subject} is {ratio:.2} x {against}", "");
        }
    }
}

impl Goal {
    fn comparisons(&self, tables: &[Table]) -> Vec<Comparison> {
        let named = |table: &&Table| {
            let mut names = self.tables.iter();
            names.any(|name| table.workload.starts_with(name))
        };
        let pairs = tables.iter().filter(named);
        let pairs =
            pairs.flat_map(|table| self.subjects.iter().map(move |subject| (table, subject)));
        pairs
            .filter_map(|(table, subject)| {
                let own = table.row(subject)?;
                let (against, other) = self.other(own, table, tables)?;
                Some(Comparison {
                    table: table.workload.clone(),
                    subject: own.subject,
                    against,
                    ratio: own.median()? / other,
                })
            })
            .collect()
    }

    fn other(&self, own: &Row, table: &Table, tables: &[Table]) -> Option<(&'static str, f64)> {
        match &self.against {
            Against::Mpmc => table.best(|row| !row.own() && row.ends == Ends::Mpmc),
            Against::Best(names) => table.best(|row| names.contains(&row.subject)),
            Against::Column(name) => {
                let mut tables = tables.iter();
                let table = tables.find(|table| table.workload == *name)?;
                Some(("with few", table.row(own.subject)?.median()?))
            }
        }
    }
}
