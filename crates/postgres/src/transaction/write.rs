//! What commits write: the leases that they finish, and the items that they push.

use super::Staged;
use crate::claim::LeasedItems;
use crate::connect::Param;
use crate::item::Ticket;
use crate::queue::Due;
use crate::sql::{Statements, DELAYED, FINISH, LIMITED, PUSH, REPLACING, SERIAL};
use requeue::OnDuplicate;
use tokio_postgres::Row;

/// Fails if the database transaction has failed.
const NOTHING: &str = "select 1";

/// What one transaction finishes and pushes.
#[derive(Debug)]
pub(crate) struct Part {
    pub(super) finished: LeasedItems,
    /// Some of the finished items belong to a serial queue.
    pub(super) serial: bool,
    pub(super) staged: Vec<Staged>,
}

impl Part {
    /// The number of items.
    pub(super) fn len(&self) -> usize {
        self.finished.0.len() + self.staged.len()
    }

    /// The bytes of the pushed items.
    pub(super) fn bytes(&self) -> usize {
        self.staged.iter().map(|item| item.payload.len()).sum()
    }

    /// Whether it changes the keys of a serial queue, or takes unique ones: it may wait for locks of keys.
    pub(super) fn may_wait(&self) -> bool {
        self.is_serial() || self.staged.iter().any(|item| item.unique.is_some())
    }

    /// Whether it changes the keys of a serial queue.
    pub(super) fn is_serial(&self) -> bool {
        self.serial || self.staged.iter().any(|item| item.serial)
    }
}

/// A parameter: what one column of the pushed items is made of.
type Column<'p> = Box<dyn Param + Send + 'p>;

fn column<'p, C>(values: impl Iterator<Item = C>) -> Column<'p>
where
    Vec<C>: Param + Send + 'p,
{
    Box::new(values.collect::<Vec<_>>())
}

/// The number of a rule in statements.
pub(crate) fn rule(of: OnDuplicate) -> i16 {
    match of {
        OnDuplicate::Replace => 1,
        OnDuplicate::Follow => 2,
        _ => 0,
    }
}

/// The columns of the pushed items, with the process after the first ones.
fn pushed<'p, I: Iterator<Item = &'p Staged>>(
    staged: impl Fn() -> I,
    process: i64,
    written: usize,
) -> Vec<Column<'p>> {
    let mut params: Vec<Column<'p>> = vec![
        column(staged().map(|item| item.queue)),
        column(staged().map(|item| item.priority)),
        column(staged().map(|item| item.key.as_deref())),
        column(staged().map(|item| item.payload.columns().0)),
        column(staged().map(|item| item.payload.columns().1)),
        column(staged().map(|item| item.due.columns().0)),
        column(staged().map(|item| item.due.columns().1)),
        Box::new(process),
    ];
    if written & SERIAL != 0 {
        let serial = staged().filter(|item| item.serial);
        params.push(column(serial.map(|item| item.queue)));
    }
    if written & LIMITED != 0 {
        params.push(column(staged().map(|item| item.ttl)));
        params.push(column(staged().map(|item| item.unique.as_deref())));
    }
    if written & REPLACING != 0 {
        params.push(column(staged().map(|item| rule(item.on_duplicate))));
    }
    params
}

/// The statement that writes some parts.
pub(super) struct Writing<'p> {
    parts: &'p [&'p Part],
    /// What it writes, as its bits say.
    written: usize,
    params: Vec<Column<'p>>,
}

impl<'p> Writing<'p> {
    pub(super) fn of(parts: &'p [&'p Part], process: i64) -> Self {
        let staged = || parts.iter().flat_map(|part| &part.staged);
        let finished = parts.iter().map(|part| &part.finished);
        let (ids, leases): (Vec<_>, Vec<_>) =
            finished.map(|(ids, leases)| (&**ids, &**leases)).unzip();
        let bits = [
            (FINISH, ids.iter().any(|ids| !ids.is_empty())),
            (PUSH, staged().next().is_some()),
            (DELAYED, staged().any(Staged::may_be_delayed)),
            (REPLACING, staged().any(Staged::replaces)),
            (SERIAL, parts.iter().any(|part| part.is_serial())),
            (LIMITED, staged().any(Staged::is_limited)),
        ];
        let bit = |(bit, is_so): (usize, bool)| bit * usize::from(is_so);
        let written = bits.into_iter().map(bit).sum();
        let mut params: Vec<Column<'p>> = Vec::new();
        if written & FINISH != 0 {
            params.extend([ids, leases].map(|column| Box::new(column.concat()) as _));
        }
        if written & PUSH != 0 {
            params.extend(pushed(staged, process, written));
        }
        Self {
            parts,
            written,
            params,
        }
    }

    pub(super) fn sql<'s>(&self, sql: &'s Statements) -> &'s str {
        if self.written & (PUSH | FINISH) == 0 {
            return NOTHING;
        }
        sql.claims.write(self.written)
    }

    pub(super) fn params(&self) -> Vec<&dyn Param> {
        self.params.iter().map(|param| &**param as _).collect()
    }

    /// The tickets of the pushed items of each part.
    pub(super) fn tickets(&self, rows: &[Row]) -> Vec<Vec<Ticket>> {
        let mut tickets = rows.iter().map(|row| Ticket(row.get(0)));
        let of = |part: &&Part| tickets.by_ref().take(part.staged.len()).collect();
        self.parts.iter().map(of).collect()
    }

    /// The queues to whose new items other processes listen, with the numbers of those that are ready; 0 if that is unknown.
    pub(super) fn listened(&self, rows: &[Row]) -> Vec<(i32, i64)> {
        let staged = self.parts.iter().flat_map(|part| &part.staged);
        let listened = staged.zip(rows).filter(|(_, row)| row.get(2));
        let told = |(item, _): (&Staged, _)| (item.queue, i64::from(item.due == Due::Now));
        listened.map(told).collect()
    }
}
