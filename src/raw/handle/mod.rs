//! What a handle owns, and its transactions use.

pub(in crate::raw) mod away;
pub(in crate::raw) mod bookmark;
pub(in crate::raw) mod cell;
pub(in crate::raw) mod endpoint;
pub(in crate::raw) mod gathering;
pub(in crate::raw) mod items;
#[cfg(feature = "workers")]
pub(in crate::raw) mod kept;
pub(in crate::raw) mod open;
pub(in crate::raw) mod peek;
pub(in crate::raw) mod sharing;
pub(in crate::raw) mod thread_cells;
