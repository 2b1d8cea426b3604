//! What the pages show.

use crate::client::{board, dead, Client};
use axum::http::StatusCode;
use requeue::{ManualClock, Pace, Queue};
use requeue_board::{Board, InMemory};
use std::time::Duration;

#[tokio::test]
async fn the_overview_shows_all_queues_and_their_counts() {
    let queue = Queue::builder().capacity(90).build();
    queue
        .push_batch((0..12).map(|number| number.to_string()))
        .unwrap();
    queue
        .after(Duration::from_secs(99))
        .push("later".to_owned())
        .unwrap();
    let worker = queue.begin_owned();
    worker.pop().unwrap();
    let client =
        Client::new(board(&queue).queue("other & more", InMemory::new(&dead(&[("a", "x"); 3]))));
    let page = client.get("/").await;
    page.shows(r#"data-label="Ready">11<"#)
        .shows(r#"data-label="Held">1<"#)
        .shows(r#"data-label="Delayed">1<"#);
    page.shows("other &amp; more")
        .shows(r#"bad" data-label="Dead">3<"#);
    let page = client.get("/queue?name=jobs").await;
    page.shows("<dt>Capacity</dt><dd>90</dd>")
        .shows("<dt>Dead</dt><dd>0</dd>");
    page.hides("<form class=\"ask\""); // nobody has logged in
}

#[tokio::test(start_paused = true)]
async fn what_stops_a_queue_is_shown() {
    let queue = Queue::unbounded();
    let client = Client::new(board(&queue));
    client
        .get("/")
        .await
        .hides("paused")
        .hides("paced")
        .hides("closed");
    queue.pause();
    queue.set_pace(Pace::every(Duration::from_secs(9)));
    queue.close();
    let queues = client.get("/queue?name=jobs").await; // the figures are those of a moment ago
    queues.hides("paused");
    tokio::time::sleep(Duration::from_secs(1)).await;
    client
        .get("/")
        .await
        .shows("paused")
        .shows("paced")
        .shows("closed");
}

#[tokio::test]
async fn workers_are_shown_with_what_they_hold_since_when() {
    let clock = ManualClock::new();
    let queue = Queue::builder().clock(clock.clone()).timestamps().build();
    queue.push_batch(["a", "b", "c"].map(String::from)).unwrap();
    clock.advance(Duration::from_secs(50));
    let mut worker = queue.named_handle("worker <7>");
    let tx = worker.begin();
    tx.pop_batch(2);
    clock.advance(Duration::from_secs(300));
    let client = Client::new(board(&queue));
    let page = client.get("/queue?name=jobs").await;
    page.shows("worker &lt;7&gt;")
        .shows(r#"data-label="Items">2<"#)
        .shows(r#"data-label="For">5 min<"#);
    page.shows("<dt>Oldest</dt><dd>5 min</dd>");
    tx.commit();
    client
        .get("/queue?name=jobs")
        .await
        .shows("Nobody holds items.");
}

#[tokio::test]
async fn entries_are_searched_and_paged() {
    let names: Vec<_> = (0..120)
        .map(|number| format!("letter {number:03}"))
        .collect();
    let letters = names.iter().map(|name| {
        (
            name.as_str(),
            if name.ends_with('7') { "Timeout" } else { "x" },
        )
    });
    let queue = dead(&letters.collect::<Vec<_>>());
    let client = Client::new(board(&queue));
    let page = client.get("/entries?queue=jobs&dead=1").await;
    page.shows("120 found")
        .shows("letter 000")
        .shows("letter 049")
        .hides("letter 050")
        .shows("Page 1 of 3");
    page.shows("page=1").hides("« First");
    let page = client.get("/entries?queue=jobs&dead=1&page=2").await;
    page.shows("letter 119")
        .hides("letter 099")
        .shows("« First")
        .hides("Next")
        .shows(r#"start="101""#);
    let page = client.get("/entries?queue=jobs&dead=1&text=timeOUT").await;
    page.shows("12 found")
        .shows("letter 117")
        .hides("letter 116")
        .hides("Page 1");
    client
        .get("/entries?queue=jobs&dead=1&text=no+such")
        .await
        .shows("0 found")
        .shows("Nothing here.");
    client
        .get("/entries?queue=jobs&dead=1&page=99999999999999999999")
        .await
        .shows("letter 000");
    let last = format!("/entries?queue=jobs&dead=1&page={}", usize::MAX);
    client.get(&last).await.shows("Nothing here.");
    client.get("/entries?queue=jobs").await.shows("0 found");
}

#[tokio::test]
async fn items_are_shown_with_their_attempts_and_times() {
    let clock = ManualClock::new();
    let queue = Queue::builder().clock(clock.clone()).timestamps().build();
    queue.push("now".to_owned()).unwrap();
    queue.take().unwrap().nack();
    queue
        .after(Duration::from_secs(40))
        .push("later".to_owned())
        .unwrap();
    clock.advance(Duration::from_secs(3));
    let page = Client::new(board(&queue)).get("/entries?queue=jobs").await;
    page.shows("delivered 1×, 3 s old")
        .shows("due in 37 s")
        .shows("2 found");
    assert_eq!(queue.stats().ready, 1); // they are where they were
}

#[tokio::test]
async fn long_texts_are_cut() {
    let long = "x".repeat(100_000);
    let page = Client::new(board(&dead(&[(&long, "short")])))
        .get("/entries?queue=jobs&dead=1")
        .await;
    assert!(page.text.len() < 10_000, "{}", page.text.len());
    page.shows("<details");
}

#[tokio::test]
async fn items_are_shown_by_a_function() {
    let queue = Queue::unbounded();
    queue.push("user and password".to_owned()).unwrap();
    let shown = InMemory::with(&queue, |item: &String| {
        item.split(' ').next().unwrap().into()
    });
    let client = Client::new(Board::new().queue("jobs", shown));
    client
        .get("/entries?queue=jobs")
        .await
        .shows("user")
        .hides("password");
    client
        .get("/entries?queue=jobs&text=password")
        .await
        .shows("0 found");
}

#[tokio::test]
async fn a_board_is_mounted_below_a_path() {
    let router = board(&dead(&[])).at("/admin/queues/").into_router();
    let router = axum::Router::new().merge(router);
    let client = Client {
        board: router,
        cookie: String::new(),
    };
    for address in ["/admin/queues", "/admin/queues/"] {
        client
            .get(address)
            .await
            .shows(r#"href="/admin/queues/queue?name=jobs""#);
    }
    client
        .get("/admin/queues/queue?name=jobs")
        .await
        .shows(r#"data-from="/admin/queues/live?queue=jobs""#);
    assert_eq!(
        client.get("/admin/queues/board.css").await.status,
        StatusCode::OK
    );
    assert_eq!(client.get("/").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn what_is_not_there_is_said() {
    let client = Client::new(board(&dead(&[])));
    for address in [
        "/nothing",
        "/queue?name=nothing",
        "/entries?queue=nothing",
        "/queue",
    ] {
        let answer = client.get(address).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{address}");
        answer.shows("There is no such");
    }
    Client::new(Board::new())
        .get("/")
        .await
        .shows("There are no queues.");
}

#[tokio::test]
async fn one_name_is_one_queue() {
    let (one, other) = (dead(&[("a", "x")]), dead(&[("a", "x"); 7]));
    let page = Client::new(board(&one).queue("jobs", InMemory::new(&other)))
        .get("/")
        .await;
    assert_eq!(page.text.matches("id=\"q-jobs\"").count(), 1);
    page.shows(r#"data-label="Dead">1<"#);
}
