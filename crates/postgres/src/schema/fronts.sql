
-- Fronts: where claims begin to look. The protocol is told in `front.rs`.

-- A number above all ids that were drawn, and the transactions that may have drawn some of them and have not ended. In this order.
create or replace function @.propose_front(out below bigint, out writers text[], out server timestamptz) language plpgsql as $$
begin
    below := nextval(:ids);
    writers := array(select virtualtransaction from pg_locks
        where locktype = 'relation' and relation = :ids::regclass and pid is distinct from pg_backend_pid());
    server := pg_postmaster_start_time();
end
$$;

-- The fronts of these priorities, from their earlier ones on; null if one of the writers has not ended.
create or replace function @.find_fronts(of_queue int, below bigint, writers text[], priorities int[], lows bigint[]) returns bigint[]
language plpgsql set enable_bitmapscan = off set enable_seqscan = off set enable_sort = off as $$
begin
    if exists (select from pg_locks where locktype = 'relation' and relation = :ids::regclass
        and (virtualtransaction = any(writers) or pid is null)) then -- or it was prepared for two phases, which gives it another number
        return null;
    end if;
    -- A statement of its own: its snapshot sees what they have committed.
    return array(select least(below, (select r.id from @.ready r
            where r.queue = of_queue and r.priority = f.priority and r.id >= f.low order by r.id limit 1))
        from unnest(priorities, lows) as f(priority, low));
end
$$;

-- How many microseconds a look for the first item takes without a front.
create or replace function @.time_to_look(of_queue int) returns bigint
language plpgsql set enable_bitmapscan = off set enable_seqscan = off set enable_sort = off as $$
declare
    begun timestamptz := clock_timestamp();
begin
    perform from @.ready r where r.queue = of_queue order by r.priority, r.id limit 1;
    return extract(epoch from clock_timestamp() - begun) * 1000000;
end
$$;

-- Takes up to `$2` items of the queue `$1`, from its fronts on: `$4` of the priorities `$3`, each up to the next priority `$5`. Before a
-- front only late items are left. The fronts are none after the server was started again, perhaps from a copy. The order is that of
-- indexes, also if the server believes that there are few rows.
create or replace function @.take_from_fronts(int, bigint, int[], bigint[], int[], timestamptz) returns setof @.ready
language plpgsql set enable_bitmapscan = off set enable_seqscan = off set enable_sort = off as $$
begin
    if $6 is distinct from pg_postmaster_start_time() then
        $3 := '{-1}';
        $4 := '{0}';
        $5 := '{65536}';
    end if;
    return query delete from @.ready where ctid = any(array(
        select i.ctid from unnest($3, $4, $5) as f(priority, low, next) cross join lateral (
            select ctid from (select ctid from @.ready where queue = $1 and late and priority = f.priority and id < f.low and :alive
                order by id limit $2 for update skip locked) before
            union all
            select ctid from (select ctid from @.ready where queue = $1 and (priority, id) >= (f.priority, f.low) and priority < f.next and :alive
                order by priority, id limit $2 for update skip locked) after) i
        where (select not paused from @.queues where id = $1) limit $2)) returning *;
end
$$;
