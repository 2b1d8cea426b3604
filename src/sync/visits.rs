//! Counts the steps of searches, for tests of their cost. It is nothing in any other build.

#[cfg(all(test, not(any(loom, shuttle))))]
std::thread_local! {
    static VISITS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts one step of a search by this thread.
#[inline]
pub(crate) fn count_visit() {
    #[cfg(all(test, not(any(loom, shuttle))))]
    VISITS.with(|visits| visits.set(visits.get() + 1));
}

/// The number of steps that this thread makes during a call.
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) fn visits_of(call: impl FnOnce()) -> usize {
    let before = VISITS.with(std::cell::Cell::get);
    call();
    VISITS.with(std::cell::Cell::get) - before
}
