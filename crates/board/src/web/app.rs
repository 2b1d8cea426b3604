//! The state of a board.

use crate::history::History;
use crate::inspect::{Error, Inspect, Source};
use crate::web::access::Access;
use crate::web::live::Live;
use crate::web::LOOKS;
use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::{Instant, SystemTime};
use tokio::sync::{Mutex as AsyncMutex, Semaphore};

/// The changes that are shown.
const LOGGED: usize = 200;

/// A change that was made, or failed. Its `Display` is a line for a log.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Logged {
    /// When.
    pub at: SystemTime,
    /// The name of the queue.
    pub queue: String,
    /// What was asked for.
    pub change: String,
    /// How many items it concerned, or why it failed.
    pub result: Result<u64, String>,
}

impl fmt::Display for Logged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { queue, change, .. } = self;
        write!(f, "{queue:?}: {change:?}: ")?;
        match &self.result {
            Ok(count) => write!(f, "{count}"),
            Err(error) => write!(f, "failed: {error:?}"),
        }
    }
}

/// What a board is made of.
#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) base: String,
    pub(crate) fixed: Vec<(String, Arc<dyn Inspect>)>,
    pub(crate) sources: Vec<Box<dyn Source>>,
    pub(crate) hosts: Vec<String>,
    pub(crate) private: bool,
    pub(crate) secure: bool,
    pub(crate) always: bool,
    #[allow(clippy::type_complexity)]
    pub(crate) tell: Option<Box<dyn Fn(&Logged) + Send + Sync>>,
}

/// A queue of the board.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) queue: Arc<dyn Inspect>,
    history: Mutex<History>,
}

impl Row {
    fn new(name: String, queue: Arc<dyn Inspect>) -> Self {
        Self {
            name,
            queue,
            history: Mutex::default(),
        }
    }

    pub(crate) fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock()
    }
}

/// The state of a board.
pub(crate) struct App {
    parts: Parts,
    pub(crate) began: Instant,
    pub(crate) access: Access,
    pub(crate) live: Live,
    pub(crate) looks: Semaphore,
    rows: Mutex<Vec<Arc<Row>>>,
    log: Mutex<VecDeque<Logged>>,
    /// When the queues were sampled.
    pub(crate) sampled: AsyncMutex<Option<tokio::time::Instant>>,
    /// Why that failed.
    pub(crate) error: Mutex<Option<String>>,
}

impl std::ops::Deref for App {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.parts
    }
}

impl App {
    pub(crate) fn new(parts: Parts, access: Access) -> Self {
        let app = Self {
            began: Instant::now(),
            access,
            live: Live::default(),
            looks: Semaphore::new(LOOKS),
            rows: Mutex::default(),
            log: Mutex::default(),
            sampled: AsyncMutex::default(),
            error: Mutex::default(),
            parts,
        };
        app.update(app.fixed.clone());
        app
    }

    /// The address of a page.
    pub(crate) fn link(&self, page: &str) -> String {
        format!("{}{page}", self.base)
    }

    pub(crate) fn rows(&self) -> Vec<Arc<Row>> {
        self.rows.lock().clone()
    }

    pub(crate) fn find(&self, name: &str) -> Option<Arc<Row>> {
        self.rows().into_iter().find(|row| row.name == name)
    }

    /// Shows these queues from now on. Those that were shown keep their history.
    fn update(&self, queues: Vec<(String, Arc<dyn Inspect>)>) {
        let (known, mut rows) = (self.rows(), Vec::<Arc<Row>>::new());
        for (name, queue) in queues {
            if name.is_empty() || rows.iter().any(|row| row.name == name) {
                continue;
            }
            let same = |row: &&Arc<Row>| row.name == name && Arc::ptr_eq(&row.queue, &queue);
            let old = known.iter().find(same).cloned();
            rows.push(old.unwrap_or_else(|| Arc::new(Row::new(name, queue))));
        }
        *self.rows.lock() = rows;
    }

    /// Samples the queues.
    pub(crate) async fn sample_each(&self) -> Result<(), Error> {
        if !self.sources.is_empty() {
            let mut queues = self.fixed.clone();
            for source in &self.sources {
                queues.extend(source.queues().await?);
            }
            self.update(queues);
        }
        for row in self.rows() {
            let counts = row.queue.counts().await;
            let mut history = row.history();
            match counts {
                Ok(counts) => history.add(self.began, Instant::now(), counts),
                Err(error) => history.error = Some(error.to_string()),
            }
        }
        Ok(())
    }

    pub(crate) fn log(&self, logged: Logged) {
        if let Some(tell) = &self.tell {
            tell(&logged);
        }
        let mut log = self.log.lock();
        log.truncate(LOGGED - 1);
        log.push_front(logged);
    }

    /// The last changes, the newest first.
    pub(crate) fn logged(&self) -> Vec<Logged> {
        self.log.lock().iter().cloned().collect()
    }
}
