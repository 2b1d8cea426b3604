//! Enough HTTP for a scrape. A service takes the feature `http-listener` of `metrics-exporter-prometheus`, or a route of its own
//! server.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// How long a client may be silent, since it is served alone.
const PATIENCE: Duration = Duration::from_secs(5);

/// Answers each request for `/metrics` with what `render` returns.
pub(crate) fn serve(listener: &TcpListener, render: impl Fn() -> String) {
    for client in listener.incoming().flatten() {
        if let Err(error) = answer(&client, &render) {
            eprintln!("requeue-exporter: {error}");
        }
    }
}

fn answer(mut client: &TcpStream, render: impl Fn() -> String) -> io::Result<()> {
    client.set_read_timeout(Some(PATIENCE))?;
    client.set_write_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new(client.take(8192)).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let (status, text) = match request.split(' ').nth(1) {
        Some("/metrics") => ("200 OK", render()),
        _ => ("404 Not Found", "see /metrics\n".to_owned()),
    };
    write!(
        client,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    )
}

/// The body of the answer to a request, which is an error unless it succeeds.
pub(crate) fn get(address: SocketAddr, path: &str) -> io::Result<String> {
    let mut server = TcpStream::connect(address)?;
    write!(server, "GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n")?;
    let mut answer = String::new();
    server.read_to_string(&mut answer)?;
    let body = answer.split_once("\r\n\r\n");
    match body.filter(|_| answer.starts_with("HTTP/1.1 200 ")) {
        Some((_, body)) => Ok(body.to_owned()),
        None => Err(io::Error::other(format!("no metrics: {answer}"))),
    }
}
