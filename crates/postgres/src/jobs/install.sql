
-- When the periodic jobs of a queue are due next, by the schedule that was declared last.
create table if not exists @.periodic (
    queue int not null,
    name text collate "C" not null,
    schedule text not null,
    next timestamptz not null,
    primary key (queue, name)
) with (fillfactor = 50);

-- Items that were done, and the results of their runs, until a time.
create table if not exists @.finished (
    id bigint primary key,
    queue int not null,
    priority int not null,
    key text collate "C",
    attempts int not null,
    json jsonb,
    bytes bytea,
    pushed timestamptz not null,
    finished timestamptz not null,
    until timestamptz not null,
    result jsonb
);
create index if not exists finished_queue on @.finished (queue, id);
create index if not exists finished_until on @.finished (until);
alter table @.finished set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0);
