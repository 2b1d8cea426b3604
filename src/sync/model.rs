//! The bounds of the loom models beside the code; those in `tests/loom/` are set up alike.

/// More steps than any terminating model takes.
const STEPS: usize = 50_000;

/// Explores all executions with at most `LOOM_MAX_PREEMPTIONS` preemptions, or two.
pub(crate) fn model(run: impl Fn() + Sync + Send + 'static) {
    model_of(2, run);
}

/// Like [`model`], with another default.
pub(crate) fn model_of(preemptions: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = STEPS;
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.check(run);
}

/// Explores all executions with one preemption, for models that are too large for more.
pub(crate) fn large_model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = STEPS;
    builder.preemption_bound = Some(1);
    builder.check(run);
}
