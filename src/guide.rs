//! Guides, and a list of examples.

/// Defines a page: a module whose documentation is a file in `docs/guide`.
macro_rules! pages {
    ($($name:ident $file:literal)+) => { $(
        pub mod $name {
            #![doc = include_str!($file)]

            #[cfg(doc)]
            use crate::*;
        }
    )+ };
}

pages! {
    transactions "../docs/guide/transactions.md"
    ordering "../docs/guide/ordering.md"
    failure "../docs/guide/failure.md"
    waiting "../docs/guide/waiting.md"
    orders "../docs/guide/orders.md"
    performance "../docs/guide/performance.md"
    channels "../docs/guide/channels.md"
    examples "../docs/guide/examples.md"
}
