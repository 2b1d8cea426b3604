//! The core of every queue, independent of its order and its options.
//!
//! A handle is a [`Local`] in a cell. Three files hold the path of an item: [`put`], [`take`] and [`end`]; [`wait`] is
//! the one loop around an attempt. [`shared`] is the state common to all handles of a queue, created from its
//! [`Settings`](crate::policy::settings::Settings).

pub(crate) mod access;
mod admit;
mod batch;
pub(crate) mod delivery;
pub(crate) mod end;
pub(crate) mod failed;
pub(crate) mod later;
mod loads;
pub(crate) mod local;
pub(crate) mod mode;
mod origin;
pub(crate) mod pool;
mod pop;
pub(crate) mod pop_batch;
pub(crate) mod put;
mod session;
pub(crate) mod shared;
mod staged;
mod take;
pub(crate) mod visit;
pub(crate) mod wait;
pub(crate) mod weights;

pub(crate) use local::{CellOf, Local};
