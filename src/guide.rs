//! Guides, and a list of examples.

/// Defines a page: a module whose documentation is a file in `docs/guide`, and a plot, if there is one.
macro_rules! pages {
    ($($name:ident $file:literal $(+ $plot:literal)?)+) => { $(
        pub mod $name {
            #![doc = include_str!($file)]
            $(#![doc = concat!("\n<div>\n", include_str!($plot), "</div>")])?

            #[cfg(doc)]
            use crate::*;
        }
    )+ };
}

pages! {
    transactions "../docs/guide/transactions.md"
    ordering "../docs/guide/ordering.md"
    failure "../docs/guide/failure.md"
    broker "../docs/guide/broker.md"
    waiting "../docs/guide/waiting.md"
    batches "../docs/guide/batches.md"
    orders "../docs/guide/orders.md"
    performance "../docs/guide/performance.md" + "../docs/compared.svg"
    channels "../docs/guide/channels.md"
    examples "../docs/guide/examples.md"
}
