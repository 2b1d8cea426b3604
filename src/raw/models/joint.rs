//! Commits over several queues.

use super::*;
use crate::raw::shard::joint::{JointRecord, Tail, Tails};
use crate::raw::{commit_together, Party};

impl Party for Pusher {
    fn collect(&mut self, tails: &mut Tails) {
        tails.push(Tail {
            shard: Arc::as_ptr(&self.shard).cast(),
            tail: self.producer.next(),
        });
    }

    fn announce(&mut self, record: JointRecord) {
        self.shard.announce(record.0);
    }

    fn conclude(&mut self) {
        self.publish();
        self.shard.conclude();
    }

    fn commit_held(&mut self) {}
}

/// Two shards, each with one staged item, and a consumer that has entered its segment, so that no fence
/// of the reclaimer makes up for a missing ordering.
fn staged() -> [(Popper, Pusher); 2] {
    [1, 2].map(|item| {
        let (shard, mut pusher) = filled([100]);
        let mut popper = Popper::new(&shard);
        assert_eq!(popper.pop(), Some(100));
        pusher.stage(item);
        (popper, pusher)
    })
}

#[test]
fn a_joint_commit_shows_all_its_items() {
    model(|| {
        let [(mut left, mut a), (mut right, mut b)] = staged();
        let committer = thread::spawn(move || drop(commit_together(&mut [&mut a, &mut b])));
        let first = left.pop();
        let other = right.pop();
        assert!(first.is_none() || other.is_some());
        committer.join().unwrap();
    });
}

#[test]
fn whatever_the_order_in_which_queues_are_named() {
    model(|| {
        let [(mut left, mut a), (mut right, mut b)] = staged();
        let committer = thread::spawn(move || drop(commit_together(&mut [&mut a, &mut b])));
        let first = right.pop();
        let other = left.pop();
        assert!(first.is_none() || other.is_some());
        committer.join().unwrap();
    });
}

#[test]
fn a_joint_does_not_speak_for_later_items() {
    model(|| {
        let [(mut left, mut a), (mut right, mut b)] = staged();
        let committer = thread::spawn(move || {
            drop(commit_together(&mut [&mut a, &mut b]));
            a.push(3);
            a.stage(4);
        });
        let mut items = left.drain();
        committer.join().unwrap();
        items.extend(left.drain());
        assert_eq!(items, [1, 3]);
        assert_eq!(right.drain(), [2]);
    });
}
