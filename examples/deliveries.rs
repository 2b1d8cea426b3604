//! Deliveries in a map, acknowledged by their ids, as with a message broker.

use requeue::{DeliveryId, OwnedTransaction, Queue};
use std::collections::HashMap;
use std::time::Duration;

/// The unacknowledged deliveries of a client. If the client is dropped, they go to the next one.
struct Client<'q> {
    queue: &'q Queue<String>,
    unacked: HashMap<DeliveryId, OwnedTransaction<String>>,
}

impl Client<'_> {
    fn next(&mut self) -> Option<(DeliveryId, String)> {
        let delivery = self.queue.begin_owned();
        let (message, id) = (delivery.pop().ok()?.clone(), delivery.id());
        self.unacked.insert(id, delivery);
        Some((id, message))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let queue = Queue::unbounded();
    queue
        .handle()
        .push_batch(["a", "b", "c"].map(String::from))?;
    let unacked = HashMap::new();
    let mut client = Client {
        queue: &queue,
        unacked,
    };
    while let Some((id, message)) = client.next() {
        println!("{id}: {message}");
    }
    let ids: Vec<_> = queue.held().iter().map(|held| held.id).collect();
    client.unacked.remove(&ids[1]).unwrap().commit(); // ack
    let mut refused = client.unacked.remove(&ids[2]).unwrap();
    refused.retry_all_after(Duration::from_millis(10))?; // nack
    drop(client); // the connection is lost
    println!("again: {}, later: {}", queue.pop()?, queue.pop_blocking()?);
    Ok(())
}
