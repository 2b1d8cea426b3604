//! The texts of all statements.
//!
//! In the texts, `@` is the schema, `:ids` the sequence of ids, `:channel` the channel of notifications.

use crate::schema::Schema;

/// The columns of an item that all tables have.
const COLUMNS: &str = "id, queue, priority, key, attempts, json, bytes, pushed";
/// What a statement returns of an item.
const RECORD: &str = "id, priority, key, attempts, json::text, bytes, pushed";
/// The queue `$1` is not paused. A subselect is evaluated once.
const OPEN: &str = "(select not paused from @.queues where id = $1)";
/// A claim that a crash of the server loses is only an item that is ready again.
const NO_SYNC: &str = "(select set_config('synchronous_commit', 'off', true)) is not null";

/// Which item is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// By priority, then by id.
    Fifo,
    /// The first item of each of several keys after the last one.
    Fair,
    /// The first item that is not locked, of the next key after the last one, around the end.
    FairOne,
    /// Like `Fair`, of keys of which no item is held.
    Serial,
}

/// Takes up to `$2` items of the queue `$1`. With leases `$3` is the holder; the last parameter of keyed orders is the last key.
fn claim(order: Order, leased: bool) -> String {
    let after = if leased { "$4" } else { "$3" };
    let open = if leased {
        format!("{OPEN} and {NO_SYNC}")
    } else {
        OPEN.into()
    };
    let next = "order by priority, id limit 1 for update skip locked";
    let (turn, chosen) = match order {
        Order::Fifo => (
            String::new(),
            format!(
                "any(array(select ctid from @.ready where queue = $1 and {open}
                    order by priority, id limit $2::bigint for update skip locked))"
            ),
        ),
        Order::FairOne => {
            let of_keys = |keys: &str| {
                format!(
                    "(select ctid from @.ready where queue = $1 and {keys} and {open}
                        order by key, priority, id limit least($2::bigint, 1) for update skip locked)"
                )
            };
            let later = of_keys(&format!("key > {after}::text"));
            let earlier = of_keys(&format!("key <= {after}::text"));
            (String::new(), format!("coalesce({later}, {earlier})"))
        }
        Order::Fair => (
            String::new(),
            format!(
                "any(array(with recursive turn as (
                    (select key, 1 as n from @.ready
                        where queue = $1 and key > {after}::text and {open} order by key limit 1)
                    union all
                    select (select r.key from @.ready r where r.queue = $1 and r.key > t.key
                        order by r.key limit 1), n + 1
                    from turn t where t.key is not null and n < $2::bigint)
                select i.ctid from turn t cross join lateral
                    (select ctid from @.ready where queue = $1 and key = t.key {next}) i))"
            ),
        ),
        Order::Serial => (
            format!(
                "turn as materialized (select k.key from @.keys k
                    where k.queue = $1 and k.key > {after}::text and k.holder is null and {open}
                        and exists (select from @.ready r where r.queue = $1 and r.key = k.key)
                    order by k.key limit $2::bigint for update of k skip locked),"
            ),
            format!(
                "any(array(select i.ctid from turn t cross join lateral
                    (select ctid from @.ready where queue = $1 and key = t.key {next}) i))"
            ),
        ),
    };
    let busy = if leased && order == Order::Serial {
        "busy as (update @.keys k set holder = $3 from taken t where k.queue = $1 and k.key = t.key),"
    } else {
        ""
    };
    let taken = format!("taken as (delete from @.ready where ctid = {chosen} returning *)");
    if !leased {
        return format!("with {turn} {taken} select {RECORD} from taken");
    }
    format!(
        "with {turn} {taken}, {busy}
        held as (insert into @.leased ({COLUMNS}, holder, since)
            select id, queue, priority, key, attempts + 1, json, bytes, pushed, $3, now()
            from taken returning *)
        select {RECORD} from held"
    )
}

/// Notifies the processes that listen to the queues of the rows of `table`, and returns how many rows each queue has. `process`
/// is the parameter with the number of this process.
fn notify(table: &str, process: &str) -> String {
    format!(
        "select n.queue, n.items,
            case when exists (select from @.listeners l where l.queue = n.queue and l.until > now())
                then pg_notify(:channel, n.queue || ' ' || n.items || ' ' || {process}::bigint)::text end as told
        from (select queue, count(*) as items from {table} group by queue) n"
    )
}

/// The keys of the rows of `table` are no longer held.
fn free_keys(table: &str) -> String {
    format!(
        "freed as (update @.keys k set holder = null from {table} d
            where k.queue = d.queue and k.key = d.key and k.holder = d.holder)"
    )
}

/// Gives back the rows that `source` returns: to the dead letters if they have no attempt left. `$1` is the process.
fn give_back(source: &str, error: &str, reason: &str) -> String {
    format!(
        "with back as ({source}), {},
        dead as (insert into @.dead ({COLUMNS}, error, reason)
            select b.id, b.queue, b.priority, b.key, b.attempts, b.json, b.bytes, b.pushed, '{error}', '{reason}'
            from back b join @.queues q on q.id = b.queue where b.attempts >= q.max_attempts),
        ready as (insert into @.ready ({COLUMNS})
            select b.id, b.queue, b.priority, b.key, b.attempts, b.json, b.bytes, b.pushed
            from back b join @.queues q on q.id = b.queue
            where q.max_attempts is null or b.attempts < q.max_attempts)
        {}",
        free_keys("back"),
        notify("back", "$1")
    )
}

/// What a commit writes besides the user's own statements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// Leased items are finished: ids and holders.
    pub(crate) finish: bool,
    /// Items are pushed.
    pub(crate) push: bool,
    /// Some of them are delayed.
    pub(crate) delayed: bool,
    /// Some of the items pushed or finished belong to a serial queue.
    pub(crate) serial: bool,
}

impl Written {
    const ALL: usize = 16;

    fn of(index: usize) -> Self {
        Self {
            finish: index & 1 != 0,
            push: index & 2 != 0,
            delayed: index & 4 != 0,
            serial: index & 8 != 0,
        }
    }

    fn index(self) -> usize {
        usize::from(self.finish)
            + 2 * usize::from(self.push)
            + 4 * usize::from(self.delayed)
            + 8 * usize::from(self.serial)
    }

    /// The parameters are those of the finish, `ids` and `holders`; those of the push, `queues`, `priorities`, `keys`, `json`,
    /// `bytes`, `after`, `at` and the process; then the serial queues pushed to. Returns the new ids.
    fn sql(self) -> String {
        let mut parts = Vec::new();
        let first = if self.finish { 3 } else { 1 };
        if self.finish {
            parts.push(
                "done as (delete from @.leased where id = any($1::bigint[]) and holder = any($2::bigint[])
                    returning id, queue, key, holder)"
                    .into(),
            );
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
            "with {} select id, {held}, (select count(told) from ({}) t) from new order by ord",
            parts.join(", "),
            notify("ready", &process)
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
                    select distinct queue, key from new where queue = any({}::int[]) on conflict do nothing)",
                p(8)
            ));
        }
        parts
    }
}

/// The statements of a schema that take items or end transactions.
#[derive(Debug)]
pub(crate) struct Claims {
    locked: [String; 4],
    leased: [String; 4],
    writes: Vec<String>,
}

impl Claims {
    fn new(schema: &Schema) -> Self {
        let orders = [Order::Fifo, Order::Fair, Order::FairOne, Order::Serial];
        Self {
            locked: orders.map(|order| schema.sql(&claim(order, false))),
            leased: orders.map(|order| schema.sql(&claim(order, true))),
            writes: (0..Written::ALL)
                .map(|index| schema.sql(&Written::of(index).sql()))
                .collect(),
        }
    }

    pub(crate) fn claim(&self, order: Order, leased: bool) -> &str {
        let claims = if leased { &self.leased } else { &self.locked };
        &claims[order as usize]
    }

    pub(crate) fn write(&self, written: Written) -> &str {
        &self.writes[written.index()]
    }
}

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
    find_queue: "select id, max_attempts from @.queues where name = $1".to_string();
    /// The same, after creating it.
    make_queue: "insert into @.queues (name, max_attempts) values ($1, $2)
        on conflict (name) do update set max_attempts = coalesce(excluded.max_attempts, queues.max_attempts)
        returning id".to_string();
    next_id: "select nextval(:ids)".to_string();
    /// The next item, which is not locked.
    peek: format!("select {RECORD} from @.ready where queue = $1 and {OPEN}
        order by priority, id limit 1 for update skip locked");
    /// Counts deliveries `$1` of items with `$2` earlier ones.
    count: "insert into @.attempts as a (id, count)
        select id, count + 1 from unnest($1::bigint[], $2::int[]) as t(id, count)
        on conflict (id) do update set count = greatest(a.count + 1, excluded.count)
        returning id, count".to_string();
    forget_attempts: "delete from @.attempts where id = any($1)".to_string();
    /// Delays an item that this transaction has deleted.
    retry_locked: format!("insert into @.delayed ({COLUMNS}, until)
        values ($1, $2, $3, $4, $5, $6::text::jsonb, $7, $8, now() + $9::bigint * interval '1 microsecond')");
    dead_locked: format!("insert into @.dead ({COLUMNS}, error, reason)
        values ($1, $2, $3, $4, $5, $6::text::jsonb, $7, $8, $9, $10)");
    retry_leased: format!("with back as (delete from @.leased where id = $1 and holder = $2 returning *), {},
        later as (insert into @.delayed ({COLUMNS}, until)
            select {COLUMNS}, now() + $3::bigint * interval '1 microsecond' from back)
        select @.require_held(exists (select from back))", free_keys("back"));
    dead_leased: format!("with gone as (delete from @.leased where id = $1 and holder = $2 returning *), {},
        dead as (insert into @.dead ({COLUMNS}, error, reason) select {COLUMNS}, $3, $4 from gone)
        select @.require_held(exists (select from gone))", free_keys("gone"));
    /// Gives back the leased items `$2` of the holders `$3`.
    release: give_back("delete from @.leased where id = any($2) and holder = any($3) returning *",
        "the transaction was aborted", "aborted");
    /// Gives back the items that the holders of the name `$3` took from the queue `$2` before `$4` microseconds ago.
    recover: give_back("delete from @.leased where queue = $2
            and holder = any(array(select id from @.holders where name = $3))
            and since <= now() - $4::bigint * interval '1 microsecond' returning *",
        "the item was recovered", "expired");
    /// Gives back the items of holders that are not alive.
    lapse: give_back("delete from @.leased where ctid = any(array(
            select l.ctid from @.leased l join @.holders h on h.id = l.holder
            where h.alive_until <= now() limit 1000 for update of l skip locked)) returning *",
        "the lease expired", "expired");
    /// Makes delayed items ready that are due.
    promote: format!("with due as (delete from @.delayed where ctid = any(array(
            select ctid from @.delayed where until <= now()
            order by until limit 1000 for update skip locked)) returning *),
        ready as (insert into @.ready ({COLUMNS}) select {COLUMNS} from due) {}", notify("due", "$1"));
    /// Seconds until the next item is due, or the next lease with items expires.
    next_due: "select extract(epoch from least(
            (select min(until) from @.delayed),
            (select min(alive_until) from @.holders h where exists (select from @.leased l where l.holder = h.id)))
            - clock_timestamp())::float8".to_string();
    /// The holders `$1` are alive.
    beat: "insert into @.holders (id, name, term, alive_until)
        select id, name, us * interval '1 microsecond', clock_timestamp() + us * interval '1 microsecond'
        from unnest($1::bigint[], $2::text[], $3::bigint[]) as t(id, name, us)
        on conflict (id) do update set alive_until = excluded.alive_until".to_string();
    /// This process listens to the queue `$1` for a minute.
    listen: "insert into @.listeners (queue, process, until) values ($1, $2, clock_timestamp() + interval '1 minute')
        on conflict (queue, process) do update set until = excluded.until".to_string();
    forget_listeners: "delete from @.listeners where until < now()".to_string();
    pause: "update @.queues set paused = true where id = $1".to_string();
    resume: "with resumed as (update @.queues set paused = false where id = $1)
        select pg_notify(:channel, $1 || ' 1000000 ' || $2::bigint)".to_string();
    stats: "select q.paused,
            (select count(*) from @.ready where queue = $1),
            (select count(*) from @.delayed where queue = $1),
            (select count(*) from @.leased where queue = $1),
            (select count(*) from @.dead where queue = $1),
            (select extract(epoch from clock_timestamp() - min(pushed))::float8 from @.ready where queue = $1)
        from @.queues q where id = $1".to_string();
    held: "select l.id, h.name, l.since, l.attempts, h.alive_until from @.leased l join @.holders h on h.id = l.holder
        where l.queue = $1 order by l.since, l.id".to_string();
    cancel: format!("with gone as (delete from @.ready where ctid = any(array(
            select ctid from @.ready where id = $2 and queue = $1 for update skip locked)) returning *),
        later as (delete from @.delayed where ctid = any(array(
            select ctid from @.delayed where id = $2 and queue = $1 for update skip locked)) returning *),
        forgotten as (delete from @.attempts where id = any(array(
            select id from gone union all select id from later)))
        select {RECORD} from gone union all select {RECORD} from later");
    reprioritize: format!("with old as (delete from @.ready where ctid = any(array(
            select ctid from @.ready where id = $2 and queue = $1 for update skip locked)) returning *),
        ready as (insert into @.ready ({COLUMNS})
            select id, queue, $3, key, attempts, json, bytes, pushed from old),
        later as (update @.delayed set priority = $3 where id = $2 and queue = $1 returning id)
        select (select count(*) from old) + (select count(*) from later)");
    count_dead: "select count(*) from @.dead where queue = $1".to_string();
    list_dead: format!("select {RECORD}, error, reason, died from @.dead where queue = $1 and id > $2 order by id limit $3");
    drain_dead: format!("with gone as (delete from @.dead where ctid = any(array(
            select ctid from @.dead where queue = $1 order by id limit $2::bigint for update skip locked)) returning *)
        select {RECORD}, error, reason, died from gone");
    /// Makes dead letters ready again: those of the ids `$3`, or all.
    requeue_dead: format!("with back as (delete from @.dead where ctid = any(array(
            select ctid from @.dead where queue = $2 and ($3::bigint[] is null or id = any($3))
            for update skip locked)) returning *),
        ready as (insert into @.ready ({COLUMNS})
            select id, queue, priority, key, 0, json, bytes, pushed from back) {}", notify("back", "$1"));
}
