//! Constructors of queues, their inspection, and operations on a queue as a whole.

use std::time::Duration;

use requeue::{
    channel, Backoff, Budget, Builder, ByKey, ByPriority, FairQueue, Leased, ManualClock, Order,
    Pace, PopError, PriorityQueue, PushError, Queue, Reason, WeakPace,
};

const SECOND: Duration = Duration::from_secs(1);

/// The options of the builders of all orders.
fn every_setting<T: Clone + 'static, O: Order<T>>(builder: Builder<T, O>) -> Builder<T, O> {
    builder
        .capacity(8)
        .budget(&Budget::new(8))
        .weigh(|_| 1)
        .max_attempts(3)
        .backoff(Backoff::fixed(SECOND))
        .max_dead_letters(4)
        .on_dead_overflow(drop)
        .pace(Pace::rate(1000, SECOND).burst(1000))
        .max_held(2)
        .paused()
        .name("all settings")
        .clock(ManualClock::new())
        .timestamps()
        .tracked()
}

#[test]
fn queues_of_all_orders_are_built() {
    let _: [Queue<u8>; 3] = [Queue::unbounded(), Queue::bounded(1), Queue::default()];
    let _: (Queue<u8>, PriorityQueue<u8>) = Default::default();
    let _: FairQueue<u8, u8> = FairQueue::by(|item| item % 2);
    let _: PriorityQueue<u8> = PriorityQueue::by_priority();
    let plain: Queue<u8> = every_setting(Queue::builder()).stickiness(1).build();
    let fair: Queue<u8, ByKey<u8, u8>> = every_setting(Queue::builder().fair_by(|item| item % 2))
        .weight(|key| u32::from(*key))
        .key_capacity(2)
        .serial()
        .build();
    let urgent: Queue<u8, ByPriority> = every_setting(Queue::builder().by_priority())
        .age_after(SECOND)
        .build();
    let lent: Queue<u8, Leased> = every_setting(Queue::builder()).leased(SECOND).build();
    let _: Queue<u8, Leased<ByKey<u8, u8>>> = Queue::builder()
        .fair_by(|item| item % 2)
        .leased(SECOND)
        .key_capacity(2)
        .build();
    let _: Queue<u8, Leased<ByPriority>> = Queue::builder().by_priority().leased(SECOND).build();
    assert!(plain.is_paused() && fair.is_paused() && urgent.is_paused() && lent.is_paused());
}

/// The inspection methods of all queues.
fn every_question<T: std::fmt::Debug, O: Order<T>>(queue: &Queue<T, O>) {
    let _: (usize, bool, bool, Option<usize>) = (
        queue.len(),
        queue.is_empty(),
        queue.is_full(),
        queue.capacity(),
    );
    let _: usize = queue.weight();
    let _: (bool, bool) = (queue.is_closed(), queue.same_queue(&queue.clone()));
    let stats = queue.stats();
    stats.check().unwrap();
    assert!(format!("{queue:?}").contains("stats"));
    for held in queue.held() {
        let _ = (held.id, held.worker, held.items, held.since, held.thread);
    }
    let mut seen = 0;
    assert_eq!(queue.peek_each(|_| seen += 1), seen);
    let kept = queue.retain(|_, queued| {
        let _ = (queued.attempts, queued.waited, queued.due);
        assert_eq!(queued.ticket, None);
        true
    });
    assert_eq!((kept, queue.clear_all()), (0, seen));
    let _ = (queue.now(), queue.next_due());
    assert_eq!(queue.handle().name(), None);
    assert!(queue.named_handle("worker").queue().same_queue(queue));
}

#[test]
fn queues_say_how_they_are() {
    every_question(&Queue::<u8>::unbounded());
    let fair = FairQueue::by(|item: &u8| item % 2);
    every_question(&fair);
    fair.push(3).unwrap();
    let mut seen = Vec::new();
    assert_eq!(fair.items_of(&1, |item| seen.push(*item)), 1);
    assert_eq!(seen, [3]);
    let keys = fair.keys();
    assert!(keys.iter().eq([(&1, 1)]) && keys.round().len() <= 1);
    assert_eq!((fair.key_of(&2), fair.key_at_limit(&2)), (0, None));
    let urgent = PriorityQueue::<u8>::by_priority();
    every_question(&urgent);
    assert_eq!(urgent.next_scheduled(), None);
    every_question(&Queue::<u8>::builder().leased(SECOND).build());
}

#[test]
fn queues_are_iterated_cleared_and_closed() {
    let mut queue: Queue<u8> = (0..4).collect();
    queue.extend([4, 5]);
    assert_eq!(queue.drain().take(1).count() + queue.clear(), 6);
    queue.push_batch([1, 2]).unwrap();
    assert!(queue.close());
    assert_eq!(queue.iter().next(), Some(1));
    for item in &queue {
        assert_eq!(item, 2);
    }
    assert_eq!(queue.pop(), Err(PopError::Closed));
    assert_eq!(queue.push(1), Err(PushError::Closed(1)));
}

#[test]
fn queues_are_paused_and_paced() {
    let queue = Queue::<u8>::unbounded();
    queue.pause();
    assert!(queue.is_paused());
    queue.resume();
    queue.pause_for(SECOND);
    queue.set_pace(Pace::every(SECOND));
    assert!(!queue.pace().is_unlimited());
    queue.pace().set_interval(SECOND);
    queue.pace().set_rate(2, SECOND);
    queue.pace().wake_waiters();
    let weak: WeakPace = queue.pace().downgrade();
    assert!(weak.upgrade().is_some());
}

#[test]
fn dead_letters_are_a_view() {
    let queue = Queue::builder().max_attempts(1).build();
    queue.push_batch([1, 2, 3, 4]).unwrap();
    for _ in 0..4 {
        assert!(queue.handle().begin().pop().is_ok());
    }
    let letters = queue.dead_letters();
    assert_eq!((letters.len(), letters.is_empty()), (4, false));
    let mut ids = Vec::new();
    letters.visit(|letter| ids.push(letter.id()));
    assert!(letters.requeue(ids[0]));
    let letter = queue.dead_letters().next().unwrap();
    assert_eq!(
        (letter.item, letter.attempts, letter.reason),
        (2, 1, Reason::Aborted)
    );
    let _ = (letter.pushed_at, letter.died_at, letter.error());
    assert_eq!(letters.drain().take(1).count(), 1);
    assert_eq!(letters.requeue_all(), 1);
}

#[test]
fn workers_of_leased_queues_are_recovered() {
    let queue = Queue::builder().leased(SECOND).build();
    queue.push(1).unwrap();
    let mut stuck = queue.named_handle("stuck");
    let tx = stuck.begin();
    assert!(tx.pop().is_ok());
    tx.renew().unwrap();
    assert_eq!(queue.recover("stuck", queue.now() + SECOND), 1);
    assert!(tx.try_commit().is_err());
}

#[test]
fn channels_lead_to_queues() {
    let (sender, receiver) = channel::bounded(2);
    let _: (Queue<u8>, Queue<u8>) = (sender.queue(), receiver.queue());
    sender.clone().push(1).unwrap();
    drop(sender);
    assert!(receiver.clone().iter().eq([1]));
    assert_eq!(receiver.pop(), Err(PopError::Closed));
    let (sender, receiver) = channel::unbounded::<u8>();
    drop(receiver);
    assert!(sender.push(1).unwrap_err().is_closed());
    let (sender, receiver) = Queue::builder().by_priority().channel();
    let _: (
        &channel::Sender<u8, ByPriority>,
        channel::IntoIter<u8, ByPriority>,
    ) = (&sender, receiver.into_iter());
    let _: PriorityQueue<u8> = sender.queue();
}
