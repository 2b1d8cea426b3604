//! Numbers in ranges.
//!
//! In the table of the items each queue may have a row of those of its items that are gone, whose rows may be left. It is there and not in
//! that of the queues, so that a part of the tables does not have one without the other, if others are damaged.

use super::Key;
use serde::{Deserialize, Serialize};
use std::ops::{Range, RangeInclusive};

/// The byte behind the greatest key of a queue in that of the row. Tombstones have a smaller one.
const GONE: u8 = 2;

/// The key of the row of a queue that has the items that are gone.
pub(crate) fn gone_key(queue: u32) -> [u8; 13] {
    let mut key = [GONE; 13];
    let id = u64::MAX;
    key[..12].copy_from_slice(&Key { queue, id }.to_bytes());
    key
}

/// Numbers in ranges, in ascending order: others are between two of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ranges(Vec<Range<u64>>);

impl Ranges {
    /// Whether this is the key of such a row.
    pub(crate) fn is_key(key: &[u8]) -> bool {
        key.get(4..) == gone_key(0).get(4..)
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Range<u64>> {
        self.0.iter()
    }

    /// How many ranges there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// How many numbers there are.
    pub(crate) fn count(&self) -> u64 {
        self.iter().map(|range| range.end - range.start).sum()
    }

    pub(crate) fn contains(&self, number: u64) -> bool {
        self.contains_all(&(number..number.saturating_add(1)))
    }

    pub(crate) fn contains_all(&self, numbers: &Range<u64>) -> bool {
        let range = self.after(numbers.start).next();
        range.is_some_and(|range| range.start <= numbers.start && numbers.end <= range.end)
    }

    /// The ranges with this number or greater ones.
    fn after(&self, number: u64) -> impl Iterator<Item = &Range<u64>> {
        let first = self.0.partition_point(|range| range.end <= number);
        self.0[first..].iter()
    }

    /// The parts of a range that it has.
    pub(crate) fn within(&self, numbers: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let Range { start, end } = numbers;
        let ranges = self.after(start).take_while(move |range| range.start < end);
        ranges.map(move |range| range.start.max(start)..range.end.min(end))
    }

    /// The parts of a range that it lacks, except that of each range some of the last numbers may be among them: not those before
    /// `last_of` of its end.
    pub(crate) fn gaps(
        &self,
        numbers: RangeInclusive<u64>,
        last_of: impl Fn(u64) -> u64,
    ) -> Vec<RangeInclusive<u64>> {
        let (mut from, to) = numbers.into_inner();
        let mut gaps = Vec::new();
        for range in self.after(from).take_while(|range| range.start <= to) {
            if range.start > from {
                gaps.push(from..=range.start - 1);
            }
            from = from.max(range.start).max(last_of(range.end));
        }
        if from <= to {
            gaps.push(from..=to);
        }
        gaps
    }

    /// The end of the range before these numbers, and the beginning of the one after them.
    pub(crate) fn around(&self, numbers: &Range<u64>) -> (Option<u64>, Option<u64>) {
        let after = self.0.partition_point(|range| range.start < numbers.end);
        let before = self.0.partition_point(|range| range.end <= numbers.start);
        let before = before.checked_sub(1).map(|before| self.0[before].end);
        (before, self.0.get(after).map(|range| range.start))
    }

    /// Whether a range has one of these numbers, or is next to them.
    pub(crate) fn touches(&self, numbers: &Range<u64>) -> bool {
        let first = self.0.partition_point(|range| range.end < numbers.start);
        let range = self.0.get(first);
        range.is_some_and(|range| range.start <= numbers.end)
    }

    pub(crate) fn add(&mut self, numbers: Range<u64>) {
        let first = self.0.partition_point(|range| range.end < numbers.start);
        let after = self.0.partition_point(|range| range.start <= numbers.end);
        let known = &self.0[first..after];
        let start = known.first().map_or(numbers.start, |range| range.start);
        let end = known.last().map_or(numbers.end, |range| range.end);
        let joined = start.min(numbers.start)..end.max(numbers.end);
        self.0.splice(first..after, [joined]);
    }

    pub(crate) fn remove(&mut self, numbers: &Range<u64>) {
        let first = self.0.partition_point(|range| range.end <= numbers.start);
        let after = self.0.partition_point(|range| range.start < numbers.end);
        let Some(known) = self.0.get(first..after).filter(|known| !known.is_empty()) else {
            return;
        };
        let [start, end] = [known[0].start, known[known.len() - 1].end];
        let left = [start..numbers.start, numbers.end..end];
        let left = left.into_iter().filter(|range| range.start < range.end);
        self.0.splice(first..after, left);
    }
}

#[cfg(test)]
mod tests {
    use super::Ranges;
    use std::collections::BTreeSet;

    const MOST: u64 = 24;

    fn mix(number: &mut u64) -> u64 {
        *number = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        *number >> 33
    }

    #[test]
    fn they_are_sets_of_numbers() {
        let mut random = 1;
        let (mut ranges, mut model) = (Ranges::default(), BTreeSet::new());
        for _ in 0..20_000 {
            let start = mix(&mut random) % MOST;
            let numbers = start..start + 1 + mix(&mut random) % 4;
            let is_next = |number: &u64| numbers.start <= *number + 1 && *number <= numbers.end;
            assert_eq!(ranges.touches(&numbers), model.iter().any(is_next));
            let has_all = numbers.clone().all(|number| model.contains(&number));
            assert_eq!(ranges.contains_all(&numbers), has_all);
            if mix(&mut random).is_multiple_of(2) {
                ranges.add(numbers.clone());
                model.extend(numbers.clone());
            } else {
                ranges.remove(&numbers);
                model.retain(|number| !numbers.contains(number));
            }
            assert!(ranges.iter().all(|range| !range.is_empty()));
            let are_apart = |(one, other): (&std::ops::Range<u64>, _)| one.end < other;
            let starts = ranges.iter().skip(1).map(|range| range.start);
            assert!(ranges.iter().zip(starts).all(are_apart), "{ranges:?}");
            assert!(ranges.iter().cloned().flatten().eq(model.iter().copied()));
            assert_eq!(ranges.count(), model.len() as u64);

            let within = ranges.within(numbers.clone()).flatten();
            let known = model.range(numbers.clone()).copied();
            assert!(within.eq(known));
            let lacks = |number: &u64| !model.contains(number);
            let gaps = ranges.gaps(2..=MOST, |end| end).into_iter().flatten();
            assert!(gaps.eq((2..=MOST).filter(lacks)), "{ranges:?}");
            // With the last two numbers of each range.
            let gaps = ranges.gaps(2..=MOST, |end| end - 2).into_iter().flatten();
            let is_last = |number: &u64| lacks(&(number + 1)) || lacks(&(number + 2));
            let expected = (2..=MOST).filter(|number| lacks(number) || is_last(number));
            assert!(gaps.eq(expected), "{ranges:?}");
            let (before, after) = ranges.around(&numbers);
            let first = model.range(..numbers.start).next_back();
            if lacks(&numbers.start) && first.is_none_or(|first| *first < numbers.start) {
                assert_eq!(before, first.map(|first| first + 1));
            }
            if lacks(&(numbers.end - 1)) {
                assert_eq!(after, model.range(numbers.end..).next().copied());
            }
        }
    }
}
