//! Single actions, which the storms combine.

use crate::common::rng::Rng;
use crate::port::{Ending, Port};
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
    sender: Sender<Port>,
    receiver: Mutex<Receiver<Port>>,
}

impl Pool {
    /// A pool of this many handles.
    pub(crate) fn new(handles: usize, subject: &Subject, recorder: &Recorder) -> Self {
        let (sender, receiver) = std::sync::mpsc::channel();
        for _ in 0..handles {
            sender
                .send(Port::new(subject, recorder))
                .expect("connected");
        }
        let receiver = Mutex::new(receiver);
        Self { sender, receiver }
    }

    fn swap(&self, port: &mut Port) {
        let next = self
            .receiver
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .try_recv();
        if let Ok(next) = next {
            let old = mem::replace(port, next);
            self.sender.send(old).expect("connected");
        }
    }

    pub(crate) fn close(self, recorder: &mut Recorder) {
        for port in self.receiver.into_inner().unwrap().try_iter() {
            port.close(recorder);
        }
    }
}

/// A thread with its present handle.
pub(crate) struct Actor<'a> {
    pub(crate) recorder: Recorder<'a>,
    subject: &'a Subject,
    pool: &'a Pool,
    port: Port,
}

impl<'a> Actor<'a> {
    pub(crate) fn new(recording: &'a Recording, subject: &'a Subject, pool: &'a Pool) -> Self {
        let recorder = recording.recorder();
        let port = Port::new(subject, &recorder);
        Self {
            recorder,
            subject,
            pool,
            port,
        }
    }

    pub(crate) fn act(&mut self, action: Action, rng: &mut Rng) {
        let Self {
            recorder,
            subject,
            pool,
            port,
        } = self;
        let popped = match action {
            Action::Pop => port.pop(recorder),
            Action::PopWithoutHandle => recorder.pop(subject),
            Action::AskWhetherEmpty => !recorder.is_empty(subject),
            _ => true,
        };
        match action {
            Action::Pop | Action::PopWithoutHandle | Action::AskWhetherEmpty => {}
            Action::Push => port.push(recorder),
            Action::PushBatch => port.push_batch(recorder, rng.below(8)),
            Action::PopBatch => port.pop_batch(recorder, 1 + rng.below(8)),
            Action::PushWithoutHandle => recorder.push(subject),
            Action::Transaction => {
                let ending = rng.pick(&Ending::ALL);
                port.transaction(recorder, rng, ending);
            }
            Action::Abort => port.transaction(recorder, rng, Ending::Abort),
            Action::Renew => {
                let old = mem::replace(port, Port::new(subject, recorder));
                old.close(recorder);
            }
            Action::Swap => pool.swap(port),
        }
        if !popped {
            thread::yield_now();
        }
    }

    pub(crate) fn close(mut self) {
        self.port.close(&mut self.recorder);
    }
}
