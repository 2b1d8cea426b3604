//! The fates of all items, and a lower bound of the occupied room.
//!
//! Uses std's primitives: an access to the ledger is no step of the schedule.

use shuttle::thread::{self, Thread};
use std::sync::atomic::{AtomicIsize, Ordering::SeqCst};
use std::sync::Mutex;

pub(super) struct Ledger {
    room: Option<usize>,
    fates: Mutex<Vec<Fate>>,
    /// Items and permits that are in the queue for certain, without those that a running call may remove.
    occupied: AtomicIsize,
    /// Number of accepted items that were not received.
    outstanding: AtomicIsize,
    /// Waits until no item is outstanding.
    waiter: Thread,
}

#[derive(Clone, Copy, Default, Debug)]
struct Fate {
    accepted: bool,
    received: usize,
}

impl Ledger {
    /// Kept by this thread.
    pub(super) fn new(room: Option<usize>) -> Self {
        Self {
            room,
            fates: Mutex::default(),
            occupied: AtomicIsize::new(0),
            outstanding: AtomicIsize::new(0),
            waiter: thread::current(),
        }
    }

    /// A new item, which is in no queue.
    pub(super) fn item(&self) -> u32 {
        let mut fates = self.fates.lock().unwrap();
        fates.push(Fate::default());
        u32::try_from(fates.len() - 1).unwrap()
    }

    pub(super) fn items(&self, count: usize) -> Vec<u32> {
        (0..count).map(|_| self.item()).collect()
    }

    /// The queue has accepted the items.
    pub(super) fn accepted(&self, items: &[u32]) {
        for &item in items {
            let fates = &mut self.fates.lock().unwrap();
            fates[item as usize].accepted = true;
        }
        self.occupy(items.len());
        self.count(signed(items.len()));
    }

    /// The items were received; their room was released before.
    pub(super) fn received(&self, items: &[u32]) {
        for &item in items {
            let fate = &mut self.fates.lock().unwrap()[item as usize];
            fate.received += 1;
            assert_eq!(fate.received, 1, "item {item} came twice");
        }
        self.count(-signed(items.len()));
    }

    fn count(&self, change: isize) {
        if self.outstanding.fetch_add(change, SeqCst) + change == 0 {
            self.waiter.unpark();
        }
    }

    /// This much room is occupied from now on.
    pub(super) fn occupy(&self, count: usize) {
        let occupied = self.occupied.fetch_add(signed(count), SeqCst) + signed(count);
        let room = self.room.map_or(isize::MAX, signed);
        assert!(occupied <= room, "{occupied} in a queue of {room}");
    }

    /// This much room may be released from now on.
    pub(super) fn vacate(&self, count: usize) {
        self.occupied.fetch_sub(signed(count), SeqCst);
    }

    /// Waits until all accepted items were received.
    pub(super) fn settle(&self) {
        while self.outstanding.load(SeqCst) != 0 {
            thread::park();
        }
    }

    /// Checks that exactly the accepted items were received.
    pub(super) fn check(&self) {
        for (item, fate) in self.fates.lock().unwrap().iter().enumerate() {
            let received = usize::from(fate.accepted);
            assert_eq!(fate.received, received, "item {item}: {fate:?}");
        }
    }
}

fn signed(count: usize) -> isize {
    isize::try_from(count).unwrap()
}
