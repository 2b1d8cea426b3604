//! An open transaction, and what it must hold.

use super::model::{Death, Item};
use super::orders::{Tested, KEYS};
use super::Side;
use crate::random::Random;
use requeue_durable::{PopError, StoreError, Ticket, Transaction};
use std::time::Duration;

pub(super) struct Open<'h, O: Tested> {
    pub(super) tx: Transaction<'h, u64, O>,
    pub(super) expected: Expected,
}

/// What a transaction must hold.
pub(super) struct Expected {
    pub(super) side: usize,
    /// The number of its handle.
    pub(super) handle: u64,
    /// Whether the handle has a name. That of an owned transaction has none.
    pub(super) is_worker: bool,
    pub(super) held: Vec<Item>,
    pub(super) staged: Vec<Item>,
    tickets: Vec<(u64, Ticket)>,
    /// Whether an item was taken back from it.
    pub(super) has_lost: bool,
}

impl<'h, O: Tested> Open<'h, O> {
    pub(super) fn new(
        side: usize,
        handle: u64,
        is_worker: bool,
        tx: Transaction<'h, u64, O>,
    ) -> Self {
        let expected = Expected {
            side,
            handle,
            is_worker,
            held: Vec::new(),
            staged: Vec::new(),
            tickets: Vec::new(),
            has_lost: false,
        };
        Self { tx, expected }
    }

    pub(super) fn operation(&mut self, random: &mut Random, side: &mut Side<O>, last: &mut u64) {
        match random.below(11) {
            0..=3 => self.push(random, side, last),
            4..=7 => self.pop(side),
            8 => match self.tx.peek() {
                Ok(peek) => side.model.check_next(*peek),
                Err(_) => side.model.check_empty(),
            },
            9 => self.fail(random, side),
            _ => self.renew(side),
        }
    }

    pub(super) fn push(&mut self, random: &mut Random, side: &mut Side<O>, last: &mut u64) {
        let Self { tx, expected } = self;
        if side.model.closed && expected.held.is_empty() {
            // The items that were taken back from it count as held until its end.
            let pushed = tx.push(0);
            assert!(pushed.is_err_and(|error| error.is_closed()) || expected.has_lost);
            return;
        }
        let first = *last + 1;
        *last += random.pick(&[1, 1, 1, 5]);
        let values = first..*last + 1;
        let place = O::push(tx, random, values.clone());
        let tickets = values.clone().zip(place.tickets);
        expected.tickets.extend(tickets);
        let due = (place.delay > 0).then(|| side.model.now + place.delay);
        for value in values {
            let lane = expected.handle * KEYS + O::key(value);
            let item = Item::new(value, place.class, lane, due);
            expected.staged.push(item);
        }
    }

    fn pop(&mut self, side: &mut Side<O>) {
        match self.tx.pop() {
            Ok(item) => {
                let expected = side.model.take(*item);
                assert_eq!(item.attempts(), expected.attempts, "of {item}");
                self.expected.held.push(expected);
            }
            Err(PopError::Empty | PopError::Closed) => side.model.check_empty(),
            Err(error) => panic!("{error}"),
        }
    }

    /// Pops an item, and gives it up.
    fn fail(&mut self, random: &mut Random, side: &mut Side<O>) {
        let Ok(item) = self.tx.pop() else { return };
        let taken = side.model.take(*item);
        if random.percent(40) {
            self.tx.fail(item, "no good").unwrap();
            side.model.bury(taken, Death::Failed);
        } else {
            let delay = random.pick(&[5, 25]);
            let after = Duration::from_millis(delay);
            self.tx.retry_after(item, after).unwrap();
            side.model.retry(taken, delay);
        }
    }

    fn renew(&mut self, side: &Side<O>) {
        let renewed = self.tx.renew();
        assert_eq!(renewed.is_err(), self.expected.has_lost);
        if let (Ok(()), Some(term)) = (renewed, O::TERM) {
            let until = side.model.now + term;
            let held = self.expected.held.iter_mut();
            held.for_each(|item| item.until = until);
        }
    }

    /// Gives all of its items up.
    pub(super) fn fail_all(&mut self, random: &mut Random, side: &mut Side<O>) {
        let held = self.expected.held.drain(..);
        if random.percent(50) {
            self.tx.fail_all("no good").unwrap();
            held.for_each(|item| side.model.bury(item, Death::Failed));
        } else {
            let delay = random.pick(&[5, 25]);
            let after = Duration::from_millis(delay);
            self.tx.retry_all_after(after).unwrap();
            held.for_each(|item| side.model.retry(item, delay));
        }
    }
}

impl Expected {
    /// Items are taken back from it; returns how many of them are ready.
    pub(super) fn lose<O: Tested>(
        &mut self,
        side: &mut Side<O>,
        is_lost: impl Fn(&Item) -> bool,
    ) -> usize {
        let (lost, kept): (Vec<_>, _) = self.held.drain(..).partition(is_lost);
        self.held = kept;
        self.has_lost |= !lost.is_empty();
        let ready = lost.into_iter().filter(|item| side.model.take_back(*item));
        ready.count()
    }

    /// It ended. `alone`: no other transaction of its queue holds any items.
    pub(super) fn end<O: Tested>(
        self,
        side: &mut Side<O>,
        taken: Result<Vec<u64>, StoreError>,
        alone: bool,
    ) {
        match taken {
            Ok(taken) => {
                let held = self.held.iter().map(|item| item.value);
                assert!(held.eq(taken));
                side.model.push(self.staged);
                side.tickets.extend(self.tickets);
            }
            Err(StoreError::Expired) => side.model.give_back(self.held, Death::Aborted, alone),
            Err(error) => panic!("{error}"),
        }
    }
}
