//! What was measured, and its statistics.

use crate::calls::{self, KINDS};
use crate::peers::Ends;

/// The values of all subjects for one quantity of a workload. Less is better.
pub(crate) struct Table {
    pub(crate) workload: String,
    pub(crate) unit: &'static str,
    pub(crate) rows: Vec<Row>,
}

pub(crate) struct Row {
    pub(crate) subject: &'static str,
    pub(crate) ends: Ends,
    /// One value for each round.
    pub(crate) samples: Vec<f64>,
    /// The system calls of each round for 1,000 items, if they are shown.
    pub(crate) calls: Vec<[f64; KINDS]>,
    /// What was received instead of what was sent.
    pub(crate) loss: Option<String>,
}

/// The median, and the quartiles as the spread.
#[derive(Clone, Copy)]
pub(crate) struct Summary {
    pub(crate) lower: f64,
    pub(crate) median: f64,
    pub(crate) upper: f64,
}

impl Summary {
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let quartile = |quarters: usize| values[(values.len() - 1) * quarters / 4];
        Self {
            lower: quartile(1),
            median: quartile(2),
            upper: quartile(3),
        }
    }
}

impl Row {
    /// What the rounds came to, if the subject lost nothing.
    pub(crate) fn summary(&self) -> Option<Summary> {
        if self.loss.is_some() || self.samples.is_empty() {
            return None;
        }
        Some(Summary::of(self.samples.clone()))
    }

    pub(crate) fn median(&self) -> Option<f64> {
        self.summary().map(|summary| summary.median)
    }

    /// The median of the rounds for each kind of call.
    pub(crate) fn calls(&self) -> Option<[f64; KINDS]> {
        if self.loss.is_some() || self.calls.is_empty() {
            return None;
        }
        let of_kind = |kind: usize| self.calls.iter().map(|calls| calls[kind]).collect();
        Some(std::array::from_fn(|kind| {
            Summary::of(of_kind(kind)).median
        }))
    }

    /// It is this repository's queue, used in some way.
    pub(crate) fn own(&self) -> bool {
        self.subject.starts_with("requeue")
    }

    /// A peer that is compared; a ring for two threads is only shown.
    pub(crate) fn ranked_peer(&self) -> bool {
        !self.own() && self.ends != Ends::Spsc
    }
}

impl Table {
    pub(crate) fn row(&self, subject: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.subject == subject)
    }

    /// The subject of least median among those that `choose` accepts.
    pub(crate) fn best(&self, choose: impl Fn(&Row) -> bool) -> Option<(&'static str, f64)> {
        let rows = self.rows.iter().filter(|row| choose(row));
        let medians = rows.filter_map(|row| Some((row.subject, row.median()?)));
        medians.min_by(|(_, a), (_, b)| a.total_cmp(b))
    }

    /// Prints one line for each subject: the median, the quartiles, and the ratio of this repository's to the best
    /// ranked peer.
    pub(crate) fn print(&self) {
        let best = self.best(Row::ranked_peer);
        println!("\n{} [{}]", self.workload, self.unit);
        for row in &self.rows {
            let Some(Summary {
                lower,
                median,
                upper,
            }) = row.summary()
            else {
                let loss = row.loss.as_deref().unwrap_or("nothing");
                println!("  {:<28}LOST ITEMS: received {loss}", row.subject);
                continue;
            };
            print!(
                "  {:<28}{median:>12.1}  [{lower:.1}, {upper:.1}]",
                row.subject
            );
            match best {
                Some((peer, least)) if row.own() && least > 0.0 => {
                    println!("  {:.2} x {peer}", median / least);
                }
                _ if row.ends == Ends::Spsc => println!("  not ranked"),
                _ => println!(),
            }
        }
        self.print_calls();
    }

    /// The subjects whose system calls are shown.
    pub(crate) fn calls(&self) -> Vec<(&'static str, [f64; KINDS])> {
        let rows = self.rows.iter();
        rows.filter_map(|row| Some((row.subject, row.calls()?)))
            .collect()
    }

    fn print_calls(&self) {
        let calls = self.calls();
        if calls.is_empty() {
            return;
        }
        let (first, second): (Vec<_>, Vec<_>) = calls::NAMES
            .map(|name| name.rsplit_once(' ').unwrap_or(("", name)))
            .into_iter()
            .unzip();
        println!("  for 1,000 items:");
        for words in [first, second] {
            let words = words.iter().map(|word| format!("{word:>13}"));
            println!("  {:<22}{}", "", words.collect::<String>());
        }
        for (subject, numbers) in calls {
            let numbers = numbers.iter().map(|number| format!("{number:>13.2}"));
            println!("  {subject:<22}{}", numbers.collect::<String>());
        }
    }
}
