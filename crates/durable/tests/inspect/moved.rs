//! Items and dead letters without their types: exported, imported, removed and moved.

use super::{inspect, refused, store, words};
use requeue_durable::{Backoff, Json, Kind, Store};
use std::fs;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// Queues of all orders, whose items and dead letters have all that can be exported.
fn fill(path: &Path) {
    let store = store(path);
    let delay = Duration::from_secs(100_000);
    let jobs = store.builder::<String>("jobs").max_attempts(2);
    let jobs = jobs.codec(Json).backoff(Backoff::fixed(delay)).build();
    let jobs = jobs.unwrap();
    jobs.push_batch(["first", "a\nb\"\u{0}é", "third"].map(String::from))
        .unwrap();
    let tx = jobs.begin_owned();
    tx.retry_after(tx.pop().unwrap(), delay).unwrap();
    tx.fail(tx.pop().unwrap(), "no \"page\"\nfor it").unwrap();
    tx.commit().unwrap();

    let alarms = store.builder::<u32>("alarms").by_priority().build();
    let alarms = alarms.unwrap();
    alarms.priority(3).push(1).unwrap();
    alarms.priority(9).after(delay).push(300).unwrap();
    let tx = alarms.begin_owned();
    tx.fail(tx.pop().unwrap(), "too loud").unwrap();
    tx.commit().unwrap();
    alarms.close().unwrap();

    let tenants = store
        .builder::<(u8, u8)>("tenants")
        .fair_by(|item: &(u8, u8)| item.0);
    let tenants = tenants.ttl(delay).build().unwrap();
    tenants.push_batch([(1, 1), (2, 2), (1, 3)]).unwrap();
    store.queue::<u8>("empty").unwrap().push(1).unwrap();
    store.queue::<u8>("empty").unwrap().pop().unwrap();
}

/// Without the numbers of items and letters.
fn without_numbers(lines: &str) -> Vec<serde_json::Value> {
    let line = |line| {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        for number in ["item", "letter"] {
            line.get_mut(number).map(serde_json::Value::take);
        }
        line
    };
    lines.lines().map(line).collect()
}

#[test]
fn what_was_exported_is_imported() {
    let directory = tempfile::tempdir().unwrap();
    let [from, to, file] = ["from", "to", "lines"].map(|name| directory.path().join(name));
    fill(&from);
    let lines = inspect(&from, &["export"]);
    fs::write(&file, &lines).unwrap();
    assert_eq!(
        inspect(&to, &["import", file.to_str().unwrap()]),
        "8 imported\n"
    );
    let again = inspect(&to, &["export"]);
    assert_eq!(without_numbers(&again), without_numbers(&lines));
    assert!(lines.contains(r#""json":"a\nb\"\u0000é""#), "{lines}");
    assert!(lines.contains(r#""hex":"ac02""#), "{lines}");
    let one = inspect(&from, &["export", "alarms"]);
    assert_eq!(one.lines().count(), 3, "{one}");

    let store = store(&to);
    let jobs = store.builder::<String>("jobs").max_attempts(2).codec(Json);
    let jobs = jobs.build().unwrap();
    let letters = jobs.dead_letters();
    let letter = letters.oldest().unwrap().unwrap();
    assert_eq!((&*letter.item, letter.attempts), ("a\nb\"\u{0}é", 1));
    assert_eq!(letter.error.as_deref(), Some("no \"page\"\nfor it"));
    assert_eq!((jobs.stats().delayed, jobs.stats().ready), (1, 1));
    let alarms = store
        .builder::<u32>("alarms")
        .by_priority()
        .build()
        .unwrap();
    assert!(alarms.is_closed());
    assert_eq!(alarms.stats().delayed, 1);
    let tenants = store
        .builder::<(u8, u8)>("tenants")
        .fair_by(|item: &(u8, u8)| item.0);
    assert_eq!(
        tenants.build().unwrap().pop_batch(3).unwrap(),
        [(1, 1), (2, 2), (1, 3)]
    );
    assert_eq!(store.queues(), ["alarms", "empty", "jobs", "tenants"]);
}

#[test]
fn items_are_shown() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fill(path);
    let items = words(&inspect(path, &["items", "jobs"]));
    assert_eq!(items.len(), 3);
    let [_, attempts, due, priority, item] = &*items[1] else {
        panic!("{items:?}");
    };
    assert_eq!([attempts, priority, item], ["1", "7", "\\\"first\\\""]);
    let due: u32 = due.strip_suffix('s').unwrap().parse().unwrap();
    assert!((90_000..100_000).contains(&due), "{due}");
    let (first, third) = (&*items[1][0], &*items[2][0]);
    let lines = inspect(path, &["items", "jobs", third, "--json"]);
    assert_eq!(
        lines,
        format!("{{\"item\":{third},\"attempts\":0,\"json\":\"third\"}}\n")
    );
    assert_eq!(inspect(path, &["show", "jobs", third]), lines);
    let both = inspect(
        path,
        &["items", "jobs", &format!("{first}-{third}"), "--json"],
    );
    assert_eq!(both.lines().count(), 2);
    let letter = &words(&inspect(path, &["letters", "jobs"]))[1][0];
    assert!(inspect(path, &["show", "jobs", letter]).contains("\"reason\":\"failed\""));
    assert!(refused(path, &["show", "jobs", "999"]).contains("no number 999"));
    assert!(refused(path, &["items", "jobs", "9-3"]).contains("neither"));
}

#[test]
fn items_are_removed_and_buried() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fill(path);
    let would = inspect(path, &["skip", "tenants", "all"]);
    assert_eq!(would, "3 would be removed with --yes\n");
    let items = words(&inspect(path, &["items", "tenants"]));
    assert_eq!(items.len(), 4);
    assert_eq!(
        inspect(path, &["skip", "tenants", &items[2][0], "--yes"]),
        "1 removed\n"
    );
    assert_eq!(
        inspect(path, &["bury", "tenants", &items[1][0], "--yes", "--json"]),
        "{\"buried\":1}\n"
    );
    // With what is known of its deliveries.
    let first = &words(&inspect(path, &["items", "jobs"]))[1][0];
    assert_eq!(
        inspect(path, &["skip", "jobs", first, "--yes"]),
        "1 removed\n"
    );
    assert_eq!(
        inspect(path, &["skip", "jobs", "all", "--letters", "--yes"]),
        "1 removed\n"
    );

    let store = store(path);
    let tenants = store
        .builder::<(u8, u8)>("tenants")
        .fair_by(|item: &(u8, u8)| item.0)
        .build();
    let tenants = tenants.unwrap();
    assert_eq!(tenants.pop_batch(3).unwrap(), [(1, 3)]);
    assert_eq!(
        tenants.dead_letters().oldest().unwrap().unwrap().item,
        (1, 1)
    );
    let jobs = store.builder::<String>("jobs").codec(Json).build().unwrap();
    assert_eq!(jobs.pop_batch(3).unwrap(), ["third"]);
    assert!(jobs.dead_letters().is_empty());
}

#[test]
fn items_and_letters_are_moved() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fill(path);
    let before = inspect(path, &["export", "jobs"]);
    assert!(refused(path, &["move", "jobs", "all", "nowhere", "--yes"]).contains("no queue"));
    assert!(refused(path, &["move", "jobs", "all", "nowhere"]).contains("no queue"));
    assert!(refused(path, &["move", "jobs", "all", "jobs", "--yes"]).contains("unknown"));
    let would = inspect(path, &["move", "jobs", "all", "empty", "--letters"]);
    assert_eq!(would, "1 would be moved with --yes\n");
    assert_eq!(
        inspect(path, &["move", "jobs", "all", "empty", "--yes"]),
        "2 moved\n"
    );
    let letters = ["move", "jobs", "all", "empty", "--letters", "--yes"];
    assert_eq!(inspect(path, &letters), "1 moved\n");
    let [before, after] = [before, inspect(path, &["export", "empty"])];
    assert_eq!(without_numbers(&before)[1..], without_numbers(&after)[1..]);
    assert_eq!(inspect(path, &["export", "jobs"]).lines().count(), 1);

    // A time means the same in a queue of another order.
    inspect(path, &["skip", "tenants", "all", "--yes"]);
    inspect(path, &["move", "alarms", "all", "tenants", "--yes"]);
    let store = store(path);
    let tenants = store.builder::<(u8, u8)>("tenants");
    let tenants = tenants.fair_by(|item: &(u8, u8)| item.0).build().unwrap();
    assert_eq!((tenants.stats().delayed, tenants.stats().ready), (1, 0));
    let moved = store.builder::<String>("empty").codec(Json).build();
    let moved = moved.unwrap();
    assert_eq!(moved.pop_batch(9).unwrap(), ["third"]);
    assert_eq!(moved.dead_letters().len(), 1);
}

#[test]
fn what_cannot_be_imported_is_said_with_its_line() {
    let directory = tempfile::tempdir().unwrap();
    let [path, file] = ["store", "lines"].map(|name| directory.path().join(name));
    let queue = r#"{"queue":"jobs","order":"first in, first out"}"#;
    let cases = [
        (
            "{\"item\":1,\"hex\":\"00\"}",
            "line 1: no line names the queue",
        ),
        ("{\"queue\":\"jobs\",\"order\":\"by size\"}", "no order"),
        (
            &*format!("{queue}\n{{\"item\":1,\"hex\":\"0\"}}"),
            "line 2: hex has pairs",
        ),
        (&*format!("{queue}\n{{\"item\":1}}"), "either json or hex"),
        (
            &*format!("{queue}\n{{\"letter\":1,\"hex\":\"\"}}"),
            "has a reason",
        ),
        (
            &*format!("{queue}\n{{\"item\":1,\"hex\":\"\",\"size\":1}}"),
            "unknown field",
        ),
        ("[]\n", "line 1"),
    ];
    for (lines, expected) in cases {
        fs::write(&file, lines).unwrap();
        let error = refused(&path, &["import", file.to_str().unwrap()]);
        assert!(error.contains(expected), "{error}");
        assert!(error.contains("0 records before it"), "{error}");
    }
    assert!(refused(&path, &["--loud"]).contains("unknown option --loud"));
}

#[test]
fn a_copy_of_a_store_and_its_version() {
    let directory = tempfile::tempdir().unwrap();
    let [path, copy] = ["store", "copy"].map(|name| directory.path().join(name));
    fill(&path);
    let to = copy.to_str().unwrap();
    assert!(inspect(&path, &["snapshot", to]).contains("copied"));
    assert!(refused(&path, &["snapshot", to]).contains("exists"));
    assert_eq!(inspect(&path, &["export"]), inspect(&copy, &["export"]));
    assert_eq!(inspect(&copy, &["upgrade"]), "version 8\n");
}

/// In a store that others of this process use.
#[test]
fn queues_that_are_open_are_not_changed() {
    let directory = tempfile::tempdir().unwrap();
    fill(directory.path());
    let store: Store = store(directory.path());
    let inspector = store.inspector();
    let jobs = store.builder::<String>("jobs").codec(Json).build().unwrap();
    assert!(inspector.remove("jobs", Kind::Items, ..).is_err());
    assert!(inspector.move_to("empty", Kind::Items, .., "jobs").is_err());
    assert!(inspector.insert("jobs", []).is_err());
    let items: Result<Vec<_>, _> = inspector.items("jobs", ..).unwrap().collect();
    assert!(items.unwrap()[0].delayed.unwrap() > UNIX_EPOCH);
    drop(jobs);
    assert_eq!(inspector.remove("jobs", Kind::Items, ..).unwrap(), 2);
    assert_eq!(store.queue::<String>("jobs").unwrap().len(), 0);
}
