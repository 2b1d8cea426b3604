
insert into @.version values (2);
end if;

select version into installed from @.version;
if installed = 1 then
    create index if not exists leased_holder on @.leased (holder, since);
    update @.version set version = 2;
end if;
end
$install$;
