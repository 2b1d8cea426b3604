//! Each change, confirmed and logged.

use crate::client::{board, dead, logged_in, Client, TOKEN};
use axum::http::StatusCode;
use requeue::Queue;
use requeue_board::InMemory;
use std::sync::{Arc, Mutex};

fn letters(queue: &Queue<String>) -> Vec<(u64, String)> {
    let mut letters = Vec::new();
    queue
        .dead_letters()
        .visit(|letter| letters.push((letter.id(), letter.item.clone())));
    letters
}

#[tokio::test]
async fn pause_and_resume() {
    let queue = dead(&[]);
    let client = logged_in(&queue).await;
    let answer = client.change(&[("queue", "jobs"), ("verb", "pause")]).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
    assert!(queue.is_paused());
    client
        .get(answer.header("location"))
        .await
        .shows("Done: pause, 1")
        .shows("paused");
    client
        .change(&[("queue", "jobs"), ("verb", "resume")])
        .await;
    assert!(!queue.is_paused());
}

#[tokio::test]
async fn a_pace_is_set_and_ended() {
    let queue = dead(&[]);
    let client = logged_in(&queue).await;
    let pace = |rate| [("queue", "jobs"), ("verb", "pace"), ("rate", rate)];
    client.change(&pace("0.001")).await;
    queue.push_batch(["a", "b"].map(String::from)).unwrap();
    assert_eq!(queue.pop().as_deref(), Ok("a"));
    assert!(queue.pop().unwrap_err().is_empty()); // 1,000 seconds later
    client.change(&pace("")).await;
    assert_eq!(queue.pop().as_deref(), Ok("b"));
    for rate in ["0", "-1", "NaN", "inf", "1e99", "fast"] {
        assert_eq!(
            client.ask(&pace(rate)).await.status,
            StatusCode::BAD_REQUEST,
            "{rate}"
        );
    }
    assert!(queue.pace().is_unlimited());
}

#[tokio::test]
async fn letters_are_retried() {
    let queue = dead(&[("a", "x"), ("b", "x"), ("c", "y")]);
    let client = logged_in(&queue).await;
    let id = letters(&queue)[1].0.to_string();
    client
        .change(&[("queue", "jobs"), ("verb", "retry"), ("id", &id)])
        .await;
    assert_eq!(
        (queue.pop().as_deref(), queue.dead_letters().len()),
        (Ok("b"), 2)
    );
    client
        .change(&[("queue", "jobs"), ("verb", "retry"), ("text", "Y")])
        .await;
    assert_eq!(
        (queue.pop().as_deref(), queue.dead_letters().len()),
        (Ok("c"), 1)
    );
    let answer = client
        .change(&[("queue", "jobs"), ("verb", "retry"), ("id", &id)])
        .await;
    client
        .get(answer.header("location"))
        .await
        .shows("Done: retry, 0"); // it is gone
    client.change(&[("queue", "jobs"), ("verb", "retry")]).await;
    assert_eq!(
        (queue.pop().as_deref(), queue.dead_letters().len()),
        (Ok("a"), 0)
    );
}

#[tokio::test]
async fn letters_are_deleted() {
    let queue = dead(&[("a", "x"), ("b", "x"), ("c", "y")]);
    let client = logged_in(&queue).await;
    let id = letters(&queue)[0].0.to_string();
    client
        .change(&[("queue", "jobs"), ("verb", "delete"), ("id", &id)])
        .await;
    assert_eq!(letters(&queue).len(), 2);
    let asked = client
        .ask(&[("queue", "jobs"), ("verb", "delete"), ("text", "y")])
        .await;
    asked
        .shows("delete all dead letters that contain &quot;y&quot;")
        .shows("That concerns 1 now.");
    client
        .change(&[("queue", "jobs"), ("verb", "delete"), ("text", "y")])
        .await;
    assert_eq!(letters(&queue)[0].1, "b");
    assert!(queue.is_empty());
}

#[tokio::test]
async fn letters_are_moved_to_queues_of_the_same_items() {
    let (queue, other) = (dead(&[("a", "x"), ("b", "x")]), Queue::<String>::bounded(1));
    let others = Queue::<u32>::unbounded();
    let board = board(&queue)
        .token(TOKEN)
        .queue("other", InMemory::new(&other));
    let mut client = Client::new(board.queue("numbers", InMemory::new(&others)));
    client.log_in().await;
    let page = client.get("/entries?queue=jobs&dead=1").await;
    page.shows("<option>other</option>")
        .hides("<option>numbers</option>")
        .hides("<option>jobs</option>");
    let answer = client
        .change(&[("queue", "jobs"), ("verb", "move"), ("to", "other")])
        .await;
    assert!(
        answer.header("location").ends_with("done=1"),
        "the other queue is full"
    );
    assert_eq!(
        (other.pop().as_deref(), letters(&queue)[0].1.as_str()),
        (Ok("a"), "b")
    );
    for to in ["numbers", "jobs", "nothing", ""] {
        let answer = client
            .ask(&[("queue", "jobs"), ("verb", "move"), ("to", to)])
            .await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{to}");
    }
}

#[tokio::test]
async fn items_are_removed() {
    let queue = Queue::builder().tracked().build();
    queue
        .push_batch(["a", "b", "bb", "c"].map(String::from))
        .unwrap();
    let client = logged_in(&queue).await;
    let page = client.get("/entries?queue=jobs&text=c").await;
    let id = page.field("id");
    client
        .change(&[("queue", "jobs"), ("verb", "remove"), ("id", &id)])
        .await;
    client
        .change(&[("queue", "jobs"), ("verb", "remove"), ("text", "B")])
        .await;
    assert!(queue.drain().eq(["a"]));
    queue.push("d".into()).unwrap();
    client
        .change(&[("queue", "jobs"), ("verb", "remove")])
        .await;
    assert!(queue.is_empty());
}

#[tokio::test]
async fn changes_are_logged() {
    let queue = dead(&[("a", "x")]);
    let lines = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&lines);
    let board = board(&queue)
        .token(TOKEN)
        .on_change(move |change| keep.lock().unwrap().push(change.to_string()));
    let mut client = Client::new(board);
    client.log_in().await;
    client
        .change(&[("queue", "jobs"), ("verb", "retry"), ("text", "<i>\n")])
        .await;
    let answer = client
        .change(&[("queue", "jobs"), ("verb", "delete"), ("id", "no number")])
        .await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    let kept = std::mem::take(&mut *lines.lock().unwrap());
    assert_eq!(
        kept[0],
        r#""jobs": "retry all dead letters that contain \"<i>\\n\"": 0"#
    );
    assert!(
        kept[1].starts_with(r#""jobs": "delete the dead letter no number": failed"#),
        "{}",
        kept[1]
    );
    let page = client.get("/changes").await;
    page.shows("retry all dead letters that contain &quot;&lt;i&gt;\\n&quot;")
        .shows("invalid digit");
    client.ask(&[("queue", "jobs"), ("verb", "pause")]).await; // not confirmed
    assert!(lines.lock().unwrap().is_empty());
}
