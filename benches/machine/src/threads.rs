//! Runs threads on a simulated machine, as coroutines.

use crate::costs;
use crate::machine::Machine;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use requeue::machine::{end_thread, simulate, Event, Hooks};
use std::cell::{Cell, RefCell};
use std::ptr::NonNull;
use std::time::Duration;

/// What a simulation has counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Counts {
    pub(crate) events: u64,
    /// Lines that one core has got from others, or has taken away from them.
    pub(crate) transfers: u64,
    /// The part of the waits for lines that one line has caused.
    pub(crate) hottest: f64,
}

type Thread = Coroutine<(), (), ()>;

thread_local! {
    static MACHINE: RefCell<Option<Machine>> = const { RefCell::new(None) };
    static YIELDER: Cell<Option<NonNull<Yielder<(), ()>>>> = const { Cell::new(None) };
}

/// Runs all threads, each on a core of its own, until they end. The same seed repeats the same run.
pub(crate) fn run(seed: u64, threads: Vec<Box<dyn FnOnce()>>) -> Counts {
    assert!(threads.len() <= 64, "there are 64 cores");
    MACHINE.set(Some(Machine::new(threads.len(), seed)));
    let mut threads: Vec<_> = threads.into_iter().map(coroutine).collect();
    simulate(Some(Hooks {
        event,
        thread: || with(|machine| machine.current),
        now: || Duration::from_nanos(now() / costs::NANO),
    }));
    while let Some(next) = with(Machine::next) {
        if let CoroutineResult::Return(()) = threads[next].resume(()) {
            with(Machine::end);
        }
    }
    simulate(None);
    let machine = MACHINE.take().expect("it was set");
    let (hottest, all) = machine.lines.waits();
    #[allow(clippy::cast_precision_loss)]
    Counts {
        events: machine.events,
        transfers: machine.transfers,
        hottest: hottest as f64 / all.max(1) as f64,
    }
}

/// The clock of the current thread's core.
pub(crate) fn now() -> u64 {
    with(|machine| machine.now())
}

/// The current thread computes for a time.
pub(crate) fn compute(time: u64) {
    with(|machine| machine.pass(time));
}

fn coroutine(thread: Box<dyn FnOnce()>) -> Thread {
    Coroutine::new(move |yielder, ()| {
        YIELDER.set(Some(NonNull::from(yielder)));
        thread();
        end_thread();
    })
}

fn with<R>(usage: impl FnOnce(&mut Machine) -> R) -> R {
    MACHINE.with_borrow_mut(|machine| usage(machine.as_mut().expect("a simulation runs")))
}

/// Lets other threads run until the current one is continued.
fn suspend() {
    let own = YIELDER.get().expect("a thread of the simulation runs");
    // SAFETY: it is that of the coroutine which runs: each sets it when it starts and when it continues, and lives until then.
    unsafe { own.as_ref() }.suspend(());
    YIELDER.set(Some(own));
}

/// Lets the threads run whose clocks are earlier.
fn wait_for_earlier() {
    while with(Machine::must_wait) {
        suspend();
    }
}

fn event(event: Event) {
    match event {
        Event::Read(address) => access(address, false),
        Event::Write(address) => {
            wait_for_earlier();
            with(|machine| machine.store(address));
        }
        Event::Locked(address) => {
            with(Machine::drain);
            access(address, true);
            compute(costs::LOCKED);
        }
        Event::Fence => {
            with(Machine::drain);
            compute(costs::LOCKED);
        }
        Event::Membarrier => {
            wait_for_earlier();
            with(Machine::interrupt_others);
        }
        Event::Pin => all(with(Machine::pin)),
        Event::Unpin => all(with(Machine::unpin)),
        Event::Advance => all(with(Machine::advance)),
        Event::Spin(pauses) => compute(u64::from(pauses) * costs::PAUSE),
        Event::Yield => compute(costs::YIELD),
        Event::Park(span) => {
            wait_for_earlier();
            if with(|machine| machine.sleep(span)) {
                suspend();
            }
        }
        Event::Unpark(thread) => {
            wait_for_earlier();
            with(|machine| machine.wake(thread));
        }
        // At once: the lock is held, and must not be released before the thread waits.
        Event::Await(address) => {
            with(|machine| machine.wait_for_lock(address));
            suspend();
        }
        Event::Release(address) => with(|machine| machine.release(address)),
    }
}

fn all(events: Vec<Event>) {
    events.into_iter().for_each(event);
}

fn access(address: usize, is_write: bool) {
    wait_for_earlier();
    if let Some(transfer) = with(|machine| machine.request(address, is_write)) {
        wait_for_earlier();
        with(|machine| machine.get(transfer));
    }
}
