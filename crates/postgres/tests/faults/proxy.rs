//! A proxy between a client and the server that stops forwarding, in one direction or in both.

use crate::server::SERVER;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::select;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_postgres::config::{Config, Host};

/// What the proxy does.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    requests_stopped: bool,
    answers_stopped: bool,
    /// How often the connections were closed.
    cuts: u32,
}

pub(crate) struct Proxy {
    port: u16,
    state: Arc<watch::Sender<State>>,
    accepts: JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let port = listener.local_addr().expect("a port").port();
        let state = Arc::new(watch::Sender::new(State::default()));
        let accepts = tokio::spawn(accept(listener, Arc::clone(&state)));
        Self {
            port,
            state,
            accepts,
        }
    }

    pub(crate) fn url(&self) -> String {
        let port = self.port;
        format!("host=127.0.0.1 port={port} user=postgres dbname=postgres")
    }

    /// Forwards nothing to the server.
    pub(crate) fn stop_requests(&self) {
        self.state
            .send_modify(|state| state.requests_stopped = true);
    }

    /// Forwards nothing to the client.
    pub(crate) fn stop_answers(&self) {
        self.state.send_modify(|state| state.answers_stopped = true);
    }

    /// Forwards again, also what has come meanwhile.
    pub(crate) fn resume(&self) {
        self.state.send_modify(State::resume);
    }

    /// Closes all connections, and takes new ones.
    pub(crate) fn cut(&self) {
        self.state.send_modify(|state| {
            state.resume();
            state.cuts += 1;
        });
    }
}

impl State {
    fn resume(&mut self) {
        self.requests_stopped = false;
        self.answers_stopped = false;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepts.abort();
    }
}

/// The socket of the server.
fn socket() -> PathBuf {
    let config: Config = SERVER.url().parse().expect("a URL");
    let [Host::Unix(folder)] = config.get_hosts() else {
        panic!("no Unix socket");
    };
    folder.join(".s.PGSQL.5432")
}

async fn accept(listener: TcpListener, state: Arc<watch::Sender<State>>) {
    loop {
        let (client, _) = listener.accept().await.expect("a connection");
        let server = UnixStream::connect(socket()).await.expect("the server");
        tokio::spawn(forward(client, server, state.subscribe()));
    }
}

/// Forwards until one side closes, or the connection is cut.
async fn forward(client: TcpStream, server: UnixStream, mut state: watch::Receiver<State>) {
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let cuts = state.borrow().cuts;
    let requests = state.clone();
    let answers = state.clone();
    select! {
        _ = state.wait_for(|state| state.cuts > cuts) => {}
        () = copy(from_client, to_server, requests, move |state| !state.requests_stopped && state.cuts == cuts) => {}
        () = copy(from_server, to_client, answers, move |state| !state.answers_stopped && state.cuts == cuts) => {}
    }
}

async fn copy(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut state: watch::Receiver<State>,
    flows: impl Fn(&State) -> bool,
) {
    let mut bytes = vec![0; 8192];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if state.wait_for(&flows).await.is_err() || to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
