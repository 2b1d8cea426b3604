//! One shard: its producer against its consumers.

use super::*;

/// The producer's side of a shard.
struct Pusher {
    shard: Arc<Shard<u32>>,
    producer: Producer<u32>,
    stamps: AtomicU64,
}

impl Pusher {
    fn new(shard: &Arc<Shard<u32>>) -> Self {
        Self {
            shard: Arc::clone(shard),
            // SAFETY: nobody else leases the shard.
            producer: unsafe { shard.unpark() },
            stamps: AtomicU64::new(0),
        }
    }

    fn stage(&mut self, item: u32) {
        if self.producer.is_full() {
            self.producer.open(&self.shard, &self.stamps);
        }
        self.producer.stage(item);
    }

    fn push(&mut self, item: u32) {
        self.stage(item);
        self.producer.publish(&self.shard);
    }
}

impl Drop for Pusher {
    fn drop(&mut self) {
        let producer = std::mem::replace(&mut self.producer, Producer::new());
        // SAFETY: the lease is ours.
        unsafe { self.shard.park(producer) };
    }
}

/// Takes items until the shard looks empty.
fn drain(visit: &mut Visit<u32>) -> Vec<u32> {
    let mut items = Vec::new();
    loop {
        match visit.take(&mut items, 1) {
            Take::Empty => return items,
            Take::Spent => visit.enter(),
            _ => {}
        }
    }
}

#[test]
fn publish_and_claim() {
    super::model(|| {
        let shard = Arc::new(Shard::default());
        let mut pusher = Pusher::new(&shard);
        let thread = loom::thread::spawn(move || {
            pusher.push(1);
            pusher.stage(2);
            pusher.stage(3);
            pusher.producer.publish(&pusher.shard);
        });
        let mut visit = Visit::new(&shard);
        let mut items = drain(&mut visit);
        assert_ne!(items.len(), 2, "a commit is seen whole or not at all");
        thread.join().unwrap();
        items.extend(drain(&mut visit));
        assert_eq!(items, [1, 2, 3]);
        visit.flush();
    });
}
