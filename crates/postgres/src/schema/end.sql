
insert into @.version values (2);
end if;

if installed = 1 then
    create index if not exists leased_holder on @.leased (holder, since);
    update @.version set version = 2;
end if;
end
$install$;
