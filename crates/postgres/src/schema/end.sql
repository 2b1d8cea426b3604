
insert into @.version values (3);
end if;

if installed = 1 then
    create index if not exists leased_holder on @.leased (holder, since);
end if;
if installed is null or installed < 3 then -- the tables of a script that has ended so may be old
    alter table @.ready alter priority type int;
    alter table @.delayed alter priority type int;
    alter table @.leased alter priority type int;
    alter table @.dead alter priority type int;
    update @.version set version = 3;
end if;
end
$install$;
