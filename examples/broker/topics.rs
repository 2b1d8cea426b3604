//! A message broker: topics, consumer groups, acknowledgements, redelivery, dead letters.

use requeue::{Clock, DeadLetter, Leased, PopError, Queue};
use std::collections::HashMap;
use std::sync::{Arc, RwLock};
use std::time::Duration;

/// What a topic does with its messages.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// How many bytes may wait or be unacknowledged in a group.
    pub(crate) max_bytes: usize,
    /// How long a message is of use: then nobody gets it any more.
    pub(crate) max_age: Duration,
    /// How long a consumer may take before its message goes to another one.
    pub(crate) ack_wait: Duration,
    /// After how many deliveries a message is a dead letter.
    pub(crate) max_deliveries: u32,
}

/// What was published: all groups share it.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) body: Vec<u8>,
}

/// The queue of one consumer group of a topic.
pub(crate) type Group = Queue<Arc<Message>, Leased>;

/// A message out for delivery: acknowledged by `try_ack`, given back when it is dropped.
pub(crate) type Delivery = requeue::Delivery<Arc<Message>, Leased>;

/// A group of the topic has no room for the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// Topics by name, each with its groups by name.
pub(crate) struct Broker<C> {
    limits: Limits,
    clock: C,
    topics: RwLock<HashMap<String, HashMap<String, Group>>>,
}

impl<C: Clock + Clone + 'static> Broker<C> {
    pub(crate) fn new(limits: Limits, clock: C) -> Self {
        Self {
            limits,
            clock,
            topics: RwLock::default(),
        }
    }

    /// Joins a group, which gets each message of the topic from now on once, and is made for its first member.
    pub(crate) fn join(&self, topic: &str, group: &str) -> Consumer {
        let mut topics = self.topics.write().unwrap();
        let groups = topics.entry(topic.to_string()).or_default();
        let queue = groups.entry(group.to_string());
        Consumer(queue.or_insert_with(|| self.group()).clone())
    }

    fn group(&self) -> Group {
        Queue::builder()
            .weigh(|message: &Arc<Message>| message.body.len())
            .capacity(self.limits.max_bytes)
            .ttl(self.limits.max_age)
            .leased(self.limits.ack_wait)
            .max_attempts(self.limits.max_deliveries)
            .clock(self.clock.clone())
            .build()
    }

    /// Publishes a message to all groups of a topic, or to none if one of them is full; returns to how many.
    pub(crate) fn publish(&self, topic: &str, body: impl Into<Vec<u8>>) -> Result<usize, Full> {
        let topics = self.topics.read().unwrap();
        let Some(groups) = topics.get(topic) else {
            return Ok(0);
        };
        let message = Arc::new(Message { body: body.into() });
        let staged = groups.values().map(|queue| {
            let tx = queue.begin_owned();
            tx.push(Arc::clone(&message)).map_err(|_| Full)?;
            Ok(tx)
        });
        // The first one that is full drops the others; what is staged has its room, so no commit fails.
        let staged: Vec<_> = staged.collect::<Result<_, Full>>()?;
        let published = staged.len();
        for tx in staged {
            tx.try_commit().expect("it holds nothing that could expire");
        }
        Ok(published)
    }

    /// The messages of a group that nobody could handle.
    pub(crate) fn dead_letters(&self, topic: &str, group: &str) -> Vec<DeadLetter<Arc<Message>>> {
        let topics = self.topics.read().unwrap();
        let queue = topics.get(topic).and_then(|groups| groups.get(group));
        queue.map_or_else(Vec::new, |queue| queue.dead_letters().collect())
    }

    /// No more messages from now on; consumers still get those that were published, and then the end.
    pub(crate) fn close(&self) {
        for queue in self
            .topics
            .read()
            .unwrap()
            .values()
            .flat_map(HashMap::values)
        {
            queue.close();
        }
    }
}

/// A member of a group. Members share its messages.
#[derive(Clone)]
pub(crate) struct Consumer(Group);

impl Consumer {
    /// The next message; [`PopError::Empty`] if there is none within that time, [`PopError::Closed`] at the end.
    pub(crate) fn receive(&self, wait: Duration) -> Result<Delivery, PopError> {
        self.0.take_timeout(wait)
    }

    /// Up to that many messages that are there.
    pub(crate) fn receive_batch(&self, most: usize) -> Vec<Delivery> {
        self.0.take_batch(most)
    }
}
