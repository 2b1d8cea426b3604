//! Queues in C++, through `cpp/shim.cpp`: the only foreign functions of this package.

use super::{Peer, Plan, Receiver, Sender};
use std::ptr::null_mut;
use std::sync::Arc;

/// Memory that only C++ knows.
#[repr(C)]
struct Opaque([u8; 0]);

extern "C" {
    fn moodycamel_new() -> *mut Opaque;
    fn moodycamel_delete(queue: *mut Opaque);
    fn moodycamel_producer_new(queue: *mut Opaque) -> *mut Opaque;
    fn moodycamel_producer_delete(token: *mut Opaque);
    fn moodycamel_consumer_new(queue: *mut Opaque) -> *mut Opaque;
    fn moodycamel_consumer_delete(token: *mut Opaque);
    fn moodycamel_push(queue: *mut Opaque, token: *const Opaque, item: u64) -> bool;
    fn moodycamel_push_bulk(
        queue: *mut Opaque,
        token: *const Opaque,
        items: *const u64,
        count: usize,
    ) -> bool;
    fn moodycamel_pop(queue: *mut Opaque, token: *mut Opaque, item: *mut u64) -> bool;
    fn moodycamel_pop_bulk(
        queue: *mut Opaque,
        token: *mut Opaque,
        items: *mut u64,
        max: usize,
    ) -> usize;
    fn tbb_new() -> *mut Opaque;
    fn tbb_delete(queue: *mut Opaque);
    fn tbb_push(queue: *mut Opaque, item: u64);
    fn tbb_pop(queue: *mut Opaque, item: *mut u64) -> bool;
}

/// A pointer from C++, and the function that deletes it.
struct Owned {
    pointer: *mut Opaque,
    delete: unsafe extern "C" fn(*mut Opaque),
}

// SAFETY: the queues may be used and deleted by any thread, and a token by one at a time: an end is only used by `&mut`.
unsafe impl Send for Owned {}
// SAFETY: as above; what is shared are the queues, whose functions may be called by all threads at once.
unsafe impl Sync for Owned {}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: the pointer is from the matching `new` and is deleted once.
        unsafe { (self.delete)(self.pointer) }
    }
}

/// A queue, with a token if it is used with tokens; the token is deleted first.
pub(crate) struct End {
    token: Option<Owned>,
    queue: Arc<Owned>,
    batch: Vec<u64>,
}

impl End {
    fn token(&self) -> *mut Opaque {
        self.token
            .as_ref()
            .map_or(null_mut(), |token| token.pointer)
    }
}

pub(crate) struct Producer(End);

pub(crate) struct Consumer(End);

fn open(plan: Plan, tokens: bool) -> (Vec<Producer>, Vec<Consumer>) {
    let queue = Arc::new(Owned {
        // SAFETY: no preconditions.
        pointer: unsafe { moodycamel_new() },
        delete: moodycamel_delete,
    });
    let end = |new: unsafe extern "C" fn(*mut Opaque) -> *mut Opaque, delete| End {
        token: tokens.then(|| Owned {
            // SAFETY: the queue is alive, and outlives its tokens.
            pointer: unsafe { new(queue.pointer) },
            delete,
        }),
        queue: queue.clone(),
        batch: Vec::new(),
    };
    let producer = |_| Producer(end(moodycamel_producer_new, moodycamel_producer_delete));
    let consumer = |_| Consumer(end(moodycamel_consumer_new, moodycamel_consumer_delete));
    (
        (0..plan.senders).map(producer).collect(),
        (0..plan.receivers).map(consumer).collect(),
    )
}

/// With a token for each end, and bulk operations.
pub(crate) struct Moodycamel;

impl Peer<u64> for Moodycamel {
    const NAME: &'static str = "moodycamel, tokens";
    type Sender = Producer;
    type Receiver = Consumer;

    fn open(plan: Plan) -> (Vec<Producer>, Vec<Consumer>) {
        open(plan, true)
    }
}

/// Without tokens.
pub(crate) struct MoodycamelImplicit;

impl Peer<u64> for MoodycamelImplicit {
    const NAME: &'static str = "moodycamel";
    type Sender = Producer;
    type Receiver = Consumer;

    fn open(plan: Plan) -> (Vec<Producer>, Vec<Consumer>) {
        open(plan, false)
    }
}

impl Sender<u64> for Producer {
    fn push(&mut self, item: u64) -> Result<(), u64> {
        // SAFETY: queue and token are alive, and nobody else uses the token.
        let pushed = unsafe { moodycamel_push(self.0.queue.pointer, self.0.token(), item) };
        pushed.then_some(()).ok_or(item)
    }

    fn push_batch(&mut self, items: impl Iterator<Item = u64>) {
        self.0.batch.clear();
        self.0.batch.extend(items);
        let (items, count) = (self.0.batch.as_ptr(), self.0.batch.len());
        // SAFETY: as in `push`; the batch has `count` items.
        let pushed =
            unsafe { moodycamel_push_bulk(self.0.queue.pointer, self.0.token(), items, count) };
        assert!(pushed, "there is memory");
    }
}

impl Receiver<u64> for Consumer {
    fn pop(&mut self) -> Option<u64> {
        let mut item = 0;
        // SAFETY: queue and token are alive, and nobody else uses the token; `item` may be written.
        let popped = unsafe { moodycamel_pop(self.0.queue.pointer, self.0.token(), &raw mut item) };
        popped.then_some(item)
    }

    fn pop_batch(&mut self, max: usize, each: impl FnMut(u64)) -> usize {
        self.0.batch.resize(max, 0);
        let (queue, token) = (self.0.queue.pointer, self.0.token());
        // SAFETY: as in `pop`; the batch has room for `max` items.
        let popped = unsafe { moodycamel_pop_bulk(queue, token, self.0.batch.as_mut_ptr(), max) };
        self.0.batch[..popped].iter().copied().for_each(each);
        popped
    }
}

/// `tbb::concurrent_queue`.
pub(crate) struct Tbb;

#[derive(Clone)]
pub(crate) struct TbbEnd(Arc<Owned>);

impl Peer<u64> for Tbb {
    const NAME: &'static str = "TBB";
    type Sender = TbbEnd;
    type Receiver = TbbEnd;

    fn open(plan: Plan) -> (Vec<TbbEnd>, Vec<TbbEnd>) {
        let end = TbbEnd(Arc::new(Owned {
            // SAFETY: no preconditions.
            pointer: unsafe { tbb_new() },
            delete: tbb_delete,
        }));
        plan.clone_ends((end.clone(), end))
    }
}

impl Sender<u64> for TbbEnd {
    fn push(&mut self, item: u64) -> Result<(), u64> {
        // SAFETY: the queue is alive.
        unsafe { tbb_push(self.0.pointer, item) };
        Ok(())
    }
}

impl Receiver<u64> for TbbEnd {
    fn pop(&mut self) -> Option<u64> {
        let mut item = 0;
        // SAFETY: the queue is alive; `item` may be written.
        let popped = unsafe { tbb_pop(self.0.pointer, &raw mut item) };
        popped.then_some(item)
    }
}
