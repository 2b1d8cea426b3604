//! Figures while somebody looks.

use crate::client::{board, dead, Client};
use axum::body::{Body, BodyDataStream};
use axum::http::StatusCode;
use futures_util::StreamExt;
use requeue::Queue;
use requeue_board::{Board, Change, Counts, Holder, Inspect, Page, Reply, Search, Source, Verb};
use std::future::ready;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{advance, sleep, timeout};
use tower::ServiceExt;

/// A queue that counts how often it is looked at, and may not answer.
#[derive(Default)]
struct Counted {
    looks: AtomicU64,
    hangs: AtomicU64,
}

impl Inspect for Counted {
    fn verbs(&self) -> &[Verb] {
        &[]
    }

    fn counts(&self) -> Reply<'_, Counts> {
        let count = self.looks.fetch_add(1, Ordering::Relaxed) + 1;
        let pushed = Some(count * 10);
        let counts = Counts {
            ready: count,
            pushed,
            done: Some(0),
            ..Counts::default()
        };
        if self.hangs.load(Ordering::Relaxed) > 0 {
            return Box::pin(std::future::pending());
        }
        Box::pin(ready(Ok(counts)))
    }

    fn holders(&self) -> Reply<'_, Vec<Holder>> {
        Box::pin(ready(Ok(Vec::new())))
    }

    fn page(&self, _: Search) -> Reply<'_, Page> {
        Box::pin(std::future::pending())
    }

    fn change(&self, _: Change) -> Reply<'_, u64> {
        Box::pin(ready(Err("no".into())))
    }
}

async fn watch(client: &Client, address: &str) -> Result<BodyDataStream, StatusCode> {
    let request = client.request("GET", address).body(Body::empty()).unwrap();
    let response = client.board.clone().oneshot(request).await.unwrap();
    match response.status() {
        StatusCode::OK => Ok(response.into_body().into_data_stream()),
        status => Err(status),
    }
}

async fn next(stream: &mut BodyDataStream) -> Option<String> {
    let piece = timeout(Duration::from_secs(300), stream.next())
        .await
        .expect("no figures");
    piece.map(|bytes| String::from_utf8(bytes.unwrap().to_vec()).unwrap())
}

fn counted() -> (Arc<Counted>, Client) {
    let queue = Arc::new(Counted::default());
    let shown = Arc::clone(&queue);
    (queue, Client::new(Board::new().shared("jobs", shown)))
}

#[tokio::test(start_paused = true)]
async fn figures_come_each_second() {
    let queue = Queue::unbounded();
    let client = Client::new(board(&queue));
    let mut all = watch(&client, "/live").await.unwrap();
    let mut one = watch(&client, "/live?queue=jobs").await.unwrap();
    next(&mut all).await;
    next(&mut one).await;
    for count in 1..4 {
        queue.push("a".to_owned()).unwrap();
        let ready = format!(r#"data-label="Ready">{count}<"#);
        // A sample may have been under way.
        while !next(&mut all).await.unwrap().contains(&ready) {}
        let figures = next(&mut one).await.unwrap();
        assert!(
            figures.starts_with("event: figures\ndata: ") && figures.contains("<dt>Ready</dt>"),
            "{figures}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_board_that_nobody_looks_at_does_nothing() {
    let (queue, client) = counted();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(queue.looks.load(Ordering::Relaxed), 0);
    let mut stream = watch(&client, "/live").await.unwrap();
    for _ in 0..5 {
        next(&mut stream).await;
    }
    assert!(queue.looks.load(Ordering::Relaxed) >= 3);
    drop(stream);
    sleep(Duration::from_secs(2)).await;
    let looks = queue.looks.load(Ordering::Relaxed);
    sleep(Duration::from_secs(600)).await;
    assert_eq!(queue.looks.load(Ordering::Relaxed), looks);
    // And again.
    let mut stream = watch(&client, "/live").await.unwrap();
    for _ in 0..3 {
        next(&mut stream).await;
    }
    assert!(queue.looks.load(Ordering::Relaxed) > looks);
}

#[tokio::test(start_paused = true)]
async fn a_board_may_sample_always() {
    let queue = Arc::new(Counted::default());
    let shown = Arc::clone(&queue);
    let router = Board::new().shared("jobs", shown).always().into_router();
    sleep(Duration::from_secs(95)).await;
    assert_eq!(queue.looks.load(Ordering::Relaxed), 10);
    drop(router);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(queue.looks.load(Ordering::Relaxed), 10);
}

#[tokio::test(start_paused = true)]
async fn viewers_are_limited_and_slow_ones_lose_their_places() {
    let (_, client) = counted();
    let mut viewers = Vec::new();
    for _ in 0..32 {
        viewers.push(watch(&client, "/live").await.unwrap());
    }
    assert_eq!(
        watch(&client, "/live").await.err(),
        Some(StatusCode::SERVICE_UNAVAILABLE)
    );
    let mut slow = viewers.pop().unwrap();
    for _ in 0..40 {
        advance(Duration::from_secs(1)).await;
        for viewer in &mut viewers {
            assert!(next(viewer).await.is_some());
        }
    }
    drop(
        watch(&client, "/live")
            .await
            .expect("the place of the slow one"),
    );
    // It takes what it finds, and then its stream ends.
    let mut count = 0;
    while next(&mut slow).await.is_some() {
        count += 1;
    }
    assert!(count <= 1, "{count} were kept for it");
}

#[tokio::test(start_paused = true)]
async fn many_page_loads_take_one_sample() {
    let (queue, client) = counted();
    let loads = (0..200).map(|_| {
        let client = client.clone();
        tokio::spawn(async move { client.get("/").await.status })
    });
    for load in loads.collect::<Vec<_>>() {
        assert_eq!(load.await.unwrap(), StatusCode::OK);
    }
    for _ in 0..9 {
        advance(Duration::from_millis(100)).await;
        client.get("/").await;
    }
    assert_eq!(queue.looks.load(Ordering::Relaxed), 1);
    advance(Duration::from_millis(100)).await;
    client.get("/").await;
    assert_eq!(queue.looks.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn searches_at_a_time_are_limited() {
    let (_, client) = counted();
    let searches = (0..4).map(|_| {
        let client = client.clone();
        tokio::spawn(async move { client.get("/entries?queue=jobs").await.status })
    });
    let searches: Vec<_> = searches.collect(); // which never end
    sleep(Duration::from_secs(1)).await;
    let refused = timeout(Duration::from_secs(1), client.get("/entries?queue=jobs"));
    let refused = refused.await.expect("no search");
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    client.get("/").await.shows("jobs"); // other pages are there
    searches.iter().for_each(tokio::task::JoinHandle::abort);
    sleep(Duration::from_secs(1)).await;
    let again = client.get("/entries?queue=jobs");
    assert!(
        timeout(Duration::from_secs(1), again).await.is_err(),
        "it searches"
    );
}

#[tokio::test(start_paused = true)]
async fn queues_that_do_not_answer_are_said_to() {
    let (queue, client) = counted();
    client.get("/").await.hides("do not answer");
    queue.hangs.store(1, Ordering::Relaxed);
    sleep(Duration::from_secs(2)).await;
    client
        .get("/")
        .await
        .shows("No new figures: the queues do not answer")
        .shows(r#"data-label="Ready">1<"#);
    queue.hangs.store(0, Ordering::Relaxed);
    sleep(Duration::from_secs(2)).await;
    client.get("/").await.hides("do not answer");
}

/// Queues that come and go.
struct Sources(Arc<Mutex<Named>>);

type Named = Vec<(String, Arc<dyn Inspect>)>;

impl Source for Sources {
    fn queues(&self) -> Reply<'_, Named> {
        let queues = self.0.lock().unwrap().clone();
        let error = || "the server is away".into();
        Box::pin(ready(
            (!queues.is_empty()).then_some(queues).ok_or_else(error),
        ))
    }
}

#[tokio::test(start_paused = true)]
async fn queues_of_a_source_come_and_go() {
    let (queue, shown) = (Arc::new(Counted::default()), Arc::new(Mutex::default()));
    let client = Client::new(Board::new().source(Sources(Arc::clone(&shown))));
    client
        .get("/")
        .await
        .shows("No new figures: the server is away");
    shown
        .lock()
        .unwrap()
        .push(("first".into(), queue.clone() as Arc<dyn Inspect>));
    sleep(Duration::from_secs(2)).await;
    client
        .get("/")
        .await
        .shows("first")
        .hides("away")
        .hides("second");
    shown
        .lock()
        .unwrap()
        .push(("second".into(), Arc::new(Counted::default())));
    sleep(Duration::from_secs(2)).await;
    let page = client.get("/").await;
    page.shows("first")
        .shows("second")
        .shows(r#"data-label="In/s">"#); // the first one has a rate, so its history is kept
    let first = page.text.split("q-second").next().unwrap();
    assert!(!first.contains(r#"data-label="In/s">–"#), "{first}");
    shown.lock().unwrap().remove(0);
    sleep(Duration::from_secs(2)).await;
    client.get("/").await.hides("first").shows("second");
    assert_eq!(
        client.get("/queue?name=first").await.status,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn a_queue_that_is_gone_is_said_to_be() {
    let client = Client::new(board(&dead(&[])));
    let mut stream = watch(&client, "/live?queue=gone").await.unwrap();
    assert!(next(&mut stream)
        .await
        .unwrap()
        .contains("The queue is gone."));
}
