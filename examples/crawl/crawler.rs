//! The crawler: a queue and some workers for each host, and one queue for what they find.

use std::collections::{BTreeMap, HashSet};
use std::thread;
use std::time::Duration;

use requeue::{commit_all, Backoff, Handle, Pace, Queue};

use super::client::Client;
use super::diary::Diary;
use super::page::Page;

/// No two requests to a host start closer together.
pub(crate) const PACE: Duration = Duration::from_millis(50);
/// No more requests to a host are under way at once.
pub(crate) const AT_ONCE: usize = 2;
/// How often a page is asked for, at most.
const ATTEMPTS: u32 = 3;
/// For each host. More than may be at work: the queue sees to that.
const WORKERS: usize = 3;

/// What the workers tell.
enum News {
    Found(Page),
    /// A page was fetched, or given up; what it links to was told before.
    Over,
}

/// A host: its pages, and when they were asked for.
pub(crate) struct Host {
    pub(crate) pages: Queue<Page>,
    pub(crate) diary: Diary,
}

/// All hosts, by their names.
pub(crate) type Hosts = BTreeMap<String, Host>;

/// Crawls all that can be reached from a page, and returns what became of each host.
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

/// A host whose pages are asked for at a pace.
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
        let tell = |news| report.push(news).expect("nobody closes it");
        if let Ok(links) = client.fetch(&page) {
            links.into_iter().map(News::Found).for_each(tell);
            tell(News::Over);
        } else {
            if page.attempts() == ATTEMPTS {
                tell(News::Over);
            }
            // Again after its backoff; or, if this was the last attempt, it is a dead letter now.
            tx.retry(page).expect("there is no bound");
        }
        commit_all((tx, report));
    }
}
