//! Cases by the kinds of their queues.

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
    /// Queues without an order of their own.
    Plain: |_| Ok(Rule::Arrival);
    /// Queues that are fair by key, and plain ones.
    Fair: Rule::fair;
    /// Queues by priority.
    ByPriority: Rule::by_priority;
}
