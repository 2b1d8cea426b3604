//! Names of orderings and steps, so that the models can weaken one and find out what fails.
//!
//! Only a build under `--cfg loom` or `--cfg yields` knows the names: there the variable `REQUEUE_WEAKEN` lists what is
//! weakened, separated by commas. An ordering becomes Relaxed, or the ordering behind a colon, as in
//! `front.claim:Acquire`; a barrier does nothing; a planted bug is enabled. Everywhere else names have no
//! effect. The table of all names is `docs/orderings.md`, which `.ci/weaken` checks.

/// An ordering with a name.
#[cfg(not(any(loom, yields)))]
macro_rules! weak {
    ($name:literal, $ordering:ident) => {
        $crate::sync::Ordering::$ordering
    };
}
#[cfg(any(loom, yields))]
macro_rules! weak {
    ($name:literal, $ordering:ident) => {
        $crate::sync::ordering($name, $crate::sync::Ordering::$ordering)
    };
}

/// Whether a planted bug is enabled: only in a model that requests it. With a statement: executes it only
/// then.
#[cfg(not(any(loom, yields)))]
macro_rules! planted {
    ($name:literal) => {
        $crate::sync::is_weakened($name)
    };
    ($name:literal, $statement:expr) => {};
}
#[cfg(any(loom, yields))]
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

/// A step of a protocol, which is omitted in a model that requests it.
#[cfg(not(any(loom, yields)))]
macro_rules! step {
    ($name:literal, $statement:expr) => {
        $statement
    };
}
#[cfg(any(loom, yields))]
macro_rules! step {
    ($name:literal, $statement:expr) => {
        if !$crate::sync::is_weakened($name) {
            $statement;
        }
    };
}

pub(crate) use {planted, step, weak};

/// Whether the ordering, barrier or step with this name is weakened.
#[cfg(not(any(loom, yields)))]
#[inline(always)] // a constant
pub(crate) const fn is_weakened(_name: &'static str) -> bool {
    false
}

#[cfg(any(loom, yields))]
pub(crate) use chosen::{is_weakened, ordering};

#[cfg(any(loom, yields))]
mod chosen {
    use crate::sync::Ordering;
    use std::sync::OnceLock;

    /// The entries of `REQUEUE_WEAKEN`: names, and the orderings that replace theirs.
    fn list() -> &'static [(String, Ordering)] {
        static LIST: OnceLock<Vec<(String, Ordering)>> = OnceLock::new();
        LIST.get_or_init(|| {
            let list = std::env::var("REQUEUE_WEAKEN").unwrap_or_default();
            list.split(',').map(parse).collect()
        })
    }

    fn parse(entry: &str) -> (String, Ordering) {
        let (name, weakened) = entry.split_once(':').unwrap_or((entry, "Relaxed"));
        let weakened = match weakened {
            "Relaxed" => Ordering::Relaxed,
            "Acquire" => Ordering::Acquire,
            "Release" => Ordering::Release,
            _ => panic!("not an ordering to weaken to: {weakened}"),
        };
        (name.to_owned(), weakened)
    }

    fn find(name: &str) -> Option<Ordering> {
        let entry = list().iter().find(|(listed, _)| listed == name)?;
        Some(entry.1)
    }

    /// The ordering, or the weaker one that replaces it.
    pub(crate) fn ordering(name: &'static str, ordering: Ordering) -> Ordering {
        find(name).unwrap_or(ordering)
    }

    pub(crate) fn is_weakened(name: &'static str) -> bool {
        find(name).is_some()
    }
}
