//! Queues of all orders for tours, with the steps that they can take.

use crate::common::failing::SECOND;
use crate::own_steps::{of_keys, of_leases, of_priorities, TERM};
use crate::probes::{Probe, ProbeKey};
use crate::steps;
use crate::tour::{Step, Traits};
use requeue::{Builder, ByKey, ByPriority, Order, Queue};

const PLAIN: Traits = Traits {
    keys: usize::MAX,
    has_keys: false,
    weighs: false,
    is_leased: false,
};
const FAIR: Traits = Traits {
    has_keys: true,
    ..PLAIN
};
const SERIAL: Traits = Traits { keys: 2, ..FAIR };

/// What to do with a queue of an order: its name, its builder, its steps.
pub(crate) trait Visitor: Send + 'static {
    fn visit<O: Order<Probe> + 'static>(
        self,
        order: &str,
        build: fn() -> Builder<Probe, O>,
        traits: Traits,
        steps: &[Step<O>],
    );
}

fn fair() -> Builder<Probe, ByKey<ProbeKey, Probe>> {
    let fair = Queue::builder().fair_by(ProbeKey::of);
    fair.weight(ProbeKey::weight).key_capacity(16)
}

fn by_priority() -> Builder<Probe, ByPriority> {
    Queue::builder().by_priority().age_after(3 * SECOND)
}

/// The steps of all queues, and those of an order.
fn steps_with<O: Order<Probe>>(own: impl IntoIterator<Item = Step<O>>) -> Vec<Step<O>> {
    steps::all().into_iter().chain(own).collect()
}

pub(crate) fn plain(visitor: impl Visitor) {
    visitor.visit("plain", Queue::builder, PLAIN, &steps_with([]));
}

/// Where each item is weighed, and known until it is gone.
pub(crate) fn weighed(visitor: impl Visitor) {
    let build = || Queue::builder().weigh(Probe::weigh);
    let traits = Traits {
        weighs: true,
        ..PLAIN
    };
    visitor.visit("weighed", build, traits, &steps_with([]));
}

pub(crate) fn of_key(visitor: impl Visitor) {
    visitor.visit("fair", fair, FAIR, &steps_with(of_keys()));
}

pub(crate) fn serial(visitor: impl Visitor) {
    visitor.visit("serial", || fair().serial(), SERIAL, &steps_with(of_keys()));
}

pub(crate) fn of_priority(visitor: impl Visitor) {
    visitor.visit(
        "by priority",
        by_priority,
        PLAIN,
        &steps_with(of_priorities()),
    );
}

/// The same with leases.
fn leased(traits: Traits) -> Traits {
    Traits {
        is_leased: true,
        ..traits
    }
}

pub(crate) fn leased_plain(visitor: impl Visitor) {
    let build = || Queue::builder().leased(TERM);
    visitor.visit("leased", build, leased(PLAIN), &steps_with(of_leases()));
}

pub(crate) fn leased_of_key(visitor: impl Visitor) {
    let steps = steps_with(of_keys().into_iter().chain(of_leases()));
    visitor.visit(
        "leased and fair",
        || fair().leased(TERM),
        leased(FAIR),
        &steps,
    );
}

pub(crate) fn leased_of_priority(visitor: impl Visitor) {
    let steps = steps_with(of_priorities().into_iter().chain(of_leases()));
    let build = || by_priority().leased(TERM);
    visitor.visit("leased by priority", build, leased(PLAIN), &steps);
}
