//! Tests of tables against a map.

use super::{PagedSlab, Pages, MAX_IDLE_PAGES, PAGE};
use std::collections::HashMap;

/// A sequence of pseudorandom numbers.
fn numbers() -> impl FnMut(usize) -> usize {
    let mut state = 1_u64;
    move |limit| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % limit
    }
}

/// The number of values for which there is memory.
fn places<V>(pages: &Pages<V>) -> usize {
    let places = pages.list.iter().map(|page| page.places.capacity());
    places.sum::<usize>() + pages.spare.capacity()
}

#[test]
fn a_table_contains_the_values_that_were_put() {
    let mut pages = Pages::<String>::default();
    for number in [0, 63, 64, 1_000] {
        assert_eq!(pages.get(number), None);
        let (value, is_new) = pages.get_or_insert(number);
        assert!(is_new && value.is_empty());
        value.push_str(&number.to_string());
    }
    pages.get_or_insert(64).0.push('!');
    assert!(!pages.get_or_insert(64).1);
    let all: Vec<_> = pages.iter().map(|(at, value)| (at, &**value)).collect();
    assert_eq!(all, [(0, "0"), (63, "63"), (64, "64!"), (1_000, "1000")]);
    assert_eq!((pages.take(64).as_str(), pages.get(64)), ("64!", None));
    assert_eq!((pages.len(), pages.iter().count()), (3, 3));
    assert_eq!(pages.get(99_999), None);
    assert_eq!(pages.place_mut(80), None);
    assert_eq!(pages[1_000], "1000");
    assert_eq!(pages.get_or_insert(64).0, "");
}

#[test]
fn a_page_has_memory_for_the_places_that_are_used() {
    let mut pages = Pages::<u32>::default();
    for first in 0..PAGE {
        // The second round begins with the places of the first one.
        pages.spare = Vec::new();
        for begun in [false, true] {
            pages.get_or_insert(first);
            assert!(begun || places(&pages) == 1);
            for number in 0..PAGE {
                *pages.get_or_insert(number).0 += number + 1;
            }
            assert_eq!(places(&pages), PAGE as usize);
            assert!((0..PAGE).all(|number| pages.take(number) == number + 1));
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many steps for Miri")]
fn a_slab_is_like_a_map() {
    let mut number = numbers();
    let mut slab = PagedSlab::default();
    let mut map = HashMap::new();
    let mut taken = Vec::new();
    for step in 0..50_000 {
        let growing = step / 10_000 % 2 == 0;
        if number(10) < if growing { 7 } else { 3 } {
            let at = slab.put(step);
            assert_eq!(map.insert(at, step), None);
            taken.push(at);
        } else if !taken.is_empty() {
            let at = taken.swap_remove(number(taken.len()));
            assert_eq!(Some(slab.take(at)), map.remove(&at));
            assert_eq!(slab.values.get(at), None);
        }
        assert_eq!(slab.values.len(), map.len());
    }
    assert!(map
        .iter()
        .all(|(at, step)| slab.values.get(*at) == Some(step)));
}

#[test]
fn a_slab_fills_the_gaps_before_it_grows() {
    let mut slab = PagedSlab::default();
    for value in 0..PAGE * 10 {
        assert_eq!(slab.put(value), value);
    }
    for number in (0..PAGE * 10).step_by(3) {
        slab.take(number);
    }
    let gaps = (PAGE * 10).div_ceil(3);
    assert!((0..gaps).all(|value| slab.put(value) < PAGE * 10));
    assert_eq!(slab.put(0), PAGE * 10);
}

#[test]
#[cfg_attr(miri, ignore = "too many steps for Miri")]
fn pages_that_become_empty_release_their_memory() {
    let mut slab = PagedSlab::default();
    for value in 0..100_000 {
        slab.put(value);
    }
    for number in (0..100_000).filter(|number| *number != 77_777) {
        slab.take(number);
    }
    assert!(places(&slab.values) <= 2 * PAGE as usize);
    assert_eq!(slab.take(77_777), 77_777);
    assert!(places(&slab.values) <= PAGE as usize);
    assert!(slab.values.list.capacity() <= MAX_IDLE_PAGES);
    assert!(slab.roomy.capacity() <= MAX_IDLE_PAGES);
}

#[test]
fn one_value_that_comes_and_goes_uses_the_same_memory() {
    let mut slab = PagedSlab::default();
    let mut memory = || {
        let number = slab.put(1);
        let memory: *const i32 = slab.values.get(number).unwrap();
        slab.take(number);
        memory
    };
    assert_eq!(memory(), memory());
}
