//! Queues in `PostgreSQL`.

use crate::client::{Answer, Client, TOKEN};
use crate::server::SERVER;
use requeue_board::{Board, InPostgres, Source};
use requeue_postgres::{PgQueue, Postgres};
use std::time::Duration;

/// A database of its own, with tables.
async fn database(name: &str) -> Postgres {
    let db = Postgres::options(&SERVER.url())
        .schema(name)
        .connect()
        .await
        .unwrap();
    db.install().await.unwrap();
    db
}

async fn fail(db: &Postgres, queue: &PgQueue<String>, item: &str) {
    queue.push(item.to_owned()).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    let item = tx.pop(queue).await.unwrap().unwrap();
    tx.fail(item, "no <route>").unwrap();
    tx.commit().await.unwrap();
}

async fn logged_in(db: &Postgres, schema: &str) -> Client {
    let board = Board::new()
        .source(InPostgres::of(db.clone(), schema))
        .token(TOKEN);
    let mut client = Client::new(board);
    client.log_in().await;
    client.get("/").await.hides("No new figures");
    client
}

async fn change(client: &Client, fields: &[(&str, &str)]) -> Answer {
    let answer = client
        .change(&[&[("queue", "jobs")], fields].concat())
        .await;
    client.get(answer.header("location")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_is_shown_and_changed() {
    let schema = "board's \"own\"";
    let db = database(schema).await;
    let (queue, other) = (db.queue::<String>("jobs"), db.queue::<String>("other"));
    other.push("first".into()).await.unwrap();
    for item in ["a", "b", "c", "d"] {
        fail(&db, &queue, item).await;
    }
    queue.push("ready".into()).await.unwrap();
    queue
        .after(Duration::from_secs(99))
        .push("later".into())
        .await
        .unwrap();
    let client = logged_in(&db, schema).await;
    let page = client.get("/").await;
    page.shows("jobs")
        .shows("other")
        .shows(r#"data-label="Delayed">1<"#)
        .shows(r#"data-label="Dead">4<"#);
    let page = client.get("/entries?queue=jobs").await;
    page.shows("2 found").shows("due in 9").shows("ready");
    let page = client.get("/entries?queue=jobs&dead=1").await;
    page.shows("4 found")
        .shows("no &lt;route&gt;")
        .shows("<option>other</option>");
    let id = page.field("id"); // of the oldest
    change(&client, &[("verb", "delete"), ("id", &id)])
        .await
        .shows("Done: delete, 1");
    change(
        &client,
        &[("verb", "move"), ("to", "other"), ("text", "\"B\"")],
    )
    .await
    .shows("Done: move, 1");
    change(&client, &[("verb", "retry"), ("text", "\"c\"")])
        .await
        .shows("Done: retry, 1");
    change(&client, &[("verb", "remove"), ("text", "later")])
        .await
        .shows("Done: remove, 1");
    let mut tx = db.begin().await.unwrap();
    let moved = [
        tx.pop(&other).await.unwrap().unwrap(),
        tx.pop(&other).await.unwrap().unwrap(),
    ];
    assert_eq!(moved.map(|item| item.to_string()), ["first", "b"]);
    drop(tx);
    assert_eq!(queue.stats().await.unwrap().delayed, 0);
    change(&client, &[("verb", "retry")])
        .await
        .shows("Done: retry, 1");
    assert_eq!(queue.dead_letters().len().await.unwrap(), 0);
    fail(&db, &other, "of another queue").await;
    let page = client.get("/entries?queue=other&dead=1").await;
    let id = page.field("id");
    change(&client, &[("verb", "delete"), ("id", &id)])
        .await
        .shows("Done: delete, 0");
    change(&client, &[("verb", "retry"), ("id", &id)])
        .await
        .shows("Done: retry, 0");
    change(&client, &[("verb", "pause")]).await.shows("paused");
    assert!(queue.stats().await.unwrap().paused);
    change(&client, &[("verb", "resume")]).await.hides("paused");
    let asked = client
        .ask(&[("queue", "jobs"), ("verb", "pace"), ("rate", "1")])
        .await;
    asked.shows("This queue does not offer that.");
}

#[tokio::test(flavor = "multi_thread")]
async fn holders_of_leases_are_shown() {
    let db = database("leases").await;
    let queue: PgQueue<String> = db
        .builder("jobs")
        .leased(Duration::from_secs(60))
        .holder("worker <7>")
        .build();
    queue
        .push_batch(["a", "b"].map(String::from))
        .await
        .unwrap();
    let mut tx = db.begin().await.unwrap();
    tx.pop(&queue).await.unwrap().unwrap();
    tx.pop(&queue).await.unwrap().unwrap();
    let client = logged_in(&db, "leases").await;
    let page = client.get("/queue?name=jobs").await;
    page.shows("worker &lt;7&gt;")
        .shows(r#"data-label="Items">2<"#)
        .shows("<dt>Held</dt><dd>2</dd>");
}

/// Texts that would be statements.
#[tokio::test(flavor = "multi_thread")]
async fn statements_are_texts() {
    let db = database("texts").await;
    let name = "'; drop table texts.dead; --";
    let queue = db.queue::<String>(name);
    fail(&db, &queue, "' or true; --").await;
    let client = logged_in(&db, "texts").await;
    let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    for (text, found) in [
        (name, 0),
        ("' or true; --", 1),
        ("%", 0),
        ("\\", 0),
        ("_", 0),
        ("", 1),
    ] {
        let address = format!(
            "/entries?queue={}&dead=1&text={}",
            encode(name),
            encode(text)
        );
        client.get(&address).await.shows(&format!("{found} found"));
    }
    for id in ["1 or true", "", "0; delete from texts.dead"] {
        let fields = [
            ("queue", name),
            ("verb", "delete"),
            ("id", id),
            ("text", "no such"),
        ];
        client.change(&fields).await;
    }
    assert_eq!(queue.dead_letters().len().await.unwrap(), 1);
}

/// The rate with the name of a queue is its pace.
#[tokio::test(flavor = "multi_thread")]
async fn the_pace_of_a_queue_is_changed() {
    let db = database("paced").await;
    let hour = Duration::from_secs(3600);
    let _pace = db.rate("jobs", 1, hour).pace().await.unwrap();
    let queue = db.queue::<String>("jobs");
    queue.push("a".into()).await.unwrap();
    db.queue::<String>("other").push("a".into()).await.unwrap();
    let client = logged_in(&db, "paced").await;
    client.get("/queue?name=other").await.hides("Set pace");
    client.get("/queue?name=jobs").await.shows("Set pace");
    let per_minute = [("verb", "pace"), ("rate", "0.5")];
    change(&client, &per_minute).await.shows("Done: pace");
    let spacing = async || {
        let mut tx = db.begin().await.unwrap();
        let rows = tx
            .client()
            .query("select spacing from paced.rates", &[])
            .await;
        rows.unwrap()[0].get::<_, i64>(0)
    };
    assert_eq!(spacing().await, 2_000_000_000);
    change(&client, &[("verb", "pace"), ("rate", "")]).await;
    assert_eq!(spacing().await, 1);
}

/// What came in and what has gone, as other processes say.
#[tokio::test(flavor = "multi_thread")]
async fn finished_items_are_counted() {
    let db = database("counted").await;
    let queue = db.queue::<String>("jobs");
    let items = ["a", "b", "c", "d"].map(String::from);
    queue.push_batch(items).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    tx.pop_batch(&queue, 2).await.unwrap();
    tx.commit().await.unwrap();
    fail(&db, &queue, "e").await;
    let shown = InPostgres::of(db.clone(), "counted");
    let counted = async {
        loop {
            let queues = shown.queues().await.unwrap();
            let counts = queues[0].1.counts().await.unwrap();
            if counts.done == Some(3) {
                break counts;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let counts = tokio::time::timeout(Duration::from_secs(60), counted).await;
    let counts = counts.expect("it is told");
    assert_eq!((counts.pushed, counts.ready), (Some(5), 2));
}
