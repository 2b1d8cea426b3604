//! A handle that waits where it has found all items so far: on the only shard in use.

use super::{large_model, warm};
use loom::thread;
use requeue::Queue;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

/// A waker for a task that is not polled again.
struct Deaf;

impl Wake for Deaf {
    fn wake(self: Arc<Self>) {}
}

/// It enters at once, since its last wait slept, while another handle begins to push.
#[test]
fn a_wait_on_the_only_shard_against_the_first_push_to_another() {
    large_model(|| {
        let queue = Queue::unbounded();
        let (mut popper, mut pusher) = (warm(&queue), queue.handle());
        let waker = Waker::from(Arc::new(Deaf));
        let mut context = Context::from_waker(&waker);
        assert!(pin!(popper.pop_async()).poll(&mut context).is_pending());
        let other = thread::spawn(move || (popper.pop_blocking(), popper));
        pusher.push(1).unwrap();
        let (popped, popper) = other.join().unwrap();
        assert_eq!(popped, Ok(1));
        drop((pusher, popper));
    });
}

/// The same, while a transaction returns an item to that shard.
#[test]
fn a_wait_on_the_only_shard_against_an_abort() {
    large_model(|| {
        let queue = Queue::unbounded();
        let (mut holder, mut popper) = (queue.handle(), warm(&queue));
        popper.push(1).unwrap();
        let tx = holder.begin();
        assert!(tx.pop().is_ok());
        let other = thread::spawn(move || (popper.pop_blocking(), popper));
        tx.abort();
        let (popped, popper) = other.join().unwrap();
        assert_eq!(popped, Ok(1));
        drop((holder, popper));
    });
}
