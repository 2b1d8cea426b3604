//! The order within a stream: the items pushed by one handle, or by one thread without one.
//!
//! An item is overtaken if a later one of its stream was claimed while it was ready from before until after. The
//! claim took effect after its call began, and after the call that made the claimed item ready began. Not counted: an
//! item that two aborted transactions returned, one each, before the other; and one returned before one that was
//! never taken.

use super::lives::{Life, Ready};
use super::Violation;
use std::collections::HashMap;

type Groups<'h, K> = HashMap<K, Vec<&'h Ready>>;

pub(super) fn check(lives: &[Life], readies: &[Ready], found: &mut Vec<Violation>) {
    let mut streams: Groups<(u32, u64)> = HashMap::new();
    let mut arrivals: Groups<(u32, u64, u64)> = HashMap::new();
    let mut calls: Groups<(u32, u64, u64)> = HashMap::new();
    for ready in readies {
        let life = &lives[ready.life];
        let stream = (life.queue, life.stream);
        streams.entry(stream).or_default().push(ready);
        let arrival = (stream.0, stream.1, ready.since.from);
        arrivals.entry(arrival).or_default().push(ready);
        if let Some(hold) = ready.next {
            let call = (stream.0, stream.1, hold.claim.from);
            calls.entry(call).or_default().push(ready);
        }
    }
    for stream in streams.into_values() {
        across_pushes(lives, &stream, found);
    }
    for arrival in arrivals.into_values() {
        each_pair(lives, &arrival, later_call, found);
    }
    for call in calls.into_values() {
        each_pair(lives, &call, later_place, found);
    }
}

/// Reports the pairs of a few for which `overtaken(first, second)` holds; `first` must be popped first.
fn each_pair(
    lives: &[Life],
    group: &[&Ready],
    overtaken: fn(&Ready, &Ready) -> bool,
    found: &mut Vec<Violation>,
) {
    for first in group {
        for second in group {
            let (life, by) = (&lives[first.life], &lives[second.life]);
            if life.precedes(by) && overtaken(first, second) {
                let (item, by) = (life.item, by.item);
                found.push(Violation::Overtaken { item, by });
            }
        }
    }
}

/// Both became ready by one call: whether the first was claimed only after the second. Those of an aborted
/// transaction are returned in the order of their claims.
fn later_call(first: &Ready, second: &Ready) -> bool {
    let claimed_first = match (first.returned_from, second.returned_from) {
        (Some(a), Some(b)) => (a.claim.from, a.place) < (b.claim.from, b.place),
        _ => true,
    };
    let overtaken = |hold: super::lives::Hold| first.until() > hold.claim.to;
    claimed_first && second.next.is_some_and(overtaken)
}

/// Both were claimed by one call: whether the first comes after the second.
fn later_place(first: &Ready, second: &Ready) -> bool {
    let comparable = match (first.returned_from, second.returned_from) {
        (None, None) => true,
        (Some(a), Some(b)) => {
            first.since == second.since && (a.claim.from, a.place) < (b.claim.from, b.place)
        }
        _ => false,
    };
    let place = |ready: &Ready| ready.next.map(|hold| hold.place);
    comparable && place(first) > place(second)
}

/// Iterates over the items in the order of their pushes, and checks for each claim whether an item of an earlier push
/// was ready before and still after.
fn across_pushes(lives: &[Life], stream: &[&Ready], found: &mut Vec<Violation>) {
    let mut sure: Vec<u64> = stream.iter().map(|ready| ready.sure).collect();
    sure.sort_unstable();
    let mut by_begin = stream.to_vec();
    by_begin.sort_by_key(|ready| lives[ready.life].push.from);
    let mut by_end = stream.to_vec();
    by_end.sort_by_key(|ready| lives[ready.life].push.to);
    let mut earlier = by_end.into_iter().peekable();
    let (mut fresh, mut all) = (Longest::new(&sure), Longest::new(&sure));
    for ready in by_begin {
        let push = lives[ready.life].push;
        while let Some(first) = earlier.next_if(|first| lives[first.life].push.to < push.from) {
            all.add(first);
            if first.fresh() {
                fresh.add(first);
            }
        }
        let Some(hold) = ready.next else { continue };
        let begin = hold.claim.from.max(ready.since.from);
        let rivals = if ready.fresh() { &all } else { &fresh };
        if let Some(first) = rivals.by(begin).filter(|r| r.until() > hold.claim.to) {
            let (item, by) = (lives[first.life].item, lives[ready.life].item);
            found.push(Violation::Overtaken { item, by });
        }
    }
}

/// Among the items ready by a time, the one that stays longest: a Fenwick tree of maxima.
struct Longest<'h> {
    times: &'h [u64],
    nodes: Vec<Option<&'h Ready>>,
}

impl<'h> Longest<'h> {
    fn new(times: &'h [u64]) -> Self {
        let nodes = vec![None; times.len() + 1];
        Self { times, nodes }
    }

    fn add(&mut self, ready: &'h Ready) {
        let mut at = self.times.partition_point(|&time| time < ready.sure) + 1;
        while let Some(node) = self.nodes.get_mut(at) {
            if node.map_or(true, |node| node.until() < ready.until()) {
                *node = Some(ready);
            }
            at += at & at.wrapping_neg();
        }
    }

    fn by(&self, time: u64) -> Option<&'h Ready> {
        let mut at = self.times.partition_point(|&other| other <= time);
        let mut longest = None;
        while at > 0 {
            longest = longest
                .into_iter()
                .chain(self.nodes[at])
                .max_by_key(|ready| ready.until());
            at &= at - 1;
        }
        longest
    }
}
