
-- For people with psql. The names begin with `show_`, since two of the tables have the plain ones.
create or replace view @.show_queues as
    select q.name as queue, q.paused,
        (select count(*) from @.ready i where i.queue = q.id) as ready,
        (select count(*) from @.delayed i where i.queue = q.id) as delayed,
        (select count(*) from @.leased i where i.queue = q.id) as held,
        (select count(*) from @.dead i where i.queue = q.id) as dead,
        (select clock_timestamp() - min(i.pushed) from @.ready i where i.queue = q.id) as oldest,
        (select count(*) from @.listeners l where l.queue = q.id and l.until > now()) as listening,
        q.max_attempts, case when q.dead_on_expiry then 'dead letter' else 'removed' end as on_expiry, q.timed_out,
        (select coalesce(sum(a.finished), 0)::bigint from @.activity a where a.queue = q.id) as finished
    from @.queues q order by q.name;
comment on view @.show_queues is 'A row for each queue, which counts its items: that takes time in proportion to them.';
comment on column @.show_queues.ready is 'Items that can be taken, and those that open transactions hold by locks.';
comment on column @.show_queues.delayed is 'Items that are not due yet, or follow another one.';
comment on column @.show_queues.held is 'Leased items.';
comment on column @.show_queues.oldest is 'How long ago the oldest ready item was pushed.';
comment on column @.show_queues.listening is 'Processes that wait for items, and are notified.';
comment on column @.show_queues.max_attempts is 'After this number of deliveries an item is a dead letter.';
comment on column @.show_queues.on_expiry is 'What becomes of items whose time to live is over.';
comment on column @.show_queues.finished is 'How many items were done, as their processes say every two seconds.';
comment on column @.show_queues.timed_out is 'How many items were removed since it was over.';

create or replace view @.show_jobs as
    select coalesce(i.ticket, i.id) as ticket, q.name as queue, i.state, i.priority, i.key, i.attempts, i.json as payload, i.bytes,
        i.pushed, i.due, i.follows, i.expires, h.name as holder, i.since, i.error
    from (
        select id, ticket, queue, 'ready' as state, priority, key, attempts, json, bytes, pushed, null::timestamptz as due,
            null::bigint as follows, expires, null::bigint as holder, null::timestamptz as since, error from @.ready
        union all
        select id, null, queue, 'delayed', priority, key, attempts, json, bytes, pushed, until, follows, expires, null, null, error
            from @.delayed
        union all
        select id, ticket, queue, 'held', priority, key, attempts, json, bytes, pushed, null, null, expires, holder, since, error
            from @.leased
    ) i join @.queues q on q.id = i.queue left join @.holders h on h.id = i.holder;
comment on view @.show_jobs is 'Each item that is not dead. A ready one may be held by the lock of an open transaction.';
comment on column @.show_jobs.ticket is 'The number by which it is cancelled; the order of delivery within a priority.';
comment on column @.show_jobs.state is 'ready, delayed or held (by a lease).';
comment on column @.show_jobs.payload is 'The item, if it is stored as JSON; otherwise bytes has it.';
comment on column @.show_jobs.due is 'When a delayed item becomes ready.';
comment on column @.show_jobs.follows is 'The ticket of the item after which it becomes ready.';
comment on column @.show_jobs.error is 'Of its last delivery that failed with one.';

create or replace view @.show_dead_letters as
    select d.id as ticket, q.name as queue, d.priority, d.key, d.attempts, d.json as payload, d.bytes, d.pushed, d.died, d.reason, d.error
    from @.dead d join @.queues q on q.id = d.queue;
comment on view @.show_dead_letters is 'Items that are not delivered any more.';
comment on column @.show_dead_letters.reason is
    'aborted, panicked, retried, failed, expired (its lease), timed_out (its time to live) or undecodable.';
comment on column @.show_dead_letters.error is 'The last error.';

create or replace view @.show_holders as
    select h.name as holder, h.id, h.alive_until > now() as alive, h.alive_until, h.term, count(l.id) as held, min(l.since) as since
    from @.holders h left join @.leased l on l.holder = h.id group by h.id;
comment on view @.show_holders is 'The processes that lease items, by name and term.';
comment on column @.show_holders.alive_until is 'When its leases expire, unless it renews them.';
comment on column @.show_holders.held is 'How many items it holds.';
comment on column @.show_holders.since is 'Since when it holds the oldest of them.';
