//! The macro that makes the forms of each verb that waits, for the queues, handles, transactions and views of all crates.

/// Makes the forms of a verb that waits, from one body that uses a [`Wait`](crate::Wait). Each section is optional: its
/// label, then its documentation.
///
/// ```text
/// verb! {
///     pop(&self) -> Result<T, PopError>, |wait| self.take(wait);
///     now:                                       `pop`
///     /// Pops an item.
///     blocking:                                  `pop_blocking`
///     /// Pops an item, and waits for one if there is none.
///     timed: "Pops an item", "one",              `pop_timeout`, `pop_deadline`: what they do, and what they wait for
///     /// let queue = Queue::<u32>::unbounded();     lines before the call of the example
///     popped = queue();                              its result, receiver and arguments
///     /// assert!(popped.is_err());                  lines after it; further sections
///     async(&self) -> OwnedPop<T> { .. }         `pop_async`, which has a body of its own
///     /// A future that pops an item when there is one.
/// }
/// ```
///
/// `async_within` instead of `async` makes `pop_batch_async` and `pop_batch_timeout_async`, from one body.
///
/// A form with the `Wait` itself, `pop_waiting`, is hidden: other crates pass the wait of their callers on by it.
#[doc(hidden)]
#[macro_export]
macro_rules! verb {
    // The names of the forms, since a macro cannot make a name of two.
    (push $($of:tt)*) => { $crate::forms! { [push push_waiting push_blocking push_timeout push_deadline push_async] [] $($of)* } };
    (push_batch $($of:tt)*) => { $crate::forms! { [push_batch push_batch_waiting push_batch_blocking push_batch_timeout push_batch_deadline push_batch_async] [] $($of)* } };
    (pop $($of:tt)*) => { $crate::forms! { [pop pop_waiting pop_blocking pop_timeout pop_deadline pop_async] [] $($of)* } };
    (pop_batch $($of:tt)*) => { $crate::forms! { [pop_batch pop_batch_waiting pop_batch_blocking pop_batch_timeout pop_batch_deadline pop_batch_async] [] $($of)* } };
    (take $($of:tt)*) => { $crate::forms! { [take take_waiting take_blocking take_timeout take_deadline take_async] [] $($of)* } };
    (take_batch $($of:tt)*) => { $crate::forms! { [take_batch take_batch_waiting take_batch_blocking take_batch_timeout take_batch_deadline take_batch_async] [] $($of)* } };
    (peek $($of:tt)*) => { $crate::forms! { [peek peek_waiting peek_blocking peek_timeout peek_deadline peek_async] [] $($of)* } };
    // Without a suffix these wait forever. The functions have type parameters.
    (wait_idle $($of:tt)*) => { $crate::forms! { [now wait_idle_waiting wait_idle wait_idle_timeout wait_idle_deadline wait_idle_async] [] $($of)* } };
    (wait $($of:tt)*) => { $crate::forms! { [now wait_waiting wait wait_timeout wait_deadline wait_async] [] $($of)* } };
    (pop_any $($of:tt)*) => { $crate::forms! { [now pop_any_waiting pop_any pop_any_timeout pop_any_deadline pop_any_async] $($of)* } };
    (hold_any $($of:tt)*) => { $crate::forms! { [now hold_any_waiting hold_any hold_any_timeout hold_any_deadline hold_any_async] $($of)* } };
}

/// The forms that have these names; see [`verb`].
#[doc(hidden)]
#[macro_export]
macro_rules! forms {
    (
        [$now:ident $waiting:ident $blocking:ident $timeout:ident $deadline:ident $async:ident]
        $generics:tt $args:tt -> $result:ty, |$wait:ident| $body:expr;
        $(now: $(#[$on_now:meta])*)?
        $(blocking: $(#[$on_blocking:meta])*)?
        $(timed: $does:literal, $what:literal,
            $(#[$before:meta])* $out:ident = $($on:ident)? ($($arg:expr),*); $(#[$after:meta])*)?
        $(async $(<$life:lifetime>)? ($($async_args:tt)*) -> $future:ty $make:block $(#[$on_async:meta])*)?
        $(async_within $(<$within_life:lifetime>)? ($($within_args:tt)*) -> $within:ty, |$limit:ident| $make_within:block
            $(#[$on_within:meta])*
            timeout_async: $(#[$on_timeout_async:meta])*)?
    ) => {
        $crate::form! {
            #[doc(hidden)]
            #[inline]
            $waiting $generics $args ($wait: $crate::Wait) -> $result { $body }
        }
        $($crate::form! {
            $(#[$on_now])*
            $now $generics $args () -> $result { let $wait = $crate::Wait::Never; $body }
        })?
        $($crate::form! {
            $(#[$on_blocking])*
            $blocking $generics $args () -> $result { let $wait = $crate::Wait::Forever; $body }
        })?
        $($crate::form! {
            #[doc = concat!($does, ", and waits up to `timeout` for ", $what, ".")]
            ///
            /// Zero tries once; [`Duration::MAX`](std::time::Duration::MAX) waits forever.
            #[doc = concat!("Otherwise as `", stringify!($blocking), "`.")]
            ///
            /// ```
            /// use std::time::Duration;
            ///
            $(#[$before])*
            #[doc = concat!("let ", stringify!($out), " = ", $(stringify!($on), ".",)? stringify!($timeout), "(", $(stringify!($arg), ", ",)* "Duration::from_millis(1));")]
            $(#[$after])*
            $timeout $generics $args (timeout: ::std::time::Duration) -> $result { let $wait = $crate::Wait::For(timeout); $body }
        })?
        $($crate::form! {
            #[doc = concat!($does, ", and waits until `deadline` for ", $what, ".")]
            ///
            /// The deadline is an instant of the clock of the queue; a past one tries once.
            #[doc = concat!("Otherwise as `", stringify!($blocking), "`.")]
            ///
            /// ```
            /// use std::time::{Duration, Instant};
            ///
            $(#[$before])*
            #[doc = concat!("let ", stringify!($out), " = ", $(stringify!($on), ".",)? stringify!($deadline), "(", $(stringify!($arg), ", ",)* "Instant::now() + Duration::from_millis(1));")]
            $(#[$after])*
            $deadline $generics $args (deadline: ::std::time::Instant) -> $result { let $wait = $crate::Wait::Until(deadline); $body }
        })?
        $(
            $(#[$on_async])*
            #[track_caller]
            pub fn $async $(<$life>)? ($($async_args)*) -> $future $make
        )?
        $(
            #[doc(hidden)]
            #[track_caller]
            pub fn pop_batch_within $(<$within_life>)? ($($within_args)*, $limit: $crate::Wait) -> $within $make_within
            $(#[$on_within])*
            #[track_caller]
            pub fn $async $(<$within_life>)? ($($within_args)*) -> $within { let $limit = $crate::Wait::Forever; $make_within }
            $(#[$on_timeout_async])*
            #[track_caller]
            pub fn pop_batch_timeout_async $(<$within_life>)? ($($within_args)*, timeout: ::std::time::Duration) -> $within { let $limit = $crate::Wait::For(timeout); $make_within }
        )?
    };
}

/// One form: the arguments of its verb, and that of its time.
#[doc(hidden)]
#[macro_export]
macro_rules! form {
    ($(#[$on:meta])* $name:ident [$($generics:tt)*] ($($args:tt)*) ($($time:tt)*) -> $result:ty $body:block) => {
        $(#[$on])*
        #[track_caller]
        pub fn $name $($generics)* ($($args)*, $($time)*) -> $result $body
    };
}
