//! Priorities, schedules and tickets.
//!
//! | file | contents |
//! |---|---|
//! | `view`, `target` | pushes with a priority and a time, to a queue, a handle or a transaction |
//! | `change` | changes of items that wait |

mod change;
mod target;
mod view;

pub(super) use target::Push;
pub use target::PushTo;
pub use view::PushWith;
