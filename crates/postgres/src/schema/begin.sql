-- One statement, so that several programs can run it at once: all but one of them wait, and find the tables.
do $install$
declare
    installed int;
begin
perform pg_advisory_xact_lock(hashtextextended(:channel, 0));
if to_regclass(:version) is null then
