-- One statement, so that several programs can run it at once: all but one of them wait, and find the tables.
do $install$
declare
    installed int;
begin
perform pg_advisory_xact_lock(hashtextextended(:channel, 0));
if to_regclass(:version) is not null then
    select version into installed from @.version;
end if;
if installed is null then -- also if a script that made the table has ended before its last statement
