//! Memory: slots, rows and segments of items, and their reclamation.

pub(in crate::raw) mod buckets;
pub(in crate::raw) mod directory;
pub(in crate::raw) mod drops;
pub(in crate::raw) mod entry;
pub(in crate::raw) mod exclusive;
pub(in crate::raw) mod inbox;
pub(in crate::raw) mod number_set;
pub(in crate::raw) mod prefetch;
pub(in crate::raw) mod reclaim;
pub(in crate::raw) mod row;
pub(in crate::raw) mod segment;
pub(in crate::raw) mod slot;
