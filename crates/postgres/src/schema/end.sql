
insert into @.version values (6);
end if;

if installed = 1 then
    create index if not exists leased_holder on @.leased (holder, since);
end if;
if installed is null or installed < 3 then -- the tables of a script that has ended so may be old
    drop view if exists @.show_queues, @.show_jobs, @.show_dead_letters, @.show_holders; -- of another such script
    alter table @.ready alter priority type int;
    alter table @.delayed alter priority type int;
    alter table @.leased alter priority type int;
    alter table @.dead alter priority type int;
end if;
if installed is null or installed < 4 then -- programs that use version 3 go on: all columns that they do not know may be null
    alter table @.ready add column if not exists expires timestamptz, add column if not exists ticket bigint,
        add column if not exists error text;
    -- An item that follows another one is due, but not ready before the one with this ticket is gone.
    alter table @.delayed add column if not exists expires timestamptz, add column if not exists follows bigint,
        add column if not exists error text;
    alter table @.leased add column if not exists expires timestamptz, add column if not exists ticket bigint,
        add column if not exists error text;
    alter table @.queues add column if not exists dead_on_expiry boolean,
        add column if not exists timed_out bigint not null default 0;
    create index if not exists ready_expires on @.ready (expires) where expires is not null;
    create index if not exists ready_ticket on @.ready (ticket) where ticket is not null;
    create index if not exists delayed_follows on @.delayed (follows) where follows is not null;
    create index if not exists leased_ticket on @.leased (ticket) where ticket is not null;

    -- The keys of queues whose items are unique, each with the ticket of the item that was pushed with it last. The key is free when this
    -- item is gone, wherever it went, but not before a time that its commit has written: nothing but pushes and such commits writes here.
    create table if not exists @.uniques (
        queue int not null,
        key text collate "C" not null,
        ticket bigint not null,
        until timestamptz,
        primary key (queue, key)
    ) with (fillfactor = 70);
    create or replace function @.require_unique(duplicate text) returns boolean language plpgsql as $$
    begin
        if duplicate is not null then
            raise exception 'the key is taken by another item' using errcode = 'RQ003', detail = duplicate;
        end if;
        return true;
    end
    $$;
    -- Locks keys in their order, and then the delayed items that have them: no one of these is made ready until the transaction ends. Each
    -- statement of a function sees what was committed before it.
    create or replace function @.lock_uniques(int[], text[], bigint[], bigint[]) returns void language plpgsql as $$
    begin
        insert into @.uniques as u (queue, key, ticket, until)
            select distinct on (queue, key) queue, key, ticket, clock_timestamp() + lasts * interval '1 microsecond'
                from unnest($1, $2, $3, $4) as t(queue, key, ticket, lasts)
                order by queue, key, ticket > 0, ticket desc
            on conflict (queue, key) do update set until = excluded.until where u.ticket = excluded.ticket;
        perform from unnest($1, $2) as t(queue, key) join @.uniques u using (queue, key) join @.delayed d on d.id = u.ticket
            for update of d;
    end
    $$;
    update @.version set version = 4;
end if;
if installed is null or installed < 5 then -- programs that use version 4 go on
    alter table @.queues add column if not exists serial boolean;
    alter table @.ready add column if not exists late boolean not null default true;
    create index if not exists ready_late on @.ready (queue, priority, id) where late;
    update @.version set version = 5;
end if;
if installed is null or installed < 6 then -- programs that use version 5 go on
    -- How many items processes have finished. Those of processes that are silent for an hour are in the row of process 0.
    create table if not exists @.activity (
        queue int not null,
        process bigint not null,
        finished bigint not null,
        told timestamptz not null default now(),
        primary key (queue, process)
    ) with (fillfactor = 50);
    update @.version set version = 6;
end if;
