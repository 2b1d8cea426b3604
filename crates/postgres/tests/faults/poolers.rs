//! What is sent to a pooler that gives each transaction another session.

use crate::base::{options, until, Db, Mode};
use crate::calls::{Warm, CALLS};
use crate::proxy::{Direction, Proxy, Record};
use crate::server::{Pooler, SERVER};
use std::collections::VecDeque;
use tokio::join;
use tokio_postgres::NoTls;

/// The first message that is there as a whole, is removed: its type, and its text.
fn message(bytes: &mut Vec<u8>) -> Option<(u8, String)> {
    let length: [u8; 4] = bytes.get(1..5)?.try_into().unwrap();
    let end = 1 + u32::from_be_bytes(length) as usize;
    let text = String::from_utf8_lossy(bytes.get(5..end)?).into_owned();
    let kind = bytes.drain(..end).next();
    Some((kind?, text))
}

/// What was sent while the server owed the answer to something that leaves no transaction open.
fn too_early(record: &Record) -> Vec<String> {
    let (mut sent, mut answered) = (b"?".to_vec(), Vec::new()); // the first message has no type
    let (mut owed, mut open, mut early) = (VecDeque::new(), false, Vec::new());
    for (direction, bytes) in record {
        if *direction == Direction::ToClient {
            answered.extend(bytes);
            while let Some((kind, _)) = message(&mut answered) {
                if kind == b'Z' {
                    owed.pop_front().expect("it was asked");
                }
            }
            continue;
        }
        sent.extend(bytes);
        while let Some((kind, text)) = message(&mut sent) {
            if owed.contains(&false) {
                early.push(format!("{} {text}", kind as char));
            }
            let ends = ["commit", "rollback;"]
                .iter()
                .any(|end| text.starts_with(end));
            open = text.starts_with("begin") || open && !ends;
            if b"?QS".contains(&kind) {
                owed.push_back(open);
            }
        }
    }
    early
}

/// When an answer says that a transaction has ended, `pgbouncer` has its session go. What is sent before that answer has come may be given to
/// two sessions, and if the client dies then, the answer to it goes to another client.
#[tokio::test]
async fn nothing_is_sent_before_the_answer_to_the_end_of_a_transaction() {
    let (db, pooler) = (Db::new().await, Pooler::start(&SERVER, 4));
    until(|| async { tokio_postgres::connect(&pooler.url(), NoTls).await.is_ok() }).await;
    let proxy = Proxy::recording(&pooler.url()).await;
    let options = options(&proxy.url(), &db.schema).transaction_pooling();
    let process = options.max_connections(1).connect().await.unwrap();
    let jobs = Mode::Locked.jobs(&process);
    jobs.push_batch(0..100).await.unwrap();
    for call in CALLS {
        Warm::of(process.clone(), call).run().await.unwrap();
    }
    for _ in 0..3 {
        let mut tx = process.begin().await.unwrap();
        tx.pop(&jobs).await.unwrap().unwrap(); // and given back
    }
    let (one, two, three) = join!(jobs.stats(), jobs.held(), jobs.stats());
    assert_eq!(one.unwrap().ready, three.unwrap().ready);
    two.unwrap();
    let recorded = proxy.recorded();
    assert!(recorded.iter().any(|record| record.len() > 10));
    for record in recorded {
        assert_eq!(too_early(&record), [""; 0]);
    }
}
