//! Commits over several queues.

use super::*;
use crate::raw::joint::{Record, Tail, Tails};
use crate::raw::{commit_together, Party};
use std::ptr;

impl Party for Pusher {
    fn collect(&self, tails: &mut Tails) {
        tails.push(Tail {
            shard: Arc::as_ptr(&self.shard).cast(),
            tail: self.producer.next(),
        });
    }

    fn announce(&self, record: Record) {
        self.shard.announce(record.0);
    }

    fn conclude(&mut self) {
        self.publish();
        self.shard.announce(ptr::null());
    }
}

/// Two shards, each with one staged item.
fn staged() -> [(Arc<Shard<u32>>, Pusher); 2] {
    [1, 2].map(|item| {
        let (shard, mut pusher) = filled([]);
        pusher.stage(item);
        (shard, pusher)
    })
}

#[test]
fn who_sees_one_item_finds_the_other() {
    model(|| {
        let [(left, mut a), (right, mut b)] = staged();
        let committer = thread::spawn(move || commit_together(&mut [&mut a, &mut b]));
        let mine = Popper::new(&left).pop();
        let other = Popper::new(&right).pop();
        assert!(mine.is_none() || other.is_some());
        committer.join().unwrap();
        assert!(left.tail() == 1 && right.tail() == 1);
    });
}

#[test]
fn whatever_the_order_in_which_queues_are_named() {
    model(|| {
        let [(left, mut a), (right, mut b)] = staged();
        let committer = thread::spawn(move || commit_together(&mut [&mut a, &mut b]));
        let mine = Popper::new(&right).pop();
        let other = Popper::new(&left).pop();
        assert!(mine.is_none() || other.is_some());
        committer.join().unwrap();
    });
}

#[test]
fn a_joint_does_not_speak_for_later_items() {
    model(|| {
        let [(left, mut a), (right, mut b)] = staged();
        let committer = thread::spawn(move || {
            commit_together(&mut [&mut a, &mut b]);
            a.push(3);
            a.stage(4);
        });
        let mut popper = Popper::new(&left);
        let mut items = popper.drain();
        committer.join().unwrap();
        items.extend(popper.drain());
        assert_eq!(items, [1, 3]);
        assert_eq!(right.backlog(), 1);
    });
}
