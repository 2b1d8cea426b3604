//! The load of a process that is to be killed: each acknowledgement is written after the commit returned.
//!
//! | queue | has | must hold |
//! |---|---|---|
//! | `plain`, unique, and `keyed`, fair by producer | what two producers push and a consumer pops | each producer's numbers from one to another, without a gap; none can be pushed again |
//! | `pooled` | what a producer pushes and a pool of one task pops, which goes on while commits are under way | the same |
//! | `jobs`, by priority | a job whose worker pushes two follow-ups, some of them for later, three times over | a job is there, or both its follow-ups were |
//! | `left`, `right`, with room for all | tokens that are moved from one to the other | each token in one of them |
//! | `even`, `odd`, with a time to live | numbers, pushed in turn and buffered | a prefix of the numbers |
//! | `replaced` | growing numbers of one key, which replace each other or follow the one that is held | the last number, or it was taken; none that was taken |
//! | `once` | numbers that are pushed and popped, whose keys stay taken | no number that was popped, nor can it be pushed |
//! | `large` | a backlog of large numbers, which are pushed and popped, buffered: so tables of those that are gone are dropped | numbers from one to another, as one of these commits left them |
//! | `removed`, unique, fair by three keys | ten numbers, of which the odd ones are removed at once, then the others | what one of these steps leaves |

use crate::{child, count, options};
use futures::executor::block_on;
use requeue_durable::{
    commit_all, ByKey, ByPriority, Durability, DurableQueue, OnDuplicate, Order, Store, Workers,
};
use std::collections::HashSet;
use std::fmt::Debug;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::ops::Range;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::mpsc::channel;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, SystemTime};

const ROUND: &str = "DURABLE_ROUND";
const TOKENS: u64 = 20;
/// How many items are pushed again.
const SOME: usize = 50;
/// Two push to the first queue, two to the second one, and one to that of the pool.
const PRODUCERS: usize = 5;
/// When some follow-ups are due: at the end of the round, for which they stay on the disk.
const LATER: Duration = Duration::from_secs(600);
/// The depth of the last follow-ups.
const DEPTH: u32 = 3;

/// Round, producer, number.
type Plain = (u64, u64, u64);
/// Round, worker, number of the root, and the way to the follow-up: 1 for the root, then 2n and 2n + 1.
type Job = (u64, u64, u64, u32);
/// Round, number.
type Buffered = (u64, u64);

/// Round, number, and many bytes.
type Large = (u64, usize, Vec<u8>);
const LARGE: usize = 2_000;
/// How many of them are pushed and popped at once, and how many are left.
const AT_ONCE: usize = 50;
const BACKLOG: usize = 1_500;
/// How often it is waited until they are on the disk.
const FLUSHED: usize = 8 * AT_ONCE;

/// The queues under load.
struct Queues {
    store: Store,
    plain: DurableQueue<Plain>,
    keyed: DurableQueue<Plain, ByKey<u64, Plain>>,
    pooled: DurableQueue<Plain>,
    jobs: DurableQueue<Job, ByPriority>,
    left: DurableQueue<u64>,
    right: DurableQueue<u64>,
    even: DurableQueue<Buffered>,
    odd: DurableQueue<Buffered>,
    replaced: DurableQueue<u64>,
    once: DurableQueue<Buffered>,
    large: DurableQueue<Large>,
    removed: DurableQueue<u64, ByKey<u64, u64>>,
}

impl Queues {
    fn open(path: &Path) -> Self {
        Self::open_in(path, Duration::ZERO)
    }

    /// Opens a store that believes it to be so much later.
    fn open_in(path: &Path, time: Duration) -> Self {
        let options = options().wall_clock(move || SystemTime::now() + time);
        let store = options.open(path).expect("the store opens");
        let expect = "the queue opens";
        let replaced = store.builder("replaced").unique_by(|_| ());
        let once = store.builder("once").unique_by(|number| *number);
        let keyed = store.builder("keyed").fair_by(|item: &Plain| item.1);
        let plain = store.builder("plain").unique_by(|item: &Plain| *item);
        let removed = store.builder("removed").fair_by(|number| number % 3);
        let removed = removed.unique_by(|number| *number);
        let room = usize::try_from(TOKENS).unwrap();
        let tokens = |name| store.builder(name).capacity(room).build();
        let timed = |name| store.builder(name).ttl(Duration::from_secs(3600)).build();
        Self {
            plain: plain.build().expect(expect),
            keyed: keyed.build().expect(expect),
            pooled: store.queue("pooled").expect(expect),
            jobs: store.builder("jobs").by_priority().build().expect(expect),
            left: tokens("left").expect(expect),
            right: tokens("right").expect(expect),
            even: timed("even").expect(expect),
            odd: timed("odd").expect(expect),
            replaced: replaced
                .on_duplicate(OnDuplicate::Follow)
                .build()
                .expect(expect),
            once: once
                .unique_for(Duration::from_secs(3600))
                .build()
                .expect(expect),
            large: store.queue("large").expect(expect),
            removed: removed.build().expect(expect),
            store,
        }
    }
}

/// Says to the parent what was committed. Lines are short, so that each is written as a whole.
fn acknowledge(what: &str) {
    let stdout = std::io::stdout().as_fd().try_clone_to_owned();
    let mut stdout = File::from(stdout.expect("the standard output"));
    // The parent may be gone already.
    let _ = stdout.write_all(format!("\nack {what}\n").as_bytes());
}

/// What a child does, by its role: all of that, or only with the large numbers, so that there are tables of these alone.
pub(crate) const ROLES: [&str; 2] = ["load", "large"];

/// The child: works until it is killed, or a commit fails.
pub(crate) fn run(path: &Path, role: &str) {
    let round = count(ROUND, 0);
    acknowledge("opens");
    let queues = &Queues::open(path);
    if round == 0 {
        queues.left.push_batch(0..TOKENS).expect("a push");
    }
    acknowledge("opened");
    thread::scope(|scope| {
        scope.spawn(|| work_off(queues, round));
        if role != ROLES[0] {
            return;
        }
        for producer in 0..2 {
            scope.spawn(move || produce(&queues.plain, round, producer));
            scope.spawn(move || produce(&queues.keyed, round, producer + 2));
        }
        scope.spawn(|| produce(&queues.pooled, round, 4));
        scope.spawn(|| pool(&queues.pooled));
        scope.spawn(|| consume(&queues.plain));
        scope.spawn(|| consume(&queues.keyed));
        for worker in 0..2 {
            scope.spawn(move || work(queues, round, worker));
        }
        scope.spawn(|| carry(&queues.left, &queues.right));
        scope.spawn(|| carry(&queues.right, &queues.left));
        scope.spawn(|| push_buffered(queues, round));
        scope.spawn(|| remove(&queues.removed));
        scope.spawn(|| replace(&queues.replaced));
        scope.spawn(|| take(&queues.replaced));
        scope.spawn(|| do_once(&queues.once, round));
    });
}

fn produce<O: Order<Plain>>(queue: &DurableQueue<Plain, O>, round: u64, producer: u64) {
    let mut handle = queue.handle();
    for number in 0.. {
        if handle.push((round, producer, number)).is_err() {
            return acknowledge("failed");
        }
        acknowledge(&format!("pushed {producer} {number}"));
    }
}

fn consume<O: Order<Plain>>(queue: &DurableQueue<Plain, O>) {
    let mut handle = queue.handle();
    while let Ok((_, producer, number)) = handle.pop_blocking() {
        acknowledge(&format!("popped {producer} {number}"));
    }
    acknowledge("failed");
}

/// A task that goes on while commits are under way, which end in their order. It ends with the first one that fails.
fn pool(queue: &DurableQueue<Plain>) {
    let (send, begun) = channel();
    let begun = Mutex::new(begun);
    let builder = Workers::builder(queue).threads(1).on_error(|_| {
        acknowledge("failed");
        loop {
            thread::park();
        }
    });
    let builder = builder.on_success(move |_| {
        let (_, producer, number): Plain = begun.lock().unwrap().recv().expect("it has run");
        acknowledge(&format!("popped {producer} {number}"));
    });
    let spawn = |task| drop(thread::spawn(|| block_on(task)));
    let run = builder.run_on(spawn, move |item, _| {
        send.send(*item).expect("the hook is there");
        async { Ok::<(), ()>(()) }
    });
    drop(run.join());
}

fn work(queues: &Queues, round: u64, worker: u64) {
    let mut handle = queues.jobs.handle();
    for root in 0.. {
        if handle.priority(9).push((round, worker, root, 1)).is_err() {
            return acknowledge("failed");
        }
        acknowledge(&format!("root {worker} {root}"));
        loop {
            let tx = handle.begin();
            let Ok(job) = tx.pop().map(|item| *item) else {
                break;
            };
            let (_, owner, number, way) = job;
            let child = |way| (round, owner, number, way);
            if way < 1 << DEPTH && (number + u64::from(way)) % 7 == 0 {
                let view = tx.priority(5).after(Duration::from_millis(20));
                let children = [2 * way, 2 * way + 1].map(child);
                view.push_batch(children).expect("a push");
            } else if way < 1 << DEPTH {
                for (priority, way) in [(1, 2 * way), (12, 2 * way + 1)] {
                    let (job, view) = (child(way), tx.priority(priority));
                    match (number + u64::from(way)) % 5 {
                        1 => view.after(Duration::from_millis(3)).push(job),
                        2 => view.after(Duration::from_millis(40)).push(job),
                        3 if priority == 12 => view.after(LATER).push(job),
                        _ => view.push(job),
                    }
                    .expect("a push");
                }
            }
            // Some transactions are given up first.
            if (number + u64::from(way)) % 5 == 0 && worker == 0 {
                tx.abort();
                break;
            }
            if tx.commit().is_err() {
                return acknowledge("failed");
            }
            acknowledge(&format!("done {owner} {number} {way}"));
        }
    }
}

fn carry(from: &DurableQueue<u64>, to: &DurableQueue<u64>) {
    let (mut source, mut target) = (from.handle(), to.handle());
    loop {
        let (take, give) = (source.begin(), target.begin());
        let Ok(token) = take.pop_blocking().map(|item| *item) else {
            return;
        };
        // With pages a token may be here before its room where it was is free.
        let pushed = give.push_blocking(token);
        if pushed.is_err() || commit_all((take, give)).is_err() {
            return acknowledge("failed");
        }
        acknowledge("moved");
    }
}

fn push_buffered(queues: &Queues, round: u64) {
    let at_most = Duration::from_secs(3600);
    let (mut even, mut odd) = (queues.even.handle(), queues.odd.handle());
    for number in 0.. {
        let handle = if number % 2 == 0 { &mut even } else { &mut odd };
        let tx = handle.begin();
        tx.push((round, number)).expect("a push");
        if tx.commit_with(Durability::Buffered { at_most }).is_err() {
            return acknowledge("failed");
        }
        if number % 64 == 63 {
            if queues.store.flush().is_err() {
                return acknowledge("failed");
            }
            acknowledge(&format!("buffered {number}"));
        }
    }
}

fn replace(numbers: &DurableQueue<u64>) {
    for number in 1.. {
        if numbers.push(number).is_err() {
            return acknowledge("failed");
        }
        acknowledge(&format!("replaced {number}"));
    }
}

fn take(numbers: &DurableQueue<u64>) {
    for round in 0.. {
        let tx = numbers.begin_owned();
        let Ok(number) = tx.pop_blocking().map(|item| *item) else {
            return acknowledge("failed");
        };
        if round % 3 == 0 {
            tx.abort();
            continue;
        }
        if tx.commit().is_err() {
            return acknowledge("failed");
        }
        acknowledge(&format!("taken {number}"));
    }
}

fn do_once(numbers: &DurableQueue<Buffered>, round: u64) {
    for number in 1.. {
        if numbers.push((round, number)).is_err() || numbers.pop().is_err() {
            return acknowledge("failed");
        }
        acknowledge(&format!("once {number}"));
    }
}

fn large(round: u64, number: usize) -> Large {
    let mut word = number as u64;
    let bytes = (0..LARGE).map(|_| {
        // Bytes that cannot be compressed.
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        word.to_be_bytes()[0]
    });
    (round, number, bytes.collect())
}

fn work_off(queues: &Queues, round: u64) {
    let mut handle = queues.large.handle();
    let durability = Durability::Buffered {
        at_most: Duration::from_secs(3600),
    };
    for first in (0..).step_by(AT_ONCE) {
        let end = first + AT_ONCE;
        let tx = handle.begin();
        let numbers = (first..end).map(|number| large(round, number));
        let pushed = tx.push_batch(numbers);
        if pushed.is_err() || tx.commit_with(durability).is_err() {
            return acknowledge("failed");
        }
        if end > BACKLOG {
            let tx = handle.begin();
            let popped = tx.pop_batch(AT_ONCE).map(Iterator::count);
            if popped.is_err() || tx.commit_with(durability).is_err() {
                return acknowledge("failed");
            }
        }
        if end.is_multiple_of(FLUSHED) {
            if queues.store.flush().is_err() {
                return acknowledge("failed");
            }
            acknowledge(&format!("worked {end}"));
        }
    }
}

fn remove<O: Order<u64>>(numbers: &DurableQueue<u64, O>) {
    for step in 0.. {
        let first = step / 3 * 10;
        let done = match step % 3 {
            0 => numbers.push_batch(first..first + 10).is_ok(),
            1 => numbers.retain(|number, _| number % 2 == 0).is_ok(),
            _ => numbers.clear_all().is_ok(),
        };
        if !done {
            return acknowledge("failed");
        }
        acknowledge(&format!("step {step}"));
    }
}

/// What a child has acknowledged.
#[derive(Debug, Default)]
pub(crate) struct Acknowledged {
    opened: bool,
    /// By producer: how many numbers were pushed and popped.
    pushed: [u64; PRODUCERS],
    popped: [u64; PRODUCERS],
    roots: HashSet<(u64, u64)>,
    done: HashSet<(u64, u64, u32)>,
    buffered: u64,
    /// The last numbers that were pushed and taken.
    replaced: u64,
    taken: u64,
    /// The last number that was popped once.
    once: u64,
    /// How many large numbers were pushed.
    worked: usize,
    /// How many steps of pushes and removals.
    steps: u64,
    pub(crate) count: u64,
}

impl Acknowledged {
    fn line(&mut self, line: &str) {
        let Some(line) = line.strip_prefix("ack ") else {
            return;
        };
        self.count += 1;
        let mut words = line.split(' ');
        let what = words.next().unwrap_or_default();
        let numbers: Vec<u64> = words.map(|word| word.parse().expect("a number")).collect();
        match (what, &*numbers) {
            ("opened", []) => self.opened = true,
            ("opens" | "moved" | "failed", []) => {}
            ("pushed", [producer, number]) => self.pushed[index(*producer)] = number + 1,
            ("popped", [producer, number]) => self.popped[index(*producer)] = number + 1,
            ("root", [worker, root]) => drop(self.roots.insert((*worker, *root))),
            ("done", [worker, root, way]) => {
                let way = u32::try_from(*way).unwrap();
                let is_new = self.done.insert((*worker, *root, way));
                assert!(is_new, "the job {worker} {root} {way} was done twice");
            }
            ("buffered", [number]) => self.buffered = number + 1,
            ("replaced", [number]) => self.replaced = *number,
            ("taken", [number]) => self.taken = *number,
            ("once", [number]) => self.once = *number,
            ("worked", [end]) => self.worked = index(*end),
            ("step", [step]) => self.steps = step + 1,
            _ => panic!("an unknown line: {line:?}"),
        }
    }
}

fn index(number: u64) -> usize {
    usize::try_from(number).expect("a small number")
}

/// A child under load, and what it has acknowledged.
pub(crate) struct Loaded {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
    acknowledged: Acknowledged,
}

impl Loaded {
    pub(crate) fn start(
        (path, role): (&Path, &str),
        round: u64,
        prepare: impl FnOnce(&mut Command),
    ) -> Self {
        let mut command = child(role, path);
        prepare(command.env(ROUND, round.to_string()));
        let mut child = command.spawn().expect("a child");
        let lines = BufReader::new(child.stdout.take().expect("its output"));
        Self {
            child,
            lines,
            acknowledged: Acknowledged::default(),
        }
    }

    /// Kills the child after `count` acknowledgements; returns all that it wrote.
    pub(crate) fn kill_after(mut self, count: u64) -> Acknowledged {
        let mut line = String::new();
        while self.acknowledged.count < count && self.lines.read_line(&mut line).unwrap() > 0 {
            self.acknowledged.line(line.trim_end());
            line.clear();
        }
        self.child.kill().expect("a signal");
        self.end()
    }

    /// Lets the child go on until it says that its threads have stopped, then kills it.
    pub(crate) fn kill_when_quiet(mut self) -> Acknowledged {
        let mut line = String::new();
        while line.trim_end() != "ack failed" && self.lines.read_line(&mut line).unwrap() > 0 {
            if line.trim_end() != "ack failed" {
                self.acknowledged.line(line.trim_end());
                line.clear();
            }
        }
        self.child.kill().expect("a signal");
        self.end()
    }

    /// What the child has acknowledged when it ends by itself.
    pub(crate) fn end(mut self) -> Acknowledged {
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).expect("its output");
        rest.lines().for_each(|line| self.acknowledged.line(line));
        self.child.wait().expect("its end");
        self.acknowledged
    }
}

/// Opens a store after its process died, checks everything, and empties all queues but those of the tokens.
pub(crate) fn check(path: &Path, round: u64, acknowledged: &Acknowledged) {
    let queues = Queues::open_in(path, 2 * LATER);
    check_plain(0..2, &drain_unique(&queues.plain), (round, 1), acknowledged);
    check_plain(2..4, &drain(&queues.keyed), (round, 1), acknowledged);
    check_plain(4..5, &drain(&queues.pooled), (round, 257), acknowledged);
    check_jobs(&drain(&queues.jobs), round, acknowledged);
    check_buffered(
        &drain(&queues.even),
        &drain(&queues.odd),
        round,
        acknowledged,
    );
    let mut numbers = queues.replaced.pop_batch(9).expect("it is read");
    numbers.extend(drain(&queues.replaced)); // what followed
    check_replaced(&numbers, acknowledged);
    check_once(&queues.once, round, acknowledged);
    check_large(&drain(&queues.large), round, acknowledged);
    let mut removed = drain_unique(&queues.removed);
    removed.sort_unstable(); // the keys take turns
    check_removed(&removed, acknowledged);
    check_tokens(&queues, round, acknowledged);
}

fn drain<T, O>(queue: &DurableQueue<T, O>) -> Vec<T>
where
    T: Clone + Debug + Send + 'static,
    O: Order<T>,
{
    let items = queue.pop_batch(usize::MAX).expect("the items are read");
    assert!(queue.is_empty());
    items
}

/// Empties a queue whose items are unique: each is a duplicate until then, and not afterwards.
fn drain_unique<T, O>(queue: &DurableQueue<T, O>) -> Vec<T>
where
    T: Clone + Debug + Send + 'static,
    O: Order<T>,
{
    let mut there = Vec::new();
    queue
        .peek_each(|item| there.push(item.clone()))
        .expect("they are read");
    for item in there {
        let refused = queue.push(item).expect_err("it is there");
        assert!(refused.is_duplicate(), "{refused:?}");
    }
    let items = drain(queue);
    let some = items.iter().take(SOME).cloned();
    queue.push_batch(some).expect("keys are free");
    assert_eq!(drain(queue).len(), items.len().min(SOME));
    items
}

fn check_plain(
    producers: Range<u64>,
    items: &[Plain],
    (round, under_way): (u64, u64),
    acknowledged: &Acknowledged,
) {
    let mut unacknowledged_pops = 0;
    for producer in producers {
        let own = items.iter().filter(|item| item.1 == producer);
        let numbers: Vec<u64> = own
            .map(|(of, _, number)| {
                assert_eq!(*of, round, "an item of an earlier round is back");
                *number
            })
            .collect();
        let producer = index(producer);
        let (popped, pushed) = (acknowledged.popped[producer], acknowledged.pushed[producer]);
        let Some(first) = numbers.first() else {
            assert!(
                popped + under_way >= pushed,
                "of {pushed} items all but {popped} are lost"
            );
            unacknowledged_pops += pushed.saturating_sub(popped);
            continue;
        };
        let end = first + numbers.len() as u64;
        let expected: Vec<u64> = (*first..end).collect();
        assert_eq!(numbers, expected, "in order, without a gap");
        assert!(
            end == pushed || end == pushed + 1,
            "{end} of {pushed} are there"
        );
        assert!(*first >= popped, "{first} is back, {popped} were popped");
        unacknowledged_pops += first - popped;
    }
    assert!(
        unacknowledged_pops <= under_way,
        "{unacknowledged_pops} items are lost"
    );
}

fn check_jobs(items: &[Job], round: u64, acknowledged: &Acknowledged) {
    let mut there = HashSet::new();
    let mut roots = acknowledged.roots.clone();
    for (of, worker, root, way) in items {
        assert_eq!(*of, round, "a job of an earlier round is back");
        roots.insert((*worker, *root));
        let is_new = there.insert((*worker, *root, *way));
        assert!(is_new, "the job {worker} {root} {way} is there twice");
    }
    let mut done = HashSet::new();
    for (worker, root) in roots {
        let mut ways = vec![1];
        while let Some(way) = ways.pop() {
            let job = (worker, root, way);
            if there.remove(&job) {
                assert!(!acknowledged.done.contains(&job), "{job:?} is back");
                continue;
            }
            done.insert(job);
            if way < 1 << DEPTH {
                ways.extend([2 * way, 2 * way + 1]);
            }
        }
    }
    assert!(there.is_empty(), "both a job and its follow-ups: {there:?}");
    let unacknowledged = done.difference(&acknowledged.done).count();
    assert!(
        unacknowledged <= 2,
        "{unacknowledged} jobs or follow-ups are lost"
    );
    assert!(acknowledged.done.is_subset(&done), "a done job is back");
}

fn check_buffered(even: &[Buffered], odd: &[Buffered], round: u64, acknowledged: &Acknowledged) {
    let total = (even.len() + odd.len()) as u64;
    let numbers = |odd: u64| (0..total).filter(move |number| number % 2 == odd);
    let expected = |odd| {
        numbers(odd)
            .map(|number| (round, number))
            .collect::<Vec<_>>()
    };
    assert_eq!(even, expected(0), "a prefix");
    assert_eq!(odd, expected(1), "a prefix");
    assert!(total >= acknowledged.buffered, "{total} are there");
}

fn check_replaced(numbers: &[u64], acknowledged: &Acknowledged) {
    let Acknowledged {
        replaced, taken, ..
    } = *acknowledged;
    assert!(
        numbers.len() <= 2 && numbers.is_sorted(),
        "{numbers:?} have one key"
    );
    let [is_back, is_lost] = [
        numbers.first().is_some_and(|first| *first <= taken),
        numbers.last().is_some_and(|last| *last < replaced),
    ];
    assert!(!is_back, "{numbers:?} are there, {taken} was taken");
    assert!(!is_lost, "{numbers:?} are there, {replaced} was pushed");
}

fn check_once(numbers: &DurableQueue<Buffered>, round: u64, acknowledged: &Acknowledged) {
    let last = acknowledged.once;
    for number in 1..=last {
        let refused = numbers.push((round, number));
        let of = refused.map_err(|refused| refused.to_string());
        assert!(of.is_err(), "{number} was popped before {last}");
    }
    let left = drain(numbers);
    assert!(
        left.iter().all(|number| *number == (round, last + 1)),
        "{left:?} after {last}"
    );
}

fn check_large(items: &[Large], round: u64, acknowledged: &Acknowledged) {
    let first = items.first().map_or(0, |item| item.1);
    let end = first + items.len();
    let expected = (first..end).map(|number| large(round, number));
    assert!(
        items.iter().cloned().eq(expected),
        "in order, without a gap"
    );
    let is_popped = [BACKLOG, BACKLOG + AT_ONCE].contains(&(end - first));
    assert!(
        end.is_multiple_of(AT_ONCE) && (is_popped || first == 0 && end < BACKLOG),
        "{first} to {end} are there"
    );
    let worked = acknowledged.worked;
    assert!(end >= worked, "{end} of {worked} are there");
}

fn check_removed(items: &[u64], acknowledged: &Acknowledged) {
    let after = |steps: u64| -> Vec<u64> {
        let first = steps / 3 * 10;
        match steps % 3 {
            0 => Vec::new(),
            1 => (first..first + 10).collect(),
            _ => (first..first + 10).step_by(2).collect(),
        }
    };
    let steps = acknowledged.steps;
    let expected = [after(steps), after(steps + 1)];
    assert!(
        expected.iter().any(|it| it == items),
        "{items:?} after {steps}"
    );
}

fn check_tokens(queues: &Queues, round: u64, acknowledged: &Acknowledged) {
    let mut tokens = Vec::new();
    for queue in [&queues.left, &queues.right] {
        queue.peek_each(|token| tokens.push(*token)).unwrap();
    }
    tokens.sort_unstable();
    if tokens.is_empty() && round == 0 && !acknowledged.opened {
        queues.left.push_batch(0..TOKENS).expect("a push");
        return;
    }
    assert_eq!(tokens, (0..TOKENS).collect::<Vec<_>>(), "the tokens");
}
