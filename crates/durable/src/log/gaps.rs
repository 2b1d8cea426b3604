//! Reads damaged journals: all intact batches, including those after a damaged one.
//!
//! Each batch has its own checksum, so an intact batch is valid whatever precedes it. A gap before it means only that other
//! batches are missing; the items that it removes stay removed.
//!
//! A damaged batch with an intact end is skipped. Otherwise the search goes on at the next place that looks like the start of a
//! batch. The numbers of batches have no checksums: a number that is not between its neighbours is replaced, since the batches
//! are ordered by their places in the journals.

use super::journal::{self, Reader, RowChange, ITEM, MOST_BATCHES, START, ZEROS};
use std::collections::BTreeSet;
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
                let changes = reader.changes();
                let owned = |(table, key, value): (u64, &[u8], Option<&[u8]>)| {
                    (table, key.to_vec(), value.map(<[u8]>::to_vec))
                };
                changes.map(owned).for_each(&mut change);
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

    /// How many acknowledged groups cannot be read: those between the groups in the journals, and those after `tables`, the last
    /// group that the tables are known to have. Earlier groups of the journals may not be in all tables.
    pub(super) fn missing(&self, tables: Option<u64>, acknowledged: u64) -> u64 {
        let batches = self.0.iter().flat_map(|(_, batches)| batches);
        let groups: BTreeSet<_> = batches.filter_map(|batch| batch.group).collect();
        let after = tables.map(|last| last + 1).into_iter();
        let first = after.chain(groups.first().copied()).min();
        let first = first.unwrap_or(acknowledged + 1);
        let last = groups.last().copied().unwrap_or(0).max(acknowledged);
        (last + 1)
            .saturating_sub(first)
            .saturating_sub(groups.len() as u64)
    }
}

/// How many bytes are read in vain for each byte of a journal at most: items may look like starts of batches.
const VAIN: u64 = 64;

fn batches(reader: &mut Reader) -> io::Result<Vec<Batch>> {
    let (mut batches, mut vain) = (Vec::new(), 0);
    loop {
        let start = reader.at();
        if let Some(number) = reader.batch()? {
            batches.push(Batch {
                place: start..reader.at(),
                number,
                group: reader.group(),
            });
            continue;
        }
        vain += reader.at() - start + ZEROS.len() as u64;
        let from = reader.wrong_end.unwrap_or(start + 1);
        match next_start(reader.file(), from)? {
            Some(next) if vain / VAIN <= reader.len() => reader.seek(next)?,
            _ => return Ok(batches),
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

    /// Each part looks like the start of a batch that the later ones belong to.
    #[test]
    fn many_apparent_starts_are_read_once() {
        const PARTS: usize = 4_000;
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut part = vec![START, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        let mut item = [0; 21];
        (item[0], item[13], item[17]) = (ITEM, 13, 13);
        part.extend(item);
        std::fs::write(file.path(), part.repeat(PARTS)).unwrap();
        let mut reader = Reader::open(file.path()).unwrap();
        assert!(batches(&mut reader).unwrap().is_empty());
        let most = 2 * VAIN * reader.len();
        assert!(reader.read <= most, "{} of {most}", reader.read);
    }

    #[test]
    fn a_group_is_missing_if_it_is_neither_in_the_journals_nor_before_them() {
        let readable = |groups: &[u64]| {
            let batch = |group: &u64| Batch {
                place: 0..0,
                number: *group,
                group: Some(*group),
            };
            Readable(vec![(PathBuf::new(), groups.iter().map(batch).collect())])
        };
        assert_eq!(readable(&[4, 5, 8]).missing(Some(3), 8), 2);
        assert_eq!(readable(&[4, 5, 8]).missing(Some(3), 9), 3);
        assert_eq!(readable(&[4, 5, 8]).missing(Some(2), 8), 3);
        // The row of the store was flushed, other rows perhaps not.
        assert_eq!(readable(&[4, 5, 8]).missing(Some(8), 8), 2);
        // It cannot be read.
        assert_eq!(readable(&[1_004, 1_006]).missing(None, 1_006), 1);
        assert_eq!(readable(&[]).missing(Some(3), 5), 2);
        assert_eq!(readable(&[]).missing(None, 5), 0);
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
