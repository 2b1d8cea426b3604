//! As much of an HTTP client as the crawler needs.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::time::Instant;

use super::page::Page;

/// Asks one address for the pages of all hosts, and writes down when.
pub(crate) struct Client {
    web: SocketAddr,
    asked: Mutex<Vec<(String, Instant)>>,
}

impl Client {
    pub(crate) fn new(web: SocketAddr) -> Self {
        let asked = Mutex::default();
        Self { web, asked }
    }

    /// Fetches a page, and returns what it links to.
    pub(crate) fn fetch(&self, page: &Page) -> io::Result<Vec<Page>> {
        self.note(&page.host, Instant::now());
        let Page { host, path } = page;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let mut stream = TcpStream::connect(self.web)?;
        stream.write_all(request.as_bytes())?;

        let reply = io::read_to_string(stream)?;
        match reply.split_once("\r\n\r\n") {
            Some((head, links)) if head.starts_with("HTTP/1.1 200 ") => {
                links.lines().map(str::parse).collect()
            }
            _ => Err(io::Error::other("not a page")),
        }
    }

    fn note(&self, host: &str, at: Instant) {
        let mut asked = self.asked.lock().expect("nobody panics meanwhile");
        asked.push((host.to_owned(), at));
    }

    /// When a host was asked for its pages, in that order.
    pub(crate) fn asked(&self, host: &str) -> Vec<Instant> {
        let asked = self.asked.lock().expect("nobody panics meanwhile");
        let of_host = asked.iter().filter(|(other, _)| other == host);
        let mut times: Vec<_> = of_host.map(|(_, at)| *at).collect();
        times.sort();
        times
    }
}
