//! The tables: their schema, their installation, their version.

use crate::connect::query;
use crate::error::Error;
use deadpool_postgres::ClientWrapper;
use postgres_protocol::escape::{escape_identifier, escape_literal};

/// The version of the tables that this crate reads and writes.
const VERSION: i32 = 1;
const INSTALL: &str = concat!(
    include_str!("install.sql"),
    include_str!("../pace/install.sql")
);
/// The longest name of a schema, in bytes: the name of its channel is a little longer, and must fit too.
const LONGEST: usize = 50;

/// The schema of the tables, quoted.
#[derive(Debug)]
pub(crate) struct Schema {
    identifier: String,
    name: String,
}

impl Schema {
    pub(crate) fn new(name: &str) -> Result<Self, Error> {
        let valid = (1..=LONGEST).contains(&name.len()) && !name.contains('\0');
        if !valid || name.starts_with("pg_") {
            return Err(Error::Name(name.into()));
        }
        Ok(Self {
            identifier: escape_identifier(name),
            name: name.into(),
        })
    }

    /// The text of a statement: `@` stands for the schema, `:ids` for the sequence of ids, `:channel` for the channel.
    pub(crate) fn sql(&self, text: &str) -> String {
        let ids = escape_literal(&format!("{}.ids", self.identifier));
        let channel = escape_literal(&self.channel());
        // Split first: the name may have these words in it.
        let with_ids = |part: &str| {
            let parts: Vec<String> = part.split(":ids").map(|part| self.named(part)).collect();
            parts.join(&ids)
        };
        let parts: Vec<String> = text.split(":channel").map(with_ids).collect();
        parts.join(&channel)
    }

    fn named(&self, text: &str) -> String {
        text.replace('@', &self.identifier)
    }

    /// The channel of notifications.
    pub(crate) fn channel(&self) -> String {
        format!("requeue_{}", self.name)
    }

    pub(crate) fn install_sql(&self) -> String {
        self.named(INSTALL)
    }

    /// Creates the tables, unless they are there.
    pub(crate) async fn install(&self, client: &ClientWrapper) -> Result<(), Error> {
        client.batch_execute("begin").await?;
        let installed = self.install_locked(client).await;
        let end = if installed.is_ok() {
            "commit"
        } else {
            "rollback"
        };
        let ended = client.batch_execute(end).await;
        installed.and(ended.map_err(Error::from))
    }

    async fn install_locked(&self, client: &ClientWrapper) -> Result<(), Error> {
        let lock = "select pg_advisory_xact_lock(hashtextextended($1, 0))";
        query(client, lock, &[&self.channel()]).await?;
        match self.version(client).await? {
            None => Ok(client.batch_execute(&self.install_sql()).await?),
            Some(found) => supported(found),
        }
    }

    /// Checks that the tables are there, in the version of this crate.
    pub(crate) async fn check(&self, client: &ClientWrapper) -> Result<(), Error> {
        let found = self.version(client).await?;
        supported(found.ok_or_else(|| Error::NotInstalled(self.name.as_str().into()))?)
    }

    async fn version(&self, client: &ClientWrapper) -> Result<Option<i32>, Error> {
        let there = "select to_regclass($1) is not null";
        let table = format!("{}.version", self.identifier);
        let there: bool = query(client, there, &[&table]).await?[0].get(0);
        if !there {
            return Ok(None);
        }
        let rows = query(client, &self.sql("select version from @.version"), &[]).await?;
        Ok(rows.first().map(|row| row.get(0)))
    }
}

fn supported(found: i32) -> Result<(), Error> {
    if found == VERSION {
        return Ok(());
    }
    Err(Error::Version {
        found,
        supported: VERSION,
    })
}
