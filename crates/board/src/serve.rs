//! A server for a board alone, which slow and many clients do not stop.

use axum::Router;
use hyper::server::conn::http1::Builder;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::sleep;
use tokio_io_timeout::TimeoutStream;

/// The most connections at a time. Others wait to be accepted.
const CONNECTIONS: usize = 256;
/// How long the head of a request may take, and how long a client may take nothing of what it was sent.
const HEAD: Duration = Duration::from_secs(10);
const TAKES_NOTHING: Duration = Duration::from_secs(20);
/// The longest head of a request, in bytes.
const LONGEST: usize = 16 * 1024;

/// Serves a board until the task is aborted. Connections are closed if their requests come slowly, if they ask for nothing for 10 seconds,
/// or if nothing is read from them for 20 seconds, and 256 are served at a time. A board in a server of your own has the limits of that.
///
/// # Errors
///
/// Never: an error of a connection ends that only.
pub async fn serve(listener: TcpListener, board: Router) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return Ok(());
        };
        let Ok((stream, _)) = listener.accept().await else {
            sleep(Duration::from_millis(100)).await; // such as without file descriptors
            continue;
        };
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(TAKES_NOTHING));
        let service = TowerToHyperService::new(board.clone());
        tokio::spawn(async move {
            let mut http = Builder::new();
            http.timer(TokioTimer::new())
                .header_read_timeout(HEAD)
                .max_buf_size(LONGEST);
            // What a client does wrong is its own affair.
            let _ = http
                .serve_connection(TokioIo::new(Box::pin(stream)), service)
                .await;
            drop(place);
        });
    }
}
