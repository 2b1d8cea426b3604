//! Whether a queue is idle, while one transaction begins before another one ends.
//!
//! The seats are warmed up first, as in `empty.rs`; those that are looked at first come first.

use super::*;

/// A seat that has a shard and a slot left there.
fn warm(lanes: &Arc<Lanes<u32>>) -> Seat<u32> {
    let mut seat = Seat::new(Arc::clone(lanes));
    seat.push(100);
    assert_eq!(seat.pop(), Some(100));
    seat
}

/// A seat whose transaction holds the only item of the queue.
fn holder(lanes: &Arc<Lanes<u32>>) -> Seat<u32> {
    let mut seat = Seat::new(Arc::clone(lanes));
    seat.push(1);
    assert!(seat.hold());
    seat
}

/// Asks whether the queue is idle while `work` goes on, which begins something before it ends something else.
fn never_idle<R>(lanes: &Arc<Lanes<u32>>, work: impl FnOnce() -> R) {
    let other = thread::spawn({
        let lanes = Arc::clone(lanes);
        move || assert!(!lanes.is_idle(|| true, || true))
    });
    work();
    other.join().unwrap();
}

#[test]
fn never_while_one_stages_before_another_commits() {
    model(|| {
        let lanes = Arc::new(Lanes::new(false));
        let (mut stager, mut holder) = (warm(&lanes), holder(&lanes));
        never_idle(&lanes, || {
            stager.stage_one(2);
            holder.commit(UNBORROWED);
        });
        holder.drop_taken(UNBORROWED);
    });
}

#[test]
fn never_while_one_holds_before_another_commits() {
    model(|| {
        let lanes = Arc::new(Lanes::new(false));
        let mut other = warm(&lanes);
        let mut holder = holder(&lanes);
        holder.push(3);
        never_idle(&lanes, || {
            assert!(other.hold());
            holder.commit(UNBORROWED);
        });
        holder.drop_taken(UNBORROWED);
    });
}

/// What is staged between the walks and dropped leaves nothing but its count.
#[test]
fn never_while_stagings_overlap() {
    model(|| {
        let lanes = Arc::new(Lanes::new(false));
        let (mut last, mut first) = (warm(&lanes), warm(&lanes));
        let mut holder = holder(&lanes);
        never_idle(&lanes, || {
            first.stage_one(2);
            holder.commit(UNBORROWED);
            last.stage_one(2);
            first.abort(UNBORROWED);
        });
        holder.drop_taken(UNBORROWED);
    });
}
