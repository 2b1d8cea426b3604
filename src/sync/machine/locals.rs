//! Thread-locals of simulated threads, which share a thread of the system.

use super::thread;
use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;
use std::thread::AccessError;

/// A value for each simulated thread.
#[derive(Debug)]
pub struct LocalKey<T: 'static> {
    make: fn() -> T,
}

struct Value {
    key: usize,
    value: Rc<dyn Any>,
}

std::thread_local! {
    // Those of each thread, in the order in which they were made; first those outside of a simulation.
    static VALUES: RefCell<Vec<Vec<Value>>> = const { RefCell::new(Vec::new()) };
}

impl<T: 'static> LocalKey<T> {
    /// Creates a key whose values are made by a function.
    pub const fn new(make: fn() -> T) -> Self {
        Self { make }
    }

    /// Uses the value of the current thread.
    #[allow(clippy::missing_panics_doc)] // a key has one type
    pub fn with<R>(&'static self, usage: impl FnOnce(&T) -> R) -> R {
        let (thread, key) = (index(), super::address(self));
        let found = VALUES.with_borrow(|values| {
            let mut values = values.get(thread)?.iter();
            let found = values.find(|value| value.key == key)?;
            Some(Rc::clone(&found.value))
        });
        let value = found.unwrap_or_else(|| {
            let value: Rc<dyn Any> = Rc::new((self.make)());
            let shared = Rc::clone(&value);
            VALUES.with_borrow_mut(|values| {
                let threads = values.len().max(thread + 1);
                values.resize_with(threads, Vec::new);
                values[thread].push(Value { key, value });
            });
            shared
        });
        usage(value.downcast_ref().expect("a key has one type"))
    }

    /// Uses the value of the current thread, unless the thread of the system has ended.
    #[allow(clippy::missing_errors_doc)] // as in std
    pub fn try_with<R>(&'static self, usage: impl FnOnce(&T) -> R) -> Result<R, AccessError> {
        VALUES.try_with(|_| ())?;
        Ok(self.with(usage))
    }
}

fn index() -> usize {
    thread().wrapping_add(1)
}

/// Drops the values of the current thread, the last one first.
pub fn end_thread() {
    let last = || VALUES.with_borrow_mut(|values| values.get_mut(index())?.pop());
    while let Some(value) = last() {
        drop(value);
    }
}
