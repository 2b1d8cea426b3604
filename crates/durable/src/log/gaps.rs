//! Journals with gaps: all batches that can be read, those behind the first one that cannot too.
//!
//! Each batch has a checksum of its own, so one that can be read is as it was written, whatever is before it. What it
//! removes was removed, so nothing of that comes back; that its place is behind a gap says only that others are missing.
//!
//! A batch that cannot be read but has its end is skipped. Otherwise the next one begins where something looks like its start
//! and can be read as a whole. The numbers of batches have no checksums: one that is not between those before and after it gets
//! another, since the order of the batches is that in the journals.

use super::journal::{self, Reader, RowChange, ITEM, MOST_BATCHES, START, ZEROS};
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The start of a batch: its tag, how many changes it has, its number, and the tag of the first change.
const HEAD: usize = 14;
/// Where the number is in it.
const NUMBER: Range<usize> = 5..13;

/// A batch that can be read.
struct Batch {
    place: Range<u64>,
    number: u64,
    group: Option<u64>,
}

/// The journals of a directory, as far as they can be read.
pub(crate) struct Readable(Vec<(PathBuf, Vec<Batch>)>);

impl Readable {
    pub(crate) fn find(directory: &Path) -> io::Result<Self> {
        let mut journals = Vec::new();
        for path in journal::paths(directory)? {
            let batches = batches(&mut Reader::open(&path)?)?;
            journals.push((path, batches));
        }
        let batches = journals.iter_mut().flat_map(|(_, batches)| batches);
        let mut numbers: Vec<_> = batches.map(|batch| &mut batch.number).collect();
        put_in_order(&mut numbers);
        Ok(Self(journals))
    }

    /// Visits the changes, in their order.
    pub(crate) fn replay(&self, mut change: impl FnMut(RowChange)) -> io::Result<()> {
        for (path, batches) in &self.0 {
            let mut reader = Reader::open(path)?;
            for batch in batches {
                reader.seek(batch.place.start)?;
                reader.batch()?;
                reader.changes.drain(..).for_each(&mut change);
            }
        }
        Ok(())
    }

    /// Writes them to another directory, without gaps.
    pub(super) fn copy(&self, to: &Path) -> io::Result<()> {
        for (path, batches) in &self.0 {
            let from = File::open(path)?;
            let to = File::create(to.join(path.file_name().unwrap_or_default()))?;
            let mut to = BufWriter::new(to);
            for batch in batches {
                let len = batch.place.end - batch.place.start;
                let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
                from.read_exact_at(&mut bytes, batch.place.start)?;
                bytes[NUMBER].copy_from_slice(&batch.number.to_le_bytes());
                to.write_all(&bytes)?;
            }
            to.flush()?;
        }
        Ok(())
    }

    /// How many of the acknowledged groups after one cannot be read.
    pub(super) fn missing(&self, after: u64, acknowledged: u64) -> u64 {
        let batches = self.0.iter().flat_map(|(_, batches)| batches);
        let groups: HashSet<_> = batches.filter_map(|batch| batch.group).collect();
        let there = groups.iter().filter(|group| **group > after);
        let last = groups.iter().copied().max().unwrap_or(0).max(acknowledged);
        last.saturating_sub(after)
            .saturating_sub(there.count() as u64)
    }
}

fn batches(reader: &mut Reader) -> io::Result<Vec<Batch>> {
    let mut batches = Vec::new();
    loop {
        let start = reader.at();
        if let Some(number) = reader.batch()? {
            batches.push(Batch {
                place: start..reader.at(),
                number,
                group: journal::group(&reader.changes),
            });
            continue;
        }
        let from = reader.wrong_end.unwrap_or(start + 1);
        match next_start(reader.file(), from)? {
            Some(next) => reader.seek(next)?,
            None => return Ok(batches),
        }
    }
}

/// The next place that looks like the start of a batch.
fn next_start(file: &File, mut from: u64) -> io::Result<Option<u64>> {
    let mut part = [0; ZEROS.len()];
    loop {
        let len = file.read_at(&mut part, from)?;
        if len < HEAD {
            return Ok(None);
        }
        let part = &part[..len];
        let mut heads = part.windows(HEAD);
        let found = if *part == ZEROS[..len] {
            None
        } else {
            heads
                .position(|head| head[0] == START && head[HEAD - 1] == ITEM && head[1..5] != [0; 4])
        };
        if let Some(found) = found {
            return Ok(Some(from + found as u64));
        }
        from += (len - HEAD + 1) as u64;
    }
}

/// Changes the numbers that are not between those before and after them.
fn put_in_order(numbers: &mut [&mut u64]) {
    let mut last = None;
    for at in 0..numbers.len() {
        let (number, next) = (*numbers[at], numbers.get(at + 1).map(|next| **next));
        let is_after = last.is_none_or(|last| number > last) && number <= MOST_BATCHES;
        // If the next one would be right without this one, this one is not.
        let is_ahead =
            next.is_some_and(|next| next <= number && last.is_none_or(|last| next > last));
        let following = || next.map_or(0, |next| next.saturating_sub(1));
        if !is_after || is_ahead {
            *numbers[at] = last.map_or_else(following, |last| last + 1);
        }
        last = Some(*numbers[at]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(mut numbers: Vec<u64>) -> Vec<u64> {
        put_in_order(&mut numbers.iter_mut().collect::<Vec<_>>());
        numbers
    }

    #[test]
    fn a_wrong_number_becomes_one_between_its_neighbours() {
        assert_eq!(ordered(vec![5, 6, 8]), [5, 6, 8]);
        assert_eq!(ordered(vec![5, 900, 7, 8]), [5, 6, 7, 8]);
        assert_eq!(ordered(vec![5, 6, 2, 8]), [5, 6, 7, 8]);
        assert_eq!(ordered(vec![900, 6, 7]), [5, 6, 7]);
        assert_eq!(ordered(vec![5, 6, 2]), [5, 6, 7]);
        assert_eq!(ordered(vec![5, 6, u64::MAX]), [5, 6, 7]);
    }
}
