//! All contestants in all cells.

use crate::cell::{round_trip, Cell, ROUND_TRIP};
use crate::contestants::{Contestant, Jobs, ALL};
use crate::options::Options;
use crate::results::{Results, Sample};
use crate::server::Server;
use crate::Failure;
use std::collections::HashMap;

pub(crate) struct Bench<'a> {
    options: &'a Options,
    server: &'a Server,
    /// By contestant and backlog, since a large backlog is filled only once.
    queues: HashMap<(&'static str, u64), Box<dyn Jobs>>,
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
            self.contestants(round, &cell.name(), Some(cell)).await?;
        }
        self.contestants(round, ROUND_TRIP, None).await
    }

    async fn contestants(
        &mut self,
        round: usize,
        name: &str,
        cell: Option<Cell>,
    ) -> Result<(), Failure> {
        for turn in 0..ALL.len() {
            let contestant = &ALL[(round + turn) % ALL.len()];
            let full = format!("{name} {}", contestant.name);
            if !self.options.wants(&full) {
                continue;
            }
            let sample = self.sample(contestant, cell).await;
            let sample = sample.map_err(|error| format!("{full}: {error}"))?;
            self.results.add(name, contestant.name, sample);
        }
        Ok(())
    }

    async fn sample(
        &mut self,
        contestant: &Contestant,
        cell: Option<Cell>,
    ) -> Result<Sample, Failure> {
        let length = self.options.length;
        let key = (contestant.name, cell.map_or(0, |cell| cell.backlog));
        if !self.queues.contains_key(&key) {
            let database = format!("bench_{}", self.queues.len());
            self.server.create(&database).await?;
            let jobs = (contestant.open)(self.server, &database).await?;
            if let Some(cell) = cell {
                cell.level(&*jobs).await?;
            }
            let client = self.server.connect(&database).await?;
            client.batch_execute("vacuum analyze").await?;
            self.queues.insert(key, jobs);
        }
        let jobs = &*self.queues[&key];
        match cell {
            Some(cell) => cell.run(jobs, length).await,
            None => round_trip(jobs, length).await,
        }
    }
}
