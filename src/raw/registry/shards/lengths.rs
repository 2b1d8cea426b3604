//! Items of which a short segment has few, so that segments differ in length.

use super::Shards;
use crate::raw::testing::UNBORROWED;
use crate::raw::Endpoint;
use std::sync::Arc;

/// A kilobyte: a short segment has 4 of them and a long one 32; under Miri one and two. Its first field counts those alive.
type Large = (Arc<()>, u64, [u64; 126]);

const ROUNDS: u64 = if cfg!(miri) { 40 } else { 600 };

/// Pushes, stages, takes back and pops so many items, which come out in their order and whole.
struct Flow {
    endpoint: Endpoint<Large>,
    alive: Arc<()>,
    pushed: u64,
    popped: u64,
}

impl Flow {
    fn new() -> Self {
        Self {
            endpoint: Endpoint::new(Arc::new(Shards::new(false))),
            alive: Arc::default(),
            pushed: 0,
            popped: 0,
        }
    }

    fn next(&mut self) -> Large {
        self.pushed += 1;
        (Arc::clone(&self.alive), self.pushed, [self.pushed; 126])
    }

    fn push(&mut self, count: u64) {
        for _ in 0..count {
            let item = self.next();
            self.endpoint.push(item);
        }
    }

    fn commit(&mut self, count: u64) {
        for _ in 0..count {
            let item = self.next();
            self.endpoint.stage_one(item);
        }
        self.endpoint.commit(UNBORROWED);
    }

    fn stage_and_abort(&mut self, count: u64) {
        let pushed = self.pushed;
        for _ in 0..count {
            let item = self.next();
            self.endpoint.stage_one(item);
        }
        self.pushed = pushed;
        self.endpoint.abort(UNBORROWED);
    }

    fn pop(&mut self, count: u64) {
        for _ in 0..count.min(self.pushed - self.popped) {
            let (_, number, copies) = self.endpoint.pop().unwrap();
            self.popped += 1;
            assert_eq!(number, self.popped);
            assert_eq!(copies, [number; 126]);
        }
    }
}

#[test]
fn items_come_in_their_order_while_segments_grow_and_shrink() {
    let mut flow = Flow::new();
    for round in 0..ROUNDS {
        // The backlog grows for a while, and then shrinks to nothing.
        let (more, less) = if round / 50 % 2 == 0 { (9, 5) } else { (4, 13) };
        flow.push(round * 7 % more);
        flow.stage_and_abort(round * 11 % 70);
        flow.commit(round * 5 % more);
        flow.pop(round * 3 % less);
        assert_eq!(flow.endpoint.shards.ready(), flow.pushed - flow.popped);
    }
    flow.pop(u64::MAX);
    assert!(flow.endpoint.pop().is_none());
    assert_eq!(Arc::strong_count(&flow.alive), 1);
}

#[test]
fn what_is_left_in_segments_of_any_length_is_dropped_once() {
    for count in [1, 3, 4, 5, 33, 64, 200] {
        let mut flow = Flow::new();
        flow.push(count);
        flow.pop(count / 3);
        flow.stage_and_abort(40);
        let Flow {
            endpoint, alive, ..
        } = flow;
        let left = usize::try_from(count - count / 3).unwrap();
        assert_eq!(Arc::strong_count(&alive), 1 + left);
        drop(endpoint);
        assert_eq!(Arc::strong_count(&alive), 1);
    }
}
