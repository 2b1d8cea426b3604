create schema if not exists @;
create table if not exists @.version (version int not null);
create sequence if not exists @.ids;

create table if not exists @.queues (
    id int generated always as identity primary key,
    name text not null unique,
    paused boolean not null default false,
    max_attempts int,
    dead_on_expiry boolean, -- or removed
    timed_out bigint not null default 0,
    serial boolean -- an item is delivered only while no other one of its key is held; null if no process with keys has used the queue
);

-- Items that can be taken now: inserted once, deleted once. The order is that of the ids: an item that goes to the tail gets another
-- one, and its first one is its ticket from then on.
create table if not exists @.ready (
    id bigint primary key,
    queue int not null,
    priority int not null,
    key text collate "C",
    attempts int not null default 0,
    json jsonb,
    bytes bytea,
    pushed timestamptz not null default now(),
    expires timestamptz,
    error text, -- of its last delivery that failed with one
    ticket bigint, -- if that is not the id
    late boolean not null default true -- unless it came by the push that drew its id
);
create index if not exists ready_order on @.ready (queue, priority, id);
create index if not exists ready_keys on @.ready (queue, key, priority, id) where key is not null;

-- Items that are not due yet.
create table if not exists @.delayed (
    id bigint primary key,
    queue int not null,
    priority int not null,
    key text collate "C",
    attempts int not null,
    json jsonb,
    bytes bytea,
    pushed timestamptz not null,
    until timestamptz not null,
    expires timestamptz,
    error text,
    follows bigint
);
create index if not exists delayed_until on @.delayed (until);

-- Items with a holder.
create table if not exists @.leased (
    id bigint primary key,
    queue int not null,
    priority int not null,
    key text collate "C",
    attempts int not null,
    json jsonb,
    bytes bytea,
    pushed timestamptz not null,
    holder bigint not null,
    claim bigint not null, -- the number of the statement that took it, a random one
    since timestamptz not null,
    expires timestamptz,
    error text,
    ticket bigint
);
create index if not exists leased_holder on @.leased (holder, since);

-- A row for each name and term of a process that leases items.
create table if not exists @.holders (
    id bigint primary key,
    name text not null,
    term interval not null,
    alive_until timestamptz not null
) with (fillfactor = 50);

create table if not exists @.dead (
    id bigint primary key,
    queue int not null,
    priority int not null,
    key text collate "C",
    attempts int not null,
    json jsonb,
    bytes bytea,
    pushed timestamptz not null,
    error text,
    reason text not null,
    died timestamptz not null default now()
);
create index if not exists dead_queue on @.dead (queue, id);

-- Deliveries of locked items, counted before their transaction ends.
create table if not exists @.attempts (
    id bigint primary key,
    count int not null
);

-- Keys of serial queues: a row is locked, or has a holder, while an item of its key is held.
create table if not exists @.keys (
    queue int not null,
    key text collate "C" not null,
    holder bigint,
    primary key (queue, key)
);

-- Processes that wait for items.
create table if not exists @.listeners (
    queue int not null,
    process bigint not null,
    until timestamptz not null,
    primary key (queue, process)
);

create or replace function @.require_held(held boolean) returns boolean language plpgsql as $$
begin
    if not held then
        raise exception 'the lease of an item expired' using errcode = 'RQ001';
    end if;
    return true;
end
$$;

-- Dead rows are removed soon, however few they are compared with the backlog. An empty table keeps its pages: a prepared plan
-- that was made while it had none would read all of it.
alter table @.ready set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
alter table @.leased set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
alter table @.delayed set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0);
alter table @.attempts set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
alter table @.keys set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0, fillfactor = 70);
