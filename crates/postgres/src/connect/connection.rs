//! A connection: how statements are sent on it, and how long they may take.

use super::in_turn::{run_in_turn, Encoded, Hangs};
use super::{Param, Params};
use crate::error::{has_conflict, Error, Result};
use deadpool_postgres::{ClientWrapper, Object};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::future::{poll_fn, Future};
use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::{timeout, Instant};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement, Transaction};

/// How often a statement of this crate is repeated after a serialization failure or a deadlock.
const REPEATS: u32 = 10;

/// How statements are sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// How long the answer to a statement may take.
    pub(crate) limit: Duration,
    /// Each transaction may have another session of the server, which does not know the names of prepared statements.
    pub(crate) unnamed: bool,
    /// The pool is of the user, who closes its idle connections.
    pub(crate) foreign: bool,
}

/// A connection.
///
/// A statement whose answer does not come in time says that the connection hangs: its transaction sends nothing on it any more,
/// and it is closed when it is dropped, instead of going back to its pool. The server ends a session whose connection is closed.
/// A caller may give up before that time: then the connection goes back when it has answered.
pub(crate) struct Connection<'c> {
    owner: Owner<'c>,
    pub(crate) manner: Manner,
    owed: Mutex<Owed>,
}

/// The answers that the server owes, which come in the order of the statements.
#[derive(Debug, Default)]
struct Owed {
    sent: u64,
    answered: u64,
    /// When the last answer came, or the statement was sent that none was owed before.
    since: Option<Instant>,
    /// A statement has missed its time.
    missed: bool,
    /// It has missed the time of all statements: others may hang too.
    hangs: bool,
}

impl Owed {
    fn is_empty(&self) -> bool {
        self.answered == self.sent
    }

    fn send(&mut self) -> u64 {
        if self.is_empty() {
            self.since = Some(Instant::now());
        }
        self.sent += 1;
        self.sent
    }

    fn answer(&mut self, number: u64) {
        self.answered = self.answered.max(number);
        self.since = Some(Instant::now());
    }

    /// Whether an answer is owed, and none came for so long. That of a statement whose caller gave up counts as owed until another
    /// one comes, so that a connection without others is replaced too.
    fn is_silent(&self, limit: Duration) -> bool {
        !self.is_empty() && self.since.is_some_and(|since| since.elapsed() >= limit)
    }
}

/// Whose connection it is.
pub(crate) enum Owner<'c> {
    /// `None` while it is dropped.
    Pool(Option<Object>),
    /// With the statements that it has prepared, and, through a pooler, whether it hangs.
    Process(Arc<ClientWrapper>, Mutex<HashMap<String, Statement>>, Hangs),
    /// The transaction of the caller.
    Caller(&'c Transaction<'c>),
}

/// A statement that can be sent.
pub(crate) enum Prepared<'s> {
    Named(Statement),
    Unnamed(&'s str),
}

impl<'c> Connection<'c> {
    pub(crate) fn new(owner: Owner<'c>, manner: Manner) -> Self {
        Self {
            owner,
            manner,
            owed: Mutex::default(),
        }
    }

    pub(crate) fn is_of_caller(&self) -> bool {
        matches!(self.owner, Owner::Caller(_))
    }

    /// Whether it can be used.
    pub(crate) fn is_open(&self) -> bool {
        let owed = self.owed.lock();
        !owed.missed && !owed.is_silent(self.manner.limit) && !self.is_closed()
    }

    /// A statement has missed its time.
    pub(crate) fn miss(&self, limit: Duration) {
        let mut owed = self.owed.lock();
        owed.missed = true;
        owed.hangs |= limit >= self.manner.limit;
    }

    /// After a statement that missed its time a transaction sends no other one, which would miss it too. The connection for short
    /// statements has many users: what the others send has a time of its own.
    fn may_send(&self, limit: Duration) -> Result<()> {
        let is_shared = matches!(self.owner, Owner::Process(..));
        if self.owed.lock().missed && !is_shared {
            return Err(Error::TimedOut(limit));
        }
        Ok(())
    }

    /// Prepares a statement, once per connection.
    pub(crate) async fn prepare<'s>(&self, sql: &'s str) -> Result<Prepared<'s>> {
        self.may_send(self.manner.limit)?;
        let cache = self.cache().filter(|_| !self.manner.unnamed);
        let Some(cache) = cache else {
            return Ok(Prepared::Unnamed(sql));
        };
        let Owner::Process(client, prepared, _) = &self.owner else {
            let statement = self.in_time(cache.prepare_cached(sql)).await;
            return statement.map(Prepared::Named);
        };
        let known = prepared.lock().get(sql).cloned();
        if let Some(known) = known {
            return Ok(Prepared::Named(known));
        }
        // Past the cache of the client, in which a caller that is polled no more would hold up all others.
        let statement = self.in_time(client.prepare(sql)).await?;
        prepared.lock().insert(sql.into(), statement.clone());
        Ok(Prepared::Named(statement))
    }

    /// Sends a statement at the first poll. To be awaited [in time](Self::in_time).
    pub(crate) async fn send(
        &self,
        statement: &Prepared<'_>,
        params: Params<'_>,
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        match statement {
            Prepared::Named(statement) => {
                let params: Vec<_> = params.iter().map(|param| to_sql(*param)).collect();
                self.query(statement, &params).await
            }
            Prepared::Unnamed(sql) => {
                let typed = params.iter().map(|param| (to_sql(*param), param.ty()));
                let params: Vec<_> = typed.collect();
                self.query_typed(sql, &params).await
            }
        }
    }

    /// Waits for the answer to a statement.
    pub(crate) fn in_time<'a, T: 'a>(
        &'a self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>> + 'a,
    ) -> impl Future<Output = Result<T>> + 'a {
        self.within(self.manner.limit, answer)
    }

    /// Waits for the answer to a statement for at most `limit`.
    pub(crate) fn within<'a, T: 'a>(
        &'a self,
        limit: Duration,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>> + 'a,
    ) -> impl Future<Output = Result<T>> + 'a {
        // In a box: a future is stored twice in each one that is passed it and awaits it.
        let mut answer = Box::pin(answer);
        async move {
            self.may_send(limit)?;
            let polled = poll_fn(|context| Poll::Ready(answer.as_mut().poll(context))).await;
            if let Poll::Ready(known) = polled {
                return Ok(known?); // the server was not asked
            }
            let number = self.owed.lock().send();
            let Ok(answer) = timeout(limit, answer).await else {
                self.miss(limit);
                return Err(Error::TimedOut(limit));
            };
            self.owed.lock().answer(number);
            Ok(answer?)
        }
    }

    /// Runs a statement in a transaction of its own.
    pub(crate) async fn run(&self, sql: &str, params: Params<'_>) -> Result<Vec<Row>> {
        if let (Owner::Process(client, _, hangs), true) = (&self.owner, self.manner.unnamed) {
            let params = params.iter().map(|param| Encoded::new(*param));
            let params = params.collect::<Result<_, _>>()?;
            let (client, hangs) = (Arc::clone(client), Arc::clone(hangs));
            let answer = run_in_turn(client, hangs, self.manner.limit, sql.into(), params);
            return self.in_time(answer).await;
        }
        let statement = self.prepare(sql).await?;
        self.in_time(self.send(&statement, params)).await
    }

    /// Runs a statement in a transaction of its own, again after a conflict with another transaction.
    pub(crate) async fn run_alone(&self, sql: &str, params: Params<'_>) -> Result<Vec<Row>> {
        let mut repeats = 0;
        loop {
            match self.run(sql, params).await {
                Err(Error::Database(error)) if repeats < REPEATS && has_conflict(&error) => {
                    repeats += 1;
                }
                ended => return ended,
            }
        }
    }

    /// Like [`run_alone`](Self::run_alone), for a statement that is not to be repeated unseen: without an answer it is in doubt.
    pub(crate) async fn change(&self, sql: &str, params: Params<'_>) -> Result<Vec<Row>> {
        self.prepare(sql).await?; // without an answer nothing has changed
        let ended = self.run_alone(sql, params).await;
        ended.map_err(Error::of_commit)
    }

    /// Runs statements without parameters.
    pub(crate) async fn run_all(&self, statements: &str) -> Result<()> {
        self.in_time(self.batch_execute(statements)).await
    }

    /// Sends statements without a wait for their answer. If they fail, later statements fail.
    pub(crate) fn send_all(&self, statements: &str) {
        let sent = pin!(self.batch_execute(statements));
        // The first poll sends it.
        let _ = sent.poll(&mut Context::from_waker(Waker::noop()));
    }

    /// The same, of those that end its transaction. Through a [pooler](super::in_turn) it is used again when it has answered, and
    /// closed if it owes another answer, which ends the transaction too.
    pub(crate) fn end(mut self, statements: &str) {
        let is_silent = self.owed.get_mut().is_empty();
        let object = match &mut self.owner {
            Owner::Pool(object) if self.manner.unnamed => object.take(),
            _ => return self.send_all(statements),
        };
        match (object, Handle::try_current()) {
            (Some(object), Ok(runtime)) if is_silent => {
                drop(runtime.spawn(reuse(object, self.manner, statements.into())));
            }
            (Some(object), _) => close(object, false),
            (None, _) => {}
        }
    }

    /// The client with its cache of statements, unless it is the caller's.
    fn cache(&self) -> Option<&ClientWrapper> {
        match &self.owner {
            Owner::Pool(object) => object.as_deref(),
            Owner::Process(client, ..) => Some(client),
            Owner::Caller(_) => None,
        }
    }
}

fn to_sql(param: &dyn Param) -> &(dyn ToSql + Sync) {
    param
}

impl Deref for Connection<'_> {
    type Target = Client;

    fn deref(&self) -> &Client {
        match &self.owner {
            Owner::Caller(transaction) => transaction.client(),
            _ => self.cache().expect("it is not dropped"),
        }
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        let owed = self.owed.get_mut();
        let Owner::Pool(object) = &mut self.owner else {
            return;
        };
        let is_used = owed.missed || !owed.is_empty();
        let Some(object) = object.take().filter(|_| is_used) else {
            return;
        };
        match Handle::try_current() {
            Ok(runtime) if !owed.missed && !self.manner.unnamed => {
                drop(runtime.spawn(reuse(object, self.manner, String::new())));
            }
            _ => close(object, owed.hangs && !self.manner.foreign),
        }
    }
}

/// Gives a connection back to its pool when it has answered these statements.
async fn reuse(object: Object, manner: Manner, statements: String) {
    let answered = timeout(manner.limit, object.batch_execute(&statements)).await;
    if !matches!(answered, Ok(Ok(()))) {
        close(object, !manner.foreign);
    }
}

/// Closes a connection of a pool, and `all` that wait for their use: what hangs is seldom one connection.
fn close(object: Object, all: bool) {
    if let Some(pool) = Object::pool(&object).filter(|_| all) {
        pool.retain(|_, _| false);
    }
    drop(Object::take(object));
}
