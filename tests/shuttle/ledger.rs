//! What has become of each item, and how full the queue is at least.
//!
//! Of std's primitives: a look into the books is no step of the schedule.

use shuttle::thread::{self, Thread};
use std::sync::atomic::{AtomicIsize, Ordering::SeqCst};
use std::sync::Mutex;

pub(super) struct Ledger {
    room: Option<usize>,
    fates: Mutex<Vec<Fate>>,
    /// Items and permits that are in the queue for certain; what a call may take out is not.
    occupied: AtomicIsize,
    /// Items accepted, less those received.
    outstanding: AtomicIsize,
    /// Who waits until nothing is outstanding.
    keeper: Thread,
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
            keeper: thread::current(),
        }
    }

    /// A new item, which nobody has yet.
    pub(super) fn item(&self) -> u32 {
        let mut fates = self.fates.lock().unwrap();
        fates.push(Fate::default());
        u32::try_from(fates.len() - 1).unwrap()
    }

    pub(super) fn items(&self, count: usize) -> Vec<u32> {
        (0..count).map(|_| self.item()).collect()
    }

    /// The queue has said that it has the items.
    pub(super) fn accepted(&self, items: &[u32]) {
        for &item in items {
            let fates = &mut self.fates.lock().unwrap();
            fates[item as usize].accepted = true;
        }
        self.occupy(items.len());
        self.count(signed(items.len()));
    }

    /// Somebody has got the items; what they occupied was vacated before.
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
            self.keeper.unpark();
        }
    }

    /// So much is in the queue from now on.
    pub(super) fn occupy(&self, count: usize) {
        let occupied = self.occupied.fetch_add(signed(count), SeqCst) + signed(count);
        let room = self.room.map_or(isize::MAX, signed);
        assert!(occupied <= room, "{occupied} in a queue of {room}");
    }

    /// So much may leave the queue from now on.
    pub(super) fn vacate(&self, count: usize) {
        self.occupied.fetch_sub(signed(count), SeqCst);
    }

    /// Waits until all that was accepted was received.
    pub(super) fn settle(&self) {
        while self.outstanding.load(SeqCst) != 0 {
            thread::park();
        }
    }

    /// Everything accepted was received, and nothing else.
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
