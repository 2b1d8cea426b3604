//! Claims: statements that take items.

use super::{ALIVE, CLAIMED, PLACED};

/// The queue `$1` is not paused. A subselect is evaluated once.
pub(super) const OPEN: &str = "(select not paused from @.queues where id = $1)";
/// The commit need not reach the disk: a claim that a crash of the server loses is only an item that is ready again.
pub(super) const NO_SYNC: &str =
    "(select set_config('synchronous_commit', 'off', true)) is not null";

/// Which item is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// By priority, then by id.
    Fifo,
    /// The first item of each of several keys after the last one.
    Fair,
    /// The first item that is not locked, of the next key after the last one, around the end.
    FairOne,
    /// Like `Fair`, of keys of which no item is held.
    Serial,
    /// Like `Fifo`, from the [fronts](crate::front) on.
    FifoFromFronts,
}

/// The items of a claim: what chooses them, and how. `:after` is the last key, `:open` whether the queue is, `:alive` whether
/// the item has not expired.
fn chosen(order: Order) -> (&'static str, &'static str) {
    match order {
        Order::Fifo | Order::FifoFromFronts => (
            "",
            "any(array(select ctid from @.ready where queue = $1 and :alive and :open
                order by priority, id limit $2::bigint for update skip locked))",
        ),
        Order::FairOne => (
            "",
            "coalesce(
                (select ctid from @.ready where queue = $1 and key > :after and :alive and :open
                    order by key, priority, id limit least($2::bigint, 1) for update skip locked),
                (select ctid from @.ready where queue = $1 and key <= :after and :alive and :open
                    order by key, priority, id limit least($2::bigint, 1) for update skip locked))",
        ),
        Order::Fair => (
            "",
            "any(array(with recursive turn as (
                    (select key, 1 as n from @.ready
                        where queue = $1 and key > :after and :open order by key limit 1)
                    union all
                    select (select r.key from @.ready r where r.queue = $1 and r.key > t.key
                        order by r.key limit 1), n + 1
                    from turn t where t.key is not null and n < $2::bigint)
                select i.ctid from turn t cross join lateral
                    (select ctid from @.ready where queue = $1 and key = t.key and :alive
                        order by priority, id limit 1 for update skip locked) i))",
        ),
        Order::Serial => (
            "turn as materialized (select k.key from @.keys k
                where k.queue = $1 and k.key > :after and k.holder is null and :open
                    and exists (select from @.ready r where r.queue = $1 and r.key = k.key and :alive)
                order by k.key limit $2::bigint for update of k skip locked),",
            "any(array(select i.ctid from turn t cross join lateral
                (select ctid from @.ready where queue = $1 and key = t.key and :alive
                    order by priority, id limit 1 for update skip locked) i))",
        ),
    }
}

/// Locks the items that the claim of a locked queue takes after it, with the same parameters.
pub(super) fn lock(order: Order) -> String {
    let (turn, chosen) = chosen(order);
    let all = format!(
        "with {turn} next as (select from @.ready where ctid = {chosen}) select count(*) from next"
    );
    let all = all.replace(":after", "$3::text").replace(":open", OPEN);
    all.replace(":alive", ALIVE)
}

/// The items that a claim takes: `:open` as in [`chosen`]. The parameters of fronts are `$first` and those after it.
fn taken(order: Order, first: usize) -> String {
    if order == Order::FifoFromFronts {
        let [p, l, n, s] = [first, first + 1, first + 2, first + 3];
        return format!(
            "with taken as (select * from @.take_from_fronts($1, $2, ${p}, ${l}, ${n}, ${s}) where :open)"
        );
    }
    let (turn, chosen) = chosen(order);
    let taken =
        format!("with {turn} taken as (delete from @.ready where ctid = {chosen} returning *)");
    taken.replace(":alive", ALIVE)
}

/// Takes up to `$2` items of the queue `$1`. With leases `$3` is the holder and `$4` the number of the claim; the last parameter of keyed
/// orders is the last key, those from fronts are the ranges.
pub(super) fn claim(order: Order, leased: bool) -> String {
    let taken = taken(order, if leased { 5 } else { 3 });
    if !leased {
        let all = format!("{taken} select {CLAIMED} from taken");
        return all.replace(":after", "$3::text").replace(":open", OPEN);
    }
    let busy = if order == Order::Serial {
        ", busy as (update @.keys k set holder = $3 from taken t where k.queue = $1 and k.key = t.key)"
    } else {
        ""
    };
    let all = format!(
        "{taken}{busy},
        held as (insert into @.leased ({PLACED}, holder, claim, since)
            select {}, $3, $4, now() from taken returning *)
        select {CLAIMED} from held",
        PLACED.replace("attempts", "attempts + 1")
    );
    let open = format!("{OPEN} and {NO_SYNC}");
    all.replace(":after", "$5::text").replace(":open", &open)
}
