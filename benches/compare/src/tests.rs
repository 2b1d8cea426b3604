//! All workloads with few items, and a peer that loses one.

use crate::calls::{self, Calls};
use crate::goals::{outcomes, print};
use crate::measure::Workload;
use crate::options::Options;
use crate::peers::{Peer, Plan, Receiver, Sender};
use crate::results::{Row, Table};
use crate::threads::Load;
use crate::watchdog::Watchdog;
use crate::workloads::stream;
use crate::workloads::wake::{sleeps, this_thread};
use crate::{output, run};
use std::collections::VecDeque;
use std::env;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{mpsc, Arc, Mutex};
use std::thread;
use std::time::Duration;

fn options(arguments: &[&str]) -> Options {
    let arguments = arguments.iter().map(ToString::to_string);
    let options = Options::parse(arguments).expect("valid options");
    options.expect("no help")
}

/// In flume 0.12 an item that arrives while a task waits again, after a thread took the item for which it was woken, wakes
/// nobody.
fn may_lose_a_wake_up(workload: &str, subject: &str) -> bool {
    subject == "flume" && workload.starts_with("64 waiters")
}

#[test]
fn no_peer_loses_items_and_all_goals_are_measured() {
    let options = options(&["--quick"]);
    let tables = run(&options);
    for table in &tables {
        let sound = |row: &&Row| !may_lose_a_wake_up(&table.workload, row.subject);
        for row in table.rows.iter().filter(sound) {
            assert_eq!(row.loss, None, "{}: {}", table.workload, row.subject);
            assert_eq!(row.samples.len(), 1, "{}: {}", table.workload, row.subject);
        }
    }
    print(&tables);
    for outcome in outcomes(&tables) {
        let optional = outcome.text.contains("moodycamel") && !cfg!(feature = "cpp");
        assert!(
            optional || !outcome.comparisons.is_empty(),
            "{}",
            outcome.text
        );
    }
    let folder = folder("all");
    output::write(&folder, "a machine", &options, &tables).expect("the folder can be written");
    let plot = fs::read_to_string(folder.join("chosen.svg")).expect("the plot of the guide");
    assert_eq!(plot.matches("[ns").count(), 3, "all of its tables: {plot}");
    fs::remove_dir_all(folder).expect("the folder exists");
}

fn folder(name: &str) -> PathBuf {
    env::temp_dir().join(format!("requeue-compare-{name}-{}", std::process::id()))
}

#[test]
fn the_results_are_written() {
    let folder = folder("fair");
    let options = options(&["--quick", "--only", "fair", "--rounds", "3"]);
    let tables = run(&options);
    output::write(&folder, "a machine", &options, &tables).expect("the folder can be written");

    let results = fs::read_to_string(folder.join("results.json")).expect("the results");
    let results: serde_json::Value = serde_json::from_str(&results).expect("valid JSON");
    let subject = &results["tables"][0]["subjects"][0];
    assert_eq!(subject["name"], "requeue, fair");
    assert_eq!(subject["samples"].as_array().map(Vec::len), Some(3));
    let summary = fs::read_to_string(folder.join("summary.md")).expect("the summary");
    assert!(
        summary.contains("| fair, 1,000 keys, 2P2C | ns |"),
        "{summary}"
    );
    let plot = fs::read_to_string(folder.join("fair-1-000-keys-2P2C.svg")).expect("the plot");
    assert!(
        plot.contains("Mutex&lt;HashMap&gt;"),
        "the subjects are named: {plot}"
    );
    fs::remove_dir_all(folder).expect("the folder exists");
}

#[test]
fn system_calls_are_written_for_the_workloads_that_wait() {
    let folder = folder("calls");
    let options = options(&["--quick", "--only", "waiting, bounded, 1P1C"]);
    let tables = run(&options);
    output::write(&folder, "a machine", &options, &tables).expect("the folder can be written");

    let results = fs::read_to_string(folder.join("results.json")).expect("the results");
    let results: serde_json::Value = serde_json::from_str(&results).expect("valid JSON");
    let calls = &results["tables"][0]["subjects"][0]["calls"];
    assert_eq!(calls["futex waits"].is_number(), calls::COUNTED, "{calls}");
    let summary = fs::read_to_string(folder.join("summary.md")).expect("the summary");
    let rows = summary.matches("| waiting, bounded, 1P1C | crossbeam-channel |");
    assert_eq!(rows.count(), usize::from(calls::COUNTED), "{summary}");
    fs::remove_dir_all(folder).expect("the folder exists");
}

#[test]
fn options_are_checked() {
    let parse = |arguments: &[&str]| Options::parse(arguments.iter().map(ToString::to_string));
    assert_eq!(options(&["--rounds", "3"]).rounds, 3);
    assert!(parse(&["--help"]).is_ok_and(|options| options.is_none()));
    for wrong in [
        &["--rounds"][..],
        &["--rounds", "0"],
        &["--items", "x"],
        &["--fast"],
    ] {
        assert!(parse(wrong).is_err(), "{wrong:?}");
    }
}

/// Delivers no item in place of the one, and another in place of the other.
struct Planted<const LOST: u64, const FORGED: u64>;

/// No item has this number.
const NO_ITEM: u64 = u64::MAX;

#[derive(Clone)]
struct End {
    items: Arc<Mutex<VecDeque<u64>>>,
    lost: u64,
    forged: u64,
}

impl<const LOST: u64, const FORGED: u64> Peer<u64> for Planted<LOST, FORGED> {
    const NAME: &'static str = "planted";
    type Sender = End;
    type Receiver = End;

    fn open(plan: Plan) -> (Vec<End>, Vec<End>) {
        let end = End {
            items: Arc::default(),
            lost: LOST,
            forged: FORGED,
        };
        (vec![end.clone(); plan.senders], vec![end; plan.receivers])
    }
}

impl Sender<u64> for End {
    fn push(&mut self, item: u64) -> Result<(), u64> {
        let mut items = self.items.lock().expect("no panic");
        match item {
            _ if item == self.lost => {}
            _ if item == self.forged => items.push_back(0),
            _ => items.push_back(item),
        }
        Ok(())
    }
}

impl Receiver<u64> for End {
    fn pop(&mut self) -> Option<u64> {
        self.items.lock().expect("no panic").pop_front()
    }
}

/// A stream of 100 items through a planted peer, and through one that is sound.
fn planted<P: Peer<u64>>() -> Table {
    let plan = Plan {
        senders: 2,
        receivers: 2,
        bound: None,
        room: 100,
    };
    let load = Load {
        items: 100,
        patience: Duration::ZERO,
    };
    let workload = Workload::new("planted", move || {
        vec![
            stream::trying::<P, u64>(plan, load),
            stream::trying::<Planted<NO_ITEM, NO_ITEM>, u64>(plan, load),
        ]
    });
    let mut tables = workload.run(3, &Watchdog::start());
    tables.remove(0)
}

#[test]
fn a_peer_that_loses_an_item_is_reported_and_not_ranked() {
    let table = planted::<Planted<42, NO_ITEM>>();
    assert_eq!(table.rows[0].loss.as_deref(), Some("99 of 100 items"));
    assert!(table.rows[0].median().is_none());
    assert_eq!(
        (table.rows[1].loss.as_deref(), table.rows[1].samples.len()),
        (None, 3)
    );
}

#[test]
fn a_peer_that_delivers_an_item_twice_is_reported() {
    let table = planted::<Planted<NO_ITEM, 42>>();
    let loss = table.rows[0].loss.as_deref();
    assert_eq!(loss, Some("other items than the 100 sent"));
}

/// The calls that happened at all, by name.
fn counted(calls: Calls) -> Vec<(&'static str, f64)> {
    let calls = calls::NAMES.into_iter().zip(calls.per_thousand(1000));
    let switch = |name: &str| name.ends_with("switches");
    calls
        .filter(|(name, number)| *number > 0.0 && !switch(name))
        .collect()
}

/// What this thread does in `work`.
fn calls_of(work: impl FnOnce()) -> Calls {
    let before = calls::of_this_thread();
    work();
    calls::of_this_thread() - before
}

/// One thread unparks another each time that it sleeps. Returns the calls of both.
fn unpark_sleeper(times: u64) -> (Calls, Calls) {
    let parks = &AtomicU64::new(0);
    let (announce, announced) = mpsc::channel();
    thread::scope(|scope| {
        let sleeper = scope.spawn(move || {
            announce.send(this_thread()).expect("the waker waits");
            calls_of(|| {
                for number in 1..=times {
                    parks.store(number, Ordering::Release);
                    thread::park();
                }
            })
        });
        let name = announced.recv().expect("the sleeper starts");
        let name = name.expect("the system shows threads");
        let mut waker = Calls::default();
        for number in 1..=times {
            while parks.load(Ordering::Acquire) < number || !sleeps(&name) {
                thread::sleep(Duration::from_micros(100));
            }
            waker += calls_of(|| sleeper.thread().unpark());
        }
        (waker, sleeper.join().expect("no panic"))
    })
}

#[test]
fn system_calls_are_counted() {
    if !calls::COUNTED {
        return;
    }
    let (waker, sleeper) = unpark_sleeper(5);
    assert_eq!(counted(waker), [("futex wakes", 5.0)]);
    assert_eq!(counted(sleeper), [("futex waits", 5.0)]);
    let voluntary = calls::NAMES
        .iter()
        .position(|name| *name == "voluntary switches");
    let voluntary = sleeper.per_thousand(1000)[voluntary.expect("it is counted")];
    assert!((5.0..8.0).contains(&voluntary), "{voluntary} switches");

    let calls = calls_of(|| (0..3).for_each(|_| thread::yield_now()));
    assert_eq!(counted(calls), [("yields", 3.0)]);
    let calls = calls_of(|| (0..2).for_each(|_| thread::sleep(Duration::from_micros(1))));
    assert_eq!(counted(calls), [("sleeps", 2.0)]);
}

#[cfg(target_os = "linux")]
#[test]
fn calls_in_vain_are_counted_and_return_their_errors() {
    let word = 1_u32;
    let futex = |operation: i32, value: u32| {
        // SAFETY: the word is alive, and a wait for another value returns at once.
        unsafe { libc::syscall(libc::SYS_futex, &word, operation, value, ptr::null::<()>()) }
    };
    let calls = calls_of(|| {
        assert_eq!(futex(libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, 2), -1);
        let error = io::Error::last_os_error().raw_os_error();
        assert_eq!(error, Some(libc::EAGAIN));
        assert_eq!(futex(libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1), 0);
        // SAFETY: a query of the commands, which touches no memory.
        assert!(unsafe { libc::syscall(libc::SYS_membarrier, 0, 0, 0) } > 0);
    });
    let in_vain = [
        "futex waits",
        "waits in vain",
        "futex wakes",
        "wakes in vain",
        "membarriers",
    ];
    if calls::COUNTED {
        assert_eq!(counted(calls), in_vain.map(|name| (name, 1.0)));
    }
}
