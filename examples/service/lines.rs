//! The lines of a client, with a limited length.

use std::io;
use std::mem;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// The maximal number of bytes in a line, without its end.
pub(crate) const LONGEST: usize = 1024;

/// The content of a line.
#[derive(Debug, PartialEq)]
pub(crate) enum Line {
    Job,
    TooLong,
    NotText,
}

pub(crate) struct Lines<R> {
    input: R,
    line: Vec<u8>,
    too_long: bool,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    pub(crate) fn of(input: R) -> Self {
        Self {
            input,
            line: Vec::new(),
            too_long: false,
        }
    }

    /// Returns the next line; `None` at the end of the input. Cancel safe: dropping the future loses no input.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let came = self.input.fill_buf().await?;
            if came.is_empty() {
                let begun = self.too_long || !self.line.is_empty();
                return Ok(begun.then(|| self.end()));
            }
            let end = came.iter().position(|&byte| byte == b'\n');
            let part = &came[..end.unwrap_or(came.len())];
            let length = part.len();
            self.too_long |= self.line.len() + length > LONGEST;
            if !self.too_long {
                self.line.extend_from_slice(part);
            }
            self.input.consume(length + usize::from(end.is_some()));
            if end.is_some() {
                return Ok(Some(self.end()));
            }
        }
    }

    /// Ends a line, and starts the next one.
    fn end(&mut self) -> Line {
        let line = mem::take(&mut self.line);
        if mem::take(&mut self.too_long) {
            Line::TooLong
        } else if std::str::from_utf8(&line).is_err() {
            Line::NotText
        } else {
            Line::Job
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::BufReader;

    use super::*;

    async fn lines(input: &[u8]) -> Vec<Line> {
        let mut lines = Lines::of(BufReader::with_capacity(7, input));
        let mut all = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            assert!(lines.line.is_empty());
            all.push(line);
        }
        all
    }

    #[tokio::test]
    async fn lines_end_at_line_breaks_and_with_the_input() {
        assert_eq!(lines(b"").await, []);
        assert_eq!(
            lines(b"one\n\nthree").await,
            [Line::Job, Line::Job, Line::Job]
        );
    }

    #[tokio::test]
    async fn an_invalid_line_does_not_end_the_lines() {
        let long = |length| [&b"x".repeat(length)[..], b"\n"].concat();
        assert_eq!(lines(&long(LONGEST)).await, [Line::Job]);
        let input = [
            &long(LONGEST + 1)[..],
            b"\xff\n",
            &long(9 * LONGEST),
            b"last",
        ]
        .concat();
        let expected = [Line::TooLong, Line::NotText, Line::TooLong, Line::Job];
        assert_eq!(lines(&input).await, expected);
    }
}
