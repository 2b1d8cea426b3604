//! One entry of the tree: its type and its contents.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use super::tally::{Count, Kind};

const CHUNK: usize = 64 * 1024;

/// Reads the entry at `path`, and passes the children of a directory to `push`.
///
/// Opens only directories and regular files: a pipe would block, a symbolic link could lead out of the tree. Reads a
/// file only up to its length: a file that keeps growing would never end, nor would some files of `/proc`, which have
/// length 0.
pub(crate) fn visit(path: &Path, push: &mut dyn FnMut(PathBuf)) -> io::Result<Kind> {
    let kind = fs::symlink_metadata(path)?.file_type();
    if kind.is_dir() {
        for child in fs::read_dir(path)? {
            push(child?.path());
        }
        Ok(Kind::Directory)
    } else if kind.is_file() {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        count(file.take(length)).map(Kind::File)
    } else if kind.is_symlink() {
        Ok(Kind::Symlink)
    } else {
        Ok(Kind::Other)
    }
}

fn count(file: impl Read) -> io::Result<Count> {
    let mut counter = Counter::default();
    io::copy(&mut BufReader::with_capacity(CHUNK, file), &mut counter)?;
    Ok(Count {
        files: 1,
        lines: counter.lines,
        bytes: counter.bytes,
    })
}

/// Counts the data written to it.
#[derive(Default)]
struct Counter {
    lines: u64,
    bytes: u64,
}

impl Write for Counter {
    fn write(&mut self, chunk: &[u8]) -> io::Result<usize> {
        self.lines += chunk
            .iter()
            .map(|&byte| u64::from(byte == b'\n'))
            .sum::<u64>();
        self.bytes += chunk.len() as u64;
        Ok(chunk.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Has length 0, and about 256 GiB of content.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_without_an_end_is_as_long_as_it_says() {
        let path = Path::new("/proc/self/pagemap");
        let kind = visit(path, &mut |_| unreachable!("it is a file"));
        let expected = Count {
            files: 1,
            ..Count::default()
        };
        assert_eq!(kind.unwrap(), Kind::File(expected));
    }

    struct Broken;

    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::InvalidData.into())
        }
    }

    #[test]
    fn content_longer_than_a_chunk_is_counted_whole() {
        let lines = 3 * CHUNK as u64;
        let counted = count(io::repeat(b'\n').take(lines).chain(&b"end"[..])).unwrap();
        let expected = Count {
            files: 1,
            lines,
            bytes: lines + 3,
        };
        assert_eq!(counted, expected);
    }

    #[test]
    fn a_read_that_fails_half_way_fails_the_count() {
        let error = count((&b"some\nlines\n"[..]).chain(Broken)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
