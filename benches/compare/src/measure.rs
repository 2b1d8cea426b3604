//! Rounds: each subject of a workload runs once in each, in an order that rotates.

use crate::calls::{self, Calls, KINDS};
use crate::peers::{Ends, Peer};
use crate::results::{Row, Table};
use crate::tally::{Payload, Tally};
use crate::watchdog::Watchdog;

/// One run of one subject.
pub(crate) struct Round {
    /// A value for each column of the workload.
    pub(crate) values: Vec<f64>,
    pub(crate) sent: Tally,
    pub(crate) received: Tally,
    /// The system calls of all threads, if they were counted.
    pub(crate) calls: Calls,
}

impl Round {
    pub(crate) fn new(values: Vec<f64>, sent: Tally, received: Tally) -> Self {
        Self {
            values,
            sent,
            received,
            calls: Calls::default(),
        }
    }
}

/// A queue in a workload.
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    pub(crate) ends: Ends,
    round: Box<dyn FnMut() -> Round>,
}

impl Subject {
    pub(crate) fn new(name: &'static str, round: impl FnMut() -> Round + 'static) -> Self {
        Self {
            name,
            ends: Ends::Mpmc,
            round: Box::new(round),
        }
    }

    pub(crate) fn of<P: Peer<T>, T: Payload>(round: impl FnMut() -> Round + 'static) -> Self {
        Self {
            ends: P::ENDS,
            ..Self::new(P::NAME, round)
        }
    }
}

/// How often the subjects of a workload run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// In all rounds, after one that is not measured.
    Rounds,
    /// Once: a value that hardly varies, or takes seconds to measure.
    Once,
}

pub(crate) struct Workload {
    pub(crate) name: String,
    pub(crate) unit: &'static str,
    /// What the values of a round are; one without a name, if there is only one.
    pub(crate) columns: &'static [&'static str],
    pub(crate) repeat: Repeat,
    /// Whether the system calls of its rounds are shown.
    pub(crate) calls: bool,
    /// Opens the queues.
    pub(crate) subjects: Box<dyn FnOnce() -> Vec<Subject>>,
}

impl Workload {
    /// A workload measured in nanoseconds per item.
    pub(crate) fn new(
        name: impl Into<String>,
        subjects: impl FnOnce() -> Vec<Subject> + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            unit: "ns",
            columns: &[""],
            repeat: Repeat::Rounds,
            calls: false,
            subjects: Box::new(subjects),
        }
    }

    pub(crate) fn columns(self, columns: &'static [&'static str]) -> Self {
        Self { columns, ..self }
    }

    pub(crate) fn unit(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    pub(crate) fn once(self) -> Self {
        let repeat = Repeat::Once;
        Self { repeat, ..self }
    }

    /// Shows the system calls too, where they are counted.
    pub(crate) fn with_calls(self) -> Self {
        let calls = calls::COUNTED;
        Self { calls, ..self }
    }

    /// Runs all rounds. A subject that loses items, or invents some, is out from then on.
    pub(crate) fn run(self, rounds: usize, watchdog: &Watchdog) -> Vec<Table> {
        let mut running: Vec<_> = (self.subjects)().into_iter().map(Running::new).collect();
        let (warm_up, rounds) = match self.repeat {
            Repeat::Rounds => (1, rounds),
            Repeat::Once => (0, 1),
        };
        for round in 0..warm_up + rounds {
            let first = round % running.len();
            for place in 0..running.len() {
                let at = (first + place) % running.len();
                watchdog.watch(&self.name, running[at].subject.name);
                running[at].run(round >= warm_up);
            }
        }
        watchdog.rest();
        let columns = self.columns.iter().enumerate();
        columns
            .map(|(at, column)| Table {
                workload: match *column {
                    "" => self.name.clone(),
                    column => format!("{}: {column}", self.name),
                },
                unit: self.unit,
                rows: running
                    .iter()
                    .map(|subject| subject.row(at, self.calls))
                    .collect(),
            })
            .collect()
    }
}

/// A subject, and what its rounds have shown.
struct Running {
    subject: Subject,
    values: Vec<Vec<f64>>,
    /// For 1,000 items.
    calls: Vec<[f64; KINDS]>,
    loss: Option<String>,
}

impl Running {
    fn new(subject: Subject) -> Self {
        Self {
            subject,
            values: Vec::new(),
            calls: Vec::new(),
            loss: None,
        }
    }

    fn run(&mut self, measured: bool) {
        if self.loss.is_some() {
            return;
        }
        let Round {
            values,
            sent,
            received,
            calls,
        } = (self.subject.round)();
        if sent != received {
            self.loss = Some(match received.count {
                count if count == sent.count => format!("other items than the {count} sent"),
                count => format!("{count} of {} items", sent.count),
            });
        } else if measured {
            self.values.push(values);
            self.calls.push(calls.per_thousand(sent.count));
        }
    }

    fn row(&self, column: usize, shown: bool) -> Row {
        let samples = self.values.iter().map(|values| values[column]).collect();
        Row {
            subject: self.subject.name,
            ends: self.subject.ends,
            samples,
            calls: self.calls.iter().copied().filter(|_| shown).collect(),
            loss: self.loss.clone(),
        }
    }
}
