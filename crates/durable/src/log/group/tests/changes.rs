//! The changes of a random commit.

use super::random::Random;
use super::{Case, Item, Rows, CHUNKS, DUE};
use crate::batch::{Batch, Change, Run};
use crate::format::{begin_value, Front, Key, Layout, LetterRow, Mark, Schedule};
use std::iter;

pub(super) fn push(batch: &mut Batch, key: Key, (front, bytes): &Item) {
    let encode = |bytes: &Vec<u8>, values: &mut Vec<u8>| {
        values.extend_from_slice(bytes);
        Ok(())
    };
    let items = iter::once(bytes);
    batch.push_values(*front, items, encode).unwrap();
    Run::add(&mut batch.pushes, key, 1);
}

pub(super) fn remove(batch: &mut Batch, key: Key) {
    Run::add(&mut batch.removes, key, 1);
}

pub(super) fn change(batch: &mut Batch, change: Change) {
    batch.others.push(change);
}

impl Case {
    /// A random key of a queue.
    fn key<R>(random: &mut Random, rows: &Rows<R>, queue: u32) -> Option<Key> {
        let keys: Vec<_> = rows.keys().filter(|key| key.queue == queue).collect();
        (!keys.is_empty()).then(|| *keys[random.below(keys.len())])
    }

    fn schedule(&mut self) -> Option<Schedule> {
        let priority = self.random.pick(&[None, None, Some(0), Some(u16::MAX)])?;
        let due = self.random.pick(&[None, Some(0), Some(u64::MAX)]);
        Some(Schedule { priority, due })
    }

    fn item(&mut self) -> Item {
        let len = self.random.pick(&[0, 1, 7, 40, 2_000]);
        let bytes = (0..len).map(|_| u8::try_from(self.random.below(256)).unwrap());
        let bytes = bytes.collect();
        let front = Front {
            schedule: self.schedule(),
            pushed: self.random.pick(&[None, Some(u64::MAX - 1)]),
        };
        (front, bytes)
    }

    pub(super) fn push(&mut self, batch: &mut Batch, queue: u32) {
        let (in_chunks, schedule) = (queue == CHUNKS || queue == DUE, self.schedule());
        let few = self.random.percent(if in_chunks { 30 } else { 90 });
        let most: u64 = if few { 5 } else { 60 };
        let count = 1 + self.random.below(most);
        let layout = if in_chunks {
            self.layout
        } else {
            Layout::Alone
        };
        for id in self.ids(count) {
            let (key, mut item) = (Key { queue, id }, self.item());
            if queue == DUE && self.random.percent(90) {
                item.0.schedule = schedule;
            }
            push(batch, key, &item);
            self.model.items.insert(key, item);
            if layout == Layout::Hot {
                self.hot.insert(key);
            }
        }
        let runs = batch.pushes.iter_mut();
        runs.for_each(|run| run.layout = layout);
    }

    /// Reads the chunk of an item that is to be changed, as a page does.
    fn know(&self, key: Key) {
        if self.hot.contains(&key) {
            return; // the log knows it already
        }
        let item = self.disk().item(key).unwrap();
        self.disk().know(item.and_then(|item| item.chunk).as_ref());
    }

    /// Another value, of an item that is there or one that is gone.
    pub(super) fn replace(&mut self, batch: &mut Batch, queue: u32) {
        let (_, bytes) = self.item();
        let mut value = Vec::new();
        begin_value(&mut value, Front::default());
        value.extend_from_slice(&bytes);
        if self.random.percent(20) {
            let mut gone = self.model.gone.iter().filter(|key| key.queue == queue);
            if let Some(key) = gone.next_back() {
                batch.append(&mut Batch::of_replacement(*key, value));
            }
        } else if let Some(key) = Self::key(&mut self.random, &self.model.items, queue) {
            self.know(key);
            batch.append(&mut Batch::of_replacement(key, value));
            self.model
                .items
                .entry(key)
                .and_modify(|item| item.1 = bytes);
        }
    }

    pub(super) fn remove(&mut self, batch: &mut Batch, queue: u32) {
        for _ in 0..=self.random.below(3) {
            if let Some(key) = Self::key(&mut self.random, &self.model.items, queue) {
                let run = self.random.pick(&[1, 1, 2, 5, 100]);
                let ids = (key.id..key.id + run).map(|id| Key { queue, id });
                for key in ids
                    .filter(|key| self.model.items.contains_key(key))
                    .collect::<Vec<_>>()
                {
                    self.know(key);
                    remove(batch, key);
                    self.model.remove(key);
                }
            }
        }
    }

    pub(super) fn mark(&mut self, batch: &mut Batch, queue: u32) {
        let Some(key) = Self::key(&mut self.random, &self.model.items, queue) else {
            return;
        };
        self.know(key);
        let mark = self.model.marks.entry(key).or_default();
        let attempts = mark.attempts + 1;
        match self.random.below(5) {
            0 => {
                // The last delivery, or one that another has followed.
                let undone = mark.attempts.saturating_sub(self.random.below(2));
                change(batch, Change::Undelivered(key, undone));
                mark.attempts -= u32::from(undone == mark.attempts && undone > 0);
            }
            1 => {
                change(batch, Change::Delivered(key, attempts));
                (mark.attempts, mark.delayed) = (attempts, None);
            }
            3 => {
                let error = "no".repeat(self.random.below(500));
                change(batch, Change::Failed(key, attempts, error.clone()));
                mark.attempts = attempts;
                mark.more.get_or_insert_default().error = Some(error);
            }
            2 => {
                change(batch, Change::Delayed(key, attempts, 7));
                (mark.attempts, mark.delayed) = (attempts, Some(7));
            }
            _ => {
                let schedule = self.random.pick(&[(1, None), (2, Some(5))]);
                let (priority, due) = schedule;
                let schedule = Schedule { priority, due };
                change(batch, Change::Rescheduled(key, schedule));
                mark.schedule = Some(schedule);
            }
        }
    }

    /// The window of a key begins, or ends.
    pub(super) fn window(&mut self, batch: &mut Batch, queue: u32) {
        let mut windows = self.model.marks.iter();
        let is_window = |(key, mark): &(&Key, &Mark)| {
            let recent = mark.more.as_ref().and_then(|more| more.recent);
            key.queue == queue && recent.is_some()
        };
        if let Some((&key, _)) = windows.find(is_window).filter(|_| self.random.percent(40)) {
            change(batch, Change::Unmark(key));
            self.model.marks.remove(&key);
        } else {
            let id = self.ids(1).start;
            let (key, mut mark) = (Key { queue, id }, Mark::default());
            change(batch, Change::Recent(key, 7, u128::MAX - 3));
            let more = mark.more.get_or_insert_default();
            more.recent = Some((7, u128::MAX - 3));
            self.model.marks.insert(key, mark);
        }
    }

    /// A mark of an item that was removed: written or not, but never a schedule.
    pub(super) fn mark_late(&mut self, batch: &mut Batch, queue: u32) {
        let gone = self.model.gone.iter().filter(|key| key.queue == queue);
        let Some(key) = gone.copied().last() else {
            return;
        };
        if self.random.percent(50) {
            change(batch, Change::Delivered(key, 1));
            self.model.late.insert(key);
        } else if !self.model.late.contains(&key) {
            change(batch, Change::Rescheduled(key, Schedule::default()));
        }
    }

    pub(super) fn unmark(&mut self, batch: &mut Batch, queue: u32) {
        let mut late = self.model.late.iter();
        if let Some(key) = late.find(|key| key.queue == queue).copied() {
            change(batch, Change::Unmark(key));
            self.model.late.remove(&key);
            self.model.gone.remove(&key);
        }
    }

    pub(super) fn bury(&mut self, batch: &mut Batch, queue: u32) {
        let Some(item) = Self::key(&mut self.random, &self.model.items, queue) else {
            return;
        };
        let letter = LetterRow {
            item: item.id,
            attempts: 1,
            reason: 0,
            error: self.random.percent(50).then(|| "no good".into()),
            died: 3,
            schedule: self.schedule(),
            item_bytes: self.model.items[&item].1.clone(),
        };
        let id = self.ids(1).start;
        let key = Key { queue, id };
        self.know(item);
        change(batch, Change::Bury(key, letter.clone()));
        self.model.remove(item);
        self.model.letters.insert(key, letter);
    }

    /// A dead letter is removed, and its item perhaps pushed again.
    pub(super) fn unbury(&mut self, batch: &mut Batch, queue: u32) {
        if let Some(key) = Self::key(&mut self.random, &self.model.letters, queue) {
            change(batch, Change::Unbury(key));
            self.model.letters.remove(&key);
            if self.random.percent(50) {
                self.push(batch, queue);
            }
        }
    }
}
