//! The texts of all statements.
//!
//! In the texts, `@` is the schema, `:ids` the sequence of ids, `:channel` the channel of notifications.

mod claim;
mod write;

pub(crate) use claim::Order;
pub(crate) use write::{written_by_functions, DELAYED, FINISH, LIMITED, PUSH, REPLACING, SERIAL};

use crate::schema::Schema;
use claim::{claim, lock, NO_SYNC, OPEN};
use requeue::ReturnTo;
use write::write;

/// The columns of an item that all tables have.
const COLUMNS: &str = "id, queue, priority, key, attempts, json, bytes, pushed";
/// Those of an item that is not dead.
const LIVING: &str = "id, queue, priority, key, attempts, json, bytes, pushed, expires, error";
/// Those of a ready or leased item.
const PLACED: &str =
    "id, queue, priority, key, attempts, json, bytes, pushed, expires, error, ticket";
/// The columns that all tables have, of a ready or leased item that leaves its place.
const UNPLACED: &str =
    "coalesce(ticket, id) as id, queue, priority, key, attempts, json, bytes, pushed";
/// The columns of a leased item without its last claim.
const UNDELIVERED: &str =
    "id, queue, priority, key, attempts - 1 as attempts, json, bytes, pushed, expires, error, ticket, holder";
/// What a statement returns of an item.
const RECORD: &str = "id, priority, key, attempts, json::text, bytes, pushed";
/// What it returns of a ready or leased one.
const CLAIMED: &str = "id, priority, key, attempts, json::text, bytes, pushed, ticket, expires, statement_timestamp(), error";
/// A ready item has not expired. The server takes a condition in this form as true of nearly all rows, whatever it knows of them, so
/// it goes on to read them in the order of an index; of a table that was empty it would sort them otherwise.
pub(crate) const ALIVE: &str = "least(expires, statement_timestamp()) is distinct from expires";
/// How many items were removed.
const REMOVED: &str = "select (select count(*) from gone) + (select count(*) from later)";
/// How many characters of an error an item that is not dead keeps.
const ERROR: u32 = 1000;
/// How many rows of a table are removed by one statement.
pub(crate) const PIECE: u64 = 1000;
/// The ready item with the ticket `$2`.
const OF_TICKET: &str = "(id = $2 and ticket is null or ticket = $2)";

/// How many rows of `table` each queue has, for those who wait for them, and two of the processes that listen.
fn counts(table: &str) -> String {
    format!(
        "select n.queue, n.items,
            array(select l.process from @.listeners l where l.queue = n.queue and l.until > now() limit 2)
        from (select queue, count(*) as items from {table} group by queue) n"
    )
}

/// Whether another process than `process` listens to the queue of a row `n`.
fn has_listener(process: &str) -> String {
    format!(
        "exists (select from @.listeners l where l.queue = n.queue and l.process <> {process}::bigint and l.until > now())"
    )
}

/// Notifies the processes that listen of the queue and the items of a row `n`.
fn notify(process: &str) -> String {
    format!("pg_notify(:channel, n.queue || ' ' || n.items || ' ' || {process}::bigint)")
}

/// Rows of `leased` with these ids, each held by its claim: see [`leases`](crate::claim::leases).
fn held(ids: &str, leases: &str) -> String {
    format!("id = any({ids}::bigint[]) and (claim # id) = any({leases}::bigint[])")
}

/// The keys of the rows of `table` are no longer held.
fn free_keys(table: &str) -> String {
    format!(
        "freed as (update @.keys k set holder = null from {table} d
            where k.queue = d.queue and k.key = d.key and k.holder = d.holder)"
    )
}

/// The rows of `source` as they are ready at the tail, in their order.
fn at_tail(source: &str) -> String {
    format!(
        "select nextval(:ids), queue, priority, key, attempts, json, bytes, pushed, expires, error, coalesce(ticket, id)
            from (select * from {source} order by id) r"
    )
}

/// The rows of the item with this ticket, wherever it is in the queue or held.
fn rows_of(ticket: &str) -> [String; 5] {
    let places = [
        "ready r where r.id",
        "ready r where r.ticket",
        "delayed r where r.id",
        "leased r where r.id",
        "leased r where r.ticket",
    ];
    places.map(|place| format!("select from @.{place} = {ticket}"))
}

/// The item with this ticket is neither in the queue nor held.
fn is_gone(ticket: &str) -> String {
    rows_of(ticket)
        .map(|rows| format!("not exists ({rows})"))
        .join(" and ")
}

/// The same, of a few items: the server looks for each one, however large it takes the tables to be.
fn is_each_gone(ticket: &str) -> String {
    format!("not exists ({})", rows_of(ticket).join(" union all "))
}

/// The key of a row `u` of `uniques` is free.
fn is_free() -> String {
    format!(
        "({}) and (u.until is null or u.until <= statement_timestamp())",
        is_gone("u.ticket")
    )
}

/// Moves ready items with these ids to the tail, if nobody else has locked them. Without parameters, so that it can be sent together
/// with a rollback; and without failing, since nobody may wait for its answer.
pub(crate) fn move_to_tail(ids: &[String]) -> String {
    format!(
        "do $$ begin
        with old as (delete from @.ready where ctid = any(array(
            select ctid from @.ready where id = any(array[{}]::bigint[]) for update skip locked)) returning *),
        counted as (delete from @.attempts where id = any(array(select id from old)) returning id, count),
        moved as (select o.id, queue, priority, key, greatest(attempts, count) as attempts, json, bytes, pushed, expires, error, ticket
            from old o left join counted using (id))
        insert into @.ready ({PLACED}) {};
        exception when query_canceled or others then null;
        end $$",
        ids.join(", "),
        at_tail("moved")
    )
}

/// Gives back the rows that `source` returns to their places, or to the tail: to the dead letters if they have no attempt left.
fn give_back(source: &str, to: ReturnTo, error: &str, reason: &str) -> String {
    let alive = "ends where not dies";
    let ready = match to {
        ReturnTo::Head => format!("select {PLACED} from {alive}"),
        ReturnTo::Tail => at_tail(alive),
    };
    format!(
        "with back as ({source}), {},
        ends as (select b.*, coalesce(b.attempts >= q.max_attempts, false) as dies
            from back b join @.queues q on q.id = b.queue),
        dead as (insert into @.dead ({COLUMNS}, error, reason)
            select {UNPLACED}, '{error}', '{reason}' from ends where dies),
        ready as (insert into @.ready ({PLACED}) {ready})
        {}",
        free_keys("back"),
        counts("back")
    )
}

/// Removes ready and delayed items of the queue `$1` that nobody holds.
fn remove(ready: &str, delayed: &str) -> String {
    format!(
        "with gone as (delete from @.ready where ctid = any(array(
            select ctid from @.ready where queue = $1 and {ready} for update skip locked)) returning *),
        later as (delete from @.delayed where ctid = any(array(
            select ctid from @.delayed where queue = $1 and follows is null and {delayed} for update skip locked)) returning *),
        forgotten as (delete from @.attempts where id = any(array(
            select id from gone union all select id from later)))"
    )
}

/// Has the item in `ended` ready at its place, at the tail if `$1` is negative, or after `$1` microseconds, with the last error `$2`;
/// if `$1` is null, makes it a dead letter with this error and the reason `$3`.
fn settle(ended: &str) -> String {
    format!(
        "with {ended},
        back as (select {COLUMNS}, expires, ticket, left($2::text, {ERROR}) as error from ended),
        ready as (insert into @.ready ({PLACED}) select {PLACED} from back where $1::bigint = 0),
        tail as (insert into @.ready ({PLACED}) {}),
        later as (insert into @.delayed ({LIVING}, until)
            select {UNPLACED}, expires, error, now() + $1::bigint * interval '1 microsecond' from back where $1::bigint > 0),
        dead as (insert into @.dead ({COLUMNS}, error, reason, died)
            select {UNPLACED}, $2::text, $3::text, clock_timestamp() from back where $1::bigint is null)
        select @.require_held(exists (select from back))",
        at_tail("back where $1::bigint < 0")
    )
}

/// The statements of a schema that take items or end transactions.
#[derive(Debug)]
pub(crate) struct Claims {
    locked: [String; 5],
    leased: [String; 5],
    locks: [String; 5],
    writes: Vec<String>,
}

impl Claims {
    fn new(schema: &Schema) -> Self {
        let orders = [
            Order::Fifo,
            Order::Fair,
            Order::FairOne,
            Order::Serial,
            Order::FifoFromFronts,
        ];
        let writes = write::ALL.map(|written| schema.sql(&write(written)));
        Self {
            locked: orders.map(|order| schema.sql(&claim(order, false))),
            leased: orders.map(|order| schema.sql(&claim(order, true))),
            locks: orders.map(|order| schema.sql(&lock(order))),
            writes: writes.collect(),
        }
    }

    pub(crate) fn claim(&self, order: Order, leased: bool) -> &str {
        let claims = if leased { &self.leased } else { &self.locked };
        &claims[order as usize]
    }

    /// What locks the items that a claim takes next.
    pub(crate) fn lock(&self, order: Order) -> &str {
        &self.locks[order as usize]
    }

    /// What writes these of [`FINISH`], [`PUSH`], and so on.
    pub(crate) fn write(&self, written: usize) -> &str {
        &self.writes[written]
    }
}

/// Names one of the statements.
pub(crate) type Statement = fn(&Statements) -> &String;

macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident: $text:expr;)*) => {
        /// The statements of a schema.
        #[derive(Debug)]
        pub(crate) struct Statements {
            pub(crate) claims: Claims,
            $($(#[$doc])* pub(crate) $name: String,)*
        }

        impl Statements {
            pub(crate) fn new(schema: &Schema) -> Self {
                Self {
                    claims: Claims::new(schema),
                    $($name: schema.sql(&$text),)*
                }
            }
        }
    };
}

statements! {
    /// The id of the queue `$1`.
    find_queue: "select id, max_attempts, dead_on_expiry, serial from @.queues where name = $1";
    /// The same, after creating it.
    make_queue: "insert into @.queues (name, max_attempts, dead_on_expiry, serial) values ($1, $2, $3, $4)
        on conflict (name) do update set max_attempts = coalesce(excluded.max_attempts, queues.max_attempts),
            dead_on_expiry = coalesce(excluded.dead_on_expiry, queues.dead_on_expiry),
            serial = coalesce(excluded.serial, queues.serial)
        returning id";
    /// Pushes in a transaction of the caller.
    push_in: "select @.push_items($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    next_id: "select nextval(:ids)";
    has_ready: format!("select {OPEN} and exists (select from @.ready where queue = $1 and {ALIVE})");
    /// The next item, which is not locked.
    peek: format!("select {CLAIMED} from @.ready where queue = $1 and {ALIVE} and {OPEN}
        order by priority, id limit 1 for update skip locked");
    /// Counts deliveries `$1` of items with `$2` earlier ones.
    count: "insert into @.attempts as a (id, count)
        select id, count + 1 from unnest($1::bigint[], $2::int[]) as t(id, count)
        on conflict (id) do update set count = greatest(a.count + 1, excluded.count)
        returning id, count";
    forget_attempts: format!("delete from @.attempts where id = any($1) and {NO_SYNC}");
    /// Forgets the attempts of items that are gone: whoever counted them died before it forgot them.
    sweep_attempts: "delete from @.attempts a where not exists (select from @.ready i where i.id = a.id)
        and not exists (select from @.delayed i where i.id = a.id)
        and not exists (select from @.leased i where i.id = a.id)";
    /// Settles an item that this transaction has deleted: its columns are the parameters after those of [`settle`]. The last one says
    /// whether its counted deliveries are those of its row from now on.
    settle_locked: settle("ended as (select $4::bigint as id, $5::int as queue, $6::int as priority, $7::text as key,
            $8::int as attempts, $9::text::jsonb as json, $10::bytea as bytes, $11::timestamptz as pushed,
            $12::timestamptz as expires, $13::bigint as ticket),
        forgotten as (delete from @.attempts where id = $4 and $14::boolean)");
    /// Settles the item `$4` of the claim `$5`, with these attempts.
    settle_leased: settle(&format!("gone as (delete from @.leased where id = $4 and claim = $5 returning *), {},
        ended as (select {} from gone)", free_keys("gone"), UNDELIVERED.replace("attempts - 1", "$6::int")));
    /// Gives back the items `$1` of the leases `$2`.
    release: give_back(&format!("delete from @.leased where {} returning *", held("$1", "$2")),
        ReturnTo::Head, "the transaction was aborted", "aborted");
    release_to_tail: give_back(&format!("delete from @.leased where {} returning *", held("$1", "$2")),
        ReturnTo::Tail, "the transaction was aborted", "aborted");
    /// Ends those of the items `$1` that still have the leases `$2`, and returns how many.
    complete: format!("with done as (delete from @.leased where {} returning id) select count(*) from done", held("$1", "$2"));
    /// Gives back the items `$1` of the leases `$2`, which were not delivered.
    unclaim: give_back(&format!("delete from @.leased where {} returning {UNDELIVERED}", held("$1", "$2")),
        ReturnTo::Head, "", "aborted");
    /// Gives back what the holder `$1` took by the claim `$2`.
    undo_claim: give_back(&format!("delete from @.leased where holder = $1 and claim = $2 returning {UNDELIVERED}"),
        ReturnTo::Head, "", "aborted");
    /// Gives back the items that the holders of the name `$2` took from the queue `$1` before `$3` microseconds ago.
    recover: give_back("delete from @.leased where queue = $1
            and holder = any(array(select id from @.holders where name = $2))
            and since <= now() - $3::bigint * interval '1 microsecond' returning *",
        ReturnTo::Head, "the item was recovered", "expired");
    /// Gives back items of holders that are not alive. Unless `$1`, one process at a time looks. The oldest first, which is the
    /// order of an index: without an order the server reads all rows once it knows that there are few holders.
    lapse: give_back("delete from @.leased where ctid = any(array(
            select l.ctid from @.holders h cross join lateral
                (select ctid from @.leased where holder = h.id order by since limit 1000 for update skip locked) l
            where h.alive_until <= now()
                and ($1::boolean or (select pg_try_advisory_xact_lock(hashtextextended(:channel, 1))))
            limit 1000)) returning *",
        ReturnTo::Head, "the lease expired", "expired");
    /// The same, of a holder that was forgotten before its last claim was written. From one holder to the next one, in the index.
    lapse_forgotten: give_back("delete from @.leased where ctid = any(array(
            with recursive known as (
                (select holder from @.leased order by holder limit 1)
                union all
                select (select l.holder from @.leased l where l.holder > k.holder order by l.holder limit 1)
                from known k where k.holder is not null)
            select l.ctid from known k cross join lateral
                (select ctid from @.leased where holder = k.holder order by since limit 1000 for update skip locked) l
            where not exists (select from @.holders h where h.id = k.holder) limit 1000)) returning *",
        ReturnTo::Head, "the lease expired", "expired");
    /// Makes delayed items ready that are due, and follow none that is still there.
    promote: format!("with due as (delete from @.delayed where ctid = any(array(
            select ctid from @.delayed where until <= now() and follows is null
            order by until limit 1000 for update skip locked) || array(
            select ctid from @.delayed f where f.until <= now() and f.follows is not null and {}
            limit 1000 for update skip locked)) returning *),
        ready as (insert into @.ready ({LIVING}) select {LIVING} from due) {}", is_each_gone("f.follows"), counts("due"));
    /// Removes ready items that have expired, or makes them dead letters, and returns how many. One process at a time looks.
    expire: format!("with over as (delete from @.ready where ctid = any(array(
            select ctid from @.ready where expires <= statement_timestamp()
                and (select pg_try_advisory_xact_lock(hashtextextended(:channel, 2)))
            order by expires limit 1000 for update skip locked)) returning *),
        forgotten as (delete from @.attempts where id = any(array(select id from over)) returning id, count),
        ends as (select o.*, greatest(attempts, count) as deliveries, coalesce(dead_on_expiry, false) as dies
            from over o join @.queues q on q.id = queue left join forgotten f on f.id = o.id),
        dead as (insert into @.dead ({COLUMNS}, error, reason) select {}, 'its time to live was over', 'timed_out'
            from ends where dies),
        removed as (update @.queues q set timed_out = timed_out + n.items
            from (select queue, count(*) as items from ends where not dies group by queue) n where q.id = n.queue)
        select count(*) from over", UNPLACED.replace("attempts", "deliveries"));
    /// Seconds until the next item is due or expires, or the lease of the next holder expires.
    next_due: "select extract(epoch from least(
            (select min(until) from @.delayed where follows is null or until > now()),
            (select min(expires) from @.ready where expires is not null and expires > statement_timestamp()),
            (select min(alive_until) from @.holders where alive_until > clock_timestamp()))
            - clock_timestamp())::float8";
    /// The holders `$1` are alive.
    beat: "insert into @.holders (id, name, term, alive_until)
        select id, name, us * interval '1 microsecond', clock_timestamp() + us * interval '1 microsecond'
        from unnest($1::bigint[], $2::text[], $3::bigint[]) as t(id, name, us)
        on conflict (id) do update set alive_until = excluded.alive_until";
    /// Forgets holders that have been dead for an hour: each look for expired leases asks for theirs.
    forget_holders: "delete from @.holders h where alive_until < now() - interval '1 hour'
            and (select 1 from @.leased l where l.holder = h.id limit 1) is null";
    /// One of the unique keys `$2` that is not free.
    find_taken: format!("select key from @.uniques u where queue = $1 and key = any($2::text[]) and not ({}) limit 1",
        is_free());
    /// Locks the keys `$2` of the queues `$1`, which a transaction is about to push or commits. That with a ticket `$3` stays taken for
    /// `$4` microseconds, unless another item has it, also a new one of this transaction, whose ticket is 0 here.
    lock_uniques: "select @.lock_uniques($1, $2, $3, $4)";
    /// Forgets the unique keys that are free, unless one is taken meanwhile. One process at a time looks.
    sweep_uniques: format!("with free as materialized (select queue, key, ticket from @.uniques u
            where (select pg_try_advisory_xact_lock(hashtextextended(:channel, 3))) and {})
        delete from @.uniques u using free f where u.queue = f.queue and u.key = f.key and u.ticket = f.ticket",
        is_free());
    /// Keeps a done item for `$9` microseconds, with a result.
    keep: format!("insert into @.finished ({COLUMNS}, finished, until, result)
        select $1, $2, $3, $4, $5, $6::text::jsonb, $7, $8, clock_timestamp(),
            clock_timestamp() + $9::bigint * interval '1 microsecond', $10::text::jsonb
        on conflict (id) do update set (attempts, finished, until, result)
            = (excluded.attempts, excluded.finished, excluded.until, excluded.result)");
    list_finished: format!("select {RECORD}, finished, result::text from @.finished
        where queue = $1 and id > $2 and until > now() order by id limit $3");
    /// Removes some of the items that were kept long enough, and returns how many. One process at a time looks.
    sweep_finished: "with gone as (delete from @.finished where ctid = any(array(
            select ctid from @.finished where until <= now()
                and (select pg_try_advisory_xact_lock(hashtextextended(:channel, 4)))
            order by until limit 1000)) returning id) select count(*) from gone";
    /// The process `$1` has finished `$3` items more of the queues `$2`.
    add_finished: format!("insert into @.activity as a (queue, process, finished)
        select queue, $1, items from unnest($2::int[], $3::bigint[]) as t(queue, items) where {NO_SYNC}
        on conflict (queue, process) do update set finished = a.finished + excluded.finished, told = now()");
    sweep_activity: "with old as (delete from @.activity a
            where process <> 0 and told < now() - interval '1 hour' and (select pg_try_advisory_xact_lock(hashtextextended(:channel, 5)))
            returning queue, finished)
        insert into @.activity as a (queue, process, finished) select queue, 0, sum(finished) from old group by queue
        on conflict (queue, process) do update set finished = a.finished + excluded.finished";
    propose_front: "select below, writers, server from @.propose_front()";
    find_fronts: "select @.find_fronts($1, $2, $3, $4, $5)";
    time_to_look: "select @.time_to_look($1)";
    /// This process listens to the queue `$1` for a minute.
    listen: "insert into @.listeners (queue, process, until) values ($1, $2, clock_timestamp() + interval '1 minute')
        on conflict (queue, process) do update set until = excluded.until";
    forget_listeners: "delete from @.listeners where until < now()";
    /// Forgets the keys of serial queues that have no items, in one transaction. The lock keeps pushes of such items away meanwhile.
    sweep_keys: "lock table @.keys in share row exclusive mode;
        delete from @.keys k where holder is null
            and not exists (select from @.ready i where i.queue = k.queue and i.key = k.key)
            and not exists (select from @.delayed i where i.queue = k.queue and i.key = k.key)
            and not exists (select from @.leased i where i.queue = k.queue and i.key = k.key)
            and not exists (select from @.dead i where i.queue = k.queue and i.key = k.key)";
    #[cfg_attr(not(feature = "cron"), allow(dead_code))] // of periodic jobs
    server_time: "select clock_timestamp(), $1::int";
    #[cfg_attr(not(feature = "cron"), allow(dead_code))] // of periodic jobs
    declare_periodic: "insert into @.periodic as p (queue, name, schedule, next) select $1, $2, $3, $4
        where not exists (select from @.periodic p where p.queue = $1 and p.name = $2 and p.schedule = $3) -- without a lock
        on conflict (queue, name) do update set schedule = excluded.schedule, next = excluded.next
        where p.schedule <> excluded.schedule";
    #[cfg_attr(not(feature = "cron"), allow(dead_code))] // of periodic jobs
    find_periodic: "select next, clock_timestamp() from @.periodic where queue = $1 and name = $2 and schedule = $3";
    /// The job is due at `$5` after it was at `$4`.
    #[cfg_attr(not(feature = "cron"), allow(dead_code))] // of periodic jobs
    advance_periodic: "update @.periodic set next = $5
        where queue = $1 and name = $2 and schedule = $3 and next = $4";
    #[cfg_attr(not(feature = "cron"), allow(dead_code))] // of periodic jobs
    forget_periodic: "delete from @.periodic where queue = $1 and name = $2 returning name";
    pause: "update @.queues set paused = $2 where id = $1";
    /// Notifies the processes that listen to the queues `$1` of `$2` items, or 0 if it is unknown how many. In a transaction of
    /// its own, whose commit does not wait for the disk: the server has one transaction with notifications commit at a time, all
    /// others wait for a lock. And not for long, since who waits for an item looks again after a second.
    tell: format!("select {} from unnest($1::int[], $2::bigint[]) as n(queue, items)
        where {} and {NO_SYNC} and (select set_config('lock_timeout', '500ms', true)) is not null",
        notify("$3"), has_listener("$3"));
    /// Ready items that have expired and were not removed before are locked.
    stats: "select q.paused,
            (select count(*) from @.ready where queue = $1),
            (select count(*) from @.delayed where queue = $1),
            (select count(*) from @.leased where queue = $1),
            (select count(*) from @.dead where queue = $1),
            (select extract(epoch from clock_timestamp() - min(pushed))::float8 from @.ready where queue = $1),
            q.timed_out
        from @.queues q where id = $1";
    held: "select coalesce(l.ticket, l.id), h.name, l.since, l.attempts, h.alive_until from @.leased l join @.holders h on h.id = l.holder
        where l.queue = $1 order by l.since, l.id";
    cancel: format!("{} select {RECORD} from gone union all select {RECORD} from later",
        remove(&format!("{OF_TICKET} and {ALIVE}"), "id = $2"));
    /// Makes a leased item a dead letter, and tells all processes. Returns whether somebody has leased or locked it.
    cancel_held: format!("with gone as (delete from @.leased where queue = $1 and {OF_TICKET} returning *), {},
        dead as (insert into @.dead ({COLUMNS}, error, reason) select {UNPLACED}, 'the run was cancelled', 'cancelled' from gone),
        free as (select id from @.ready where queue = $1 and {OF_TICKET} for update skip locked),
        locked as (select id from @.ready where queue = $1 and {OF_TICKET} and id <> all(array(select id from free)))
        select (select count(*) from gone) + (select count(*) from locked), pg_notify(:channel, 'cancel ' || $2)", free_keys("gone"));
    /// Removes the items `$2`.
    remove: format!("{} {REMOVED}", remove("id = any($2::bigint[])", "id = any($2)"));
    /// Removes [`PIECE`] items with lower ids than `$2`, or all.
    clear: format!("{} {REMOVED}", remove(
        &format!("id < $2 and {ALIVE} order by priority, id limit {PIECE}"), &format!("id < $2 limit {PIECE}")));
    /// Some ready items after the priority `$2` and the id `$3`, with ids below `$4`, with their attempts and when they are due.
    look_ready: format!("select {}, null::timestamptz from @.ready i
        where queue = $1 and (priority, id) > ($2::int, $3::bigint) and id < $4 and {ALIVE} order by priority, id limit 100",
        CLAIMED.replace("attempts", "greatest(attempts, (select a.count from @.attempts a where a.id = i.id))"));
    /// Some delayed items after the id `$3`, in the same way.
    look_delayed: format!("select {RECORD}, null::bigint, expires, statement_timestamp(), error, until from @.delayed
        where queue = $1 and $2::int is not null and id > $3 and id < $4 and follows is null order by id limit 100");
    reprioritize: format!("with old as (delete from @.ready where ctid = any(array(
            select ctid from @.ready where {OF_TICKET} and queue = $1 for update skip locked)) returning *),
        ready as (insert into @.ready ({PLACED})
            select id, queue, $3, key, attempts, json, bytes, pushed, expires, error, ticket from old),
        later as (update @.delayed set priority = $3 where id = $2 and queue = $1 returning id)
        select (select count(*) from old) + (select count(*) from later)");
    count_dead: "select count(*) from @.dead where queue = $1";
    list_dead: format!("select {RECORD}, error, reason, died from @.dead where queue = $1 and id > $2 order by id limit $3");
    drain_dead: format!("with gone as (delete from @.dead where ctid = any(array(
            select ctid from @.dead where queue = $1 order by id limit $2::bigint for update skip locked)) returning *)
        select {RECORD}, error, reason, died from gone");
    /// Makes dead letters ready again, with `$3` microseconds to live: those of the ids `$2`, or all.
    requeue_dead: format!("with back as (delete from @.dead where ctid = any(array(
            select ctid from @.dead where queue = $1 and ($2::bigint[] is null or id = any($2))
            for update skip locked)) returning *),
        forgotten as (delete from @.attempts where id = any(array(select id from back))),
        ready as (insert into @.ready ({LIVING})
            select id, queue, priority, key, 0, json, bytes, pushed,
                statement_timestamp() + $3::bigint * interval '1 microsecond', null from back) {}", counts("back"));
}
