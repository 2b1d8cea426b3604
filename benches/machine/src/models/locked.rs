//! A deque behind a lock.

use requeue::machine::{event, Event, Mutex};
use std::collections::VecDeque;

pub(crate) struct LockedDeque {
    deque: Mutex<VecDeque<u64>>,
    bound: usize,
}

fn address<T>(place: &T) -> usize {
    std::ptr::from_ref(place) as usize
}

impl LockedDeque {
    pub(crate) fn new(bound: Option<usize>) -> Self {
        Self {
            deque: Mutex::new(VecDeque::new()),
            bound: bound.unwrap_or(usize::MAX),
        }
    }

    pub(crate) fn push(&self, item: u64) -> bool {
        let mut deque = self.deque.lock();
        event(Event::Read(address(&*deque)));
        if deque.len() >= self.bound {
            return false;
        }
        deque.push_back(item);
        event(Event::Write(deque.back().map_or(0, address)));
        event(Event::Write(address(&*deque)));
        true
    }

    pub(crate) fn pop(&self) -> Option<u64> {
        let mut deque = self.deque.lock();
        event(Event::Read(address(&*deque)));
        event(Event::Read(deque.front().map(address)?));
        event(Event::Write(address(&*deque)));
        deque.pop_front()
    }
}
