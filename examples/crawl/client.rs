//! A minimal HTTP client for the crawler.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};

use super::page::Page;

/// Requests the pages of all hosts from one address.
pub(crate) struct Client {
    web: SocketAddr,
}

impl Client {
    pub(crate) fn new(web: SocketAddr) -> Self {
        Self { web }
    }

    /// Fetches a page, and returns its links.
    pub(crate) fn fetch(&self, page: &Page) -> io::Result<Vec<Page>> {
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
}
