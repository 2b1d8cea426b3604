//! What a commit writes.

use super::{free_keys, has_listener, held, notify, COLUMNS};

/// What a commit writes besides the user's own statements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // each combination is a statement
pub(crate) struct Written {
    /// Leased items are finished.
    pub(crate) finish: bool,
    /// Items are pushed.
    pub(crate) push: bool,
    /// Some of them are delayed.
    pub(crate) delayed: bool,
    /// Some of the items pushed or finished belong to a serial queue.
    pub(crate) serial: bool,
}

impl Written {
    pub(super) const ALL: usize = 16;

    pub(super) fn of(index: usize) -> Self {
        Self {
            finish: index & 1 != 0,
            push: index & 2 != 0,
            delayed: index & 4 != 0,
            serial: index & 8 != 0,
        }
    }

    pub(super) fn index(self) -> usize {
        usize::from(self.finish)
            + 2 * usize::from(self.push)
            + 4 * usize::from(self.delayed)
            + 8 * usize::from(self.serial)
    }

    /// The parameters are those of the finish, `ids` and `leases`; those of the push, `queues`, `priorities`, `keys`, `json`,
    /// `bytes`, `after`, `at` and the process; then the serial queues pushed to. Returns the new ids, and for each whether other
    /// processes listen to its queue. They are notified in this transaction only if the process is 0: see `tell`.
    pub(super) fn sql(self) -> String {
        let mut parts = Vec::new();
        let first = if self.finish { 3 } else { 1 };
        if self.finish {
            parts.push(format!(
                "done as (delete from @.leased where {} returning id, queue, key, holder)",
                held("$1", "$2")
            ));
            if self.serial {
                parts.push(free_keys("done"));
            }
        }
        if self.push {
            parts.extend(self.push_sql(first));
        }
        let held = if self.finish {
            "@.require_held((select count(*) from done) = cardinality($1))"
        } else {
            "true"
        };
        if !self.push {
            return format!("with {} select {held}", parts.join(", "));
        }
        let process = format!("${}", first + 7);
        format!(
            "with {} select id, {held}, told is not null
                from new left join (
                    select n.queue, case when {} then
                            case when {process}::bigint = 0 then {}::text else '' end end as told
                    from (select queue, count(*) as items from ready group by queue) n) t using (queue)
                order by ord",
            parts.join(", "),
            has_listener(&process),
            notify(&process)
        )
    }

    fn push_sql(self, first: usize) -> Vec<String> {
        let p = |n: usize| format!("${}", first + n);
        let new = format!(
            "new as materialized (select nextval(:ids) as id, queue, priority, key, json::jsonb, bytes, ord,
                coalesce('epoch'::timestamptz + at * interval '1 microsecond',
                    now() + after * interval '1 microsecond') as due
                from unnest({}::int[], {}::smallint[], {}::text[], {}::text[], {}::bytea[], {}::bigint[], {}::bigint[])
                    with ordinality as t(queue, priority, key, json, bytes, after, at, ord))",
            p(0), p(1), p(2), p(3), p(4), p(5), p(6)
        );
        let now = if self.delayed {
            "where due is null or due <= now()"
        } else {
            ""
        };
        let mut parts = vec![
            new,
            format!(
                "ready as (insert into @.ready (id, queue, priority, key, json, bytes)
                    select id, queue, priority, key, json, bytes from new {now} returning queue)"
            ),
        ];
        if self.delayed {
            parts.push(format!(
                "later as (insert into @.delayed ({COLUMNS}, until)
                    select id, queue, priority, key, 0, json, bytes, now(), due from new where due > now())"
            ));
        }
        if self.serial {
            parts.push(format!(
                "serial as (insert into @.keys (queue, key)
                    select distinct queue, key from new where queue = any({}::int[]) order by queue, key
                    on conflict do nothing)",
                p(8)
            ));
        }
        parts
    }
}
