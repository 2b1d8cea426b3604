//! The result of the crawl, compared with the requests that the hosts saw: complete and polite?

use std::iter::zip;
use std::time::{Duration, Instant};

use super::crawler::{Hosts, AT_ONCE, PACE};
use super::page::Page;
use super::web::{self, Visit};

/// Prints the requests that each host saw, and the dead letters.
///
/// The gaps are those between the starts that the rate limit allowed. A host sees a request later, because its thread
/// may be delayed: so two requests may arrive closer together.
///
/// # Panics
///
/// If a host got requests too often, or if a page was lost or fetched twice.
pub(crate) fn report(hosts: &Hosts, visits: &[Visit]) {
    println!("host            pages  retries   dead  at once  least gap");
    for (name, host) in hosts {
        let visits = visits.iter().filter(|visit| visit.page.host == *name);
        let visits: Vec<_> = visits.collect();
        let (at_once, began) = (at_once(&visits), host.diary.starts());
        let gap = least_gap(&began);
        let stats = host.pages.stats();
        let (pages, dead) = (stats.committed, stats.dead);
        let retries = visits.len() as u64 - pages - dead;
        let millis = gap.as_millis();
        println!("{name:14} {pages:6} {retries:8} {dead:6} {at_once:8} {millis:7} ms");

        stats.check().expect("nothing is lost");
        assert!(at_once <= AT_ONCE, "too many requests at once");
        assert!(gap >= PACE, "{gap:?} is too close");
        assert_eq!(began.len(), visits.len(), "one request for each start");
        let came = visits.iter().map(|visit| visit.came);
        assert!(
            zip(came, began).all(|(came, start)| came >= start),
            "too early"
        );
    }
    check_pages(visits, &given_up(hosts));
}

/// The pages that are dead letters.
fn given_up(hosts: &Hosts) -> Vec<Page> {
    let letters = hosts.values().flat_map(|host| host.pages.dead_letters());
    let pages = letters.map(|letter| {
        let (page, attempts) = (letter.item, letter.attempts);
        println!("given up after {attempts} attempts: {page}");
        page
    });
    pages.collect()
}

/// Each page was served once, or is a dead letter.
fn check_pages(visits: &[Visit], given_up: &[Page]) {
    let served: Vec<_> = visits.iter().filter(|visit| visit.served).collect();
    for page in web::pages() {
        let times = served.iter().filter(|visit| visit.page == page).count();
        assert_eq!(times, usize::from(!given_up.contains(&page)), "{page}");
    }
}

/// The shortest time between two consecutive times; these are sorted.
fn least_gap(times: &[Instant]) -> Duration {
    let gaps = zip(times, times.iter().skip(1)).map(|(time, next)| *next - *time);
    gaps.min().unwrap_or(Duration::MAX)
}

/// The highest number of concurrent requests.
fn at_once(visits: &[&Visit]) -> usize {
    let lasts = |visit: &Visit, at| visit.came <= at && at < visit.went;
    let counts = visits.iter().map(|new| {
        let others = visits.iter().filter(|visit| lasts(visit, new.came));
        others.count()
    });
    counts.max().unwrap_or_default()
}
