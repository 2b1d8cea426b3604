//! The address of a page.

use std::fmt;
use std::io;
use std::str::FromStr;

/// The address of a page, as `http://host/path`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Page {
    pub(crate) host: String,
    pub(crate) path: String,
}

impl Page {
    pub(crate) fn new(host: &str, path: &str) -> Self {
        let (host, path) = (host.to_owned(), path.to_owned());
        Self { host, path }
    }
}

impl FromStr for Page {
    type Err = io::Error;

    fn from_str(address: &str) -> io::Result<Self> {
        let parts = address.strip_prefix("http://");
        let parts = parts.and_then(|parts| Some(parts.split_at(parts.find('/')?)));
        let (host, path) = parts.ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self::new(host, path))
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.host, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_is_written() {
        let page: Page = "http://docs.example/a/b".parse().unwrap();
        assert_eq!(page, Page::new("docs.example", "/a/b"));
        assert_eq!(page.to_string(), "http://docs.example/a/b");
    }

    #[test]
    fn other_addresses_are_refused() {
        assert!("docs.example/a".parse::<Page>().is_err());
        assert!("http://docs.example".parse::<Page>().is_err());
    }
}
