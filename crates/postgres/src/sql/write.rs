//! What a commit writes.

use super::{free_keys, has_listener, held, is_each_gone, is_free, notify, ALIVE, COLUMNS, PLACED};
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
/// Some of the unique ones replace others, or follow them. Then some may be delayed, too.
pub(crate) const REPLACING: usize = 32;
/// The ticket of the item that a new one has replaced, or its own.
const REPLACED: &str = "coalesce((select r.ticket from replaced r where r.new = id), id)";
/// All sums.
pub(super) const ALL: Range<usize> = 0..64;

/// The parameters are those of the finish, `ids` and `leases`; those of the push, `queues`, `priorities`, `keys`, `json`,
/// `bytes`, `after`, `at` and the process; then the serial queues pushed to, the times to live, the unique keys, and the rules of
/// those. Returns the tickets, and for each whether other processes listen to its queue. They are notified in this transaction only if
/// the process is 0: see `tell`.
pub(super) fn write(written: usize) -> String {
    let mut parts = Vec::new();
    let (finishes, pushes) = (written & FINISH != 0, written & PUSH != 0);
    let first = if finishes { 3 } else { 1 };
    if finishes {
        parts.push(format!(
            "done as (delete from @.leased where {} returning id, queue, key, holder, ticket)",
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
    let (ticket, again) = if written & REPLACING != 0 {
        (REPLACED, "union all select queue from again")
    } else {
        ("id", "")
    };
    let unique = require_unique(written);
    let process = format!("${}", first + 7);
    format!(
        "with {} select {ticket} as ticket, {held} {unique}, told is not null
            from new left join (
                select n.queue, case when {} then
                        case when {process}::bigint = 0 then {}::text else '' end end as told
                from (select queue, count(*) as items from (select queue from ready {again}) i group by queue) n) t using (queue)
            order by ord",
        parts.join(", "),
        has_listener(&process),
        notify(&process)
    )
}

/// What the functions of the schema write: pushes of all kinds.
pub(crate) fn written_by_functions() -> String {
    write(PUSH | DELAYED | SERIAL | LIMITED | REPLACING)
}

/// Each new item has taken its key, or replaced another one.
fn require_unique(written: usize) -> String {
    if written & LIMITED == 0 {
        return String::new();
    }
    let ticket = if written & REPLACING != 0 {
        REPLACED
    } else {
        "id"
    };
    format!(
        "and @.require_unique((select unique_key from new where unique_key is not null and {ticket} = id
            and not exists (select from taken t where t.ticket = id) limit 1))"
    )
}

/// Replaces the items that have the keys of new ones, unless somebody has locked them. Says which new ones are to be pushed then, some of
/// them to follow others. The keys are locked, so that nobody else pushes or replaces items of them. The items that the
/// same statement finishes are gone.
fn replace(finishes: bool) -> Vec<String> {
    let done = if finishes {
        "and u.ticket <> all(array(select coalesce(ticket, id) from done))"
    } else {
        ""
    };
    let rows = |table, with| {
        format!(
            "array(select r.ctid from known k cross join lateral
                (select ctid from @.{table} where {with} = k.ticket and {ALIVE} for update skip locked) r)"
        )
    };
    vec![
        format!(
            "known as materialized (select * from (
                select n.id as new, u.ticket, u.until, n.json, n.bytes, {} as gone
                    from new n join @.uniques u on u.queue = n.queue and u.key = n.unique_key
                    where n.rule > 0 {done}) k
                where not gone or until > statement_timestamp())",
            is_each_gone("u.ticket")
        ),
        format!(
            "old as (delete from @.ready where ctid = any({} || {}) returning *)",
            rows("ready", "ticket is null and id"),
            rows("ready", "ticket")
        ),
        format!(
            "again as (insert into @.ready ({PLACED})
                select o.id, queue, priority, key, attempts, k.json, k.bytes, pushed, expires, error, o.ticket
                from old o join known k on k.ticket = coalesce(o.ticket, o.id) returning queue, coalesce(ticket, id) as item)"
        ),
        format!(
            "changed as (update @.delayed d set (json, bytes) = (select k.json, k.bytes from known k where k.ticket = d.id)
                where ctid = any({}) returning id as item)",
            rows("delayed", "id")
        ),
        "replaced as (select new, ticket from known
            where ticket in (select item from again union all select item from changed))".into(),
        "placed as (select n.*, k.ticket as follows from new n left join known k on k.new = n.id
            where k.new is null or n.rule = 2 and not gone and not exists (select from replaced r where r.new = n.id))".into(),
    ]
}

/// Takes the unique keys of the new items. A key that is there is free if its item is gone; but not if it has changed since the statement
/// began, which does not see the item that has it then.
fn take_keys(source: &str, replaces: &str) -> String {
    format!(
        "seen as materialized (select u.queue, u.key, u.ticket
            from new n join @.uniques u on u.queue = n.queue and u.key = n.unique_key),
        taken as (insert into @.uniques as u (queue, key, ticket)
            select distinct on (queue, unique_key) queue, unique_key, id from {source} where unique_key is not null
                order by queue, unique_key, id
            on conflict (queue, key) do update set ticket = excluded.ticket
                where {} and u.ticket = (select s.ticket from seen s where s.queue = u.queue and s.key = u.key limit 1) {replaces}
            returning ticket)",
        is_free()
    )
}

/// The new items, of the parameters from the `first` one on.
fn new(written: usize, first: usize) -> String {
    let p = |n: usize| format!("${}", first + n);
    let only = |bit: usize, text: &str| String::from(if written & bit != 0 { text } else { "" });
    let limits = only(LIMITED, ", lives, unique_key") + &only(REPLACING, ", rule");
    let place = 8 + usize::from(written & SERIAL != 0);
    let (lives, keys, rules) = (p(place), p(place + 1), p(place + 2));
    let arrays = only(LIMITED, &format!(", {lives}::bigint[], {keys}::text[]"))
        + &only(REPLACING, &format!(", {rules}::smallint[]"));
    format!(
        "new as materialized (select nextval(:ids) as id, queue, priority, key, json::jsonb, bytes, ord{limits},
            coalesce('epoch'::timestamptz + at * interval '1 microsecond',
                now() + after * interval '1 microsecond') as due
            from unnest({}::int[], {}::int[], {}::text[], {}::text[], {}::bytea[], {}::bigint[], {}::bigint[]{arrays})
                with ordinality as t(queue, priority, key, json, bytes, after, at{limits}, ord))",
        p(0), p(1), p(2), p(3), p(4), p(5), p(6)
    )
}

fn push(written: usize, first: usize) -> Vec<String> {
    let only = |bit: usize, text: &str| String::from(if written & bit != 0 { text } else { "" });
    let limited = |text: &str| only(LIMITED, text);
    let replacing = |text: &str| only(REPLACING, text);
    let (expires, follows) = (limited(", expires"), replacing(", follows"));
    let mut parts = vec![new(written, first)];
    let mut source = "new";
    if written & REPLACING != 0 {
        parts.extend(replace(written & FINISH != 0));
        source = "placed";
    }
    let now =
        only(DELAYED, "where (due is null or due <= now())") + &replacing("and follows is null");
    parts.push(format!(
        "ready as (insert into @.ready (id, queue, priority, key, json, bytes, late{expires})
            select id, queue, priority, key, json, bytes, false{} from {source} {now} returning queue)",
        limited(", statement_timestamp() + lives * interval '1 microsecond'")
    ));
    if written & DELAYED != 0 {
        parts.push(format!(
            "later as (insert into @.delayed ({COLUMNS}, until{expires}{follows})
                select id, queue, priority, key, 0, json, bytes, now(), coalesce(due, now()){}{follows}
                    from {source} where due > now() {})",
            limited(", coalesce(due, now()) + lives * interval '1 microsecond'"),
            replacing("or follows is not null")
        ));
    }
    if written & LIMITED != 0 {
        parts.push(take_keys(
            source,
            &replacing("or excluded.ticket in (select id from placed where rule > 0)"),
        ));
    }
    if written & SERIAL != 0 {
        parts.push(format!(
            "serial as (insert into @.keys (queue, key)
                select distinct queue, key from new where queue = any(${}::int[]) order by queue, key
                on conflict do nothing)",
            first + 8
        ));
    }
    parts
}
