//! The inbox: producers against the consumer.

use super::*;
use crate::raw::memory::inbox::{Inbox, Vacant};
use loom::cell::Cell;

/// A value tracked by loom: a read that does not happen after the write is an error.
struct Letter(Cell<u32>);

fn put(inbox: &Inbox<Letter>, value: u32) {
    let letter = Letter(Cell::new(0));
    letter.0.set(value);
    inbox.put(Vacant::new(), letter);
}

fn take_all(inbox: &Inbox<Letter>) -> Vec<u32> {
    let letters = inbox.take_all().into_iter();
    letters.map(|letter| letter.0.get()).collect()
}

#[test]
fn an_inbox_publishes_its_values() {
    model(|| {
        let inbox = Arc::new(Inbox::new());
        let others = [[1, 2], [3, 4]].map(|values| {
            let inbox = Arc::clone(&inbox);
            thread::spawn(move || values.into_iter().for_each(|value| put(&inbox, value)))
        });
        let mut taken = take_all(&inbox);
        for other in others {
            other.join().unwrap();
        }
        taken.extend(take_all(&inbox));
        assert!(taken.iter().filter(|value| **value < 3).is_sorted());
        assert!(taken.iter().filter(|value| **value > 2).is_sorted());
        assert_eq!(sorted(taken), [1, 2, 3, 4]);
    });
}

#[test]
fn two_take_out_different_values() {
    model(|| {
        let inbox = Arc::new(Inbox::new());
        put(&inbox, 1);
        let other = thread::spawn({
            let inbox = Arc::clone(&inbox);
            move || take_all(&inbox)
        });
        put(&inbox, 2);
        let mine = take_all(&inbox);
        let theirs = other.join().unwrap();
        assert_eq!(sorted(mine.into_iter().chain(theirs)), [1, 2]);
    });
}
