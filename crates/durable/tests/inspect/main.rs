//! The command `requeue-inspect`.

mod moved;

use requeue_durable::{Store, StoreError, StoreOptions};
use std::path::Path;
use std::process::{Command, Output};

fn store(path: &Path) -> Store {
    StoreOptions::new().reserve(0).open(path).unwrap()
}

fn run(path: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_requeue-inspect"));
    command.arg(path).args(arguments).output().unwrap()
}

fn inspect(path: &Path, arguments: &[&str]) -> String {
    let output = run(path, arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn refused(path: &Path, arguments: &[&str]) -> String {
    let output = run(path, arguments);
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Queues with three items, and three dead letters in one of them.
fn fill(path: &Path) {
    let store = store(path);
    let jobs = store.builder::<String>("jobs").build().unwrap();
    jobs.push_batch(["bad", "worse", "worst"].map(String::from))
        .unwrap();
    let tx = jobs.begin_owned();
    for _ in 0..3 {
        let item = tx.pop().unwrap();
        let error = format!("no \"page\"\nfor {}", *item);
        tx.fail(item, error).unwrap();
    }
    tx.commit().unwrap();
    jobs.push_batch(["good", "better"].map(String::from))
        .unwrap();
    let alarms = store
        .builder::<u32>("alarms")
        .by_priority()
        .build()
        .unwrap();
    alarms.push(1).unwrap();
    alarms.close().unwrap();
}

#[test]
fn queues_and_letters_are_shown() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fill(path);
    let queues: Vec<Vec<String>> = words(&inspect(path, &[]));
    assert_eq!(queues[1], ["alarms", "1", "0", "by", "priority,", "closed"]);
    assert_eq!(
        queues[2],
        ["jobs", "2", "3", "first", "in,", "first", "out"]
    );
    let letters = words(&inspect(path, &["letters", "jobs"]));
    assert_eq!(letters.len(), 4);
    assert_eq!(letters[2][1], "1");
    assert_eq!(letters[2][3..5], ["6", "failed"]); // postcard puts the length in front
    assert_eq!(letters[2][5..].join(" "), r#"no \"page\"\nfor worse"#);
    assert_eq!(words(&inspect(path, &["letters", "alarms"])).len(), 1);
}

fn words(text: &str) -> Vec<Vec<String>> {
    let words = |line: &str| line.split_whitespace().map(String::from).collect();
    text.lines().map(words).collect()
}

#[test]
fn json() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fill(path);
    assert_eq!(
        inspect(path, &["--json"]),
        "[{\"name\":\"alarms\",\"items\":1,\"dead_letters\":0,\"closed\":true,\"order\":\"by priority\"},\n \
         {\"name\":\"jobs\",\"items\":2,\"dead_letters\":3,\"closed\":false,\"order\":\"first in, first out\"}]\n"
    );
    let letters = inspect(path, &["letters", "jobs", "--json"]);
    assert!(
        letters.contains(r#""reason":"failed","error":"no \"page\"\nfor worse"}"#),
        "{letters}"
    );
}

#[test]
fn requeued_letters_are_items_behind_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fill(path);
    let letters = words(&inspect(path, &["letters", "jobs"]));
    let worse = letters[2][0].as_str();
    assert_eq!(inspect(path, &["requeue", "jobs", worse]), "1 requeued\n");
    assert!(refused(path, &["requeue", "jobs", worse]).contains("no dead letter"));
    assert_eq!(
        inspect(path, &["requeue", "jobs", "all", "--json"]),
        "{\"requeued\":2}\n"
    );
    assert_eq!(inspect(path, &["requeue", "jobs", "all"]), "0 requeued\n");

    let jobs = store(path).queue::<String>("jobs").unwrap();
    assert!(jobs.dead_letters().is_empty());
    let expected = ["good", "better", "worse", "bad", "worst"];
    assert_eq!(jobs.pop_batch(9).unwrap(), expected);
}

#[test]
fn impossible_commands_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let nowhere = path.join("nowhere");
    assert!(refused(&nowhere, &[]).contains("no store"));
    assert!(!nowhere.exists());
    fill(path);
    assert!(refused(path, &["letters", "none"]).contains("no queue"));
    assert!(refused(path, &["requeue", "jobs", "many"]).contains("neither"));
    let store = store(path);
    assert!(refused(path, &[]).contains("is open"));
    let jobs = store.queue::<String>("jobs").unwrap();
    let requeued = store.inspector().requeue_all("jobs");
    assert!(
        matches!(requeued, Err(StoreError::InUse(_))),
        "{requeued:?}"
    );
    assert_eq!(jobs.dead_letters().requeue_all().unwrap(), 3);
    drop(jobs);
    assert_eq!(store.inspector().requeue_all("jobs").unwrap(), 0);
}
