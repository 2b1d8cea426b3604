
-- Rates that several processes share. Times, intervals and tolerances are nanoseconds; `mark` is the theoretical arrival time of
-- the generic cell rate algorithm.
create table if not exists @.rates (
    name text collate "C" primary key,
    spacing bigint not null,
    tolerance bigint not null,
    declared_spacing bigint,
    declared_tolerance bigint,
    mark bigint not null default 0,
    changed bigint not null default 0
) with (fillfactor = 50);

-- Concurrency limits that several processes share, and the places that each holder has, `since` its last grant.
create table if not exists @.limits (
    name text collate "C" primary key,
    places int not null,
    declared int,
    asked timestamptz not null default now()
) with (fillfactor = 50);
create table if not exists @.places (
    name text collate "C" not null,
    holder bigint not null,
    places int not null,
    wanted int not null,
    since timestamptz not null,
    alive_until timestamptz not null,
    primary key (name, holder)
) with (fillfactor = 50);

create or replace function @.nanos() returns bigint language sql volatile as $$
    select (extract(epoch from clock_timestamp()) * 1000000000)::bigint
$$;

-- Grants up to `wanted` slots, none more than `ahead` before its time: the first one at `first`, each other one `spacing` later. A
-- slot may be used until it is `late`, which is taken out of the tolerance.
create or replace function @.take_slots(rate text, wanted bigint, late bigint, ahead bigint,
    out server_time bigint, out slots bigint, out first bigint, out spacing bigint, out tolerance bigint)
language plpgsql as $$
declare
    r @.rates%rowtype;
    next bigint;
begin
    select * into r from @.rates where name = rate for update;
    if not found then
        raise exception 'there is no rate of the name %', rate using errcode = 'RQ002';
    end if;
    server_time := @.nanos();
    spacing := r.spacing;
    tolerance := greatest(r.tolerance - late, 0);
    -- A mark is farther ahead only if the clock of the server went back.
    next := greatest(least(r.mark, server_time + ahead + r.tolerance + r.spacing), server_time);
    first := next - tolerance;
    slots := 0;
    if first <= server_time + ahead then
        slots := least(wanted, (server_time + ahead - first) / r.spacing + 1);
    end if;
    if slots > 0 or next < r.mark then
        update @.rates set mark = next + slots * r.spacing where name = rate;
    end if;
end
$$;

-- Takes unused slots back: `counts` slots whose marks end at `ends`. A slot is worth what is left of its interval, and nothing if
-- the rate was changed since it was granted.
create or replace function @.return_slots(rate text, ends bigint[], counts bigint[], granted bigint[]) returns void
language plpgsql as $$
declare
    r @.rates%rowtype;
    server_time bigint;
begin
    select * into r from @.rates where name = rate for update;
    server_time := @.nanos();
    update @.rates set mark = r.mark - (
        select coalesce(sum(least(greatest(s.ends - server_time, 0), s.counts * r.spacing)), 0)
        from unnest(ends, counts, granted) as s(ends, counts, granted) where s.granted >= r.changed)
    where name = rate;
end
$$;

-- Changes a rate, or creates it: the cost of each outstanding slot changes too.
create or replace function @.change_rate(rate text, new_spacing bigint, new_tolerance bigint) returns void
language plpgsql as $$
declare
    server_time bigint;
begin
    insert into @.rates (name, spacing, tolerance) values (rate, new_spacing, new_tolerance) on conflict do nothing;
    perform from @.rates where name = rate for update;
    server_time := @.nanos();
    update @.rates set spacing = new_spacing, tolerance = new_tolerance, changed = server_time,
        mark = server_time + least(ceil(greatest(mark - server_time, 0)::numeric * new_spacing / spacing),
            new_spacing + new_tolerance)
    where name = rate;
end
$$;

-- Creates a rate, or changes it if another one was declared before.
create or replace function @.declare_rate(rate text, new_spacing bigint, new_tolerance bigint) returns void
language plpgsql as $$
declare
    r @.rates%rowtype;
begin
    insert into @.rates (name, spacing, tolerance) values (rate, new_spacing, new_tolerance) on conflict do nothing;
    select * into r from @.rates where name = rate for update;
    if (r.declared_spacing, r.declared_tolerance) is distinct from (new_spacing, new_tolerance) then
        if r.declared_spacing is not null then
            perform @.change_rate(rate, new_spacing, new_tolerance);
        end if;
        update @.rates set declared_spacing = new_spacing, declared_tolerance = new_tolerance where name = rate;
    end if;
end
$$;

-- The holder keeps `kept` places, and gets up to `more`. It owes those that other holders are entitled to: each to an equal share of
-- the limit, and those that were served least recently to one of the rest. A holder that is silent for `term` microseconds is dead.
create or replace function @.take_places(limit_name text, me bigint, kept int, more int, term bigint,
    out granted int, out owed int)
language plpgsql as $$
declare
    server_time timestamptz;
    most int;
    base int;
    rest int;
    room int;
    share int;
    entitled int;
begin
    update @.limits l set asked = clock_timestamp() where l.name = limit_name returning l.places into most;
    if not found then
        raise exception 'there is no concurrency limit of the name %', limit_name using errcode = 'RQ002';
    end if;
    server_time := clock_timestamp();
    delete from @.places p where p.name = limit_name and p.holder <> me and p.alive_until <= server_time;
    if kept + more = 0 then
        delete from @.places p where p.name = limit_name and p.holder = me;
        granted := 0;
        owed := 0;
        return;
    end if;
    insert into @.places values (limit_name, me, kept, more, server_time, server_time + term * interval '1 microsecond')
    on conflict (name, holder) do update
        set places = excluded.places, wanted = excluded.wanted, alive_until = excluded.alive_until;
    select most / count(*), most % count(*) into base, rest from @.places p where p.name = limit_name;
    select most - sum(t.places), sum(t.target) filter (where t.holder = me),
        coalesce(sum(greatest(least(t.wanted, t.target - t.places), 0)) filter (where t.holder <> me), 0)
    into room, share, entitled
    from (select p.holder, p.places, p.wanted,
            base + (row_number() over (order by p.places > base, p.since, p.holder) <= rest)::int as target
        from @.places p where p.name = limit_name) t;
    granted := least(more, greatest(room - entitled, least(room, share - kept), 0));
    owed := least(greatest(kept + granted - share, 0), greatest(entitled - room + granted, 0));
    update @.places p set places = kept + granted, wanted = more - granted,
        since = case when granted > 0 then server_time else p.since end
    where p.name = limit_name and p.holder = me;
    granted := kept + granted;
end
$$;

-- Changes a concurrency limit, or creates it.
create or replace function @.change_limit(limit_name text, most int) returns void language sql as $$
    insert into @.limits as l (name, places) values (limit_name, most)
    on conflict (name) do update set places = excluded.places
$$;

-- Creates a concurrency limit, or changes it if another one was declared before.
create or replace function @.declare_limit(limit_name text, most int) returns void language sql as $$
    insert into @.limits as l (name, places, declared) values (limit_name, most, most)
    on conflict (name) do update set declared = excluded.declared,
        places = case when l.declared <> excluded.declared then excluded.declared else l.places end
$$;
