
-- Pushes from any language, in the transaction of the caller. Each ends in the statement by which the crate itself pushes, whose
-- parameters are said in `sql/write.rs`. They notify the processes that wait for items, when the transaction commits.
create or replace function @.write_items(int[], int[], text[], text[], bytea[], bigint[], bigint[], bigint, int[], bigint[], text[],
    smallint[]) returns bigint[] language plpgsql as $$
declare
    written record;
    tickets bigint[] := '{}';
begin
    for written in :write loop
        tickets := tickets || written.ticket;
    end loop;
    return tickets;
end
$$;

-- Whether a text can be the name of a queue, or a key: it is in an index.
create or replace function @.is_name(text) returns boolean language sql immutable as 'select octet_length($1) between 1 and 1000';

-- Pushes items with times in microseconds: `after` the begin of this transaction, or `at` a time since 1970. Creates the queue if there
-- is none. The owner of the tables runs it, so that its callers need no right to them: it runs no text of its caller, and finds
-- nothing by the caller's search path.
create or replace function @.push_items(queue_name text, json text[], bytes bytea[], priority int, after bigint, at bigint, keys text[],
    lives bigint, unique_keys text[], rule int, is_serial boolean) returns bigint[]
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    items int := coalesce(cardinality(json), cardinality(bytes), 0);
    wrong text := case
        when @.is_name(queue_name) is not true then 'the name of a queue has 1 to 1000 bytes'
        when (priority between 0 and 65535) is not true then 'a priority is a number from 0 to 65535'
        when lives < 0 then 'a time to live is not negative'
        when array_position(json, null) > 0 or array_position(bytes, null) > 0 then 'a payload is null'
        when cardinality(keys) <> items or cardinality(unique_keys) <> items then 'the number of keys is not that of payloads'
        when exists (select from unnest(keys || unique_keys) as k(of_item) where not @.is_name(of_item)) then 'a key has 1 to 1000 bytes'
        when rule is null then 'on_duplicate is refuse, replace or follow'
        end;
    of_queue int;
    distinct_keys text[] := array_remove(unique_keys, null);
begin
    if wrong is not null then
        raise exception '%', wrong using errcode = 'invalid_parameter_value';
    end if;
    if items = 0 then
        return '{}';
    end if;
    perform @.require_unique((select k.of_item from unnest(distinct_keys) as k(of_item) group by 1 having count(*) > 1 limit 1));
    select q.id, coalesce(is_serial, q.serial, true) into of_queue, is_serial from @.queues q where q.name = queue_name;
    if of_queue is null then
        insert into @.queues as q (name) values (queue_name) on conflict (name) do update set name = excluded.name
            returning q.id into of_queue;
        is_serial := true;
    end if;
    if rule > 0 then
        perform @.lock_uniques(array_fill(of_queue, array[cardinality(distinct_keys)]), distinct_keys,
            array_fill(0::bigint, array[cardinality(distinct_keys)]), null);
    end if;
    return @.write_items(array_fill(of_queue, array[items]), array_fill(priority, array[items]), keys, json, bytes,
        array_fill(after, array[items]), array_fill(at, array[items]), 0,
        case when is_serial and cardinality(array_remove(keys, null)) > 0 then array[of_queue] end,
        array_fill(lives, array[items]), unique_keys, array_fill(rule::smallint, array[items]));
end
$$;

-- The same, with times as SQL has them.
create or replace function @.push_payloads(queue text, json jsonb[], bytes bytea[], priority int, delay interval, due timestamptz,
    keys text[], ttl interval, unique_keys text[], on_duplicate text) returns bigint[] language plpgsql as $$
begin
    if delay is not null and due is not null then
        raise exception 'a push has a delay or a time, not both' using errcode = 'invalid_parameter_value';
    end if;
    due := coalesce(due, now() + delay);
    if due is not null then -- as far as the crate goes: 5,000 years
        due := greatest(least(due, 'epoch'::timestamptz + interval '5000 years'), 'epoch');
    end if;
    return @.push_items(queue, json::text[], bytes, priority, null, (extract(epoch from due) * 1000000)::bigint, keys,
        (extract(epoch from ttl) * 1000000)::bigint, unique_keys, array_position(array['refuse', 'replace', 'follow'], on_duplicate) - 1, null);
end
$$;

create or replace function @.push(queue text, payload jsonb, priority int default 5000, delay interval default null,
    due timestamptz default null, key text default null, ttl interval default null, unique_key text default null,
    on_duplicate text default 'refuse') returns bigint language plpgsql as $$
begin
    return (@.push_payloads(queue, array[payload], null, priority, delay, due, array[key], ttl, array[unique_key], on_duplicate))[1];
end
$$;

create or replace function @.push_bytes(queue text, payload bytea, priority int default 5000, delay interval default null,
    due timestamptz default null, key text default null, ttl interval default null, unique_key text default null,
    on_duplicate text default 'refuse') returns bigint language plpgsql as $$
begin
    return (@.push_payloads(queue, null, array[payload], priority, delay, due, array[key], ttl, array[unique_key], on_duplicate))[1];
end
$$;

create or replace function @.push_many(queue text, payloads jsonb[], priority int default 5000, delay interval default null,
    due timestamptz default null, keys text[] default null, ttl interval default null, unique_keys text[] default null,
    on_duplicate text default 'refuse') returns bigint[] language plpgsql as $$
begin
    return @.push_payloads(queue, payloads, null, priority, delay, due, keys, ttl, unique_keys, on_duplicate);
end
$$;

comment on function @.push is 'Pushes an item in the transaction of the caller, and returns its ticket. A lower priority, from 0 to '
    '65535, is delivered first. It is ready after a delay, or when it is due. Its key is that of a fair or serial queue. It is not delivered '
    'when its time to live is over. While an item with its unique key is there, the push is refused with RQ003, or replaces it, or follows it.';
comment on function @.push_bytes is 'Like push, with the bytes of a codec.';
comment on function @.push_many is 'Like push, all payloads or none: a key for each of them. Returns their tickets, in their order.';
