//! The steps of one transaction, recorded when its end is known.

use crate::history::{End, Event, Span};
use crate::recorder::{Item, Recorder};
use requeue::{Taken, Transaction};

/// The items that one call claimed.
struct Claim {
    span: Span,
    items: Vec<usize>,
}

pub(crate) struct Draft {
    queue: u32,
    stream: u64,
    claims: Vec<Claim>,
    staged: Vec<usize>,
}

impl Draft {
    pub(crate) fn new(queue: u32, stream: u64) -> Self {
        Self {
            queue,
            stream,
            claims: Vec::new(),
            staged: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, tx: &Transaction<'_, Item>, recorder: &Recorder) {
        let item = recorder.item();
        self.staged.push(*item);
        tx.push(item).expect("unbounded");
        assert_eq!(tx.staged(), self.staged.len());
    }

    /// Pops up to `most` items; false if there is none.
    pub(crate) fn pop(
        &mut self,
        tx: &Transaction<'_, Item>,
        recorder: &mut Recorder,
        most: usize,
    ) -> bool {
        let (items, span) = recorder.timed(|| match most {
            1 => tx.pop().into_iter().map(|item| **item).collect(),
            _ => tx.pop_batch(most).map(|item| **item).collect::<Vec<_>>(),
        });
        let found = !items.is_empty();
        if found {
            self.claims.push(Claim { span, items });
        } else {
            let queue = self.queue;
            recorder.write(Event::Empty { queue, span });
        }
        assert_eq!(tx.held(), self.held().count());
        found
    }

    fn held(&self) -> impl Iterator<Item = usize> + '_ {
        self.claims
            .iter()
            .flat_map(|claim| claim.items.iter().copied())
    }

    /// A commit returns the held items, in order; the part not requested is dropped.
    pub(crate) fn check_taken(&self, taken: Taken<'_, Item>, part: usize) {
        assert_eq!(taken.len(), self.held().count());
        for (item, held) in taken.take(part).zip(self.held()) {
            assert_eq!(*item, held);
        }
    }

    pub(crate) fn committed(self, recorder: &mut Recorder, span: Span) {
        if !self.staged.is_empty() {
            recorder.write(Event::Push {
                queue: self.queue,
                stream: self.stream,
                span,
                items: self.staged,
            });
        }
        Self::release(self.queue, self.claims, recorder, End::Taken);
    }

    pub(crate) fn aborted(self, recorder: &mut Recorder, span: Span) {
        Self::release(self.queue, self.claims, recorder, End::Returned(span));
    }

    fn release(queue: u32, claims: Vec<Claim>, recorder: &mut Recorder, end: End) {
        for Claim { span, items } in claims {
            let claim = span;
            recorder.write(Event::Hold {
                queue,
                claim,
                items,
                end,
            });
        }
    }
}
