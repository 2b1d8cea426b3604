//! A queue with settings.

use crate::Queue;
use std::fmt;
use std::marker::PhantomData;

/// Settings of a new [`Queue`], from [`Queue::builder`].
///
/// ```
/// let queue = requeue::Queue::<u32>::builder().capacity(100).build();
/// assert_eq!(queue.capacity(), Some(100));
/// ```
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder<T> {
    capacity: Option<usize>,
    items: PhantomData<fn() -> T>,
}

impl<T> Builder<T> {
    pub(crate) fn new() -> Self {
        Self {
            capacity: None,
            items: PhantomData,
        }
    }

    /// The most items that the queue takes; see [`Queue::bounded`]. Without it, there is no bound.
    ///
    /// ```
    /// let queue = requeue::Queue::builder().capacity(1).build();
    /// queue.push("first")?;
    /// assert!(queue.push("second").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If `capacity` is 0: a queue must have room for at least one item.
    pub fn capacity(mut self, capacity: usize) -> Self {
        assert!(capacity > 0, "a queue must have room for at least one item");
        self.capacity = Some(capacity);
        self
    }

    /// Makes the queue.
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::builder().build();
    /// assert_eq!(queue.capacity(), None);
    /// ```
    pub fn build(self) -> Queue<T> {
        Queue::with_capacity(self.capacity)
    }
}

impl<T> Clone for Builder<T> {
    fn clone(&self) -> Self {
        Self {
            capacity: self.capacity,
            items: PhantomData,
        }
    }
}

impl<T> fmt::Debug for Builder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("capacity", &self.capacity)
            .finish()
    }
}

/// [`Queue::builder`].
impl<T> Default for Builder<T> {
    fn default() -> Self {
        Self::new()
    }
}
