//! What the clones of a pace have in common.

use crate::sync::{lock, Mutex};
use crate::wait::Line;
use std::sync::{Arc, Weak};

/// A turnstile, and who waits for its turns.
pub(super) struct Common<T: ?Sized> {
    pub(super) lines: Lines,
    pub(super) turnstile: T,
}

impl<T> Common<T> {
    pub(super) fn new(turnstile: T) -> Arc<Self> {
        let lines = Lines::default();
        Arc::new(Self { lines, turnstile })
    }
}

/// The lines of the queues that have a pace, each as often as it was given to them.
#[derive(Default)]
pub(super) struct Lines(Mutex<Vec<Weak<Line>>>);

impl Lines {
    pub(super) fn join(&self, line: &Arc<Line>) {
        let mut lines = lock(&self.0);
        if lines.len() == lines.capacity() {
            lines.retain(is_alive);
            // As many joins again until the next search for those that are gone.
            let living = lines.len();
            lines.reserve(living + 1);
        }
        lines.push(Arc::downgrade(line));
    }

    pub(super) fn leave(&self, line: &Arc<Line>) {
        let mut lines = lock(&self.0);
        let place = lines
            .iter()
            .position(|other| other.as_ptr() == Arc::as_ptr(line));
        if let Some(place) = place {
            lines.swap_remove(place);
        }
    }

    /// Wakes all who wait.
    pub(super) fn wake(&self) {
        let lines: Vec<_> = lock(&self.0).iter().filter_map(Weak::upgrade).collect();
        for line in lines {
            line.wake_all_waiting();
        }
    }
}

fn is_alive(line: &Weak<Line>) -> bool {
    line.strong_count() > 0
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::wait::Word;

    fn line() -> Arc<Line> {
        Arc::new(Line::new(Word::standing(false, false)))
    }

    #[test]
    fn queues_that_are_gone_are_forgotten() {
        let (lines, lasting) = (Lines::default(), line());
        lines.join(&lasting);
        for _ in 0..10_000 {
            lines.join(&line());
            assert!(lock(&lines.0).len() < 16);
        }
        lines.leave(&lasting);
        assert!(!lock(&lines.0).iter().any(is_alive));
    }

    #[test]
    fn a_queue_has_its_pace_until_it_has_left_as_often_as_it_joined() {
        let (lines, line) = (Lines::default(), line());
        for _ in 0..2 {
            lines.join(&line);
        }
        lines.leave(&line);
        assert_eq!(lock(&lines.0).len(), 1);
        lines.leave(&line);
        lines.leave(&line);
        assert!(lock(&lines.0).is_empty());
    }
}
