//! Single actions, which the storms combine.

use crate::common::rng::Rng;
use crate::recorded_handle::{Ending, RecordedHandle};
use crate::recorder::{Recorder, Recording, Subject};
use std::mem;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread;

#[derive(Clone, Copy)]
pub(crate) enum Action {
    Push,
    Pop,
    PushBatch,
    PopBatch,
    PushWithoutHandle,
    PopWithoutHandle,
    AskWhetherEmpty,
    /// A transaction with any kind of end.
    Transaction,
    /// A transaction that pops and pushes, and is aborted.
    Abort,
    /// The handle is dropped and replaced.
    Renew,
    /// The handle is exchanged with that of another thread.
    Swap,
}

/// Handles to exchange.
pub(crate) struct Pool {
    sender: Sender<RecordedHandle>,
    receiver: Mutex<Receiver<RecordedHandle>>,
}

impl Pool {
    /// A pool of this many handles.
    pub(crate) fn new(handles: usize, subject: &Subject, recorder: &Recorder) -> Self {
        let (sender, receiver) = std::sync::mpsc::channel();
        for _ in 0..handles {
            sender
                .send(RecordedHandle::new(subject, recorder))
                .expect("connected");
        }
        let receiver = Mutex::new(receiver);
        Self { sender, receiver }
    }

    fn swap(&self, handle: &mut RecordedHandle) {
        let next = self
            .receiver
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .try_recv();
        if let Ok(next) = next {
            let old = mem::replace(handle, next);
            self.sender.send(old).expect("connected");
        }
    }

    pub(crate) fn close(self, recorder: &mut Recorder) {
        for handle in self.receiver.into_inner().unwrap().try_iter() {
            handle.close(recorder);
        }
    }
}

/// A thread with its present handle.
pub(crate) struct Actor<'a> {
    pub(crate) recorder: Recorder<'a>,
    subject: &'a Subject,
    pool: &'a Pool,
    handle: RecordedHandle,
}

impl<'a> Actor<'a> {
    pub(crate) fn new(recording: &'a Recording, subject: &'a Subject, pool: &'a Pool) -> Self {
        let recorder = recording.recorder();
        let handle = RecordedHandle::new(subject, &recorder);
        Self {
            recorder,
            subject,
            pool,
            handle,
        }
    }

    pub(crate) fn act(&mut self, action: Action, rng: &mut Rng) {
        let Self {
            recorder,
            subject,
            pool,
            handle,
        } = self;
        let popped = match action {
            Action::Pop => handle.pop(recorder),
            Action::PopWithoutHandle => recorder.pop(subject),
            Action::AskWhetherEmpty => !recorder.is_empty(subject),
            _ => true,
        };
        match action {
            Action::Pop | Action::PopWithoutHandle | Action::AskWhetherEmpty => {}
            Action::Push => handle.push(recorder),
            Action::PushBatch => handle.push_batch(recorder, rng.below(8)),
            Action::PopBatch => handle.pop_batch(recorder, 1 + rng.below(8)),
            Action::PushWithoutHandle => recorder.push(subject),
            Action::Transaction => {
                let ending = rng.pick(&Ending::ALL);
                handle.transaction(recorder, rng, ending);
            }
            Action::Abort => handle.transaction(recorder, rng, Ending::Abort),
            Action::Renew => {
                let old = mem::replace(handle, RecordedHandle::new(subject, recorder));
                old.close(recorder);
            }
            Action::Swap => pool.swap(handle),
        }
        if !popped {
            thread::yield_now();
        }
    }

    pub(crate) fn close(mut self) {
        self.handle.close(&mut self.recorder);
    }
}
