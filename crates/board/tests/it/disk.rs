//! Queues on disk, and stores that no process has open.

use crate::client::{Client, TOKEN};
use requeue_board::{Board, InStore, OnDisk};
use requeue_durable::{DurableQueue, Store};

/// A queue with a ready item and these dead letters.
fn dead(store: &Store, name: &str, letters: &[&str]) -> DurableQueue<String> {
    let queue = store.queue(name).unwrap();
    for letter in letters {
        queue.push((*letter).to_owned()).unwrap();
        let tx = queue.begin_owned();
        tx.fail(tx.pop().unwrap(), "no <route>").unwrap();
        tx.commit().unwrap();
    }
    queue
}

#[tokio::test]
async fn an_open_queue_is_shown_and_changed() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let queue = dead(&store, "jobs", &["a", "b", "c", "d"]);
    let other = store.queue::<String>("other").unwrap();
    queue.push("ready".into()).unwrap();
    let board = Board::new()
        .queue("jobs", OnDisk::new(&queue))
        .queue("other", OnDisk::new(&other));
    let mut client = Client::new(board.token(TOKEN));
    client.log_in().await;
    client
        .get("/")
        .await
        .shows(r#"data-label="Ready">1<"#)
        .shows(r#"data-label="Dead">4<"#);
    client
        .get("/entries?queue=jobs")
        .await
        .shows("1 found")
        .shows("ready");
    let page = client.get("/entries?queue=jobs&dead=1&text=A").await;
    page.shows("no &lt;route&gt;");
    let one = client
        .get("/entries?queue=jobs&dead=1&text=%22a%22")
        .await
        .field("id");
    client
        .change(&[("queue", "jobs"), ("verb", "delete"), ("id", &one)])
        .await;
    client
        .change(&[
            ("queue", "jobs"),
            ("verb", "move"),
            ("to", "other"),
            ("text", "\"b\""),
        ])
        .await;
    client
        .change(&[("queue", "jobs"), ("verb", "retry"), ("text", "\"c\"")])
        .await;
    assert_eq!(
        (queue.dead_letters().len(), other.pop().unwrap()),
        (1, "b".into())
    );
    client
        .change(&[("queue", "jobs"), ("verb", "remove"), ("text", "\"ready\"")])
        .await;
    assert_eq!(queue.pop().unwrap(), "c");
    assert!(queue.is_empty());
    for (verb, is_paused) in [("pause", true), ("resume", false)] {
        client.change(&[("queue", "jobs"), ("verb", verb)]).await;
        assert_eq!(queue.is_paused(), is_paused);
    }
    client
        .change(&[("queue", "jobs"), ("verb", "pace"), ("rate", "5")])
        .await;
    assert!(!queue.pace().is_unlimited());
}

#[tokio::test]
async fn a_closed_store_is_read_only_unless_asked() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let queue = dead(&store, "jobs", &["a", "b"]);
    queue.push("<waiting>".into()).unwrap();
    drop((queue, store));
    for writes in [false, true] {
        let store = InStore::open(folder.path(), writes).unwrap();
        let mut client = Client::new(Board::new().source(store).token(TOKEN));
        client.log_in().await;
        client
            .get("/")
            .await
            .shows("jobs")
            .shows(r#"data-label="Dead">2<"#);
        let items = client.get("/entries?queue=jobs&text=waiting").await;
        items.shows("1 found").shows("&lt;waiting&gt;");
        let page = client.get("/entries?queue=jobs&dead=1").await;
        page.shows("2 found")
            .shows("no &lt;route&gt;")
            .hides("Delete");
        if writes {
            page.shows("Retry");
            client
                .change(&[
                    ("queue", "jobs"),
                    ("verb", "retry"),
                    ("id", &page.field("id")),
                ])
                .await;
            client
                .change(&[("queue", "jobs"), ("verb", "retry"), ("text", "failed")])
                .await;
        } else {
            page.hides("Retry");
            let asked = client.ask(&[("queue", "jobs"), ("verb", "retry")]).await;
            asked.shows("This queue does not offer that.");
        }
    }
    let store = Store::open(folder.path()).unwrap();
    let queue = store.queue::<String>("jobs").unwrap();
    assert_eq!((queue.len(), queue.dead_letters().len()), (3, 0));
}

#[test]
fn a_locked_store_is_said_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let open = Store::open(folder.path()).unwrap();
    let error = InStore::open(folder.path(), false).unwrap_err().to_string();
    assert!(
        error.contains("another process") || error.contains("open"),
        "{error}"
    );
    drop(open);
    InStore::open(folder.path(), false).unwrap();
    let nothing = folder.path().join("nothing");
    let error = InStore::open(&nothing, true).unwrap_err().to_string();
    assert!(
        error.contains("there is no store") && !nothing.exists(),
        "{error}"
    );
}
