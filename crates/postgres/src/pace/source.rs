//! The statements of limits.

use super::places::{Answer, Question};
use super::slots::{ServerClock, Span, AHEAD};
use crate::connect::{Params, Postgres};
use crate::error::{Error, Result};
use crate::queue::{count, is_valid, micros};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_postgres::Row;

/// A limit of a database, by its name.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) db: Postgres,
    pub(super) name: Arc<str>,
}

impl Source {
    /// Calls a function of the schema.
    async fn call(&self, call: &str, params: Params<'_>) -> Result<Vec<Row>> {
        let shared = &self.db.shared;
        let sql = shared.schema.sql(&format!("select * from @.{call}"));
        shared.run(&sql, params).await
    }

    /// Declares or changes the limit, after a check of its name and of the tables.
    pub(super) async fn set(&self, call: &str, params: Params<'_>) -> Result<()> {
        if !is_valid(&self.name) {
            return Err(Error::Name(Arc::clone(&self.name)));
        }
        self.db.shared.process().await?;
        self.call(call, params).await.map(drop)
    }

    /// Asks for slots of a rate.
    pub(super) async fn take_slots(&self, wanted: u64, late: i64) -> Result<(ServerClock, Span)> {
        let wanted = i64::try_from(wanted).unwrap_or(i64::MAX);
        let asked = Instant::now();
        let params: Params<'_> = &[&&*self.name, &wanted, &late, &AHEAD];
        let rows = self.call("take_slots($1, $2, $3, $4)", params).await?;
        let (answered, row) = (Instant::now(), &rows[0]);
        let at = row.get(0);
        let clock = ServerClock {
            at,
            asked,
            answered,
        };
        let span = Span {
            left: count(row, 1),
            first: row.get(2),
            spacing: row.get(3),
            tolerance: row.get(4),
            granted: at,
        };
        Ok((clock, span))
    }

    /// Returns slots of a rate that were not used.
    pub(super) async fn return_slots(&self, unused: &[Span]) -> Result<()> {
        let ends: Vec<i64> = unused.iter().map(Span::end).collect();
        let left = |span: &Span| i64::try_from(span.left).unwrap_or(i64::MAX);
        let counts: Vec<i64> = unused.iter().map(left).collect();
        let granted: Vec<i64> = unused.iter().map(|span| span.granted).collect();
        let params: Params<'_> = &[&&*self.name, &ends, &counts, &granted];
        let call = self.call("return_slots($1, $2, $3, $4)", params);
        call.await.map(drop)
    }

    /// Keeps and asks for places of a concurrency limit.
    pub(super) async fn take_places(
        &self,
        holder: i64,
        question: Question,
        term: Duration,
    ) -> Result<Answer> {
        let int = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
        let (kept, more) = (int(question.kept), int(question.more));
        let term = micros(term);
        let params: Params<'_> = &[&&*self.name, &holder, &kept, &more, &term];
        let rows = self.call("take_places($1, $2, $3, $4, $5)", params).await?;
        let count = |index: usize| u32::try_from(rows[0].get::<_, i32>(index)).unwrap_or(0);
        let (granted, owed) = (count(0), count(1));
        Ok(Answer { granted, owed })
    }
}
