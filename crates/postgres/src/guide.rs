//! What a buffer in memory and limits over all processes mean, jobs, failed, expired and unique items, pushes in SQL, old snapshots, notifications,
//! figures, poolers, and other servers.

/// Defines a page: a module whose documentation is a file in `docs`.
macro_rules! pages {
    ($($name:ident $file:literal)+) => { $(
        #[doc = include_str!($file)]
        pub mod $name {}
    )+ };
}

pages! {
    prefetch "../docs/prefetch.md"
    pace "../docs/pace.md"
    jobs "../docs/jobs.md"
    failing "../docs/failing.md"
    sql "../docs/sql.md"
    fronts "../docs/fronts.md"
    notifications "../docs/notifications.md"
    figures "../docs/figures.md"
    poolers "../docs/poolers.md"
    servers "../docs/servers.md"
}
