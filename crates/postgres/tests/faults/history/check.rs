//! Compares the records of the processes with what was committed.

use super::process::Done;
use super::record::Step;
use crate::base::Mode;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

/// A producer and the number of its item.
type Item = (i64, i64);

#[derive(Default)]
pub(crate) struct Checker {
    /// Items to be pushed, and whether the push returned.
    pushed: BTreeMap<Item, bool>,
    /// What each consumer got, in its order: the item and its attempts.
    popped: HashMap<(i64, usize), Vec<(Item, u32)>>,
    committed: Vec<Item>,
}

impl Checker {
    pub(crate) fn read(folder: &Path) -> Self {
        let mut checker = Self::default();
        for file in fs::read_dir(folder).unwrap() {
            let file = file.unwrap();
            let process = file.file_name().to_str().unwrap().parse().unwrap();
            for line in fs::read_to_string(file.path()).unwrap().lines() {
                checker.take(process, &serde_json::from_str(line).unwrap());
            }
        }
        checker
    }

    fn take(&mut self, process: i64, step: &Step) {
        match *step {
            Step::Push { first, count } => {
                let items = (first..first + count).map(|seq| ((process, seq), false));
                self.pushed.extend(items);
            }
            Step::Pushed { first, count } => {
                let items = (first..first + count).map(|seq| ((process, seq), true));
                self.pushed.extend(items);
            }
            Step::Popped {
                consumer,
                producer,
                seq,
                attempts,
            } => {
                let popped = self.popped.entry((process, consumer)).or_default();
                popped.push(((producer, seq), attempts));
            }
            Step::Committed { producer, seq } => self.committed.push((producer, seq)),
        }
    }

    /// Up to `unrecorded` consumers may have ended between a pop and its record.
    pub(crate) fn check(&self, all: &[Done], mode: Mode, unrecorded: i64) {
        let done = self.exactly_once(all);
        Self::tickets_in_order(&done);
        self.attempts(&done, mode, unrecorded);
        if mode != Mode::Prefetched {
            self.in_order(mode, unrecorded); // what was prefetched and given back comes later
        }
    }

    /// What was pushed was done once, and nothing else was; a recorded commit took effect.
    pub(crate) fn exactly_once(&self, all: &[Done]) -> BTreeMap<Item, Done> {
        let mut done = BTreeMap::new();
        for one in all {
            let item = (one.job.producer, one.job.seq);
            assert!(done.insert(item, *one).is_none(), "{item:?} was done twice");
            assert!(self.pushed.contains_key(&item), "{item:?} was never pushed");
        }
        for (item, _) in self.pushed.iter().filter(|(_, returned)| **returned) {
            assert!(done.contains_key(item), "{item:?} is lost");
        }
        for item in &self.committed {
            assert!(done.contains_key(item), "the commit of {item:?} is lost");
        }
        done
    }

    /// The items of a producer have tickets in the order of their pushes.
    fn tickets_in_order(done: &BTreeMap<Item, Done>) {
        let items: Vec<_> = done.iter().collect();
        for pair in items.windows(2) {
            let [(before, first), (item, second)] = [pair[0], pair[1]];
            let ordered = before.0 != item.0 || first.ticket < second.ticket;
            assert!(ordered, "the tickets of {before:?} and {item:?}");
        }
    }

    /// Each delivery counts one more than those before, and the last one is the one that was committed.
    fn attempts(&self, done: &BTreeMap<Item, Done>, mode: Mode, unrecorded: i64) {
        let mut deliveries: HashMap<Item, Vec<u32>> = HashMap::new();
        for (item, attempts) in self.popped.values().flatten() {
            deliveries.entry(*item).or_default().push(*attempts);
        }
        let mut wrong = Vec::new();
        for (item, counted) in &mut deliveries {
            counted.sort_unstable();
            let twice = counted.windows(2).any(|pair| pair[0] == pair[1]);
            let last = done.get(item).expect("it is done").attempts;
            if twice || counted.iter().any(|attempt| *attempt > last) {
                wrong.push((*item, counted.clone(), last));
            }
        }
        let allowed = match mode {
            Mode::Locked => unrecorded, // a session ended after its claim, and its item was done elsewhere before it was counted
            Mode::Leased | Mode::Prefetched => 0, // each claim is counted
        };
        let count = i64::try_from(wrong.len()).unwrap();
        assert!(count <= allowed, "{mode:?}: attempts: {wrong:?}");
    }

    /// A consumer gets the items of each producer in their order, except those that were given back.
    fn in_order(&self, mode: Mode, unrecorded: i64) {
        let mut unexplained = Vec::new();
        for popped in self.popped.values() {
            let mut last: HashMap<i64, i64> = HashMap::new();
            for ((producer, seq), attempts) in popped {
                let last = last.entry(*producer).or_insert(-1);
                if seq < last && *attempts == 1 {
                    unexplained.push((*producer, *seq));
                }
                *last = *seq.max(last);
            }
        }
        let count = i64::try_from(unexplained.len()).unwrap();
        println!("{mode:?}: {count} items out of order, {unrecorded} allowed");
        assert!(
            count <= unrecorded,
            "{mode:?}: out of order: {unexplained:?}"
        );
    }
}
