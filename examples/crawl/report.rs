//! What became of the pages, and what the hosts saw of it: was that all, and was it polite?

use std::iter::zip;
use std::time::{Duration, Instant};

use requeue::Queue;

use super::client::Client;
use super::crawler::{Hosts, AT_ONCE, PACE};
use super::page::Page;
use super::web::{self, Visit};

/// So long a thread may be held up between its turn and its request, which then comes so much nearer to
/// the next one.
const HELD_UP: Duration = Duration::from_millis(25);

/// Prints what each host saw of a crawl that began after `begun`, and what was given up.
///
/// # Panics
///
/// If a host was asked too fast, or if a page was lost or fetched twice.
pub(crate) fn report(hosts: &Hosts, client: &Client, visits: &[Visit], begun: Instant) {
    println!("host            pages  retries   dead  at once  least gap");
    for (host, queue) in hosts {
        let visits = visits.iter().filter(|visit| visit.page.host == *host);
        let visits: Vec<_> = visits.collect();
        let came: Vec<_> = visits.iter().map(|visit| visit.came).collect();
        let (at_once, gap) = (at_once(&visits), least_gap(&came).as_millis());
        let stats = queue.stats();
        let (pages, dead) = (stats.committed, stats.dead);
        let retries = visits.len() as u64 - pages - dead;
        println!("{host:14} {pages:6} {retries:8} {dead:6} {at_once:8} {gap:7} ms");

        stats.check().expect("nothing is lost");
        assert!(at_once <= AT_ONCE, "too many requests at once");
        check_pace(&client.asked(host), begun);
    }
    check_pages(visits, &given_up(hosts));
}

/// No request is made before its turn, and no two closer together than the pace, but for what they are held up.
fn check_pace(asked: &[Instant], begun: Instant) {
    let turns = (0..).map(|turn| begun + turn * PACE);
    assert!(zip(asked, turns).all(|(at, turn)| *at >= turn), "too early");
    let gap = least_gap(asked);
    assert!(gap.saturating_add(HELD_UP) >= PACE, "{gap:?} is too close");
}

/// The pages that are dead letters.
fn given_up(hosts: &Hosts) -> Vec<Page> {
    let letters = hosts.values().flat_map(Queue::dead_letters);
    let pages = letters.map(|letter| {
        let (page, attempts) = (letter.item, letter.attempts);
        println!("given up after {attempts} attempts: {page}");
        page
    });
    pages.collect()
}

/// Each page was served once, or given up.
fn check_pages(visits: &[Visit], given_up: &[Page]) {
    let served: Vec<_> = visits.iter().filter(|visit| visit.served).collect();
    for page in web::pages() {
        let times = served.iter().filter(|visit| visit.page == page).count();
        assert_eq!(times, usize::from(!given_up.contains(&page)), "{page}");
    }
}

/// The least time between two of some times, which are in order.
fn least_gap(times: &[Instant]) -> Duration {
    let gaps = zip(times, times.iter().skip(1)).map(|(time, next)| *next - *time);
    gaps.min().unwrap_or(Duration::MAX)
}

/// How many requests were under way at once, at most.
fn at_once(visits: &[&Visit]) -> usize {
    let lasts = |visit: &Visit, at| visit.came <= at && at < visit.went;
    let counts = visits.iter().map(|new| {
        let others = visits.iter().filter(|visit| lasts(visit, new.came));
        others.count()
    });
    counts.max().unwrap_or_default()
}
