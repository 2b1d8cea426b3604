//! The machine charges what it should, and repeats its runs.

use crate::costs::{transfer, HIT, INTERRUPT, IN_CLUSTER, LOCKED, MEMBARRIER, NANO};
use crate::ends::{Plan, WORKLOADS};
use crate::flow::pass;
use crate::models::Padded;
use crate::threads::{compute, now, run, Counts};
use requeue::machine::{current, event, park, AtomicBool, AtomicU64, Event, LocalKey, Mutex};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

const TIMES: u64 = 1000;

/// Two counters on one line.
#[derive(Default)]
#[repr(align(64))]
struct Neighbours([AtomicU64; 2]);

type Separate = [Padded<AtomicU64>; 2];

fn all(threads: usize, work: impl Fn(usize) + Clone + 'static) -> Counts {
    all_with(1, threads, work)
}

fn all_with(seed: u64, threads: usize, work: impl Fn(usize) + Clone + 'static) -> Counts {
    let thread = |number| {
        let work = work.clone();
        Box::new(move || work(number)) as Box<dyn FnOnce()>
    };
    run(seed, (0..threads).map(thread).collect())
}

/// Two threads that increment counters: the transfers, and the time of each increment.
fn increments<C: 'static>(counters: C, counter: fn(&C, usize) -> &AtomicU64) -> (u64, u64) {
    let (counters, end) = (Rc::new(counters), Rc::new(Cell::new(0)));
    let counts = all(2, {
        let end = Rc::clone(&end);
        move |thread| {
            for _ in 0..TIMES {
                counter(&counters, thread).fetch_add(1, Relaxed);
            }
            end.set(end.get().max(now()));
        }
    });
    (counts.transfers, end.get() / TIMES)
}

#[test]
fn a_shared_counter_costs_transfers_and_separate_ones_none() {
    let (shared, time) = increments(AtomicU64::default(), |counter, _| counter);
    // A core that has got the line increments again before it gives it away.
    assert!(shared > TIMES / 2, "{shared}");
    assert!(time > IN_CLUSTER, "{time}");
    let (separate, time) = increments(Separate::default(), |counters, thread| &counters[thread].0);
    assert_eq!((separate, time), (0, HIT + LOCKED));
}

#[test]
fn false_sharing_is_seen() {
    let (planted, slow) = increments(Neighbours::default(), |counters, thread| {
        &counters.0[thread]
    });
    let (apart, fast) = increments(Separate::default(), |counters, thread| &counters[thread].0);
    assert!(planted > TIMES / 2 && apart == 0, "{planted} {apart}");
    assert!(slow > 3 * fast, "{slow} {fast}");
}

#[test]
fn a_line_that_is_only_read_is_transferred_once() {
    let word = Rc::new(AtomicU64::default());
    let counts = all(64, move |_| {
        for _ in 0..TIMES {
            word.load(Acquire);
        }
    });
    assert!(counts.transfers <= 63, "{}", counts.transfers);
}

#[test]
fn a_write_takes_the_copies_of_readers() {
    let word = Rc::new(AtomicU64::default());
    let counts = all(3, move |thread| {
        compute(thread as u64 * 1000 * NANO);
        for _ in 0..10 {
            if thread == 0 {
                word.store(1, Release);
            } else {
                word.load(Acquire);
            }
            compute(3000 * NANO);
        }
    });
    // Each write but the first takes it from two readers, and each reader gets it from another core.
    assert_eq!(counts.transfers, 9 + 20);
}

#[test]
fn a_seed_repeats_its_run() {
    let times = |seed| {
        let (word, ends) = (Rc::new(AtomicU64::default()), Rc::new(RefCell::default()));
        let counts = all_with(seed, 8, {
            let ends: Rc<RefCell<Vec<_>>> = Rc::clone(&ends);
            move |thread| {
                for _ in 0..TIMES {
                    word.fetch_add(1, Relaxed);
                }
                ends.borrow_mut().push((thread, now()));
            }
        });
        (counts, ends.take())
    };
    assert_eq!(times(1), times(1));
    assert_ne!(times(1), times(2));
}

#[test]
fn no_increment_is_lost() {
    let word = Rc::new(AtomicU64::default());
    let sum = Rc::new(Mutex::new(0));
    all(64, {
        let (word, sum) = (Rc::clone(&word), Rc::clone(&sum));
        move |_| {
            for _ in 0..100 {
                word.fetch_add(1, Relaxed);
                let mut sum = sum.lock();
                let before = *sum;
                word.load(Relaxed);
                *sum = before + 1;
            }
        }
    });
    assert_eq!((word.load(Relaxed), *sum.lock()), (6400, 6400));
}

#[test]
fn a_store_does_not_wait_for_its_line_and_a_locked_operation_does() {
    let words = Rc::new(Separate::default());
    let times = Rc::new(RefCell::new(Vec::new()));
    all(9, {
        let times = Rc::clone(&times);
        move |thread| {
            words[0].0.load(Acquire);
            words[1].0.load(Acquire);
            compute(1000 * NANO);
            if thread == 8 {
                let start = now();
                words[0].0.store(1, Release);
                let stored = now();
                words[1].0.fetch_add(1, AcqRel);
                times.borrow_mut().extend([stored - start, now() - stored]);
            }
        }
    });
    let times = times.borrow();
    // Both lines come from other clusters; that of the operation is asked for after the store is done.
    assert_eq!(times[0], HIT);
    assert!(times[1] >= 2 * transfer(0, 8), "{times:?}");
}

#[test]
fn a_heavy_barrier_interrupts_the_others() {
    let times = Rc::new(RefCell::new(vec![0; 3]));
    all(3, {
        let times = Rc::clone(&times);
        move |thread| {
            let (start, own) = (now(), Padded(AtomicU64::default()));
            if thread == 0 {
                event(Event::Membarrier);
            } else {
                compute(500 * NANO);
                own.0.load(Relaxed);
            }
            times.borrow_mut()[thread] = now() - if thread == 0 { start } else { 0 };
        }
    });
    let times = times.borrow();
    assert_eq!(times[0], MEMBARRIER);
    assert!(
        times[1..]
            .iter()
            .all(|&time| time >= 500 * NANO + INTERRUPT),
        "{times:?}"
    );
}

#[test]
fn threads_sleep_until_they_are_woken() {
    let (sleeper, flag) = (Rc::new(RefCell::new(None)), Rc::new(AtomicBool::default()));
    let woken = Rc::new(Cell::new(0));
    all(2, {
        let woken = Rc::clone(&woken);
        move |thread| {
            if thread == 0 {
                *sleeper.borrow_mut() = Some(current());
                while !flag.load(Acquire) {
                    park();
                }
                woken.set(now());
            } else {
                compute(50_000 * NANO);
                flag.store(true, Release);
                let sleeper = sleeper.borrow().clone();
                sleeper.expect("it sleeps").unpark();
            }
        }
    });
    assert!(woken.get() > 50_000 * NANO);
}

#[test]
#[should_panic(expected = "threads sleep for ever: [1]")]
fn a_lost_wake_up_is_reported() {
    all(2, |thread| {
        if thread == 1 {
            park();
        }
    });
}

#[test]
fn thread_locals_belong_to_simulated_threads() {
    static COUNT: LocalKey<Cell<u64>> = LocalKey::new(|| Cell::new(0));
    let word = Rc::new(AtomicU64::default());
    all(4, move |_| {
        for round in 0..10 {
            word.fetch_add(1, Relaxed);
            COUNT.with(|count| assert_eq!(count.replace(round + 1), round));
        }
    });
}

#[test]
fn all_queues_pass_all_items() {
    for (_, subjects) in WORKLOADS {
        for subject in *subjects {
            for threads in [1, 2, 12] {
                let items = 200 * threads;
                let outcome = pass(subject, Plan { threads, items }, 1);
                assert!(outcome.ticks > 0 && outcome.worst <= outcome.ticks);
            }
        }
    }
}
