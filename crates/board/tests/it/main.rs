//! The board, asked as a browser would.

mod attacks;
mod changes;
mod client;
mod live;
mod pages;
mod slow;
