//! SKIP LOCKED as one writes it by hand with tokio-postgres: prepared statements, one connection for each worker, LISTEN.

use super::{Jobs, User, POLL};
use crate::server::Server;
use crate::Failure;
use async_trait::async_trait;
use tokio::sync::watch;
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, Statement};

/// How a worker holds its jobs.
#[derive(Clone, Copy)]
pub(crate) struct Holding {
    claim: &'static str,
    finish: &'static str,
    /// The claim and the finish are one transaction.
    is_locked: bool,
}

/// By row locks, in a transaction that is open while the job is done.
pub(crate) const LOCKED: Holding = Holding {
    claim: "select id, payload from jobs order by id limit $1 for update skip locked",
    finish: "delete from jobs where id = any($1)",
    is_locked: true,
};

/// By a mark that is committed before the job begins.
pub(crate) const MARKED: Holding = Holding {
    claim: "update jobs set holder = pg_backend_pid(), since = now() where id in \
        (select id from jobs where holder is null order by id limit $1 for update skip locked) returning id, payload",
    finish: "delete from jobs where id = any($1)",
    is_locked: false,
};

const TABLE: &str = "
    create table jobs (id bigint generated always as identity primary key, payload jsonb not null,
        holder int, since timestamptz);
    create index on jobs (id) where holder is null;";

const PUSH: &str = "with pushed as (insert into jobs (payload) \
    select jsonb_build_object('number', number) from generate_series(1, $1) number) select pg_notify('jobs', '')";

struct Table {
    config: Config,
    producer: Client,
    push: Statement,
    holding: Holding,
    _listener: Client,
    pushes: watch::Receiver<()>,
}

pub(super) async fn open(
    server: &Server,
    database: &str,
    holding: Holding,
) -> Result<Box<dyn Jobs>, Failure> {
    let producer = server.connect(database).await?;
    producer.batch_execute(TABLE).await?;
    let push = producer.prepare(PUSH).await?;
    let config = server.config(database);
    let (listener, pushes) = listen(&config).await?;
    Ok(Box::new(Table {
        config,
        producer,
        push,
        holding,
        _listener: listener,
        pushes,
    }))
}

/// The receiver changes with each notification, as long as the client is kept.
async fn listen(config: &Config) -> Result<(Client, watch::Receiver<()>), Failure> {
    let (client, mut connection) = config.connect(NoTls).await?;
    let (sender, receiver) = watch::channel(());
    tokio::spawn(async move {
        let mut messages =
            futures::stream::poll_fn(move |context| connection.poll_message(context));
        while let Some(Ok(message)) = futures::StreamExt::next(&mut messages).await {
            if matches!(message, AsyncMessage::Notification(_)) {
                sender.send_replace(());
            }
        }
    });
    client.batch_execute("listen jobs").await?;
    Ok((client, receiver))
}

#[async_trait]
impl Jobs for Table {
    async fn push(&self, count: u64) -> Result<(), Failure> {
        let count = i32::try_from(count)?;
        self.producer.execute(&self.push, &[&count]).await?;
        Ok(())
    }

    async fn len(&self) -> Result<u64, Failure> {
        let row = self.producer.query_one("select count(*) from jobs", &[]);
        Ok(u64::try_from(row.await?.get::<_, i64>(0))?)
    }

    async fn user(&self) -> Result<Box<dyn User>, Failure> {
        let (client, connection) = self.config.connect(NoTls).await?;
        tokio::spawn(connection);
        Ok(Box::new(Worker {
            claim: client.prepare(self.holding.claim).await?,
            finish: client.prepare(self.holding.finish).await?,
            client,
            is_locked: self.holding.is_locked,
            pushes: self.pushes.clone(),
            claimed: Vec::new(),
        }))
    }
}

struct Worker {
    client: Client,
    claim: Statement,
    finish: Statement,
    is_locked: bool,
    pushes: watch::Receiver<()>,
    claimed: Vec<i64>,
}

#[async_trait]
impl User for Worker {
    async fn claim(&mut self, max: usize) -> Result<usize, Failure> {
        self.pushes.mark_unchanged();
        if self.is_locked {
            self.client.batch_execute("begin").await?;
        }
        let max = i64::try_from(max)?;
        let rows = self.client.query(&self.claim, &[&max]).await?;
        self.claimed
            .extend(rows.iter().map(|row| row.get::<_, i64>(0)));
        if self.is_locked && rows.is_empty() {
            self.client.batch_execute("rollback").await?;
        }
        Ok(rows.len())
    }

    async fn finish(&mut self) -> Result<(), Failure> {
        self.client.execute(&self.finish, &[&self.claimed]).await?;
        self.claimed.clear();
        if self.is_locked {
            self.client.batch_execute("commit").await?;
        }
        Ok(())
    }

    async fn wait(&mut self) {
        let _ = tokio::time::timeout(POLL, self.pushes.changed()).await;
    }
}
