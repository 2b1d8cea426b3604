//! Names of orderings and of steps, so that the models can do without one and see what goes wrong.
//!
//! Only a build under `--cfg loom` knows the names: there the variable `REQUEUE_WEAKEN` lists what is
//! weakened, with commas in between. An ordering becomes Relaxed, or what stands behind a colon, as in
//! `front.claim:Acquire`; a barrier does nothing; a planted bug is there. Everywhere else a name is
//! nothing at all. The table of all names is `docs/orderings.md`, which `.ci/weaken` checks.

/// An ordering with a name, which says whom it pairs with.
#[cfg(not(loom))]
macro_rules! weak {
    ($name:literal, $ordering:ident) => {
        $crate::sync::Ordering::$ordering
    };
}
#[cfg(loom)]
macro_rules! weak {
    ($name:literal, $ordering:ident) => {
        $crate::sync::ordering($name, $crate::sync::Ordering::$ordering)
    };
}

/// Whether a bug is there, which is never so but in a model that asks for it. With a statement: does
/// that only then.
#[cfg(not(loom))]
macro_rules! planted {
    ($name:literal) => {
        $crate::sync::is_weakened($name)
    };
    ($name:literal, $statement:expr) => {};
}
#[cfg(loom)]
macro_rules! planted {
    ($name:literal) => {
        $crate::sync::is_weakened($name)
    };
    ($name:literal, $statement:expr) => {
        if $crate::sync::is_weakened($name) {
            $statement;
        }
    };
}

/// A step of a protocol, which is left out in a model that asks for it.
#[cfg(not(loom))]
macro_rules! step {
    ($name:literal, $statement:expr) => {
        $statement
    };
}
#[cfg(loom)]
macro_rules! step {
    ($name:literal, $statement:expr) => {
        if !$crate::sync::is_weakened($name) {
            $statement;
        }
    };
}

pub(crate) use {planted, step, weak};

/// Whether what has this name is to be left out.
#[cfg(not(loom))]
#[inline(always)]
#[allow(clippy::inline_always)] // a constant
pub(crate) const fn is_weakened(_name: &'static str) -> bool {
    false
}

#[cfg(loom)]
pub(crate) use chosen::{is_weakened, ordering};

#[cfg(loom)]
mod chosen {
    use crate::sync::Ordering;
    use std::sync::OnceLock;

    /// What `REQUEUE_WEAKEN` lists: names, and the orderings that are left of them.
    fn list() -> &'static [(String, Ordering)] {
        static LIST: OnceLock<Vec<(String, Ordering)>> = OnceLock::new();
        LIST.get_or_init(|| {
            let list = std::env::var("REQUEUE_WEAKEN").unwrap_or_default();
            list.split(',').map(parse).collect()
        })
    }

    fn parse(entry: &str) -> (String, Ordering) {
        let (name, left) = entry.split_once(':').unwrap_or((entry, "Relaxed"));
        let left = match left {
            "Relaxed" => Ordering::Relaxed,
            "Acquire" => Ordering::Acquire,
            "Release" => Ordering::Release,
            _ => panic!("no ordering that something is weakened to: {left}"),
        };
        (name.to_owned(), left)
    }

    fn find(name: &str) -> Option<Ordering> {
        let entry = list().iter().find(|(listed, _)| listed == name)?;
        Some(entry.1)
    }

    /// The ordering, or what is left of it.
    pub(crate) fn ordering(name: &'static str, ordering: Ordering) -> Ordering {
        find(name).unwrap_or(ordering)
    }

    pub(crate) fn is_weakened(name: &'static str) -> bool {
        find(name).is_some()
    }
}
