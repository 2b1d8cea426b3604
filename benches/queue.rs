//! The queue's own operations under criterion: `cargo bench --bench queue`. `benches/compare` compares it with others.

mod common;

use common::{scenarios, ITEMS};
use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use std::time::Duration;

fn all(criterion: &mut Criterion) {
    for scenario in scenarios() {
        let mut group = criterion.benchmark_group(scenario.name);
        group.throughput(Throughput::Elements(ITEMS as u64));
        for mut contender in scenario.contenders {
            group.bench_function(contender.name, |bencher| {
                bencher.iter_custom(|rounds| (0..rounds).map(|_| (contender.round)()).sum());
            });
        }
        group.finish();
    }
}

fn short() -> Criterion {
    Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
}

criterion_group! {
    name = benches;
    config = short();
    targets = all
}
criterion_main!(benches);
