//! Pushed items can be given another priority or be cancelled, unless they are held.

use std::collections::HashSet;
use std::mem;

use super::{clocked, filled, not_before, pushes};
use crate::common::failing::{put_off, SECOND};
use crate::common::{assert_at_rest, drain, Ledger};
use requeue::{PriorityQueue, Queue};

#[test]
fn cancelled_items_are_removed() {
    let (queue, tickets) = filled(&[1, 2, 3, 2, 1]);
    assert_eq!(queue.cancel(tickets[0]), Some(0)); // the first
    assert_eq!(queue.cancel(tickets[3]), Some(3)); // in the middle
    assert_eq!(queue.cancel(tickets[2]), Some(2)); // the last
    for ticket in [0, 2, 3] {
        assert_eq!(queue.cancel(tickets[ticket]), None);
    }
    assert_at_rest(&queue, 2, 0);
    assert_eq!(queue.stats().committed, 3);
    assert_eq!(drain(&queue), [4, 1]);
    assert_eq!(queue.stats().committed, 5);
}

#[test]
fn the_ticket_of_an_item_that_is_gone_means_no_other_item() {
    let (queue, tickets) = filled(&[1]);
    assert!(queue.reprioritize(tickets[0], 2));
    assert_eq!(queue.pop(), Ok(0));
    queue.priority(1).push(7).unwrap(); // where the first one was
    assert!(!queue.reprioritize(tickets[0], 3));
    assert_eq!(queue.cancel(tickets[0]), None);
    assert_eq!(drain(&queue), [7]);
}

#[test]
fn cancelled_items_are_returned_and_not_dropped() {
    let ledger = Ledger::new(3);
    let queue = PriorityQueue::by_priority();
    let tickets: Vec<_> = ledger
        .items()
        .map(|item| queue.priority(1).push(item).ok().unwrap())
        .collect();
    let cancelled = queue.cancel(tickets[1]);
    assert_eq!(ledger.drops(), [0, 0, 0]);
    drop(cancelled);
    assert_eq!(ledger.drops(), [0, 1, 0]);
    drop(queue);
    ledger.assert_each_dropped_once();
}

#[test]
fn every_item_has_another_ticket() {
    let mut tickets = HashSet::new();
    for push in pushes() {
        let queue = PriorityQueue::by_priority();
        let mut handle = queue.handle();
        let mut own = HashSet::new();
        for item in 0..100 {
            own.insert(push(&queue, &mut handle, 1, None, item).unwrap());
        }
        assert_eq!(own.len(), 100);
        tickets.extend(own);
    }
    assert!(format!("{:?}", tickets.iter().next().unwrap()).starts_with("Ticket("));
}

#[test]
fn scheduled_items_can_be_cancelled_and_reprioritized() {
    let (clock, queue) = clocked();
    let tickets = [1, 2, 3].map(|item| queue.after(SECOND).push(item).unwrap());
    assert_eq!(queue.cancel(tickets[0]), Some(1));
    assert!(queue.reprioritize(tickets[2], 1));
    assert_eq!(queue.stats().delayed, 2);
    assert_at_rest(&queue, 0, 0);
    clock.advance(SECOND);
    assert_eq!(drain(&queue), [3, 2]);
}

#[test]
fn staged_items_cannot_be_cancelled() {
    let (clock, queue) = clocked();
    let mut handle = queue.handle();
    for due in [None, Some(clock.now())] {
        let tx = handle.begin();
        let ticket = not_before(tx.priority(1), due).push(7).unwrap();
        assert_eq!(queue.cancel(ticket), None);
        assert!(!queue.reprioritize(ticket, 2));
        tx.commit();
        assert_eq!(queue.cancel(ticket), Some(7));

        let tx = handle.begin();
        let ticket = not_before(tx.priority(1), due).push(7).unwrap();
        tx.abort();
        assert_eq!(queue.cancel(ticket), None);
    }
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn held_items_cannot_be_cancelled_but_returned_ones_can() {
    let (queue, tickets) = filled(&[1, 1]);
    let mut handle = queue.handle();
    let tx = handle.begin();
    assert_eq!(*tx.pop().unwrap(), 0);
    assert_eq!(queue.cancel(tickets[0]), None);
    assert!(!queue.reprioritize(tickets[0], 2));
    tx.abort();
    assert!(queue.reprioritize(tickets[0], 2));
    assert_eq!(queue.cancel(tickets[0]), Some(0));

    let tx = handle.begin();
    assert_eq!(*tx.pop().unwrap(), 1);
    mem::forget(tx);
    assert_eq!(queue.cancel(tickets[1]), None);
    drop(handle);
    assert_eq!(queue.cancel(tickets[1]), Some(1));
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn committed_items_cannot_be_cancelled() {
    let (queue, tickets) = filled(&[1, 2, 3]);
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.pop().unwrap();
    tx.commit();
    handle.pop().unwrap();
    queue.pop().unwrap();
    for ticket in tickets {
        assert_eq!(queue.cancel(ticket), None);
        assert!(!queue.reprioritize(ticket, 1));
    }
}

#[test]
fn delayed_items_cannot_be_cancelled_until_they_are_due() {
    let (clock, queue) = clocked();
    let ticket = queue.priority(1).push(7).unwrap();
    put_off(&queue, SECOND);
    assert_eq!(queue.cancel(ticket), None);
    assert!(!queue.reprioritize(ticket, 1));
    clock.advance(SECOND);
    assert_eq!(queue.cancel(ticket), Some(7));
    queue.stats().check().unwrap();
}

#[test]
fn another_priority_moves_an_item_among_the_others() {
    let (queue, tickets) = filled(&[5, 5, 5, 5]);
    assert!(queue.reprioritize(tickets[2], 4));
    assert!(queue.reprioritize(tickets[0], 6));
    assert_at_rest(&queue, 4, 0);
    // Back and forth: among equal priorities it keeps the order of its push.
    assert!(queue.reprioritize(tickets[1], 9));
    assert!(queue.reprioritize(tickets[1], 5));
    assert_eq!(drain(&queue), [2, 1, 3, 0]);
}

#[test]
fn another_priority_stays_with_an_item_that_fails() {
    let (queue, tickets) = filled(&[5, 6]);
    assert!(queue.reprioritize(tickets[1], 4));
    for _ in 0..3 {
        let mut handle = queue.handle();
        let tx = handle.begin();
        assert_eq!(*tx.pop().unwrap(), 1);
        tx.abort();
    }
    assert_eq!(drain(&queue), [1, 0]);
}

#[test]
fn an_item_gets_any_priority() {
    let (queue, tickets) = filled(&[5, 5, 5]);
    for (ticket, priority) in tickets.into_iter().zip([u16::MAX, 10_000, 0]) {
        assert!(queue.reprioritize(ticket, priority));
    }
    assert_eq!(drain(&queue), [2, 1, 0]);
}

#[test]
fn many_are_cancelled_while_others_stay() {
    let queue = PriorityQueue::by_priority();
    let mut stay = Vec::new();
    for round in 0..20_u16 {
        let mut tickets = Vec::new();
        for item in 0..500_u16 {
            let ticket = queue.priority(item % 7 + 1).push(round * 500 + item);
            tickets.push((item, ticket.unwrap()));
        }
        for (item, ticket) in tickets {
            let number = round * 500 + item;
            match item % 5 {
                0 => stay.push((item % 7 + 1, number)),
                1 => {
                    assert!(queue.reprioritize(ticket, 8));
                    stay.push((8, number));
                }
                _ => assert_eq!(queue.cancel(ticket), Some(number)),
            }
        }
    }
    assert_at_rest(&queue, stay.len(), 0);
    stay.sort_unstable();
    let items: Vec<_> = stay.into_iter().map(|(_, number)| number).collect();
    assert_eq!(drain(&queue), items);
}

#[test]
fn the_dead_and_the_recovered() {
    let clock = requeue::ManualClock::new();
    let builder = Queue::builder().by_priority().clock(clock.clone());
    let queue = builder.leased(SECOND).max_attempts(2).build();
    let ticket = queue.priority(1).push(7).unwrap();
    queue.priority(2).push(8).unwrap();
    let mut slow = queue.handle();
    let tx = slow.begin();
    assert_eq!(*tx.pop().unwrap(), 7);
    assert_eq!(queue.cancel(ticket), None);
    clock.advance(SECOND);
    // Its lease has expired: it is the first again, and can be cancelled.
    assert_at_rest(&queue, 2, 0);
    let mut other = queue.handle();
    let again = other.begin();
    assert_eq!(*again.pop().unwrap(), 7);
    again.abort();
    assert_eq!(queue.cancel(ticket), None); // dead
    assert!(tx.try_commit().is_err());
    assert_eq!(queue.dead_letters().len(), 1);
    assert_eq!(drain(&queue), [8]);
    queue.stats().check().unwrap();
}
