//! Processes that are killed.

use super::start;
use crate::{until, Db};
use requeue_postgres::Postgres;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// In a child process: the URL and the schema.
const URL: &str = "REQUEUE_PACE_URL";
const SCHEMA: &str = "REQUEUE_PACE_SCHEMA";
const HOLDS: &str = "holds two places";

/// Starts a process that holds two of three places, and returns when it has them.
fn holder(schema: &str) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "pace::process::held_until_it_is_killed",
            "--nocapture",
            "--ignored",
        ])
        .env(URL, crate::server::SERVER.url())
        .env(SCHEMA, schema)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut said = lines.map_while(Result::ok);
    assert!(
        said.any(|line| line.contains(HOLDS)),
        "the process has ended"
    );
    child
}

#[tokio::test]
#[ignore = "run by another test, in a process of its own"]
async fn held_until_it_is_killed() {
    let Ok(url) = std::env::var(URL) else { return };
    let options = Postgres::options(&url).schema(&std::env::var(SCHEMA).unwrap());
    let db = options.connect().await.unwrap();
    let limit = db.concurrency("mail", 3).term(Duration::from_secs(2));
    let pace = limit.pace().await.unwrap();
    let _slots = (start(&pace).await, start(&pace).await);
    println!("{HOLDS}");
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_places_of_a_killed_process_come_back() {
    let db = Db::new().await;
    let mut child = holder(&db.schema);
    let pace = db.concurrency("mail", 3).pace().await.unwrap();
    let _first = start(&pace).await;
    let wants = "select count(*) from @.places where wanted > 0";
    until(|| async { super::starts(&pace).is_some() || db.number(wants).await > 0 }).await;
    assert!(
        super::starts(&pace).is_none(),
        "two places are held by the other process"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    let _ = (start(&pace).await, start(&pace).await);
}
