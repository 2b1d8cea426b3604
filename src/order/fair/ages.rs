//! When to look at which key for old items.

use super::pages::Pages;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Apart from the keys, so that only queues whose items can be too old pay for it.
#[derive(Default)]
pub(super) struct Ages {
    /// The time of the first item of a key, or of an earlier one.
    noted: Pages<u64>,
    /// What is noted, and times that are not any more.
    times: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Ages {
    /// Notes the time of the first item of a key, unless an earlier one is noted.
    pub(super) fn note(&mut self, key: u32, since: u64) {
        let (noted, is_new) = self.noted.get_or_insert(key);
        if is_new || since < *noted {
            *noted = since;
            self.times.push(Reverse((since, key)));
        }
    }

    /// The least time, and the key it is noted for, which may have ended since.
    pub(super) fn first(&mut self) -> Option<(u64, u32)> {
        loop {
            let &Reverse((since, key)) = self.times.peek()?;
            if self.noted.get(key) == Some(&since) {
                return Some((since, key));
            }
            self.times.pop();
        }
    }

    /// Removes what [`first`](Self::first) has returned.
    pub(super) fn remove_first(&mut self) {
        if let Some(Reverse((_, key))) = self.times.pop() {
            self.noted.take(key);
        }
    }
}
