//! A proxy between a client and the server that stops forwarding, in one direction or in both, for all connections or for those
//! that there are.

use crate::server::SERVER;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
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
    /// How many connections there were, and how many of the first ones hang in each direction.
    accepted: usize,
    hanging: [usize; 2],
    /// How often the connections were closed.
    cuts: u32,
}

/// What has come in which direction, in its order.
pub(crate) type Record = Vec<(Direction, Vec<u8>)>;
/// Those of the connections by their numbers, if they are wanted.
type Recorded = Option<Arc<Mutex<BTreeMap<usize, Record>>>>;

/// Which bytes do not come through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    ToServer,
    ToClient,
}

pub(crate) const DIRECTIONS: [Direction; 2] = [Direction::ToServer, Direction::ToClient];

pub(crate) struct Proxy {
    port: u16,
    recorded: Recorded,
    state: Arc<watch::Sender<State>>,
    accepts: JoinHandle<()>,
}

impl Proxy {
    /// Before the server of the tests.
    pub(crate) async fn start() -> Self {
        Self::before(&SERVER.url()).await
    }

    /// Before what is reached by this URL: a server or a pooler.
    pub(crate) async fn before(url: &str) -> Self {
        Self::with(url, None).await
    }

    /// The same, with a record of what it forwards.
    pub(crate) async fn recording(url: &str) -> Self {
        Self::with(url, Some(Arc::default())).await
    }

    async fn with(url: &str, recorded: Recorded) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let port = listener.local_addr().expect("a port").port();
        let state = Arc::new(watch::Sender::new(State::default()));
        let accepts = tokio::spawn(accept(
            listener,
            socket(url),
            Arc::clone(&state),
            recorded.clone(),
        ));
        Self {
            port,
            recorded,
            state,
            accepts,
        }
    }

    pub(crate) fn url(&self) -> String {
        let port = self.port;
        format!("host=127.0.0.1 port={port} user=postgres dbname=postgres")
    }

    /// What it has forwarded, of each connection.
    pub(crate) fn recorded(&self) -> Vec<Record> {
        let recorded = self.recorded.as_ref();
        let recorded = recorded.expect("a record").lock().unwrap();
        recorded.values().cloned().collect()
    }

    /// From now on the connections that there are hang in this direction. New ones do not.
    pub(crate) fn hang(&self, direction: Direction) {
        let state = |state: &mut State| state.hanging[direction as usize] = state.accepted;
        self.state.send_modify(state);
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
    /// Whether bytes of the connection with this number come through.
    fn flows(&self, connection: usize, cuts: u32, direction: Direction) -> bool {
        let stopped = match direction {
            Direction::ToServer => self.requests_stopped,
            Direction::ToClient => self.answers_stopped,
        };
        let hangs = connection < self.hanging[direction as usize];
        !stopped && !hangs && self.cuts == cuts
    }

    fn resume(&mut self) {
        self.requests_stopped = false;
        self.answers_stopped = false;
        self.hanging = [0; 2];
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepts.abort();
    }
}

/// The socket of a URL.
fn socket(url: &str) -> PathBuf {
    let config: Config = url.parse().expect("a URL");
    let [Host::Unix(folder)] = config.get_hosts() else {
        panic!("no Unix socket");
    };
    folder.join(".s.PGSQL.5432")
}

async fn accept(
    listener: TcpListener,
    socket: PathBuf,
    state: Arc<watch::Sender<State>>,
    recorded: Recorded,
) {
    loop {
        let (client, _) = listener.accept().await.expect("a connection");
        let Ok(server) = UnixStream::connect(&socket).await else {
            continue; // it is stopped: the client's connection is closed
        };
        let number = state.borrow().accepted;
        state.send_modify(|state| state.accepted += 1);
        let recorded = recorded.clone();
        tokio::spawn(forward(number, client, server, state.subscribe(), recorded));
    }
}

/// Forwards until one side closes, or the connection is cut.
async fn forward(
    number: usize,
    client: TcpStream,
    server: UnixStream,
    mut state: watch::Receiver<State>,
    recorded: Recorded,
) {
    let record = |direction, bytes: &[u8]| {
        if let Some(recorded) = &recorded {
            let mut recorded = recorded.lock().unwrap();
            let record = recorded.entry(number).or_default();
            record.push((direction, bytes.into()));
        }
    };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let cuts = state.borrow().cuts;
    let requests = state.clone();
    let answers = state.clone();
    select! {
        _ = state.wait_for(|state| state.cuts > cuts) => {}
        () = copy(from_client, to_server, requests, |bytes| record(Direction::ToServer, bytes), |state| state.flows(number, cuts, Direction::ToServer)) => {}
        () = copy(from_server, to_client, answers, |bytes| record(Direction::ToClient, bytes), |state| state.flows(number, cuts, Direction::ToClient)) => {}
    }
}

async fn copy(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut state: watch::Receiver<State>,
    record: impl Fn(&[u8]),
    flows: impl Fn(&State) -> bool,
) {
    let mut bytes = vec![0; 8192];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        record(&bytes[..count]);
        if state.wait_for(&flows).await.is_err() || to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
