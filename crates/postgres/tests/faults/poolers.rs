//! What is sent to a pooler that gives each transaction another session.

use crate::base::{options, until, Db, Mode};
use crate::calls::{Warm, CALLS};
use crate::proxy::Proxy;
use crate::server::{Pooler, SERVER};
use tokio_postgres::NoTls;

/// The statements of a client that are sent in several messages, while no transaction is open.
fn outside(sent: &[u8]) -> Vec<String> {
    let length = |at: &[u8]| u32::from_be_bytes(at[..4].try_into().unwrap()) as usize;
    let mut rest = &sent[length(sent)..]; // after that which opens the connection
    let (mut open, mut outside) = (false, Vec::new());
    while !rest.is_empty() {
        let end = 1 + length(&rest[1..]);
        let text = String::from_utf8_lossy(&rest[5..end]).into_owned();
        match rest[0] {
            b'Q' if text.starts_with("begin") => open = true,
            b'Q' if ["commit", "rollback;"]
                .iter()
                .any(|end| text.starts_with(end)) =>
            {
                open = false
            }
            b'P' if !open => outside.push(text),
            _ => {}
        }
        rest = &rest[end..];
    }
    outside
}

/// When the answer to an earlier statement comes between the messages of one, `pgbouncer` may give them to two sessions, and the second
/// one runs what it has parsed for somebody else. Within a transaction it does not.
#[tokio::test]
async fn statements_are_sent_within_transactions() {
    let (db, pooler) = (Db::new().await, Pooler::start(&SERVER, 4));
    until(|| async { tokio_postgres::connect(&pooler.url(), NoTls).await.is_ok() }).await;
    let proxy = Proxy::recording(&pooler.url()).await;
    let options = options(&proxy.url(), &db.schema).transaction_pooling();
    let process = options.connect().await.unwrap();
    Mode::Locked.jobs(&db).push_batch(0..100).await.unwrap();
    for call in CALLS {
        Warm::of(process.clone(), call).run().await.unwrap();
    }
    let recorded = proxy.recorded();
    assert!(recorded.iter().any(|sent| sent.len() > 1000));
    for sent in recorded {
        assert_eq!(outside(&sent), [""; 0]);
    }
}
