//! Small histories with one violation, and similar ones with none.

use super::Violation::{Duplicate, FalseEmpty, Lost, Overtaken, Phantom};
use super::{violations, End, Event, Span, Violation};

const QUEUE: u32 = 0;
const OTHER_QUEUE: u32 = 1;
const HANDLE: u64 = 1;
const OTHER_HANDLE: u64 = 2;

fn span(from: u64, to: u64) -> Span {
    Span { from, to }
}

fn push_to(queue: u32, stream: u64, from: u64, to: u64, items: &[usize]) -> Event {
    Event::Push {
        queue,
        stream,
        span: span(from, to),
        items: items.to_vec(),
    }
}

fn push(from: u64, to: u64, items: &[usize]) -> Event {
    push_to(QUEUE, HANDLE, from, to, items)
}

fn hold(queue: u32, from: u64, to: u64, items: &[usize], end: End) -> Event {
    Event::Hold {
        queue,
        claim: span(from, to),
        items: items.to_vec(),
        end,
    }
}

fn take(from: u64, to: u64, items: &[usize]) -> Event {
    hold(QUEUE, from, to, items, End::Taken)
}

fn abort(from: u64, to: u64, items: &[usize], by: Span) -> Event {
    hold(QUEUE, from, to, items, End::Returned(by))
}

fn empty(from: u64, to: u64) -> Event {
    Event::Empty {
        queue: QUEUE,
        span: span(from, to),
    }
}

fn sound(events: &[Event]) {
    assert_eq!(violations(events), []);
}

/// Exactly these violations are found, whatever the order of the events.
fn only(violation: Violation, events: &[Event]) {
    let backwards: Vec<Event> = events.iter().rev().cloned().collect();
    assert_eq!(violations(events), [violation]);
    assert_eq!(violations(&backwards), [violation]);
}

#[test]
fn each_item_is_taken_once() {
    sound(&[push(0, 1, &[7, 8]), take(2, 3, &[7]), take(4, 5, &[8])]);
    only(Lost { item: 8 }, &[push(0, 1, &[7, 8]), take(2, 3, &[7])]);
    let twice = [push(0, 1, &[7]), take(2, 3, &[7]), take(4, 5, &[7])];
    only(Duplicate { item: 7 }, &twice);
}

#[test]
fn an_aborted_item_is_there_again() {
    let back = abort(2, 3, &[7], span(4, 5));
    sound(&[push(0, 1, &[7]), back.clone(), take(6, 7, &[7])]);
    only(Lost { item: 7 }, &[push(0, 1, &[7]), back]);
}

#[test]
fn a_held_item_is_not_given_to_another() {
    let holder = abort(2, 3, &[7], span(8, 10));
    sound(&[push(0, 1, &[7]), holder.clone(), take(5, 9, &[7])]);
    let early = [push(0, 1, &[7]), holder, take(5, 6, &[7])];
    only(Duplicate { item: 7 }, &early);
}

#[test]
fn a_slow_pop_may_take_what_a_quick_one_returned() {
    let quick = abort(3, 4, &[7], span(5, 6));
    sound(&[push(0, 1, &[7]), quick, take(2, 7, &[7])]);
}

#[test]
fn nothing_comes_from_nowhere() {
    only(Phantom { item: 7 }, &[take(2, 3, &[7])]);
    sound(&[push(2, 3, &[7]), take(0, 4, &[7])]);
    only(Phantom { item: 7 }, &[push(2, 3, &[7]), take(0, 1, &[7])]);
    let elsewhere = hold(OTHER_QUEUE, 2, 3, &[7], End::Taken);
    let crossed = [push(0, 1, &[7]), elsewhere, take(4, 5, &[7])];
    only(Phantom { item: 7 }, &crossed);
}

#[test]
fn a_handle_keeps_its_order() {
    let pushes = [push(0, 1, &[7]), push(2, 3, &[8])];
    let with = |pops: &[Event]| [&pushes, pops].concat();
    sound(&with(&[take(4, 5, &[7]), take(6, 7, &[8])]));
    sound(&with(&[take(4, 6, &[8]), take(5, 7, &[7])]));
    sound(&with(&[take(4, 5, &[7, 8])]));
    let overtaken = Overtaken { item: 7, by: 8 };
    only(overtaken, &with(&[take(4, 5, &[8]), take(6, 7, &[7])]));
    only(overtaken, &with(&[take(4, 5, &[8, 7])]));
}

#[test]
fn an_early_call_proves_the_order_too() {
    let pushes = [push(1, 2, &[7]), push(3, 4, &[8])];
    let pops = [take(0, 5, &[8]), take(6, 7, &[7])];
    only(Overtaken { item: 7, by: 8 }, &[pushes, pops].concat());
}

#[test]
fn a_commit_keeps_its_order() {
    let commit = push(0, 1, &[8, 7]);
    sound(&[commit.clone(), take(2, 3, &[8]), take(4, 5, &[7])]);
    let overtaken = Overtaken { item: 8, by: 7 };
    only(
        overtaken,
        &[commit.clone(), take(2, 3, &[7]), take(4, 5, &[8])],
    );
    only(overtaken, &[commit, take(2, 3, &[7, 8])]);
}

#[test]
fn pushes_of_a_stream_keep_the_order_of_calls() {
    let with = |second: u64| {
        let pushes = [
            push_to(QUEUE, 0, 0, 2, &[7]),
            push_to(QUEUE, 0, second, 4, &[8]),
        ];
        [pushes, [take(5, 6, &[8]), take(7, 8, &[7])]].concat()
    };
    sound(&with(1));
    only(Overtaken { item: 7, by: 8 }, &with(3));
}

#[test]
fn handles_overtake_each_other_as_they_like() {
    let pushes = [push(0, 1, &[7]), push_to(QUEUE, OTHER_HANDLE, 2, 3, &[8])];
    let pops = [take(4, 5, &[8]), take(6, 7, &[7])];
    sound(&[pushes, pops].concat());
}

#[test]
fn an_aborted_transaction_keeps_its_order() {
    let with = |pops: &[Event]| {
        let back = abort(2, 3, &[7, 8], span(4, 5));
        [&[push(0, 1, &[7, 8, 9]), back], pops].concat()
    };
    sound(&with(&[
        take(6, 7, &[7]),
        take(8, 9, &[8]),
        take(10, 11, &[9]),
    ]));
    let overtaken = Overtaken { item: 7, by: 8 };
    let reversed = [take(6, 7, &[8]), take(8, 9, &[7]), take(10, 11, &[9])];
    only(overtaken, &with(&reversed));
    only(overtaken, &with(&[take(6, 7, &[8, 7, 9])]));
}

#[test]
fn an_aborted_item_leaves_before_those_that_never_left() {
    let with = |claim: u64| {
        let back = abort(3, 5, &[7], span(6, 8));
        let pops = [take(claim, 10, &[8]), take(11, 12, &[7])];
        [&[push(0, 1, &[7]), push(2, 4, &[8]), back], &pops[..]].concat()
    };
    sound(&with(7));
    only(Overtaken { item: 7, by: 8 }, &with(9));
}

/// The second pop began before the abort, but it took an item that was pushed after it.
#[test]
fn a_slow_pop_does_not_overtake_an_aborted_item() {
    let with = |begin: u64, end: u64| {
        let back = abort(3, 4, &[7], span(5, 7));
        let pops = [take(2, 10, &[8]), take(11, 12, &[7])];
        let pushes = [push(0, 1, &[7]), push(begin, end, &[8])];
        [&pushes[..], &[back], &pops].concat()
    };
    sound(&with(6, 9));
    only(Overtaken { item: 7, by: 8 }, &with(8, 9));
}

#[test]
fn two_aborted_transactions_come_back_in_any_order() {
    let backs = [abort(2, 3, &[7], span(8, 9)), abort(4, 5, &[8], span(6, 7))];
    let pops = [take(10, 11, &[8]), take(12, 13, &[7])];
    sound(&[&[push(0, 1, &[7, 8])], &backs[..], &pops].concat());
}

#[test]
fn empty_means_that_nothing_was_ready() {
    let with = |call: Event| [push(1, 3, &[7]), take(6, 8, &[7]), call];
    sound(&with(empty(2, 4)));
    sound(&with(empty(4, 7)));
    let call = span(4, 5);
    only(FalseEmpty { item: 7, call }, &with(empty(4, 5)));
}

#[test]
fn empty_accounts_for_aborted_items() {
    let with = |call: Event| {
        let back = abort(2, 3, &[7], span(5, 7));
        [push(0, 1, &[7]), back, take(10, 11, &[7]), call]
    };
    sound(&with(empty(4, 9)));
    sound(&with(empty(6, 9)));
    let call = span(8, 9);
    only(FalseEmpty { item: 7, call }, &with(empty(8, 9)));
}

#[test]
fn one_item_of_a_commit_shows_the_others() {
    let parts = [
        push(0, 9, &[7]),
        push_to(OTHER_QUEUE, OTHER_HANDLE, 0, 9, &[8]),
    ];
    let with = |begin: u64| {
        let first = hold(OTHER_QUEUE, 1, 3, &[8], End::Taken);
        let rest = [first, empty(begin, 5), take(10, 11, &[7])];
        [&parts, &rest[..]].concat()
    };
    sound(&with(2));
    let call = span(4, 5);
    only(FalseEmpty { item: 7, call }, &with(4));
}

/// A check that takes quadratic time would not finish here.
#[test]
fn long_histories_are_checked_in_time() {
    let items = 50_000;
    let round = |item: usize| {
        let at = 6 * item as u64;
        let pop = take(at + 2, at + 3, &[item]);
        [push(at, at + 1, &[item]), pop, empty(at + 4, at + 5)]
    };
    let mut events: Vec<Event> = (0..items).flat_map(round).collect();
    sound(&events);
    let end = 6 * items as u64;
    events.push(take(end, end + 1, &[5]));
    only(Duplicate { item: 5 }, &events);
}
