//! When something was started last.

/// The time of the last start, and of the one before, in case that the last one is cancelled.
///
/// Of two turns that are out at once and are both cancelled, the first may count as a start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Last<T> {
    at: Option<T>,
    before: Option<T>,
}

impl<T: Copy + Ord> Last<T> {
    pub(crate) fn get(&self) -> Option<T> {
        self.at
    }

    pub(crate) fn note(&mut self, at: T) {
        self.before = self.at;
        self.at = self.at.max(Some(at));
    }

    /// Nothing was started at that time.
    pub(crate) fn forget(&mut self, at: T) {
        if self.at == Some(at) {
            self.at = self.before;
        }
    }
}

impl<T> Default for Last<T> {
    fn default() -> Self {
        Self {
            at: None,
            before: None,
        }
    }
}
