//! All faults together, in a random order, for a time: processes that reach the server directly, through a proxy, through `pgbouncer`
//! and through both move jobs between queues of each order and way of holding, while processes are killed, sessions
//! terminated, servers restarted, connections cut and hung, and the clock jumps.
//!
//! `REQUEUE_FAULT_SECONDS=3600` runs for an hour.

pub(crate) mod process;

use crate::base::{until, Db, Mode, LONG};
use crate::child::{name, Child};
use crate::history::check::Checker;
use crate::history::process::{Done, Job, TERM};
use crate::proxy::{Proxy, DIRECTIONS};
use crate::server::{Pooler, Server};
use process::{Queues, Way};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, fmt};
use tempfile::TempDir;
use tokio::time::sleep;
use tokio_postgres::Client;

pub(crate) const ROLE: &str = "mixed";
/// Of a run without `REQUEUE_FAULT_SECONDS`.
const SECONDS: u64 = 2;
/// Faults before the connections work again, and each process must do something.
const ROUND: usize = 12;
const LOOK: Duration = Duration::from_millis(50);
const REPORT: Duration = Duration::from_secs(60);

const TABLES: &str = "
    create table @.done (id bigint generated always as identity primary key, producer bigint not null, seq bigint not null,
        process bigint not null);
    create index on @.done (producer, seq);
    create table @.ran (producer bigint not null, seq bigint not null, primary key (producer, seq));";
/// Jobs that were done twice, the second time since the id `$`.
const TWICE: &str = "select count(*) from @.done d where d.id > $ and exists (select from @.done o
    where o.producer = d.producer and o.seq = d.seq and o.id < d.id)";
/// What is in any queue.
const LEFT: &str = "select (select count(*) from @.ready) + (select count(*) from @.delayed)
    + (select count(*) from @.leased) + (select count(*) from @.dead)";
/// What should be held by nobody at the end: keys, and locks of this crate.
const LEAKED: &str = "select (select count(*) from @.keys where holder is not null)
    + (select count(*) from pg_locks where locktype = 'advisory')";

const ACTIVITY: &str = "select concat_ws(' ', pid, 'blocked by', pg_blocking_pids(pid), state, wait_event, clock_timestamp() - state_change,
    left(regexp_replace(query, '\\s+', ' ', 'g'), 150)) from pg_stat_activity where backend_type = 'client backend' order by state_change";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    Kill,
    Terminate,
    Hang,
    Stop,
    Resume,
    Cut,
    ClockForward,
    ClockBackward,
    RestartFast,
    RestartImmediate,
}

impl Fault {
    /// Restarts are rare: each is a fault of all connections.
    fn any() -> Self {
        let all = [
            Self::Kill,
            Self::Terminate,
            Self::Hang,
            Self::Stop,
            Self::Resume,
            Self::Cut,
            Self::ClockForward,
            Self::ClockBackward,
        ];
        match fastrand::usize(..20) {
            0 => Self::RestartFast,
            1 => Self::RestartImmediate,
            other => all[other % all.len()],
        }
    }
}

/// A server, the ways to it, and the processes: one by each way.
struct Mix {
    db: Db,
    pooler: Pooler,
    proxies: [Proxy; 2],
    records: TempDir,
    running: Vec<(i64, Child)>,
    started: i64,
    faults: BTreeMap<Fault, u32>,
    /// The longest time until each process did something after faults.
    longest: Duration,
    /// The last id that was checked.
    checked: i64,
    server: Server,
}

impl Mix {
    async fn start() -> Self {
        let server = Server::start("on");
        let db = Db::with_clock_of(&server.url()).await;
        db.execute(TABLES).await;
        // From the first restart on: a session to be refused that hangs before it has asked is no reason to wait for a minute with a stop.
        db.execute("alter system set authentication_timeout = '5s'")
            .await;
        let pooler = Pooler::start(&server, 20);
        let proxies = [
            Proxy::before(&server.url()).await,
            Proxy::before(&pooler.url()).await,
        ];
        let mut mix = Self {
            db,
            pooler,
            proxies,
            records: TempDir::new().unwrap(),
            running: Vec::new(),
            started: 0,
            faults: BTreeMap::new(),
            longest: Duration::ZERO,
            checked: 0,
            server,
        };
        for way in Way::ALL {
            let child = mix.child(way);
            mix.running.push(child);
        }
        mix
    }

    /// Starts a process, with a number of its own.
    fn child(&mut self, way: Way) -> (i64, Child) {
        let [proxy, before_pooler] = &self.proxies;
        let url = match way {
            Way::Direct => self.server.url(),
            Way::Proxied => proxy.url(),
            Way::Pooled => self.pooler.url(),
            Way::ProxiedToPooler => before_pooler.url(),
        };
        self.started += 1;
        let record = self.records.path().join(self.started.to_string());
        let argument = way.argument(&record);
        let child = Child::start_by(&url, &self.db, Mode::Locked, ROLE, &argument);
        (self.started, child)
    }

    async fn inject(&mut self, fault: Fault) {
        *self.faults.entry(fault).or_default() += 1;
        let proxy = &self.proxies[fastrand::usize(..2)];
        match fault {
            Fault::Kill => {
                let victim = fastrand::usize(..self.running.len());
                self.running[victim] = self.child(Way::ALL[victim]);
            }
            Fault::Terminate => {
                let some = format!(
                    "select count(pg_terminate_backend(pid)) from pg_stat_activity
                    where application_name = '{}' and random() < 0.3",
                    name(&self.db, ROLE)
                );
                self.db.number(&some).await;
            }
            Fault::Hang => proxy.hang(DIRECTIONS[fastrand::usize(..2)]),
            Fault::Stop if fastrand::bool() => proxy.stop_requests(),
            Fault::Stop => proxy.stop_answers(),
            Fault::Resume => proxy.resume(),
            Fault::Cut => proxy.cut(),
            Fault::ClockForward => self.db.advance(TERM).await,
            Fault::ClockBackward => {
                let back = "update @_clock.shift set by = by - interval '1 second'";
                self.db.execute(back).await;
            }
            Fault::RestartFast => self.restart("fast"),
            Fault::RestartImmediate => self.restart("immediate"),
        }
    }

    fn restart(&self, how: &str) {
        tokio::task::block_in_place(|| {
            self.server.control(&["stop", "-m", how], "");
            self.server.control(&["start"], "-c fsync=on");
        });
    }

    /// The connections work again, if need be new ones; then each process does jobs, and none was done twice.
    async fn heal(&mut self) {
        for proxy in &self.proxies {
            if fastrand::bool() {
                proxy.resume();
            } else {
                proxy.cut();
            }
        }
        let client = crate::base::client(&self.db.url).await;
        let last = self
            .number(&client, "select coalesce(max(id), 0) from @.done")
            .await;
        for (process, child) in &mut self.running {
            assert!(child.runs(), "the process {process} has ended");
        }
        let stuck = || async {
            let idle = "select process from @.done where id > $ group by process";
            let idle = self.db.sql(idle).replace('$', &last.to_string());
            let active = client.query(&idle, &[]).await.unwrap();
            let active: Vec<i64> = active.iter().map(|row| row.get(0)).collect();
            let running = self.running.iter().map(|(process, _)| *process);
            running
                .filter(|process| !active.contains(process))
                .collect::<Vec<_>>()
        };
        let begun = Instant::now();
        loop {
            let stuck = stuck().await;
            if stuck.is_empty() {
                break;
            }
            assert!(
                begun.elapsed() < LONG,
                "{stuck:?} do nothing: {:?}\n{}",
                self.faults,
                self.activity(&client).await
            );
            sleep(LOOK).await;
        }
        self.longest = self.longest.max(begun.elapsed());
        let twice = TWICE.replace('$', &self.checked.to_string());
        assert_eq!(
            self.number(&client, &twice).await,
            0,
            "jobs were done twice"
        );
        self.checked = last;
    }

    /// The sessions of the server.
    async fn activity(&self, client: &Client) -> String {
        let rows = client.query(ACTIVITY, &[]).await.unwrap();
        let lines = rows.iter().map(|row| row.get::<_, &str>(0));
        lines.collect::<Vec<_>>().join("\n")
    }

    async fn number(&self, client: &Client, sql: &str) -> i64 {
        client
            .query_one(&self.db.sql(sql), &[])
            .await
            .unwrap()
            .get(0)
    }

    /// No process runs; what is left is done here, and nothing is held.
    async fn finish(self) {
        drop((self.running, self.pooler));
        self.proxies.iter().for_each(Proxy::cut);
        self.db.until_gone(&name(&self.db, ROLE)).await;
        self.db.advance(TERM * 2).await;
        let db = self.db.other().await;
        let queues = Arc::new(Queues::new(&db, &self.db.schema, 0));
        let consumes = tokio::spawn(Arc::clone(&queues).consume(None));
        let (mut least, mut since) = (i64::MAX, Instant::now());
        while least > 0 {
            sleep(LOOK).await;
            let _ = queues.requeue_dead().await;
            let left = self.db.number(LEFT).await;
            if left < least {
                (least, since) = (left, Instant::now());
            }
            assert!(since.elapsed() < LONG, "{least} are left");
        }
        consumes.abort();
        until(|| async { self.db.number(LEAKED).await == 0 }).await;
        let done = jobs(&self.db, "done").await;
        Checker::read(self.records.path()).exactly_once(&done);
        let ran = jobs(&self.db, "ran").await;
        let key = |done: &Done| (done.job.producer, done.job.seq);
        let (mut done, mut ran): (Vec<_>, Vec<_>) = (
            done.iter().map(key).collect(),
            ran.iter().map(key).collect(),
        );
        done.sort_unstable();
        ran.sort_unstable();
        assert!(
            done == ran,
            "{} jobs, and {} ran again",
            done.len(),
            ran.len()
        );
        println!("nothing lost, nothing done twice: {} jobs", done.len());
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            faults,
            started,
            checked,
            longest,
            ..
        } = self;
        write!(f, "{faults:?}, {started} processes, {checked} jobs, at most {longest:?} until each process goes on")
    }
}

/// The jobs in a table.
async fn jobs(db: &Db, table: &str) -> Vec<Done> {
    let client = crate::base::client(&db.url).await;
    let sql = db.sql(&format!("select producer, seq from @.{table}"));
    let rows = client.query(&sql, &[]).await.unwrap();
    let done = rows.iter().map(|row| Done {
        job: Job {
            producer: row.get(0),
            seq: row.get(1),
        },
        ticket: 0,
        attempts: 0,
    });
    done.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "its processes leave no time for other tests"]
async fn all_faults_together_lose_nothing_and_nothing_is_stuck() {
    let seconds =
        env::var("REQUEUE_FAULT_SECONDS").map_or(SECONDS, |text| text.parse().expect("a number"));
    let mut mix = Mix::start().await;
    mix.heal().await; // the processes have begun
    let (begun, mut report) = (Instant::now(), Instant::now());
    while begun.elapsed() < Duration::from_secs(seconds) {
        for _ in 0..ROUND {
            mix.inject(Fault::any()).await;
            sleep(LOOK * fastrand::u32(..5)).await;
        }
        mix.heal().await;
        if report.elapsed() >= REPORT {
            report = Instant::now();
            println!("{} s: {mix}", begun.elapsed().as_secs());
        }
    }
    println!("{mix}");
    mix.finish().await;
}
