//! The queues in `PostgreSQL`: those whose items are locked, and leased ones.

// The server of the tests of `requeue-postgres`; its pooler is not used here.
#[allow(dead_code)]
#[path = "../../postgres/tests/it/server.rs"]
mod server;

use requeue_conformance::{
    duplicates_suite, errors_suite, removed_suite, settled_late_suite, strict_order_suite, suite,
    tail_suite, ttl_suite, unique_suite,
};
use requeue_conformance::{
    Letter, Removal, Removing, Settings, Subject, Superseding, ViewOf, LONG,
};
use requeue_postgres::{Error, PgQueue, Postgres};
use server::SERVER;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::OnceCell;

/// Queues in a schema of their own.
struct Postgresql {
    leased: bool,
    db: OnceCell<Postgres>,
}

fn locked() -> Postgresql {
    let (leased, db) = (false, OnceCell::new());
    Postgresql { leased, db }
}

fn leased() -> Postgresql {
    let leased = true;
    Postgresql { leased, ..locked() }
}

async fn database() -> Postgres {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let schema = format!("test_{}", COUNT.fetch_add(1, Ordering::Relaxed));
    let options = Postgres::options(&SERVER.url()).schema(&schema);
    let db = options.max_connections(8).connect().await.unwrap();
    db.install().await.unwrap();
    db
}

impl Subject for Postgresql {
    type Queue = PgQueue<u32>;

    const SHORT: Duration = Duration::from_secs(1);
    const MANUAL: bool = false;
    const SETTLE: Duration = Duration::from_millis(50);

    async fn queue(&self, settings: Settings) -> PgQueue<u32> {
        let db = self.db.get_or_init(database).await;
        let mut builder = db.builder("numbers");
        if let Some(attempts) = settings.max_attempts {
            builder = builder.max_attempts(attempts);
        }
        if let Some(backoff) = settings.backoff {
            builder = builder.backoff(backoff);
        }
        if self.leased {
            builder = builder.leased(settings.lease.unwrap_or(LONG));
        }
        if let Some(ttl) = settings.ttl {
            builder = builder.ttl(ttl).on_expired(settings.after_ttl);
        }
        if let Some(key) = settings.unique_by {
            builder = builder
                .unique_by(move |item| key(*item).to_string())
                .on_duplicate(settings.on_duplicate)
                .unique_for(settings.unique_for);
        }
        builder.on_failure(settings.return_to).build()
    }

    async fn letters(&self, queue: &PgQueue<u32>) -> Vec<Letter> {
        let mut letters = queue.dead_letters().list(99).await.unwrap();
        letters.sort_by_key(|letter| letter.died_at); // they are listed by their tickets
        let letters = letters.into_iter().map(|letter| Letter {
            item: letter.item.unwrap(),
            attempts: letter.attempts,
            error: letter.error,
            reason: letter.reason.replace('_', ""),
        });
        letters.collect()
    }

    async fn waiting(queue: &PgQueue<u32>) -> Option<usize> {
        Some(queue.stats().await.unwrap().waiting)
    }

    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    async fn push_in(view: &ViewOf<Self>, item: u32) -> Result<(), String> {
        let pushed = view.push(item).await;
        pushed.map_err(|refused| refused.to_string())
    }
}

impl Removing for Postgresql {
    async fn remove(queue: &PgQueue<u32>, what: Removal) -> usize {
        let removed = match what {
            Removal::Unless(keep) => queue.retain(|item, _| keep(*item)).await,
            Removal::All => queue.clear_all().await,
            Removal::Later => panic!("these queues cannot be closed"),
        };
        usize::try_from(removed.unwrap()).unwrap()
    }
}

impl Superseding for Postgresql {
    async fn push(queue: &PgQueue<u32>, item: u32) -> bool {
        match queue.push(item).await {
            Err(Error::Duplicate(_)) => false,
            pushed => pushed.is_ok(),
        }
    }
}

suite!(locked_items, locked());
duplicates_suite!(locked_items_have_duplicates, locked());
duplicates_suite!(leased_items_have_duplicates, leased());
errors_suite!(locked_items_keep_errors, locked());
ttl_suite!(locked_items_live, locked());
tail_suite!(locked_items_return, locked());
removed_suite!(locked_items_removed, locked());
unique_suite!(locked_items_have_keys, locked());
unique_suite!(leased_items_have_keys, leased());
ttl_suite!(leased_items_live, leased());
tail_suite!(leased_items_return, leased());
removed_suite!(leased_items_removed, leased());
settled_late_suite!(locked_items_settled, locked());
strict_order_suite!(locked_items_in_order, locked());
suite!(leased_items, leased());
errors_suite!(leased_items_keep_errors, leased());
settled_late_suite!(leased_items_settled, leased());
strict_order_suite!(leased_items_in_order, leased());
