//! The tables: their schema, their installation, their version.

use crate::connect::Connection;
use crate::error::{Error, Result};
use crate::sql::{written_by_functions, ALIVE};
use postgres_protocol::escape::{escape_identifier, escape_literal};
use tokio_postgres::error::SqlState;

/// The version of the tables that this crate reads and writes.
const VERSION: i32 = 6;
/// Creates the tables, or changes those of an earlier version, and makes the functions and views.
const INSTALL: [&str; 9] = [
    include_str!("begin.sql"),
    include_str!("install.sql"),
    include_str!("../pace/install.sql"),
    include_str!("end.sql"),
    include_str!("../jobs/install.sql"),
    include_str!("functions.sql"),
    include_str!("fronts.sql"),
    include_str!("views.sql"),
    include_str!("roles.sql"),
];
const END: &str = "end\n$install$;\n";
/// The longest name of a schema, in bytes: the name of its channel is a little longer, and must fit too.
const LONGEST: usize = 50;

/// The schema of the tables, quoted.
#[derive(Debug)]
pub(crate) struct Schema {
    identifier: String,
    name: String,
}

impl Schema {
    pub(crate) fn new(name: &str) -> Result<Self> {
        let valid = (1..=LONGEST).contains(&name.len()) && !name.contains('\0');
        if !valid || name.starts_with("pg_") {
            return Err(Error::Name(name.into()));
        }
        Ok(Self {
            identifier: escape_identifier(name),
            name: name.into(),
        })
    }

    /// The statement that installs the tables.
    pub(crate) fn install(&self) -> String {
        let text = INSTALL.concat() + END;
        let text = text.replace(":write", &written_by_functions());
        self.sql(&text.replace(":alive", ALIVE))
    }

    /// The text of a statement: `@` stands for the schema, `:ids` for the sequence of ids, `:version` for the table of the version,
    /// `:schema` for the name of the schema, `:channel` for the channel.
    pub(crate) fn sql(&self, text: &str) -> String {
        let literal = |of: &str| escape_literal(&format!("{}.{of}", self.identifier));
        let places = [
            ("$install$", &*self.quote("install")),
            ("$$", &self.quote("")),
            (":ids", &literal("ids")),
            (":version", &literal("version")),
            (":schema", &escape_literal(&self.name)),
            (":channel", &escape_literal(&self.channel())),
            ("@", &self.identifier),
        ];
        fill(text, &places)
    }

    /// The channel of notifications.
    pub(crate) fn channel(&self) -> String {
        format!("requeue_{}", self.name)
    }

    /// A quote that is not in the name, which is in the quoted text.
    fn quote(&self, tag: &str) -> String {
        let mut quote = format!("${tag}$");
        while self.name.contains(&quote) {
            quote.insert(1, 'q');
        }
        quote
    }

    /// Checks that the tables are there, in the version of this crate.
    pub(crate) async fn check(&self, connection: &Connection<'_>) -> Result<()> {
        let version = self.sql("select version from @.version");
        let rows = match connection.run(&version, &[]).await {
            Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Vec::new(),
            rows => rows?,
        };
        let supported = VERSION;
        match rows.first().map(|row| row.get(0)) {
            Some(VERSION) => Ok(()),
            Some(found) => Err(Error::Version { found, supported }),
            None => Err(Error::NotInstalled(self.name.as_str().into())),
        }
    }
}

/// The text with other texts in these places. A place in one of those texts, which may be a name, is none.
fn fill(text: &str, places: &[(&str, &str)]) -> String {
    let Some(((place, with), others)) = places.split_first() else {
        return text.into();
    };
    let parts: Vec<String> = text.split(place).map(|part| fill(part, others)).collect();
    parts.join(with)
}
