//! Items with observable clones.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// An item that counts its values, and whose clones call a closure, which may panic.
pub(crate) struct Cloned {
    pub(crate) number: u32,
    hook: Arc<dyn Fn() + Send + Sync>,
    pub(crate) alive: Arc<AtomicUsize>,
}

impl Cloned {
    pub(crate) fn new(number: u32, hook: impl Fn() + Send + Sync + 'static) -> Self {
        let alive = Arc::new(AtomicUsize::new(1));
        let hook = Arc::new(hook);
        Self {
            number,
            hook,
            alive,
        }
    }
}

impl Clone for Cloned {
    fn clone(&self) -> Self {
        (self.hook)();
        self.alive.fetch_add(1, Ordering::SeqCst);
        Self {
            number: self.number,
            hook: Arc::clone(&self.hook),
            alive: Arc::clone(&self.alive),
        }
    }
}

impl Drop for Cloned {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::SeqCst);
    }
}
