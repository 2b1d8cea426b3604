//! Items of several sizes.

use super::stream::trying;
use super::Sizes;
use crate::measure::Workload;
use crate::tally::{Payload, Words};

pub(super) fn workloads(sizes: Sizes) -> Vec<Workload> {
    vec![
        of::<Words<1>>("8", sizes, 1),
        of::<Words<8>>("64", sizes, 2),
        of::<Words<128>>("1,024", sizes, 10),
    ]
}

/// There are fewer large items: one of `parts` parts.
fn of<T: Payload + Sync>(bytes: &str, sizes: Sizes, parts: u64) -> Workload {
    let (plan, load) = (sizes.plan(2, 2), sizes.load_of(parts));
    Workload::new(
        format!("items of {bytes} bytes, 2P2C"),
        move || mpmc!(T: trying(plan, load)),
    )
}
