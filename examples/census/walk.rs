//! The walk: workers that share one queue of paths.

use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use indicatif::{ProgressBar, ProgressStyle};
use requeue::{Handle, Queue, Stats};

use super::tally::{Kind, Tally, Unreadable};

const MAX_ATTEMPTS: u32 = 3;
const UNBOUNDED: &str = "an unbounded queue takes every push";

pub(crate) struct Walked {
    pub(crate) tally: Tally,
    pub(crate) stats: Stats,
}

/// Visits `root` and, job by job, all entries that the visits push.
pub(crate) fn walk<V>(root: PathBuf, visit: V) -> Walked
where
    V: Fn(&Path, &mut dyn FnMut(PathBuf)) -> io::Result<Kind> + Sync,
{
    let walk = Walk {
        queue: Queue::unbounded(),
        visit,
        progress: progress(),
    };
    walk.queue.push(root).expect(UNBOUNDED);
    // Jobs can still push after the close, and the queue is drained when the last job is done.
    walk.queue.close();
    let mut tally = Tally {
        pushed: 1,
        ..Tally::default()
    };
    thread::scope(|scope| {
        let start = |_| scope.spawn(|| walk.work());
        let workers: Vec<_> = (0..workers()).map(start).collect();
        for worker in workers {
            tally.merge(worker.join().expect("a worker panicked"));
        }
    });
    walk.progress.finish_and_clear();
    let stats = walk.queue.stats();
    Walked { tally, stats }
}

/// A line on standard error, if that is a terminal.
fn progress() -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {human_pos} entries in {elapsed}");
    ProgressBar::new_spinner().with_style(style.expect("the template is well formed"))
}

fn workers() -> usize {
    thread::available_parallelism().map_or(2, |cores| cores.get().max(2))
}

struct Walk<V> {
    queue: Queue<PathBuf>,
    visit: V,
    progress: ProgressBar,
}

impl<V> Walk<V>
where
    V: Fn(&Path, &mut dyn FnMut(PathBuf)) -> io::Result<Kind> + Sync,
{
    /// Works until all jobs are done.
    fn work(&self) -> Tally {
        let mut handle = self.queue.handle();
        let mut tally = Tally::default();
        while self.step(&mut handle, &mut tally) {}
        tally
    }

    /// Takes a job and commits it, unless it fails and will be retried. `false` if the queue is drained.
    fn step(&self, handle: &mut Handle<PathBuf>, tally: &mut Tally) -> bool {
        let tx = handle.begin();
        let Ok(job) = tx.pop_blocking() else {
            return false;
        };
        let attempts = job.attempts();
        let visited = (self.visit)(&job, &mut |child| tx.push(child).expect(UNBOUNDED));
        if visited.is_err() && attempts < MAX_ATTEMPTS {
            tx.abort();
            return true;
        }

        tally.pushed += tx.staged() as u64;
        let path = tx.commit().next().expect("the transaction holds one job");
        self.progress.inc(1);
        match visited {
            Ok(kind) => tally.count(&path, kind),
            Err(error) => tally.unreadable.push(Unreadable {
                path,
                attempts,
                error,
            }),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::panic::{catch_unwind, AssertUnwindSafe};
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::sync::Mutex;

    use super::super::balance::Balance;
    use super::*;

    /// A tree in memory: `fails` says how many visits of a path fail before one succeeds.
    #[derive(Default)]
    struct Fake {
        fails: HashMap<&'static str, u32>,
        visits: Mutex<HashMap<PathBuf, u32>>,
    }

    impl Fake {
        fn failing(path: &'static str, times: u32) -> Self {
            Self {
                fails: HashMap::from([(path, times)]),
                ..Self::default()
            }
        }

        /// The root has `a` and `b`, each of these `0` to `9`; children are pushed before the visit fails.
        fn visit(&self, path: &Path, push: &mut dyn FnMut(PathBuf)) -> io::Result<Kind> {
            let visit = self.visited(path);
            let name = path.to_str().unwrap();
            match name {
                "root" => ["a", "b"].iter().for_each(|child| push(path.join(child))),
                "root/a" | "root/b" => (0..10).for_each(|child| push(path.join(child.to_string()))),
                _ => {}
            }
            if visit <= self.fails.get(name).copied().unwrap_or(0) {
                return Err(io::ErrorKind::NotFound.into());
            }
            Ok(Kind::Other)
        }

        fn visited(&self, path: &Path) -> u32 {
            let mut visits = self.visits.lock().unwrap();
            let visits = visits.entry(path.into()).or_default();
            *visits += 1;
            *visits
        }

        /// Walks the tree, checks the invariants of every walk, and returns the number of visits of `path`.
        fn walk(&self, path: &str) -> (Tally, u32) {
            let walked = walk("root".into(), |path, push| self.visit(path, push));
            Balance::of(&walked.tally).check(&walked.stats).unwrap();
            let visits = self.visits.lock().unwrap();
            let others = visits
                .iter()
                .filter(|(visited, _)| **visited != Path::new(path));
            others.for_each(|(other, times)| assert_eq!(*times, 1, "{other:?}"));
            (walked.tally, visits[Path::new(path)])
        }
    }

    #[test]
    fn every_job_is_visited_once() {
        let (tally, visits) = Fake::default().walk("root");
        assert_eq!((tally.pushed, tally.others, visits), (23, 23, 1));
    }

    #[test]
    fn a_file_that_fails_twice_is_counted_at_the_third_attempt() {
        let (tally, visits) = Fake::failing("root/a/3", 2).walk("root/a/3");
        assert_eq!((tally.pushed, tally.others, visits), (23, 23, 3));
        assert!(tally.unreadable.is_empty());
    }

    #[test]
    fn a_file_that_always_fails_is_reported_after_three_attempts() {
        let (tally, visits) = Fake::failing("root/b/7", u32::MAX).walk("root/b/7");
        assert_eq!((tally.pushed, tally.others, visits), (23, 22, 3));
        let [entry] = &tally.unreadable[..] else {
            panic!("{:?}", tally.unreadable)
        };
        assert_eq!((entry.path.to_str(), entry.attempts), (Some("root/b/7"), 3));
        assert_eq!(entry.error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn an_aborted_directory_pushes_its_children_once() {
        let (tally, visits) = Fake::failing("root/a", 2).walk("root/a");
        assert_eq!((tally.pushed, tally.others, visits), (23, 23, 3));
    }

    #[test]
    fn children_found_before_a_directory_is_given_up_are_walked() {
        let (tally, visits) = Fake::failing("root/a", u32::MAX).walk("root/a");
        assert_eq!((tally.pushed, tally.others, visits), (23, 22, 3));
        assert_eq!(tally.unreadable.len(), 1);
    }

    #[test]
    fn a_worker_that_panics_leaves_its_job_to_the_others() {
        let first = AtomicBool::new(true);
        let fake = Fake::default();
        let visit = |path: &Path, push: &mut dyn FnMut(PathBuf)| {
            assert!(
                !path.ends_with("a") || !first.swap(false, Relaxed),
                "as planned"
            );
            fake.visit(path, push)
        };
        let walked = catch_unwind(AssertUnwindSafe(|| walk("root".into(), visit)));
        assert!(walked.is_err());
        assert_eq!(fake.visits.lock().unwrap().len(), 23);
    }
}
