
-- The role may push by the functions, and do nothing else.
create or replace function @.grant_push(role regrole) returns void language plpgsql as $$
begin
    execute format('grant usage on schema %I to %s', :schema, role);
    execute format('grant execute on function %1$I.push_items, %1$I.push_payloads, %1$I.push, %1$I.push_bytes, %1$I.push_many to %2$s',
        :schema, role);
end
$$;

-- The role may do what workers do: take items, end them, give them back, and push. Not: pause a queue, change or remove dead letters,
-- change the tables.
create or replace function @.grant_work(role regrole) returns void language plpgsql as $$
begin
    execute format('grant usage on schema %I to %s', :schema, role);
    execute format('grant select, insert, update, delete on all tables in schema %I to %s', :schema, role);
    execute format('revoke update, delete on %1$I.queues, %1$I.dead from %2$s', :schema, role);
    execute format('revoke insert, update, delete on %I.version from %s', :schema, role);
    execute format('grant update (name, max_attempts, dead_on_expiry, serial, timed_out) on %I.queues to %s', :schema, role);
    execute format('grant usage on all sequences in schema %I to %s', :schema, role);
    execute format('grant execute on all functions in schema %I to %s', :schema, role);
end
$$;

-- Takes back what the other two gave.
create or replace function @.revoke_all(role regrole) returns void language plpgsql as $$
begin
    execute format('revoke all on all tables in schema %I from %s', :schema, role);
    execute format('revoke all on all sequences in schema %I from %s', :schema, role);
    execute format('revoke all on all functions in schema %I from %s', :schema, role);
    execute format('revoke all on schema %I from %s', :schema, role);
end
$$;

-- Everybody may run a new function, unless that is revoked.
revoke execute on function @.push_items from public;

comment on function @.grant_push is 'Lets a role push by push, push_many and push_bytes, and do nothing else. To be called by the owner.';
comment on function @.grant_work is 'Lets a role run workers. To be called by the owner, and again after an installation.';
comment on function @.revoke_all is 'Takes back what grant_push and grant_work gave.';
