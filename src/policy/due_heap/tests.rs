//! Tests of the heap against a simple model.

use super::*;
use crate::raw::DeliveryMeta;
use std::collections::BTreeMap;

const OPERATIONS: usize = 20_000;

fn entry(item: usize) -> Entry<usize> {
    let delivery = DeliveryMeta::first(0);
    Entry { item, delivery }
}

/// A number below `end`, by Marsaglia's 64-bit xorshift.
fn below(random: &mut u64, end: usize) -> usize {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    usize::try_from(*random % end as u64).unwrap()
}

#[track_caller]
fn assert_small(heap: &DueHeap<usize>) {
    assert!(heap.keys.len() <= 2 * heap.len + SLACK);
    assert!(heap.places.capacity() <= 4 * heap.len + 2 * SLACK + 1);
    assert!(heap.keys.capacity() <= 4 * heap.len + 2 * SLACK + 1);
}

#[test]
#[cfg_attr(miri, ignore = "too many steps for Miri")]
fn a_heap_behaves_like_its_model() {
    let (mut heap, mut model) = (DueHeap::default(), BTreeMap::new());
    let mut tickets = Vec::new();
    let (mut random, mut now) = (88_172_645_463_325_252, 0);
    for item in 0..OPERATIONS {
        // The heap grows half of the time, and shrinks the other half.
        let growing = item % 4000 < 2000;
        match below(&mut random, 8) {
            0..=4 if growing => {
                let due = now + below(&mut random, 5_000) as u64;
                let ticket = (item % 3 > 0).then(Ticket::new);
                heap.insert(due, ticket, entry(item));
                model.insert((due, item), ticket);
                tickets.extend(ticket.map(|ticket| (ticket, (due, item))));
            }
            0..=5 => {
                now += below(&mut random, 30) as u64;
                while let Some((&(due, item), _)) = model.iter().next().filter(|at| at.0 .0 <= now)
                {
                    let found = heap.pop_due(now).unwrap().0;
                    assert_eq!((found.due, found.entry.item), (due, item));
                    model.remove(&(due, item));
                }
                assert!(heap.pop_due(now).is_none());
            }
            6 if model.len() < 1000 => visit(&mut heap, &mut model, &mut random),
            _ if tickets.is_empty() => {}
            _ => {
                let at = below(&mut random, tickets.len());
                let (ticket, place) = tickets.swap_remove(at);
                let is_there = model.remove(&place).is_some();
                let known = heap.get_mut(ticket).map(|entry| entry.item);
                assert_eq!(known, is_there.then_some(place.1));
                assert_eq!(heap.remove(ticket).map(|entry| entry.item), known);
                assert!(heap.remove(ticket).is_none());
            }
        }
        assert_eq!(heap.len, model.len());
        let next = model.keys().next().map_or(NEVER, |place| place.0);
        assert_eq!(heap.next(), next);
        assert_small(&heap);
    }
}

/// Visits all items, and removes some. Meanwhile nobody finds those that are shown.
fn visit(
    heap: &mut DueHeap<usize>,
    model: &mut BTreeMap<(u64, usize), Option<Ticket>>,
    random: &mut u64,
) {
    let mut keys: Vec<_> = heap.begin_visit().collect();
    keys.sort_unstable();
    let mut seen = Vec::new();
    for part in keys.chunks(32) {
        let shown: Vec<_> = part
            .iter()
            .filter_map(|key| Some((*key, heap.show(*key)?)))
            .collect();
        heap.tidy();
        let is_shown = |item: usize| shown.iter().any(|(_, filled)| filled.entry.item == item);
        let others = model.keys().filter(|at| !is_shown(at.1));
        assert_eq!(heap.next(), others.map(|at| at.0).min().unwrap_or(NEVER));
        for (key, filled) in shown {
            let at = (key.0, filled.entry.item);
            seen.push(at);
            assert_eq!(model[&at], filled.ticket);
            if let Some(ticket) = filled.ticket {
                assert!(heap.remove(ticket).is_none() && heap.get_mut(ticket).is_none());
            }
            if below(random, 8) == 0 {
                assert_eq!(heap.forget(key, filled).item, at.1);
                model.remove(&at);
            } else {
                heap.put_back(key, filled);
            }
        }
        heap.tidy();
    }
    heap.end_visit();
    let mut all: Vec<_> = seen.clone();
    all.dedup();
    assert_eq!(all.len(), seen.len());
    assert!(model.keys().all(|at| seen.contains(at)));
}

#[test]
fn removed_items_release_their_memory() {
    let items = if cfg!(miri) { 500 } else { 10_000 };
    let mut heap = DueHeap::default();
    let tickets: Vec<_> = (0..items).map(|_| Ticket::new()).collect();
    for (item, &ticket) in tickets.iter().enumerate() {
        heap.insert(item as u64, Some(ticket), entry(item));
    }
    // All but the first, so that no key is removed at the front.
    for (item, &ticket) in tickets.iter().enumerate().skip(1) {
        assert_eq!(heap.remove(ticket).unwrap().item, item);
        assert_small(&heap);
    }
    assert_eq!(heap.pop_due(NEVER).unwrap().0.entry.item, 0);
    assert!(heap.pop_due(NEVER).is_none());
}
