use super::topics::{Broker, Consumer, Full, Limits};
use requeue::{ManualClock, PopError, Reason};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn broker() -> (Broker<ManualClock>, ManualClock) {
    let clock = ManualClock::new();
    let limits = Limits {
        max_bytes: 16,
        max_age: 90 * SECOND,
        ack_wait: 30 * SECOND,
        max_deliveries: 2,
    };
    (Broker::new(limits, clock.clone()), clock)
}

/// Acknowledges all messages that are there, and returns them.
fn acknowledged(consumer: &Consumer) -> Vec<String> {
    let received = consumer.receive_batch(usize::MAX).into_iter();
    let text = |message: super::topics::Delivery| {
        let message = message.try_ack().unwrap();
        String::from_utf8(message.body.clone()).unwrap()
    };
    received.map(text).collect()
}

#[test]
fn each_group_gets_each_message_once() {
    let (broker, _) = broker();
    assert_eq!(broker.publish("orders", "nobody listens"), Ok(0));
    let (bill, ship) = (broker.join("orders", "bill"), broker.join("orders", "ship"));
    let shipper = broker.join("orders", "ship");
    assert_eq!(broker.publish("orders", "a"), Ok(2));
    assert_eq!(broker.publish("orders", "b"), Ok(2));
    assert_eq!(broker.publish("returns", "c"), Ok(0));
    assert_eq!(acknowledged(&bill), ["a", "b"]);
    let first = ship.receive(Duration::ZERO).unwrap();
    assert_eq!(&*first.body, b"a");
    assert_eq!(acknowledged(&shipper), ["b"]);
    first.try_ack().unwrap();
    assert!(ship.receive(Duration::ZERO).is_err());
}

#[test]
fn what_is_not_acknowledged_is_delivered_again_in_order() {
    let (broker, _) = broker();
    let ship = broker.join("orders", "ship");
    for body in ["a", "b", "c"] {
        broker.publish("orders", body).unwrap();
    }
    let mut received = ship.receive_batch(3);
    received.swap(0, 2);
    received.remove(1).try_ack().unwrap(); // b
    drop(received); // c, then a: the consumer is gone
    let again = ship.receive_batch(3);
    assert!(again.iter().all(|message| message.attempts() == 2));
    for message in again {
        message.release();
    }
    assert_eq!(acknowledged(&ship), ["a", "c"]);
}

#[test]
fn a_slow_consumer_loses_its_message() {
    let (broker, clock) = broker();
    let (slow, quick) = (broker.join("orders", "ship"), broker.join("orders", "ship"));
    broker.publish("orders", "a").unwrap();
    let late = slow.receive(Duration::ZERO).unwrap();
    clock.advance(29 * SECOND);
    late.extend(30 * SECOND).unwrap();
    clock.advance(29 * SECOND);
    assert_eq!(quick.receive(Duration::ZERO).err(), Some(PopError::Empty));
    clock.advance(SECOND);
    assert_eq!(acknowledged(&quick), ["a"]);
    assert!(late.try_ack().is_err());
}

#[test]
fn what_nobody_can_handle_is_a_dead_letter() {
    let (broker, _) = broker();
    let ship = broker.join("orders", "ship");
    broker.publish("orders", "poison").unwrap();
    broker.publish("orders", "refused").unwrap();
    let deliver = || ship.receive(Duration::ZERO).unwrap();
    deliver().nack();
    deliver().nack();
    deliver().fail("not for me");
    let letters = broker.dead_letters("orders", "ship");
    let letters: Vec<_> = letters
        .iter()
        .map(|letter| (&*letter.item.body, letter.reason))
        .collect();
    let expected = [
        (&b"poison"[..], Reason::Retried),
        (&b"refused"[..], Reason::Failed),
    ];
    assert_eq!(letters, expected);
    assert!(ship.receive_batch(1).is_empty());
}

#[test]
fn a_message_that_is_too_old_is_gone() {
    let (broker, clock) = broker();
    let ship = broker.join("orders", "ship");
    for _ in 0..4 {
        broker.publish("orders", "aged").unwrap();
    }
    clock.advance(90 * SECOND + Duration::from_nanos(3)); // one after the other
    assert_eq!(broker.publish("orders", "new"), Ok(1)); // there is room again
    assert_eq!(acknowledged(&ship), ["new"]);
}

#[test]
fn a_message_goes_to_all_groups_or_to_none() {
    let (broker, _) = broker();
    let (slow, quick) = (broker.join("orders", "bill"), broker.join("orders", "ship"));
    for _ in 0..4 {
        broker.publish("orders", "abcd").unwrap();
        acknowledged(&quick);
    }
    let unacknowledged = slow.receive_batch(4);
    assert_eq!(broker.publish("orders", "b"), Err(Full));
    assert!(quick.receive_batch(1).is_empty());
    for message in unacknowledged {
        message.try_ack().unwrap();
    }
    assert_eq!(broker.publish("orders", "b"), Ok(2));
}

#[test]
fn consumers_get_what_was_published_before_the_close_and_then_the_end() {
    let (broker, _) = broker();
    let ship = broker.join("orders", "ship");
    broker.publish("orders", "a").unwrap();
    broker.close();
    let last = ship.receive(Duration::ZERO).unwrap();
    assert_eq!(ship.receive(Duration::ZERO).err(), Some(PopError::Empty)); // it may come back
    last.nack();
    assert_eq!(acknowledged(&ship), ["a"]);
    assert_eq!(ship.receive(SECOND).err(), Some(PopError::Closed));
    assert_eq!(broker.publish("orders", "b"), Err(Full));
}
