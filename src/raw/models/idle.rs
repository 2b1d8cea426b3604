//! Whether a queue is idle, while one transaction begins before another one ends.
//!
//! The endpoints are warmed up first, as in `empty.rs`, in the order in which they are checked.

use super::*;

/// An endpoint that has a shard and a slot left there.
fn warm(shards: &Arc<Shards<u32>>) -> Endpoint<u32> {
    let mut endpoint = Endpoint::new(Arc::clone(shards));
    endpoint.push(100);
    assert_eq!(endpoint.pop(), Some(100));
    endpoint
}

/// An endpoint whose transaction holds the only item of the queue.
fn holder(shards: &Arc<Shards<u32>>) -> Endpoint<u32> {
    let mut endpoint = Endpoint::new(Arc::clone(shards));
    endpoint.push(1);
    assert!(endpoint.hold());
    endpoint
}

/// Checks whether the queue is idle during `work`, which begins one transaction before it ends another.
fn never_idle<R>(shards: &Arc<Shards<u32>>, work: impl FnOnce() -> R) {
    let other = thread::spawn({
        let shards = Arc::clone(shards);
        move || assert!(!shards.is_idle(|| true, || true))
    });
    work();
    other.join().unwrap();
}

#[test]
fn never_while_one_stages_before_another_commits() {
    model(|| {
        let shards = Arc::new(Shards::new(false));
        let (mut stager, mut holder) = (warm(&shards), holder(&shards));
        never_idle(&shards, || {
            stager.stage_one(2);
            holder.commit(UNBORROWED);
        });
        holder.drop_taken(UNBORROWED);
    });
}

#[test]
fn never_while_one_holds_before_another_commits() {
    model(|| {
        let shards = Arc::new(Shards::new(false));
        let mut other = warm(&shards);
        let mut holder = holder(&shards);
        holder.push(3);
        never_idle(&shards, || {
            assert!(other.hold());
            holder.commit(UNBORROWED);
        });
        holder.drop_taken(UNBORROWED);
    });
}

/// Items that are staged between the passes and dropped leave no trace except their count.
#[test]
fn never_while_stagings_overlap() {
    model(|| {
        let shards = Arc::new(Shards::new(false));
        let (mut last, mut first) = (warm(&shards), warm(&shards));
        let mut holder = holder(&shards);
        never_idle(&shards, || {
            first.stage_one(2);
            holder.commit(UNBORROWED);
            last.stage_one(2);
            first.abort(UNBORROWED);
        });
        holder.drop_taken(UNBORROWED);
    });
}
