//! Deliveries, which are acknowledged or given back one by one.

use crate::steps::{dead, drains, filled, half, left, Delay};
use crate::{Subject, TxOf};
use requeue::backend::{Delivery, Tx};
use requeue::Wait;

async fn take<S: Subject>(queue: &S::Queue) -> Delivery<TxOf<S>> {
    let taken = Delivery::take(queue, Wait::Forever).await;
    taken.unwrap().expect("an item")
}

/// Takes the item that is ready, if any.
async fn look<S: Subject>(queue: &S::Queue) -> Option<Delivery<TxOf<S>>> {
    Delivery::take(queue, Wait::Never).await.unwrap()
}

pub async fn deliveries_end_in_any_order<S: Subject>(subject: &S) {
    let queue = filled(subject, [1, 2, 3]).await;
    let [first, second, third] = [
        take::<S>(&queue).await,
        take::<S>(&queue).await,
        take::<S>(&queue).await,
    ];
    assert_eq!([*first, *second, *third], [1, 2, 3]);
    assert_eq!(left(&queue).await, 3);
    second.ack().await.unwrap();
    third.nack().await.unwrap();
    let again = take::<S>(&queue).await;
    assert_eq!((*again, again.attempts()), (3, 2));
    again.ack().await.unwrap();
    first.ack().await.unwrap();
    drains(&queue, &[]).await;
}

pub async fn a_dropped_delivery_is_given_back<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    drop(take::<S>(&queue).await);
    drains(&queue, &[1]).await;
}

pub async fn a_delivery_is_retried_after_a_delay<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let taken = take::<S>(&queue).await;
    let delay = Delay::short::<S>();
    taken.nack_after(S::SHORT).await.unwrap();
    delay.not_before(look::<S>(&queue)).await;
    half(subject).await;
    delay.not_before(look::<S>(&queue)).await;
    subject.pass(S::SHORT).await;
    drains(&queue, &[1]).await;
}

pub async fn a_failed_delivery_is_a_dead_letter<S: Subject>(subject: &S) {
    let queue = filled(subject, [1, 2]).await;
    take::<S>(&queue).await.fail("no").await.unwrap();
    assert_eq!(dead(subject, &queue).await, [(1, 1)]);
    drains(&queue, &[2]).await;
}

pub async fn an_acknowledgement_commits_what_was_pushed<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    for acks in [false, true] {
        let taken = take::<S>(&queue).await;
        S::push_in(taken.transaction(), 2).await.unwrap();
        assert_eq!(*taken, 1);
        assert!(look::<S>(&queue).await.is_none());
        if acks {
            taken.ack().await.unwrap();
        }
    }
    drains(&queue, &[2]).await;
}

pub async fn a_delivery_goes_to_another_task<S: Subject>(subject: &S)
where
    TxOf<S>: Tx<Error: 'static>,
{
    let queue = filled(subject, [1]).await;
    let taken = take::<S>(&queue).await;
    let acked = tokio::spawn(async move { taken.ack().await.map_err(|error| error.to_string()) });
    assert_eq!(acked.await.unwrap(), Ok(()));
    drains(&queue, &[]).await;
}
