//! A lock-free, in-memory queue for many producers and many consumers whose dequeues are
//! transactions: a worker takes items inside a transaction; until it commits nobody else sees them;
//! if it aborts, returns early or panics, they go back to the head.
//!
//! Pops can wait for items, and pushes for room, on threads and in tasks alike. Items that fail can be
//! retried later, set aside after so many attempts, or taken back from a worker that is stuck, and the
//! queue says what it is doing.
//!
//! What it does not do: it keeps nothing on disk, it keeps no global order, which is what buys the
//! speed, and it does not end by itself: a queue is closed by a call, not by dropping its last producer.
//!
//! ```
//! use requeue::Queue;
//!
//! let queue = Queue::unbounded();
//! queue.push("fetch the page".to_string())?;
//! let mut worker = queue.handle();
//!
//! let tx = worker.begin();
//! let job = tx.pop()?; // held: nobody else sees it
//! tx.push(format!("parse what came of: {}", *job))?; // staged: nobody sees it yet
//! drop(tx); // as a return or a panic does: both are undone
//! assert_eq!(queue.len(), 1);
//!
//! let tx = worker.begin();
//! let job = tx.pop()?;
//! assert_eq!((job.as_str(), job.attempts()), ("fetch the page", 2));
//! tx.push(format!("parse what came of: {}", *job))?;
//! tx.commit(); // both at once
//! assert_eq!(queue.pop()?, "parse what came of: fetch the page");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Which type for which need
//!
//! | need | type |
//! |---|---|
//! | the queue itself, shared by cloning | [`Queue`] |
//! | one thread's or task's fast access | [`Handle`], from [`Queue::handle`] |
//! | take work that may fail, push its follow-ups | [`Transaction`], from [`Handle::begin`] or [`Handle::transact`] |
//! | take and push in several queues as one | [`commit_all()`] |
//! | a push or pop now and then, from anywhere | [`Queue::push`], [`Queue::pop`], and their forms that wait |
//! | a channel, whose last sender closes it | [`channel::bounded()`], [`channel::unbounded()`] |
//! | many items at once | [`Handle::push_batch`], [`Handle::pop_batch`], [`Transaction::push_batch`], [`Transaction::pop_batch`] |
//! | wait on a thread | [`Handle::pop_blocking`], [`Handle::pop_timeout`], [`Transaction::pop_blocking`] |
//! | wait in a task | [`Handle::pop_async`], [`Transaction::pop_async`], with feature `stream` `Handle::stream` |
//! | wait until there are enough | [`Handle::pop_batch_blocking`], [`Transaction::pop_batch_blocking`], [`Handle::pop_batch_async`] |
//! | no more than so many items | [`Queue::bounded`], [`Queue::builder`] |
//! | wait for room | [`Handle::push_blocking`], [`Handle::push_async`], [`Transaction::push_blocking`], with feature `stream` `Handle::sink` |
//! | threads or tasks that work through a queue | [`Workers`], with feature `tokio` `Tasks` |
//! | closures and futures as items, and what became of them | [`Job`], [`Queue::submit`], [`Queue::submit_async`], [`Outcome`] |
//! | end in an orderly way | [`Queue::close`], [`Queue::iter`] |
//! | nobody keeps the others waiting by having much to do: fair by key | [`FairQueue`] |
//! | the items of a key one after the other, on any number of workers | [`FairQueue`] with [`Builder::serial`] |
//! | what is urgent first; what is for later, later | [`PriorityQueue`] |
//! | the first item of several queues | [`pop_any()`], [`hold_any()`] in transactions, or select among futures |
//! | look before taking | [`Transaction::peek`], [`Handle::peek_with`], [`Queue::peek_each`] |
//! | retry what failed later | [`Transaction::retry_after`], [`Builder::backoff`] |
//! | give up on what always fails | [`Builder::max_attempts`], [`Queue::dead_letters`], [`DeadLetters::requeue`] |
//! | take work back from a stuck worker | [`Builder::leased`], [`Transaction::renew`], [`Queue::recover`] |
//! | queue closures or futures and wait for what they return | [`Queue::submit`](Queue#method.submit), [`Queue::submit_async`](Queue#method.submit_async), [`Queue::wrap`](Queue#method.wrap), [`Job`] |
//! | workers that push to other queues, all or nothing | [`WorkersBuilder::run_with`] |
//! | wait until all work is done | [`Queue::wait_idle`](Queue#method.wait_idle) |
//! | no more than so many a second | [`Builder::pace`] with [`Pace`], which queues may share |
//! | no more than so many in work | [`Builder::max_held`] |
//! | stop giving out items for a while | [`Queue::pause`], [`Builder::paused`] |
//! | acknowledge deliveries elsewhere, as a broker does | [`Queue::begin_owned`] |
//! | see what is going on | [`Queue::stats`], [`Queue::held`], features `metrics` and `tracing` |
//!
//! # Handles and threads
//!
//! A [`Queue`] is `Send` and `Sync`, a [`Handle`] and a [`Transaction`] are `Send` but not `Sync`, all
//! where the items are `Send`. Make one handle for each thread or task; they are cheap, and may move
//! between threads. The queue lives as long as one of its clones or handles does; then the items left
//! are dropped. A handle that waits keeps its queue alive.
//!
//! # Order
//!
//! - Items pushed through one handle leave in that order, aborts apart.
//! - Of two pushes without a handle, the one that happens before the other leaves first.
//! - Between handles the order is best effort: consumers prefer the shard whose head is older, in
//!   steps of a segment of items.
//! - After an abort the items of the transaction come back in their order, before anything not yet
//!   delivered that came from the same handle. Changes made to them stay. Between two aborted
//!   transactions the order is free.
//!
//! # Other orders
//!
//! | type | the next item | pushes | pops |
//! |---|---|---|---|
//! | [`Queue`] | about the oldest | wait-free | lock-free |
//! | [`FairQueue`] | that of the key whose turn it is | a lock that few of the keys share | one lock for all |
//! | [`PriorityQueue`] | the ready one of the least priority | as in a [`Queue`] | one lock for all |
//!
//! Only which item is next differs: both deref to a [`Queue`], their handles are [`Handle`]s and their
//! transactions [`Transaction`]s. Waiting, bounds, closing, retries, leases, dead letters, workers and
//! counts are the same, and [`commit_all()`] goes over queues of any orders. Any of them can be
//! [paced](Builder::pace) and [paused](Queue::pause).
//!
//! ```
//! use requeue::{commit_all, FairQueue, PriorityQueue};
//!
//! let inbox = FairQueue::by(|job: &(&str, u16)| job.0); // in turn
//! let outbox = PriorityQueue::by_priority(); // the most urgent first
//! for job in [("alice", 3), ("alice", 2), ("bob", 1)] {
//!     inbox.push(job)?;
//! }
//! let (mut from, mut to) = (inbox.handle(), outbox.handle());
//! while !inbox.is_empty() {
//!     let (taking, giving) = (from.begin(), to.begin());
//!     let job = taking.pop()?;
//!     giving.push_with(job.1, None, job.0)?;
//!     commit_all((taking, giving)); // in one of them at any time
//! }
//! outbox.close();
//! assert!(outbox.iter().eq(["bob", "alice", "alice"]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Visibility
//!
//! The pushes of a commit become visible all at once: whoever has popped one of the items finds all
//! others, in all queues of a [`commit_all()`]. What a thread did before it committed a push happens
//! before what another does after it popped the item.
//!
//! # Transactions
//!
//! Nobody sees what a transaction holds, and nobody, the transaction included, sees what it has
//! staged. It ends by [`Transaction::commit`], by [`Transaction::abort`], or by being dropped, which
//! aborts. A transaction that is leaked by [`std::mem::forget`] stays open until its handle is used
//! again or dropped; then it aborts too. An [`Item`] is a look at what its transaction holds: to drop it
//! gives nothing back, and what was dropped before a commit is committed too. Each abort counts in
//! [`Item::attempts`]. An abort cannot fail, nor can a commit; on a queue with [leases](#leases) there is
//! [`Transaction::try_commit`] instead.
//! Destructors, iterators and closures of the user run while nothing is half done, and
//! may use the same queue; if one panics, no other item is lost or dropped twice.
//!
//! # Failed deliveries
//!
//! A delivery has failed when the transaction that held the item ends without a commit, by whatever way:
//! see [`Reason`]. A look and a cancelled wait are no deliveries. What then becomes of the item:
//!
//! | if | it goes |
//! |---|---|
//! | it was delivered [as often as it may](Builder::max_attempts), or its worker [gave it up](Transaction::fail) | to the [dead letters](Queue::dead_letters), if there is a [place](Builder::max_dead_letters) |
//! | else, if its worker [retried](Transaction::retry_after) it, or the queue has a [backoff](Builder::backoff), or a run of [`Workers`] failed | out of the way until it is due, then to the head |
//! | else | back to the head at once |
//!
//! ```
//! use requeue::{Backoff, ManualClock, Queue, Reason};
//! use std::time::Duration;
//!
//! let clock = ManualClock::new(); // in tests; without it, the system's
//! let queue = Queue::builder()
//!     .max_attempts(3)
//!     .backoff(Backoff::exponential(Duration::from_secs(1), Duration::from_secs(60)))
//!     .clock(clock.clone())
//!     .build();
//! queue.push("poison")?;
//! let mut worker = queue.handle();
//! for delay in [1, 2, 0] {
//!     let tx = worker.begin();
//!     let _job = tx.pop()?;
//!     drop(tx); // failed
//!     clock.advance(Duration::from_secs(delay));
//! }
//! let letter = queue.dead_letters().next().unwrap();
//! assert_eq!((letter.item, letter.attempts, letter.reason), ("poison", 3, Reason::Aborted));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Delayed items are counted by [`Stats::delayed`]. They keep their place in a bounded queue, and a closed
//! queue waits for them; dead letters do neither. What is due goes before what is ready in the shards. Items
//! that are found due together come in the order of their times; those found due later go before them, if
//! they are still there.
//!
//! # Time
//!
//! A queue reads a clock only where it needs one: for delays, schedules, paces that limit, leases, times
//! that it keeps, handles with names, and timeouts. [`Builder::clock`] replaces the system's; a
//! [`ManualClock`] makes tests that do not sleep. A [`Clock`] also wakes tasks; one that goes backwards
//! makes delays longer and loses nothing.
//!
//! What is due is put at the head by whoever pops, waits, or looks at the queue. A thread that waits
//! sleeps no longer than until then, one of them for all, so no thread of the crate is needed. A task
//! cannot, so the clock calls its waker; for the system's clock one thread does so for the whole process,
//! from the first task on that waits while something is delayed.
//!
//! # Leases
//!
//! What a worker holds cannot be taken from it, since it may be using it. A queue of items that can be
//! cloned may be built to [lease](Builder::leased) them: then a transaction holds items for a term, and
//! what is over goes to others, as a copy. The late transaction can still be aborted, but not be committed:
//! [`Transaction::try_commit`] says [`Expired`]. So at most one delivery of an item is committed. That a queue leases
//! its items is part of its type, [`Leased`]: its transactions have no [`Transaction::commit`], which never fails.
//! [`Transaction::renew`] starts the term anew, and [`Queue::recover`] takes back what one worker took
//! before some time, whatever its term.
//!
//! # Workers
//!
//! [`Workers`] are a pool of threads that wait for items and run a function on each, in a transaction: `Ok`
//! commits, `Err` and a panic give back, and the worker lives on. What failed is delivered again after 10
//! milliseconds, doubled with each failure up to a second, unless the queue has a [backoff](Builder::backoff)
//! of its own; [`WorkersBuilder::on_error`] is told the errors. With feature `tokio` they may be tasks.
//!
//! ```
//! use requeue::{Queue, Workers};
//! use std::time::Duration;
//!
//! let queue = Queue::unbounded();
//! queue.handle().push_batch(["a.png", "broken", "b.png"])?;
//! queue.close();
//! let workers = Workers::builder(&queue)
//!     .threads(2)
//!     .on_panic(|worker, _| eprintln!("{worker} panicked"))
//!     .run(|file, tx| match file.strip_suffix(".png") {
//!         Some(_) => Ok(()),
//!         None if file.attempts() > 1 => Ok(()), // give up
//!         None => tx.retry_after(file, Duration::from_millis(1)),
//!     });
//! assert_eq!(workers.join().done, 4);
//! queue.stats().check()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Emptiness and counts
//!
//! [`PopError::Empty`] and [`Queue::is_empty`] are strict: at some instant during the call nothing
//! was ready. [`Queue::len`] and [`Stats`] are approximate while others work and exact at rest; they
//! never underflow.
//!
//! # Waiting, cancel safety
//!
//! Threads and tasks wait in one line for each queue. A thread parks; a future registers its waker
//! and needs no particular runtime. No wait uses the processor but for a few microseconds at its
//! beginning. Everything that makes an item ready wakes: pushes, commits, aborts, and the end of a
//! handle that had a forgotten transaction. n items wake n waiters, or all if there are fewer.
//!
//! ```
//! use requeue::{PopError, Queue};
//! use std::thread;
//!
//! let queue = Queue::unbounded();
//! let mut worker = queue.handle();
//! let done = thread::spawn(move || {
//!     let mut sum = 0;
//!     loop {
//!         let tx = worker.begin();
//!         match tx.pop_blocking() {
//!             Ok(job) => sum += *job, // a panic here would give the job back
//!             Err(PopError::Closed) => return sum,
//!             Err(PopError::Empty) => unreachable!("this transaction holds nothing yet"),
//!         }
//!         tx.commit();
//!     }
//! });
//! queue.push(1)?;
//! queue.push(2)?;
//! queue.close();
//! assert_eq!(done.join().unwrap(), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Who came first is woken first. A newcomer may be faster than a waiter that is on its way, but only
//! once: when a waiter that was woken in vain is woken again, newcomers that wait leave it the one it was
//! woken for. Calls that do not wait may overtake at any time; a plain pop yields a few times before it
//! does. Nobody waits for a key that is at its [limit](Builder::key_capacity): such a push is
//! [`PushError::Full`] at once, also in the forms that wait, and if that is found out only after it has waited for the
//! room of the queue, its turn goes to the next.
//!
//! A timeout of zero tries once, [`Duration::MAX`](std::time::Duration::MAX) waits for ever, and what
//! arrives wins over the deadline.
//!
//! Every future may be dropped at any point: no item is lost, and a wake-up that it had goes to the
//! next waiter. A future that pops takes an item only when it is ready; a batch of pops takes what it
//! finds at each poll, and has put that into its caller's `Vec`, or its transaction holds it. One that pushes
//! drops its item if it is dropped, and the item was not pushed. A future that is leaked by
//! [`std::mem::forget`] keeps its place in the wait queue until its handle is used again or dropped, or its
//! transaction ends.
//!
//! A future that is woken and neither polled nor dropped keeps its wake-up: the item for which it was woken
//! is there for every call that looks, but no other waiter is woken for it. So poll or drop futures: one that
//! is pinned outside a `select!` loop is neither, while another branch runs for long. This cannot happen to
//! calls that block, to futures that are awaited where they are made, to those that `select!` drops when another
//! branch is first, nor to [`Workers`]. What becomes ready with time, such as a delayed item or the next start of
//! a pace, is safe from it: 100 ms after it was due all who wait are woken.
//!
//! A [`Transaction`] may live across an `.await`. While a future lives that it has made, the future
//! [borrows it](Transaction#borrowing), and its methods by `&self` panic. [`Transaction::commit`], [`Transaction::abort`]
//! and dropping it need the future gone, which the compiler checks.
//!
//! Wakers are user code: they are called when nothing is half done, and may use the same queue. If
//! one panics, the panic is caught, and the next waiter is woken instead.
//!
//! # Bounded queues
//!
//! [`Queue::bounded`] sets how many items a queue takes. What counts are the ready items, and for
//! each open transaction those it holds or those it has staged, whichever are more. So a transaction
//! may push as many items as it holds even when the queue is full, and a commit or an abort never
//! fails for lack of room. That sum never exceeds the capacity.
//!
//! ```
//! use requeue::Queue;
//!
//! let queue = Queue::bounded(2);
//! let mut handle = queue.handle();
//! handle.push_batch([1, 2])?;
//! assert!(handle.push(3).unwrap_err().is_full());
//!
//! let tx = handle.begin();
//! let job = tx.pop()?;
//! tx.push(*job * 10)?; // takes its place
//! assert!(tx.push(4).unwrap_err().is_full());
//! tx.commit();
//! assert_eq!(queue.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`PushError::Full`] says that at some instant of the call no room was free: it was taken by items,
//! or in the hands of another call, which for an instant may have more in hand than it uses. Room that
//! becomes free wakes those who wait for it, in their order. Two that each wait for room which only the
//! other's end would free wait for ever: two transactions, or a transaction and a batch that gathers
//! room. A push that could never fit is refused at once.
//!
//! # Pace
//!
//! A queue may be told how fast its items are started ([`Builder::pace`], [`Queue::set_pace`]), how many
//! may be held at once ([`Builder::max_held`]), and to give out none for a while ([`Queue::pause`]). Pushes
//! go on meanwhile. A pop that gets nothing for such a reason says [`PopError::Empty`]; one that waits
//! sleeps until it may go on, and those who wait are served in their order.
//!
//! ```
//! use requeue::{ManualClock, Pace, PopError, Queue};
//! use std::time::Duration;
//!
//! let clock = ManualClock::new();
//! let second = Duration::from_secs(1);
//! let queue = Queue::builder()
//!     .pace(Pace::rate(10, second).burst(2))
//!     .clock(clock.clone())
//!     .build();
//! queue.handle().push_batch(["a", "b", "c"])?;
//! assert_eq!((queue.pop()?, queue.pop()?), ("a", "b"));
//! assert_eq!(queue.pop(), Err(PopError::Empty));
//! clock.advance(second / 10);
//! assert_eq!(queue.pop()?, "c");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A turn of the pace is used by an item that is committed. One whose item is aborted, retried or forgotten is
//! given back, as far as its interval is not over; but without a burst no two starts are closer together than
//! the interval, whatever becomes of the items. Another pace counts from the last start on. Clones of a pace are the
//! same one, in any number of queues, and [`Pace::set_interval`] changes it for all of them;
//! one that is refused a turn because another queue had it tries again when that would have been over,
//! also if it comes back earlier. A [`Limiter`] in a store serves several processes. A pop on a queue with a
//! pace that limits reads the clock; one that does not limit costs next to nothing.
//!
//! # Closing and draining
//!
//! After [`Queue::close`] pushes fail with [`PushError::Closed`], those of open transactions too;
//! what these have staged before they still commit. Pops take out what is left, what is aborted later
//! included. They say [`PopError::Closed`] when nothing is ready and no transaction holds or has
//! staged anything; until then a plain pop says [`PopError::Empty`], and one that waits goes on
//! waiting. A push that races with the close says `Ok`, and somebody receives the item, or `Closed`,
//! and nobody does.
//!
//! ```
//! use requeue::{PopError, Queue};
//!
//! let queue = Queue::unbounded();
//! let mut worker = queue.handle();
//! queue.push("last job")?;
//! let tx = worker.begin();
//! let _job = tx.pop()?;
//!
//! queue.close();
//! assert_eq!(queue.push("too late").unwrap_err().into_inner(), "too late");
//! assert_eq!(queue.pop(), Err(PopError::Empty)); // the job may come back
//! tx.abort();
//! assert_eq!(queue.iter().collect::<Vec<_>>(), ["last job"]);
//! assert_eq!(queue.pop(), Err(PopError::Closed));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A pop that waits inside a transaction which itself holds or has staged something gets
//! [`PopError::Empty`] at once if the queue is closed and nothing is ready: two of them would wait
//! for each other. Dropping queues and handles closes nothing. A transaction that is forgotten keeps
//! a closed queue from its end until its handle is used or dropped.
//!
//! # Batches
//!
//! A batch of pushes is one transaction: all items become ready at once, or all come back. In a
//! bounded queue [`Handle::push_batch_blocking`] waits until there is room for all of them. The first
//! in the wait queue keeps what room it gets until it has enough, so small pushes that wait do not keep a
//! large batch out for ever. A batch of more items than the capacity is refused at once.
//! [`Transaction::push_batch`] stages all items of a batch, or none.
//!
//! A batch of pops takes what is there, up to a maximum, from as many shards as it needs. The forms
//! that wait do so until they have a minimum, but not beyond their timeout; what they take meanwhile
//! is theirs.
//!
//! ```
//! use requeue::Queue;
//! use std::time::Duration;
//!
//! let queue = Queue::unbounded();
//! let mut handle = queue.handle();
//! handle.push_batch(["a", "b", "c"])?;
//! let tx = handle.begin();
//! let jobs = tx.pop_batch_timeout(2, 100, Duration::from_secs(1));
//! assert_eq!(jobs.len(), 3); // at least 2, at most 100
//! tx.commit();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Selecting
//!
//! A task selects among the futures of several handles by any `select!`: those that were not first
//! lose nothing when they are dropped. A thread that waits for several queues of one item type calls
//! [`pop_any()`], or [`hold_any()`] with a transaction of each; earlier queues go before later ones.
//!
//! ```
//! use requeue::{pop_any, Queue};
//!
//! let (urgent, normal) = (Queue::unbounded(), Queue::unbounded());
//! let mut handles = [urgent.handle(), normal.handle()];
//! normal.push("sweep")?;
//! assert_eq!(pop_any(&mut handles)?, (1, "sweep"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Progress
//!
//! *Wait-free* and *lock-free* have their usual meaning (Herlihy, "Wait-free synchronization", 1991), the
//! allocator and the system's calls excepted. The first eight rows say what a queue does that is neither
//! paced nor limited in what is held, has no leases and no handle with a name, keeps no times, and has nobody
//! who waits. Then no operation in them takes a lock, and a thread that stalls or dies in one of them delays
//! nobody else.
//!
//! | operation | progress | shared writes |
//! |---|---|---|
//! | push, commit through a handle | wait-free | one store |
//! | pop, hold | lock-free | one read-modify-write for up to a segment of items |
//! | abort | lock-free | two read-modify-writes for each shard it took from |
//! | abort with dead letters or delays | lock-free, unless there are [too many letters](Builder::on_dead_overflow) | two read-modify-writes more for each such item |
//! | [`commit_all()`] | lock-free | four stores a queue |
//! | push, pop without a handle | lock-free | three read-modify-writes |
//! | push on a bounded queue | lock-free | one store for the permit; when the handle has none ahead, a search |
//! | pop on a bounded queue | lock-free | one store to give the permit back |
//!
//! What takes a lock holds it for some instructions, or for as many items as it says. A thread that is stopped in
//! them delays those that take the same lock:
//!
//! | what | whose lock | delays |
//! |---|---|---|
//! | a waiter that enters, asks or leaves; whoever publishes while somebody waits; [`Queue::close`] | that of the wait queue | those who wait, and those who would wake them |
//! | a pop while something is due | tries that of what is delayed, and goes on without | what is due |
//! | a pop on a queue with a [pace](Builder::pace) | those of the pace | pops of its queues |
//! | the first item of a transaction of a handle with a name, or where times are kept | one of the handle's own | [`Queue::held`], and the other way round |
//! | a pop, a renewal and an end of a transaction on a queue with leases | one of the handle's own | who takes back what is over, and the other way round |
//! | a pop on a [`FairQueue`] or a [`PriorityQueue`], for the items that have come since the last one too | that of the order | all pops of the queue |
//! | a push on a [`FairQueue`], and the commit of what was held | that of one of 128 tables of keys | pushes and commits of the keys there |
//! | a push with a time on a [`PriorityQueue`] | that of one of eight tables of times | others of the same table |
//! | an abort that makes [too many](Builder::on_dead_overflow) dead letters; who takes letters out | that of the letters | others of them |
//! | [`Queue::begin_owned`], and the end of such a transaction | that of the pool of handles | others of them |
//! | a handle with a name, or where times are kept, that is made or dropped; [`Queue::held`], [`Queue::recover`] | that of the list of such handles | others of them |
//!
//! User code runs under none of these locks, except the `Eq` of a key, which runs under that of a table while
//! nothing is half done. The allocator may run under all of them: it must not use queues itself.
//!
//! # Memory
//!
//! A slot costs the size of its item. A drained queue gives its memory back, but for a segment of
//! about 2 KiB for each live handle that has pushed and at most one for each that has popped, and some
//! 700 bytes of bookkeeping, in a bounded queue 400 more, for each of the most handles that were alive at
//! the same time; room for these is made for twice as many at a time. A waiter costs about 64 bytes while it waits, a delayed item or a dead letter its own
//! size and some 40 bytes, an item with a time or another order sixteen bytes more, and one on lease its copy. A transaction
//! that stays open holds back its own items only.
//!
//! # Trade-offs
//!
//! - Order between handles is given up. If you need one global FIFO, use a channel or
//!   `crossbeam_queue::SegQueue`, or push without handles, at their speed.
//! - An Empty answer looks twice at every shard in use, so polling an empty queue costs in proportion to the
//!   number of live handles that have pushed; wait instead. In a bounded queue the same holds for Full.
//!   What handles left behind that were dropped is skipped once it is empty, at a look at a word for each 32 of
//!   them. [`Queue::stats`] adds up the counts of all handles that were ever alive at the same time.
//! - While somebody waits, and for some pushes after, each push passes a full fence. On Linux the first
//!   waiter after a quiet time makes all running threads of the process pass one (`membarrier`), and so
//!   does a push that takes room from what another handle has taken ahead. Elsewhere every push and
//!   commit passes a full fence.
//! - A bounded queue costs a store for each push and pop, and is slowest when it is nearly full: then
//!   handles search for room one by one.
//! - Items are moved twice by a transaction, once by a plain pop: box large ones.
//! - Positions are 64-bit words; the crate builds on 64-bit targets only.
//!
//! # How it works, and how it is verified
//!
//! See `docs/protocol.md` in the repository, which is part of this documentation as [`protocol`]:
//! loom models with checked tables of weakened orderings, shuttle schedules, a differential fuzz target,
//! stress tests with a history checker, `AddressSanitizer`.
//!
//! # Features and supported Rust
//!
//! | feature | what it adds |
//! |---|---|
//! | `tokio` | workers as tasks of tokio: `WorkersBuilder::run_async` |
//! | `metrics` | queues with a [name](Builder::name) tell the crate `metrics`: histograms `requeue_attempts`, `requeue_wait_seconds` (with [times](Builder::timestamps)), `requeue_hold_seconds` of transactions; with each [`Queue::stats`] the counters `requeue_{pushed,committed,aborted,expired,dead}_total` and the gauges `requeue_{ready,held,delayed,waiting,oldest_seconds}`; all labelled `queue` |
//! | `tracing` | queues with a name tell subscribers of `tracing`, with the target `requeue`: retries, dead letters, leases that are over, the close |
//! | `stream` | `Handle::stream`, a `futures_core::Stream` of items, and `Handle::sink`, a `futures_sink::Sink` for them; `into_stream` and `into_sink` with the handle |
//!
//! No feature is on by default; the futures need none. The minimum supported Rust version is 1.75;
//! raising it is a minor release.

#[cfg(not(target_pointer_width = "64"))]
compile_error!("requeue builds on 64-bit targets only: its positions are 64-bit words");

mod bound;
pub mod channel;
mod core;
pub mod error;
pub mod future;
mod handle;
mod item;
mod order;
mod policy;
mod queue;
mod rate;
mod raw;
mod select;
mod stats;
#[cfg(feature = "stream")]
mod stream;
mod sync;
pub mod time;
mod transaction;
mod wait;
#[cfg(not(any(loom, shuttle)))]
pub mod workers;

/// Queues that are fair by key: no key waits for another one that has more items.
///
/// A [`FairQueue`] is a [`Queue`] in the order [`ByKey`]; it is made by
/// [`FairQueue::by`] or [`Builder::fair_by`].
pub mod fair {
    pub use crate::order::fair::{ByKey, Keyed};
    pub use crate::queue::fair::{FairQueue, FairSnapshot};
}

/// Queues by priority and schedule.
///
/// A [`PriorityQueue`] is a [`Queue`] in the order [`ByPriority`]; it is made
/// by [`PriorityQueue::by_priority`] or [`Builder::by_priority`].
pub mod priority {
    pub use crate::order::priority::{ByPriority, Prioritized, Ticket};
    pub use crate::queue::priority::{
        OutOfRange, PriorityError, PriorityQueue, PushTo, PushWith, PushWithAsync,
    };
}

#[cfg(any(doc, doctest))]
#[doc = include_str!("../docs/protocol.md")]
pub mod protocol {}

/// Keeps the example of the README true.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

pub use error::{Expired, PopError, PushError, Reason};
pub use future::{PopAsync, PushAsync, PushBatchAsync, StageAsync, TakeAsync};
pub use handle::Handle;
pub use item::{Item, Items};
pub use order::fair::{ByKey, Keyed};
pub use order::priority::{ByPriority, Prioritized, Ticket};
pub use order::{Fifo, Leased, Order, Unleased};
pub use policy::dead::DeadLetter;
pub use queue::fair::{FairQueue, FairSnapshot};
pub use queue::priority::{OutOfRange, PriorityError, PriorityQueue};
pub use queue::{Builder, DeadLetters, Drain, Iter, Queue};
pub use rate::{Limiter, Pace, RateSlot};
pub use select::{
    hold_any, hold_any_async, hold_any_timeout, pop_any, pop_any_async, pop_any_timeout,
};
pub use stats::{DeliveryId, Held, Imbalance, Stats};
#[cfg(feature = "stream")]
pub use stream::{PopStream, PushSink};
pub use time::{Backoff, Clock, ManualClock, SystemClock};
pub use transaction::{
    commit_all, try_commit_all, OwnedTaken, OwnedTransaction, Peek, Taken, Transaction,
    Transactions,
};
#[cfg(not(any(loom, shuttle)))]
pub use workers::{
    Failure, Job, JobError, Outcome, Report, WorkerState, WorkerStatus, Workers, WorkersBuilder,
};
#[cfg(all(feature = "tokio", not(any(loom, shuttle))))]
pub use workers::{TaskItem, TaskTransaction, Tasks};
