//! All contestants in all cells.

use crate::cell::{fill, Cell};
use crate::contestants::{Contestant, Jobs, ALL};
use crate::latency::{old_snapshot, round_trip, ROUND_TRIP, SNAPSHOT};
use crate::options::Options;
use crate::results::{Results, Sample};
use crate::server::Server;
use crate::Failure;
use std::collections::HashMap;
use tokio_postgres::Client;

pub(crate) struct Bench<'a> {
    options: &'a Options,
    server: &'a Server,
    /// By contestant and backlog, since a large backlog is filled only once.
    queues: HashMap<(&'static str, u64), Queue>,
    pub(crate) results: Results,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(options: &'a Options, server: &'a Server) -> Self {
        Self {
            options,
            server,
            queues: HashMap::new(),
            results: Results::default(),
        }
    }

    pub(crate) async fn round(&mut self, round: usize) -> Result<(), Failure> {
        for cell in Cell::all(self.options.backlog) {
            let length = self.options.length;
            self.contestants(round, &cell.name(), cell.backlog, async |jobs, _| {
                Ok(vec![(cell.name(), cell.run(jobs, length).await?)])
            })
            .await?;
        }
        let length = self.options.length;
        self.contestants(round, ROUND_TRIP[0], 0, async |jobs, _| {
            Ok(named(&ROUND_TRIP, round_trip(jobs, length).await?))
        })
        .await?;
        self.contestants(round, "old snapshot", 0, async |jobs, other| {
            Ok(named(&SNAPSHOT, old_snapshot(jobs, other).await?))
        })
        .await
    }

    /// Has the contestants take turns in what is called `name`. The others go on if one fails.
    async fn contestants(
        &mut self,
        round: usize,
        name: &str,
        backlog: u64,
        run: impl AsyncFn(&dyn Jobs, &Client) -> Result<Vec<(String, Sample)>, Failure>,
    ) -> Result<(), Failure> {
        for turn in 0..ALL.len() {
            let contestant = &ALL[(round + turn) % ALL.len()];
            let full = format!("{name} {}", contestant.name);
            if !self.options.wants(&full) {
                continue;
            }
            let queue = self.queue(contestant, backlog).await?;
            match run(&*queue.jobs, &queue.other).await {
                Ok(samples) => {
                    for (cell, sample) in samples {
                        self.results.add(&cell, contestant.name, sample);
                    }
                }
                Err(error) => {
                    self.queues.remove(&(contestant.name, backlog)); // begins anew in the next cell
                    self.results.failed(format!("{full}: {error}"));
                }
            }
        }
        Ok(())
    }

    /// The queue of a contestant with a backlog, which is filled once.
    async fn queue(&mut self, contestant: &Contestant, backlog: u64) -> Result<&Queue, Failure> {
        let key = (contestant.name, backlog);
        if !self.queues.contains_key(&key) {
            let database = format!("bench_{}", self.queues.len());
            self.server.create(&database).await?;
            let jobs = (contestant.open)(self.server, &database).await?;
            fill(&*jobs, backlog).await?;
            let other = self.server.connect(&database).await?;
            other.batch_execute("vacuum analyze").await?;
            self.queues.insert(key, Queue { jobs, other });
        }
        Ok(&self.queues[&key])
    }
}

fn named<const N: usize>(names: &[&str; N], samples: [Sample; N]) -> Vec<(String, Sample)> {
    let names = names.iter().map(|name| String::from(*name));
    names.zip(samples).collect()
}

/// A queue in a database of its own, and another session there.
struct Queue {
    jobs: Box<dyn Jobs>,
    other: Client,
}
