//! The rank error and the throughput, with the default stickiness and with others.

use super::rank::{concurrent, in_turn};
use super::stream::trying;
use super::Sizes;
use crate::measure::Workload;
use crate::peers::{Plain, Sticky};

/// Where items came out of turn, also the distance of an item from its place.
const COLUMNS: &[&str] = &["mean", "max", "displacement"];

macro_rules! each {
    ($function:ident $arguments:tt for $($stickiness:expr),+) => {
        vec![
            $function::<Plain, u64> $arguments,
            $($function::<Sticky<{ $stickiness }>, u64> $arguments),+
        ]
    };
}

macro_rules! all {
    ($function:ident $arguments:tt) => {
        each!($function $arguments for 1, 4, 16, 64, 256, 1024, u32::MAX)
    };
}

pub(super) fn workloads(sizes: Sizes) -> Vec<Workload> {
    let load = sizes.load();
    let concurrently = [2, 4].map(|threads| {
        let plan = sizes.plan(threads, threads);
        let name = |what| format!("stickiness, {what}{threads}P{threads}C");
        let stream = Workload::new(name("stream "), move || all!(trying(plan, load)));
        let rank = Workload::new(name("rank error, "), move || all!(concurrent(plan, load)));
        [stream, rank.columns(&COLUMNS[..2]).unit("items")]
    });
    let plan = sizes.plan(2, 1);
    let in_turn = Workload::new("stickiness, rank error, 2 handles of 1 thread", move || {
        all!(in_turn(plan, load))
    });
    let all = concurrently.into_iter().flatten();
    all.chain([in_turn.columns(COLUMNS).unit("items")])
        .collect()
}
