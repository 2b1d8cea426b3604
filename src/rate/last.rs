//! The time of the last start.

/// The times of the last start and of the one before it, in case the last one is cancelled.
///
/// If two slots are outstanding at once and both are cancelled, the first may still count as a start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Last<T> {
    at: Option<T>,
    before: Option<T>,
}

impl<T: Copy + Ord> Last<T> {
    pub(crate) const NO_START: Self = Self {
        at: None,
        before: None,
    };

    pub(crate) fn get(&self) -> Option<T> {
        self.at
    }

    pub(crate) fn record(&mut self, at: T) {
        self.before = self.at;
        self.at = self.at.max(Some(at));
    }

    /// Cancels the start recorded at that time.
    pub(crate) fn cancel(&mut self, at: T) {
        if self.at == Some(at) {
            self.at = self.before;
        }
    }
}
