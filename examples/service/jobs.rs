//! The jobs, and the simulated work on them.

use std::time::Duration;

const STEP: Duration = Duration::from_millis(1);

/// A job and its next step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) number: u64,
    step: Step,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Fetch,
    Parse,
    Store,
}

#[derive(Debug)]
pub(crate) struct Failed;

impl Job {
    pub(crate) fn new(number: u64) -> Self {
        let step = Step::Fetch;
        Self { number, step }
    }

    /// The job after this step.
    pub(crate) fn next(self) -> Option<Self> {
        let step = match self.step {
            Step::Fetch => Step::Parse,
            Step::Parse => Step::Store,
            Step::Store => return None,
        };
        Some(Self { step, ..self })
    }

    /// Does this step. Some steps fail once, some twice.
    pub(crate) async fn perform(self, attempt: u32) -> Result<(), Failed> {
        tokio::time::sleep(STEP).await;
        let failures = match (self.number + self.step as u64) % 10 {
            0 => 2,
            5 => 1,
            _ => 0,
        };
        if attempt <= failures {
            return Err(Failed);
        }
        Ok(())
    }
}
