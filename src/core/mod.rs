//! What every queue does, whatever its order and its options.
//!
//! A handle is a [`Local`] in a cell. An item's way is told by three files: [`put`], [`take`] and [`end`]; [`wait`] is
//! the one loop around an attempt. What all handles of a queue have in injector is [`shared`], which is made from
//! [`settings`].

pub(crate) mod admit;
pub(crate) mod batch;
pub(crate) mod end;
pub(crate) mod failed;
mod held;
pub(crate) mod local;
mod permits;
mod pop;
pub(crate) mod pop_batch;
pub(crate) mod put;
pub(crate) mod settings;
pub(crate) mod shared;
mod take;
mod tokens;
mod visit;
pub(crate) mod wait;
mod watched;

pub(crate) use local::{CellOf, Local};
