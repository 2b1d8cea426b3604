//! Cases by kind of queue.

use super::ops::Case;
use super::settings::Rule;
use arbitrary::{Arbitrary, Result, Unstructured};
use std::ops::Deref;

macro_rules! cases {
    ($($(#[$doc:meta])+ $cases:ident: $rule:expr;)+) => {$(
        $(#[$doc])+
        #[derive(Debug)]
        pub(crate) struct $cases(Case);

        impl<'a> Arbitrary<'a> for $cases {
            fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
                Case::of(u, $rule).map(Self)
            }
        }

        impl Deref for $cases {
            type Target = Case;

            fn deref(&self) -> &Case {
                &self.0
            }
        }
    )+};
}

cases! {
    /// Queues with the default order.
    Plain: |_| Ok(Rule::Arrival);
    /// Fair queues and plain ones.
    Fair: Rule::fair;
    /// Priority queues.
    ByPriority: Rule::by_priority;
}
