//! The crawler: a queue and a worker pool for each host, and one queue for their findings.

use std::collections::{BTreeMap, HashSet};
use std::thread;
use std::time::Duration;

use requeue::{commit_all, Backoff, Handle, Pace, Queue};

use super::client::Client;
use super::diary::Diary;
use super::page::Page;

/// The minimal time between the starts of two requests to a host.
pub(crate) const PACE: Duration = Duration::from_millis(50);
/// The maximal number of concurrent requests to a host.
pub(crate) const AT_ONCE: usize = 2;
/// The maximal number of attempts per page.
const ATTEMPTS: u32 = 3;
/// Workers per host. More than the concurrency limit, which the queue enforces.
const WORKERS: usize = 3;

/// A message of a worker.
enum News {
    Found(Page),
    /// A page was fetched, or has failed for good; its links were sent before.
    Over,
}

/// A host: its pages, and the times of its requests.
pub(crate) struct Host {
    pub(crate) pages: Queue<Page>,
    pub(crate) diary: Diary,
}

/// All hosts, by name.
pub(crate) type Hosts = BTreeMap<String, Host>;

/// Crawls all pages reachable from a page, and returns the state of each host.
pub(crate) fn crawl(client: &Client, start: Page) -> Hosts {
    let mut hosts = Hosts::new();
    let (mut seen, mut left) = (HashSet::new(), 0);
    let news = Queue::unbounded();
    news.push(News::Found(start)).expect("nobody closes it");

    thread::scope(|scope| {
        for told in &news {
            match told {
                News::Found(page) if seen.insert(page.clone()) => {
                    let host = hosts.entry(page.host.clone()).or_insert_with(|| {
                        let host = polite();
                        for _ in 0..WORKERS {
                            let (pages, news) = (host.pages.handle(), news.handle());
                            scope.spawn(move || work(pages, news, client));
                        }
                        host
                    });
                    host.pages.push(page).expect("it is closed in the end");
                    left += 1;
                }
                News::Found(_) => {}
                News::Over => left -= 1,
            }
            if left == 0 {
                break;
            }
        }
        for host in hosts.values() {
            host.pages.close();
        }
    });
    hosts
}

/// A host with a rate limit.
fn polite() -> Host {
    let diary = Diary::of(Pace::every(PACE));
    let pages = Queue::builder()
        .pace(Pace::shared(diary.clone()))
        .max_held(AT_ONCE)
        .backoff(Backoff::exponential(PACE, 4 * PACE).with_jitter())
        .max_attempts(ATTEMPTS)
        .build();
    Host { pages, diary }
}

/// Fetches pages of one host, until its queue is closed and drained.
fn work(mut pages: Handle<Page>, mut news: Handle<News>, client: &Client) {
    loop {
        let (tx, report) = (pages.begin(), news.begin());
        let Ok(page) = tx.pop_blocking() else { return };
        let send = |news| report.push(news).expect("nobody closes it");
        if let Ok(links) = client.fetch(&page) {
            links.into_iter().map(News::Found).for_each(send);
            send(News::Over);
        } else {
            if page.attempts() == ATTEMPTS {
                send(News::Over);
            }
            // Retried after its backoff, or a dead letter after the last attempt.
            tx.retry(page).expect("there is no bound");
        }
        commit_all((tx, report));
    }
}
