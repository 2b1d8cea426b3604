//! What a commit writes.

use super::{free_keys, has_listener, held, is_free, notify, COLUMNS};
use std::ops::Range;

/// What a commit writes besides the user's own statements is the sum of some of these: leased items are finished.
pub(crate) const FINISH: usize = 1;
/// Items are pushed.
pub(crate) const PUSH: usize = 2;
/// Some of them are delayed.
pub(crate) const DELAYED: usize = 4;
/// Some of the items pushed or finished belong to a serial queue.
pub(crate) const SERIAL: usize = 8;
/// Some of the items pushed have a time to live, or are unique by key.
pub(crate) const LIMITED: usize = 16;
/// All sums.
pub(super) const ALL: Range<usize> = 0..32;

/// The parameters are those of the finish, `ids` and `leases`; those of the push, `queues`, `priorities`, `keys`, `json`,
/// `bytes`, `after`, `at` and the process; then the serial queues pushed to, the times to live, and the unique keys. Returns the new ids, and
/// for each whether other processes listen to its queue. They are notified in this transaction only if the process is 0: see `tell`.
pub(super) fn write(written: usize) -> String {
    let mut parts = Vec::new();
    let (finishes, pushes) = (written & FINISH != 0, written & PUSH != 0);
    let first = if finishes { 3 } else { 1 };
    if finishes {
        parts.push(format!(
            "done as (delete from @.leased where {} returning id, queue, key, holder)",
            held("$1", "$2")
        ));
        if written & SERIAL != 0 {
            parts.push(free_keys("done"));
        }
    }
    if pushes {
        parts.extend(push(written, first));
    }
    let held = if finishes {
        "@.require_held((select count(*) from done) = cardinality($1))"
    } else {
        "true"
    };
    if !pushes {
        return format!("with {} select {held}", parts.join(", "));
    }
    let unique = if written & LIMITED != 0 {
        "and @.require_unique((select unique_key from new n where unique_key is not null
            and not exists (select from taken t where t.ticket = n.id) limit 1))"
    } else {
        ""
    };
    let process = format!("${}", first + 7);
    format!(
        "with {} select id, {held} {unique}, told is not null
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

/// Takes the unique keys of the new items. A key that is there is free if its item is gone; but not if it has changed since the statement
/// began, which does not see the item that has it then.
fn take_keys() -> String {
    format!(
        "seen as materialized (select u.queue, u.key, u.ticket
            from new n join @.uniques u on u.queue = n.queue and u.key = n.unique_key),
        taken as (insert into @.uniques as u (queue, key, ticket)
            select distinct on (queue, unique_key) queue, unique_key, id from new where unique_key is not null
                order by queue, unique_key, id
            on conflict (queue, key) do update set ticket = excluded.ticket
                where {} and u.ticket = (select s.ticket from seen s where s.queue = u.queue and s.key = u.key limit 1)
            returning ticket)",
        is_free()
    )
}

fn push(written: usize, first: usize) -> Vec<String> {
    let p = |n: usize| format!("${}", first + n);
    let only = |bit: usize, text: &str| String::from(if written & bit != 0 { text } else { "" });
    let limited = |text: &str| only(LIMITED, text);
    let (limits, expires) = (limited(", lives, unique_key"), limited(", expires"));
    let place = 8 + usize::from(written & SERIAL != 0);
    let arrays = limited(&format!(
        ", {}::bigint[], {}::text[]",
        p(place),
        p(place + 1)
    ));
    let new = format!(
        "new as materialized (select nextval(:ids) as id, queue, priority, key, json::jsonb, bytes, ord{limits},
            coalesce('epoch'::timestamptz + at * interval '1 microsecond',
                now() + after * interval '1 microsecond') as due
            from unnest({}::int[], {}::int[], {}::text[], {}::text[], {}::bytea[], {}::bigint[], {}::bigint[]{arrays})
                with ordinality as t(queue, priority, key, json, bytes, after, at{limits}, ord))",
        p(0), p(1), p(2), p(3), p(4), p(5), p(6)
    );
    let now = only(DELAYED, "where due is null or due <= now()");
    let mut parts = vec![
        new,
        format!(
            "ready as (insert into @.ready (id, queue, priority, key, json, bytes{expires})
                select id, queue, priority, key, json, bytes{} from new {now} returning queue)",
            limited(", statement_timestamp() + lives * interval '1 microsecond'")
        ),
    ];
    if written & DELAYED != 0 {
        parts.push(format!(
            "later as (insert into @.delayed ({COLUMNS}, until{expires})
                select id, queue, priority, key, 0, json, bytes, now(), due{} from new where due > now())",
            limited(", due + lives * interval '1 microsecond'")
        ));
    }
    if written & LIMITED != 0 {
        parts.push(take_keys());
    }
    if written & SERIAL != 0 {
        parts.push(format!(
            "serial as (insert into @.keys (queue, key)
                select distinct queue, key from new where queue = any({}::int[]) order by queue, key
                on conflict do nothing)",
            p(8)
        ));
    }
    parts
}
