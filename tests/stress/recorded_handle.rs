//! A handle whose calls are recorded.

use crate::common::rng::Rng;
use crate::harness::{panic_as_planned, unless_planned};
use crate::history::{Event, Span};
use crate::recorder::{Item, Recorder, Subject};
use crate::transaction::Draft;
use requeue::{Handle, Transaction};
use std::mem;

/// How a transaction ends.
#[derive(Clone, Copy)]
pub(crate) enum Ending {
    Commit,
    Abort,
    Drop,
    Forget,
    /// `transact` with a closure that returns `Ok`.
    Succeed,
    /// `transact` with a closure that returns `Err`.
    Fail,
    /// `transact` with a closure that panics.
    Panic,
}

impl Ending {
    pub(crate) const ALL: [Self; 7] = [
        Self::Commit,
        Self::Abort,
        Self::Drop,
        Self::Forget,
        Self::Succeed,
        Self::Fail,
        Self::Panic,
    ];
}

/// One handle, used by one thread at a time.
pub(crate) struct RecordedHandle {
    queue: u32,
    stream: u64,
    handle: Handle<Item>,
    /// A forgotten transaction, and the time when it was forgotten.
    forgotten: Option<(Draft, u64)>,
}

impl RecordedHandle {
    pub(crate) fn new(subject: &Subject, recorder: &Recorder) -> Self {
        Self {
            queue: subject.number,
            stream: recorder.stream(),
            handle: subject.queue.handle(),
            forgotten: None,
        }
    }

    /// Drops the handle.
    pub(crate) fn close(self, recorder: &mut Recorder) {
        let Self {
            handle, forgotten, ..
        } = self;
        drop(handle);
        settled(forgotten, recorder);
    }

    /// Uses the handle, which ends a forgotten transaction.
    fn call<R>(
        &mut self,
        recorder: &mut Recorder,
        call: impl FnOnce(&mut Handle<Item>) -> R,
    ) -> (R, Span) {
        let (result, span) = recorder.timed(|| call(&mut self.handle));
        settled(self.forgotten.take(), recorder);
        (result, span)
    }

    pub(crate) fn push(&mut self, recorder: &mut Recorder) {
        let item = recorder.item();
        let items = vec![*item];
        let (result, span) = self.call(recorder, |handle| handle.push(item));
        result.expect("unbounded");
        self.pushed(recorder, span, items);
    }

    pub(crate) fn push_batch(&mut self, recorder: &mut Recorder, count: usize) {
        let items: Vec<Item> = (0..count).map(|_| recorder.item()).collect();
        let numbers = items.iter().map(|item| **item).collect();
        let (result, span) = self.call(recorder, |handle| handle.push_batch(items));
        assert_eq!(result.expect("unbounded"), count);
        self.pushed(recorder, span, numbers);
    }

    fn pushed(&self, recorder: &mut Recorder, span: Span, items: Vec<usize>) {
        recorder.write(Event::Push {
            queue: self.queue,
            stream: self.stream,
            span,
            items,
        });
    }

    /// Pops an item; false if there is none.
    pub(crate) fn pop(&mut self, recorder: &mut Recorder) -> bool {
        let (result, span) = self.call(recorder, Handle::pop);
        recorder.popped(self.queue, span, result)
    }

    pub(crate) fn pop_batch(&mut self, recorder: &mut Recorder, most: usize) {
        let mut items = Vec::new();
        let (count, span) = self.call(recorder, |handle| handle.pop_batch(most, &mut items));
        assert_eq!(items.len(), count);
        recorder.popped_batch(self.queue, span, items);
    }

    /// Begins a transaction. Its draft becomes part of a commit over several queues.
    pub(crate) fn begin(&mut self, recorder: &mut Recorder) -> (Transaction<'_, Item>, Draft) {
        let draft = Draft::new(self.queue, self.stream);
        let tx = self.handle.begin();
        settled(self.forgotten.take(), recorder);
        (tx, draft)
    }

    /// Runs a transaction of some pops and pushes.
    pub(crate) fn transaction(&mut self, recorder: &mut Recorder, rng: &mut Rng, ending: Ending) {
        match ending {
            Ending::Succeed | Ending::Fail | Ending::Panic => {
                self.transact(recorder, rng, ending);
            }
            Ending::Commit | Ending::Abort | Ending::Drop | Ending::Forget => {
                self.begin_and_end(recorder, rng, ending);
            }
        }
    }

    fn begin_and_end(&mut self, recorder: &mut Recorder, rng: &mut Rng, ending: Ending) {
        let (tx, mut draft) = self.begin(recorder);
        some_steps(&tx, &mut draft, recorder, rng);
        match ending {
            Ending::Commit => {
                let (taken, span) = recorder.timed(|| tx.commit());
                draft.check_taken(taken, rng.below(4));
                draft.committed(recorder, span);
            }
            Ending::Forget => {
                mem::forget(tx);
                self.forgotten = Some((draft, recorder.now()));
            }
            Ending::Drop => {
                let ((), span) = recorder.timed(|| drop(tx));
                draft.aborted(recorder, span);
            }
            _ => {
                let ((), span) = recorder.timed(|| tx.abort());
                draft.aborted(recorder, span);
            }
        }
    }

    fn transact(&mut self, recorder: &mut Recorder, rng: &mut Rng, ending: Ending) {
        let mut draft = Draft::new(self.queue, self.stream);
        let mut from = 0;
        let forgotten = &mut self.forgotten;
        let work = |tx: &Transaction<'_, Item>| {
            settled(forgotten.take(), recorder);
            some_steps(tx, &mut draft, recorder, rng);
            from = recorder.now();
            match ending {
                Ending::Succeed => Ok(()),
                Ending::Fail => Err(()),
                _ => panic_as_planned(),
            }
        };
        let outcome = unless_planned(|| self.handle.transact(work));
        let to = recorder.now();
        let span = Span { from, to };
        match (ending, outcome) {
            (Ending::Succeed, Some(Ok(()))) => draft.committed(recorder, span),
            (Ending::Fail, Some(Err(()))) | (Ending::Panic, None) => draft.aborted(recorder, span),
            _ => panic!("transact did not end as its closure did"),
        }
    }
}

/// A forgotten transaction has ended by now.
fn settled(forgotten: Option<(Draft, u64)>, recorder: &mut Recorder) {
    if let Some((draft, from)) = forgotten {
        let to = recorder.now();
        draft.aborted(recorder, Span { from, to });
    }
}

fn some_steps(
    tx: &Transaction<'_, Item>,
    draft: &mut Draft,
    recorder: &mut Recorder,
    rng: &mut Rng,
) {
    for _ in 0..rng.below(5) {
        match rng.below(5) {
            0 | 1 => draft.push(tx, recorder),
            2 | 3 => drop(draft.pop(tx, recorder, 1)),
            _ => drop(draft.pop(tx, recorder, 2 + rng.below(4))),
        }
    }
}
