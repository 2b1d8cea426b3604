//! What every queue does, whatever its order and its options.
//!
//! A handle is a [`port`]: a seat at the lanes and a [`side`] towards those who wait. What all handles of a queue
//! have in common is [`shared`], which is made from [`settings`].

pub(crate) mod port;
pub(crate) mod settings;
pub(crate) mod shared;
pub(crate) mod side;
