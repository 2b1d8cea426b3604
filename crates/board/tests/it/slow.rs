//! Clients that send or read slowly, over a network.

use crate::client::{board, dead};
use axum::body::Body;
use axum::Router;
use futures_util::stream::iter;
use requeue_board::serve;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout, Instant};

async fn start() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(
        listener,
        board(&dead(&[])).token("a long secret").into_router(),
    ));
    address
}

async fn ask(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

/// Reads until the server ends the connection, in the time of a paused clock.
async fn end(stream: &mut TcpStream) -> (String, Duration) {
    let (mut bytes, began) = (Vec::new(), Instant::now());
    let _ = timeout(Duration::from_secs(120), stream.read_to_end(&mut bytes))
        .await
        .expect("it is kept open");
    (
        String::from_utf8_lossy(&bytes).into_owned(),
        began.elapsed(),
    )
}

#[tokio::test(start_paused = true)]
async fn slow_requests_are_ended() {
    let address = start().await;
    let cases: [(&str, &str); 4] = [
        ("nothing", ""),
        ("half a head", "GET / HTTP/1.1\r\nhost: local"),
        (
            "an idle connection",
            "GET /board.css HTTP/1.1\r\nhost: localhost\r\n\r\n",
        ),
        (
            "half a form",
            "POST /login HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99\r\n\r\ntoken=",
        ),
    ];
    for (case, sent) in cases {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        let (text, time) = end(&mut stream).await;
        assert!((9..=25).contains(&time.as_secs()), "{case}: {time:?}");
        assert_eq!(
            text.contains("408"),
            case == "half a form",
            "{case}: {text}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn long_heads_are_refused() {
    let address = start().await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "GET / HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n",
        "y".repeat(100_000)
    );
    let _ = stream.write_all(head.as_bytes()).await;
    let (text, _) = end(&mut stream).await;
    assert!(text.is_empty() || text.contains(" 431 "), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_connections_leaves_room_for_others() {
    let address = start().await;
    let mut idle = Vec::new();
    for _ in 0..300 {
        idle.push(TcpStream::connect(address).await.unwrap());
    }
    let answer = timeout(Duration::from_secs(60), ask(address))
        .await
        .expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_nothing_is_dropped() {
    const MOST: usize = 64 << 20;
    let endless = || async {
        let piece = || Ok::<_, Infallible>("x".repeat(10_000));
        Body::from_stream(iter(std::iter::repeat_with(piece)))
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(listener, Router::new().fallback(endless)));
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .unwrap();
    sleep(Duration::from_secs(60)).await;
    let (mut count, mut bytes) = (0, vec![0; 1 << 16]);
    while count < MOST {
        match stream.read(&mut bytes).await {
            Ok(0) | Err(_) => break,
            Ok(more) => count += more,
        }
    }
    assert!((1..MOST).contains(&count), "{count} bytes");
}
