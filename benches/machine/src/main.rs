//! A simulated machine with many cores, for the protocols of requeue and of other queues.
//!
//! It exists under `--cfg machine` only:
//!
//! ```sh
//! RUSTFLAGS="--cfg machine" cargo run --release -p requeue-machine -- --help
//! ```

#[cfg(machine)]
mod arena;
#[cfg(machine)]
mod costs;
#[cfg(machine)]
mod ends;
#[cfg(machine)]
mod flow;
#[cfg(machine)]
mod lines;
#[cfg(machine)]
mod machine;
#[cfg(machine)]
mod models;
#[cfg(machine)]
mod options;
#[cfg(machine)]
mod plot;
#[cfg(machine)]
mod table;
#[cfg(all(machine, test))]
mod tests;
#[cfg(machine)]
mod threads;

#[cfg(machine)]
#[global_allocator]
static ARENAS: arena::Arenas = arena::Arenas;

#[cfg(machine)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Some(options) = options::Options::parse(std::env::args().skip(1))? else {
        print!("{}", options::HELP);
        return Ok(());
    };
    let chosen = ends::WORKLOADS
        .iter()
        .filter(|(name, _)| name.contains(&options.only));
    let (start, mut events) = (std::time::Instant::now(), 0);
    for (number, (workload, subjects)) in chosen.enumerate() {
        let rows: Vec<_> = subjects
            .iter()
            .map(|subject| row(subject, &options))
            .collect();
        println!("{}", table::markdown(workload, &options.cores, &rows));
        let outcomes = rows.iter().flat_map(|row| &row.outcomes);
        events += outcomes.map(table::Runs::events).sum::<u64>();
        if let Some(path) = options.plot.as_ref().filter(|_| number == 0) {
            plot::plot(path, workload, &options.cores, &rows)?;
        }
    }
    eprintln!("{events} events in {:.1?}", start.elapsed());
    Ok(())
}

#[cfg(machine)]
fn row(subject: &'static ends::Subject, options: &options::Options) -> table::Row {
    let runs = |&threads: &usize| {
        let items = threads * options.items;
        let run = |seed| {
            arena::begin(seed);
            flow::pass(subject, ends::Plan { threads, items }, seed)
        };
        table::Runs((1..=options.seeds).map(run).collect())
    };
    table::Row {
        subject: subject.name,
        outcomes: options.cores.iter().map(runs).collect(),
    }
}

#[cfg(not(machine))]
fn main() -> Result<(), String> {
    Err(r#"build it with RUSTFLAGS="--cfg machine""#.into())
}
