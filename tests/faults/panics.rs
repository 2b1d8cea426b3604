//! Panics of all user code: each call of each kind panics in a tour of its own.

use crate::amount::faults;
use crate::orders::{self, Visitor};
use crate::plan::{unless_planned, Call, Fault, Plan};
use crate::probes::Probe;
use crate::tour::{play, Step, Traits};
use requeue::{Builder, Order};

/// Lets the calls of each kind panic one after the other, each in a new tour.
struct Panics;

impl Visitor for Panics {
    fn visit<O: Order<Probe> + 'static>(
        self,
        order: &str,
        build: fn() -> Builder<Probe, O>,
        traits: Traits,
        steps: &[Step<O>],
    ) {
        for call in Call::ALL {
            for number in faults(8) {
                let plan = Plan::new(call, number, Fault::Panic);
                let what = format!("{order}, panic {number} of {call:?}");
                let run = || play(build, traits, &plan, steps, &what);
                assert!(
                    unless_planned(run).is_some(),
                    "{what}: outside of the steps"
                );
                if !plan.was_carried_out() {
                    assert_eq!(number > 1, is_used(call, traits), "{what} does not happen");
                    break;
                }
            }
        }
    }
}

/// Whether a queue of an order calls such user code.
fn is_used(call: Call, traits: Traits) -> bool {
    match call {
        Call::CloneItem => traits.is_leased,
        Call::FindKey | Call::Hash | Call::Eq | Call::DropKey => traits.has_keys,
        Call::Weigh => traits.has_keys || traits.weighs,
        _ => true,
    }
}

#[test]
fn a_plain_queue_survives_panics() {
    orders::plain(Panics);
}

#[test]
fn a_queue_with_weights_survives_panics() {
    orders::weighed(Panics);
}

#[test]
fn a_fair_queue_survives_panics() {
    orders::of_key(Panics);
}

#[test]
fn a_serial_queue_survives_panics() {
    orders::serial(Panics);
}

#[test]
fn a_queue_by_priority_survives_panics() {
    orders::of_priority(Panics);
}

#[test]
fn a_leased_queue_survives_panics() {
    orders::leased_plain(Panics);
}

#[test]
fn a_leased_fair_queue_survives_panics() {
    orders::leased_of_key(Panics);
}

#[test]
fn a_leased_queue_by_priority_survives_panics() {
    orders::leased_of_priority(Panics);
}
