//! The crawled web: some hosts at one local address, which record all requests.

use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use super::page::Page;

const HOSTS: [&str; 4] = [
    "docs.example",
    "news.example",
    "shop.example",
    "wiki.example",
];
/// Number of pages per host: `/0` links to `/1` and `/2`, `/1` to `/3` and `/4`, and so on.
const PAGES: usize = 10;
/// A page without links that always fails.
const BROKEN: (&str, usize) = ("shop.example", 8);
/// Number of failures of some other pages.
const FAILURES: usize = 2;
/// The response time, and the first page with a longer one.
const QUICK: Duration = Duration::from_millis(10);
const SLOW: Duration = Duration::from_millis(150);
const DEEP: usize = 5;

/// A request, from its connection to its answer.
#[derive(Clone)]
pub(crate) struct Visit {
    pub(crate) page: Page,
    pub(crate) came: Instant,
    pub(crate) went: Instant,
    /// Whether the answer was the page.
    pub(crate) served: bool,
}

pub(crate) struct Web {
    address: SocketAddr,
    log: Arc<Mutex<Vec<Visit>>>,
}

impl Web {
    /// Serves on a free port until the process ends.
    pub(crate) fn start() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let log = Arc::default();
        let web = Self {
            address,
            log: Arc::clone(&log),
        };
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (came, log) = (Instant::now(), Arc::clone(&log));
                thread::spawn(move || serve(stream?, came, &log));
            }
        });
        Ok(web)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The requests answered so far, in the order of their arrival.
    pub(crate) fn visits(&self) -> Vec<Visit> {
        let mut visits = lock(&self.log).clone();
        visits.sort_by_key(|visit| visit.came);
        visits
    }
}

/// The page from which all others are reachable.
pub(crate) fn home() -> Page {
    page(HOSTS[0], 0)
}

pub(crate) fn pages() -> impl Iterator<Item = Page> {
    let numbers = |host| (0..PAGES).map(move |number| page(host, number));
    HOSTS.into_iter().flat_map(numbers)
}

fn lock(log: &Mutex<Vec<Visit>>) -> MutexGuard<'_, Vec<Visit>> {
    log.lock().expect("nobody panics meanwhile")
}

fn page(host: &str, number: usize) -> Page {
    Page::new(host, &format!("/{number}"))
}

/// Answers the request of a connection.
fn serve(mut stream: TcpStream, came: Instant, log: &Mutex<Vec<Visit>>) -> io::Result<()> {
    let page = read_request(&stream)?;
    let links = answer(&page, log, came);
    let (status, body) = match &links {
        Some(links) => ("200 OK", links.as_str()),
        None => ("503 Service Unavailable", ""),
    };
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close");
    stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes())
}

fn read_request(stream: &TcpStream) -> io::Result<Page> {
    let lines = BufReader::new(stream).lines();
    let head = lines.take_while(|line| !matches!(line, Ok(line) if line.is_empty()));
    let head = head.collect::<io::Result<Vec<_>>>()?;
    let path = head.first().and_then(|request| request.split(' ').nth(1));
    let host = head.iter().find_map(|line| line.strip_prefix("Host: "));
    let page = host.zip(path).map(|(host, path)| Page::new(host, path));
    page.ok_or_else(|| ErrorKind::InvalidData.into())
}

/// The links of a page, one per line; `None` if it fails. Recorded before the client gets them.
fn answer(page: &Page, log: &Mutex<Vec<Visit>>, came: Instant) -> Option<String> {
    let number: usize = page.path.strip_prefix('/')?.parse().ok()?;
    thread::sleep(if number < DEEP { QUICK } else { SLOW });
    let mut log = lock(log);
    let before = log.iter().filter(|visit| visit.page == *page).count();
    let fails = (&*page.host, number) == BROKEN || number % 4 == 3 && before < FAILURES;
    log.push(Visit {
        page: page.clone(),
        came,
        went: Instant::now(),
        served: !fails,
    });
    (!fails).then(|| links(&page.host, number))
}

/// Links to the home of the host and of the next one, and to two pages without other links to them.
fn links(host: &str, number: usize) -> String {
    let mut others = HOSTS.into_iter().cycle().skip_while(|other| *other != host);
    let next = others.nth(1).unwrap_or(host);
    let children = [2 * number + 1, 2 * number + 2].map(|child| (host, child));
    let links = [(host, 0), (next, 0)].into_iter().chain(children);
    let links = links.filter(|(_, number)| *number < PAGES);
    let text = links.map(|(host, number)| page(host, number).to_string());
    text.collect::<Vec<_>>().join("\n")
}
