//! What both sides of a channel have.

use super::{Receiver, Sender};
use crate::order::Order;
use std::fmt;
use std::sync::Arc;

macro_rules! sides {
    ($($side:ident)+) => {
        $(impl<T, O: Order<T>> $side<T, O> {
            /// The number of ready items: see [`Queue::len`](crate::Queue::len).
            ///
            /// ```
            /// let (sender, receiver) = requeue::channel::unbounded();
            /// sender.push(1)?;
            /// assert_eq!((sender.len(), receiver.len()), (1, 1));
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn len(&self) -> usize {
                self.0 .0.len()
            }

            /// Whether nothing is ready: see [`Queue::is_empty`](crate::Queue::is_empty).
            ///
            /// ```
            /// let (sender, receiver) = requeue::channel::unbounded::<u32>();
            /// assert!(sender.is_empty() && receiver.is_empty());
            /// ```
            pub fn is_empty(&self) -> bool {
                self.0 .0.is_empty()
            }

            /// Whether there is no room for another item: see [`Queue::is_full`](crate::Queue::is_full).
            ///
            /// ```
            /// let (sender, receiver) = requeue::channel::bounded(1);
            /// sender.push(1)?;
            /// assert!(sender.is_full() && receiver.is_full());
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn is_full(&self) -> bool {
                self.0 .0.is_full()
            }

            /// The capacity; `None` if the channel is unbounded.
            ///
            /// ```
            /// let (sender, receiver) = requeue::channel::bounded::<u32>(8);
            /// assert_eq!((sender.capacity(), receiver.capacity()), (Some(8), Some(8)));
            /// ```
            pub fn capacity(&self) -> Option<usize> {
                self.0 .0.capacity()
            }

            /// Closes the channel before its last side is dropped: see [`Queue::close`](crate::Queue::close).
            ///
            /// ```
            /// let (sender, receiver) = requeue::channel::unbounded();
            /// sender.push(1)?;
            /// assert!(receiver.close());
            /// assert!(sender.push(2).unwrap_err().is_closed());
            /// assert!(receiver.iter().eq([1]));
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn close(&self) -> bool {
                self.0 .0.close()
            }

            /// Whether the channel is closed: by a call, or since one of its sides is gone. It may still have items.
            ///
            /// ```
            /// let (sender, receiver) = requeue::channel::unbounded::<u32>();
            /// drop(receiver);
            /// assert!(sender.is_closed());
            /// ```
            #[doc(alias = "is_disconnected")]
            pub fn is_closed(&self) -> bool {
                self.0 .0.is_closed()
            }
        }

        impl<T, O: Order<T>> Clone for $side<T, O> {
            fn clone(&self) -> Self {
                Self(Arc::clone(&self.0))
            }
        }

        impl<T, O: Order<T>> fmt::Debug for $side<T, O> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($side)).field(&self.0 .0).finish()
            }
        })+
    };
}

sides!(Sender Receiver);
