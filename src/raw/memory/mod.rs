//! Memory: slots, rows and segments of items, and their reclamation.

pub(in crate::raw) mod directory;
pub(in crate::raw) mod drops;
pub(in crate::raw) mod entry;
pub(in crate::raw) mod exclusive;
pub(in crate::raw) mod inbox;
pub(in crate::raw) mod number_set;
pub(in crate::raw) mod once;
pub(in crate::raw) mod prefetch;
pub(in crate::raw) mod reclaim;
pub(in crate::raw) mod row;
pub(in crate::raw) mod segment;
pub(in crate::raw) mod slot;

pub(in crate::raw) use directory::{Age, Directory, DirectoryEnd};
pub(in crate::raw) use drops::drop_all;
pub(in crate::raw) use entry::{DeliveryMeta, Entry, Stored};
pub(in crate::raw) use number_set::{NumberSet, Seen, SetVersion};
pub(in crate::raw) use once::{Buckets, OnceBox};
pub(in crate::raw) use reclaim::Pin;
pub(in crate::raw) use row::Row;
pub(in crate::raw) use segment::{known, Notes, Segment, FIRST_STAMP, MAX_ITEMS};
pub(in crate::raw) use slot::Slot;
