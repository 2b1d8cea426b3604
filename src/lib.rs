//! A lock-free, in-memory queue for many producers and many consumers whose dequeues are transactions.
//! A worker takes items inside a transaction; they stay invisible to others until it commits, and go
//! back to the head if it aborts, returns early or panics.
//!
//! Pops can wait for items and pushes for room, on threads and in async tasks. Failed items can be
//! retried with backoff, moved to a dead-letter queue after N attempts, or reclaimed from a stuck
//! worker. Statistics, metrics and tracing show what a queue is doing.
//!
//! Not provided: persistence, which the crate `requeue-durable` adds; a global order, which is the price
//! of the speed; and closing on drop: a queue is closed by a call, not by dropping its last producer.
//!
//! ```
//! use requeue::Queue;
//!
//! let queue = Queue::unbounded();
//! queue.push("fetch the page".to_string())?;
//! let mut worker = queue.handle();
//!
//! let tx = worker.begin();
//! let job = tx.pop()?; // held: invisible to others
//! tx.push(format!("parse: {}", *job))?; // staged: not visible yet
//! drop(tx); // aborts, as a return or a panic does: both are undone
//! assert_eq!(queue.len(), 1);
//!
//! let tx = worker.begin();
//! let job = tx.pop()?;
//! assert_eq!((job.as_str(), job.attempts()), ("fetch the page", 2));
//! tx.push(format!("parse: {}", *job))?;
//! tx.commit(); // both at once
//! assert_eq!(queue.pop()?, "parse: fetch the page");
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
//! | a channel, closed by dropping its last sender | [`channel::bounded()`], [`channel::unbounded()`] |
//! | many items at once | [`Handle::push_batch`], [`Handle::pop_batch`], [`Transaction::push_batch`], [`Transaction::pop_batch`] |
//! | wait on a thread | [`Handle::pop_blocking`], [`Handle::pop_timeout`], [`Transaction::pop_blocking`] |
//! | wait in a task | [`Handle::pop_async`], [`Transaction::pop_async`], with feature `stream` `Handle::stream` |
//! | wait for a minimum number of items | [`Handle::pop_batch_blocking`], [`Transaction::pop_batch_blocking`], [`Handle::pop_batch_async`] |
//! | at most N items | [`Queue::bounded`], [`Queue::builder`] |
//! | wait for room | [`Handle::push_blocking`], [`Handle::push_async`], [`Transaction::push_blocking`], with feature `stream` `Handle::sink` |
//! | threads or tasks that process a queue | [`Workers`], with feature `tokio` `Tasks` |
//! | closures and futures as items, and their results | [`Job`], [`Queue::submit`], [`Queue::submit_async`], [`Outcome`] |
//! | shut down gracefully | [`Queue::close`], [`Queue::iter`] |
//! | one busy tenant cannot starve the others: fair by key | [`FairQueue`] |
//! | the items of a key one at a time, on any number of workers | [`FairQueue`] with [`Builder::serial`] |
//! | urgent items first, scheduled items at their time | [`PriorityQueue`] |
//! | the first item of several queues | [`pop_any()`], [`hold_any()`] in transactions, or select among futures |
//! | peek before popping | [`Transaction::peek`], [`Handle::peek_with`], [`Queue::peek_each`] |
//! | retry failed items later | [`Transaction::retry_after`], [`Builder::backoff`] |
//! | give up on items that always fail | [`Builder::max_attempts`], [`Queue::dead_letters`], [`DeadLetters::requeue`] |
//! | take work back from a stuck worker | [`Builder::leased`], [`Transaction::renew`], [`Queue::recover`] |
//! | queue closures or futures and wait for their return values | [`Queue::submit`](Queue#method.submit), [`Queue::submit_async`](Queue#method.submit_async), [`Queue::wrap`](Queue#method.wrap), [`Job`] |
//! | workers that push to other queues, all or nothing | [`WorkersBuilder::run_with`] |
//! | wait until all work is done | [`Queue::wait_idle`](Queue#method.wait_idle) |
//! | at most N items started per second | [`Builder::pace`] with [`Pace`], which queues may share |
//! | at most N items in flight | [`Builder::max_held`] |
//! | stop delivering items for a while | [`Queue::pause`], [`Builder::paused`] |
//! | acknowledge deliveries elsewhere, as a broker does | [`Queue::begin_owned`] |
//! | observe a queue | [`Queue::stats`], [`Queue::held`], features `metrics` and `tracing` |
//!
//! # Handles and threads
//!
//! A [`Queue`] is `Send` and `Sync`, a [`Handle`] and a [`Transaction`] are `Send` but not `Sync`, if
//! the items are `Send`. Make one handle for each thread or task; handles are cheap and may move
//! between threads. A queue lives as long as any of its clones or handles; then the remaining items are
//! dropped. A waiting handle keeps its queue alive.
//!
//! # Order
//!
//! - Items pushed through one handle are popped in that order, except after aborts.
//! - Items that one thread pushes without a handle are popped in the order of the pushes.
//! - Between handles the order is best effort: consumers prefer the handle whose next item is older, and
//!   compare handles after [so many items](Builder::stickiness).
//! - After an abort the items of the transaction come back in their order, before all undelivered items
//!   of the same producer handle. Modifications to them are kept. The order between two aborted
//!   transactions is unspecified.
//!
//! # Other orders
//!
//! | type | the next item | pushes | pops |
//! |---|---|---|---|
//! | [`Queue`] | approximately the oldest | wait-free | lock-free |
//! | [`FairQueue`] | from the next key, round-robin | a lock shared by few of the keys | one lock for all |
//! | [`PriorityQueue`] | the ready item with the lowest priority value | as in a [`Queue`] | one lock for all |
//!
//! Only the order of delivery differs: [`FairQueue`] and [`PriorityQueue`] are [`Queue`]s, with the
//! same [`Handle`]s and [`Transaction`]s. Waiting, bounds, closing, retries, leases, dead letters,
//! workers and statistics are the same, and [`commit_all()`] spans queues of any orders. All of them
//! can be [paced](Builder::pace) and [paused](Queue::pause).
//!
//! ```
//! use requeue::{commit_all, FairQueue, PriorityQueue};
//!
//! let inbox = FairQueue::by(|job: &(&str, u16)| job.0); // round-robin by name
//! let outbox = PriorityQueue::by_priority(); // the most urgent first
//! for job in [("alice", 3), ("alice", 2), ("bob", 1)] {
//!     inbox.push(job)?;
//! }
//! let (mut from, mut to) = (inbox.handle(), outbox.handle());
//! while !inbox.is_empty() {
//!     let (taking, giving) = (from.begin(), to.begin());
//!     let job = taking.pop()?;
//!     giving.push_with(job.1, None, job.0)?;
//!     commit_all((taking, giving)); // atomic: always in exactly one of them
//! }
//! outbox.close();
//! assert!(outbox.iter().eq(["bob", "alice", "alice"]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Visibility
//!
//! The pushes of a commit become visible all at once: a thread that has popped one of the items can pop
//! all others, in all queues of a [`commit_all()`]. Everything a thread did before it committed a push
//! happens before everything another thread does after it popped the item.
//!
//! # Transactions
//!
//! Items that a transaction holds are invisible to others; items that it has staged are invisible to
//! all, the transaction included. It ends by [`Transaction::commit`], by [`Transaction::abort`], or by
//! being dropped, which aborts. A transaction leaked by [`std::mem::forget`] stays open until its
//! handle is used again or dropped; then it is aborted. An [`Item`] is a reference into its
//! transaction: dropping it gives nothing back, and the item is still committed with the transaction.
//! Each abort counts in [`Item::attempts`]. Neither an abort nor a commit can fail; a queue with
//! [leases](#leases) has [`Transaction::try_commit`] instead. User code (destructors, iterators,
//! closures) runs only while the queue is in a consistent state and may use the same queue; if it
//! panics, no other item is lost or dropped twice.
//!
//! # Failed deliveries
//!
//! A delivery has failed when the transaction that held the item ends without a commit, for whatever
//! [`Reason`]. A peek or a cancelled wait is not a delivery. The failed item goes:
//!
//! | if | to |
//! |---|---|
//! | it was delivered [`max_attempts`](Builder::max_attempts) times, or its worker [failed it](Transaction::fail) | the [dead letters](Queue::dead_letters), unless they are [full](Builder::max_dead_letters) |
//! | otherwise, if its worker [retried](Transaction::retry_after) it, the queue has a [backoff](Builder::backoff), or a run of [`Workers`] failed | the delayed items until it is due, then the head |
//! | otherwise | the head, at once |
//!
//! ```
//! use requeue::{Backoff, ManualClock, Queue, Reason};
//! use std::time::Duration;
//!
//! let clock = ManualClock::new(); // for tests; the default is the system clock
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
//! Delayed items are counted by [`Stats::delayed`]. They count toward the capacity of a bounded queue,
//! and a closed queue is not drained until they are delivered; neither applies to dead letters. Due
//! items are delivered before other ready items. Items found due together are delivered in the order of
//! their times; items found due later go before them, if they are still there.
//!
//! # Time
//!
//! A queue reads a clock only for delays, schedules, rate limits, leases, timestamps, named handles,
//! and timeouts. [`Builder::clock`] replaces the system clock; with a [`ManualClock`] tests need not
//! sleep. A [`Clock`] also wakes tasks; one that goes backwards lengthens delays and loses nothing.
//!
//! Due items are moved to the head by any call that pops, waits, or inspects the queue. Of the waiting
//! threads one sleeps until the next due time for all of them, so the crate needs no thread of its own.
//! Tasks are woken by the clock; the system clock uses one thread for the whole process, started when a
//! task first waits while something is delayed.
//!
//! # Leases
//!
//! An item cannot be taken from the worker that holds it, since the worker may be using it. A queue of
//! `Clone` items may be built to [lease](Builder::leased) them (a visibility timeout): a transaction
//! holds items for a term, and when it expires, a copy is delivered to another worker. The late
//! transaction can only be aborted: [`Transaction::try_commit`] returns [`Expired`]. So at most one
//! delivery of an item is committed. Leasing is part of the queue's type, [`Leased`], whose
//! transactions have no [`Transaction::commit`], since a commit may fail. [`Transaction::renew`]
//! restarts the term, and [`Queue::recover`] reclaims the items that a named worker took before a given
//! time, whatever their term.
//!
//! # Workers
//!
//! [`Workers`] are a pool of threads that wait for items and run a function on each, in a transaction:
//! `Ok` commits, `Err` and a panic abort, and the worker goes on with the next item. A failed item is
//! delivered again after 10 milliseconds, doubled with each failure up to a second, unless the queue
//! has a [backoff](Builder::backoff) of its own; [`WorkersBuilder::on_error`] receives the errors. With
//! feature `tokio` workers may be tasks.
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
//! [`PopError::Empty`] and [`Queue::is_empty`] are linearizable: the queue really was empty at some
//! point during the call. [`Queue::len`] and [`Stats`] are approximate under concurrency and exact at
//! rest; they never underflow.
//!
//! # Waiting, cancel safety
//!
//! Threads and tasks share one FIFO wait queue per queue. A thread parks; a future registers its waker
//! and needs no particular runtime. A wait spins for a few microseconds at its beginning and then uses
//! no processor time. Everything that makes an item ready wakes a waiter: pushes, commits, aborts, and
//! dropping a handle with a forgotten transaction. n items wake n waiters, or all if there are fewer.
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
//!             Err(PopError::Empty) => unreachable!("the transaction holds nothing yet"),
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
//! Waiters are woken in FIFO order, one per item. A newcomer that waits can overtake a woken waiter at
//! most once: when that waiter is woken again, newcomers that wait leave the item to it. Calls that do
//! not wait may overtake at any time; a plain pop yields a few times before it does. No call waits for
//! a key that is at its [limit](Builder::key_capacity): such a push returns [`PushError::Full`] at
//! once, also in the forms that wait; if the limit is found only after waiting for room in the queue,
//! the next waiter is woken instead.
//!
//! A timeout of zero tries once, [`Duration::MAX`](std::time::Duration::MAX) waits forever. Success
//! takes precedence over an elapsed timeout.
//!
//! Every future is cancel safe: no item is lost, and a pending wake-up is passed to the next waiter. A
//! future that pops takes an item only when it completes; one that pops a batch takes items at each
//! poll, and puts them into the caller's `Vec` or its transaction. Dropping a future that pushes drops
//! its item, which was not pushed. A future that is leaked by [`std::mem::forget`] keeps its place in
//! the wait queue until its handle is used again or dropped, or its transaction ends.
//!
//! A future that is woken and neither polled nor dropped keeps its wake-up: any other call can pop the
//! item for which it was woken, but no other waiter is woken for it. So poll or drop futures: one
//! pinned outside a `select!` loop is neither while another branch runs for long. This cannot happen to
//! blocking calls, to futures awaited where they are made, to futures that `select!` drops when another
//! branch completes, nor to [`Workers`]. Items that become ready with time, such as delayed ones or the
//! next start of a rate limit, are not affected: 100 ms after the due time all waiters are woken.
//!
//! A [`Transaction`] may be held across an `.await`. While one of its futures is alive, the future
//! [borrows it](Transaction#borrowing), and its methods by `&self` panic. [`Transaction::commit`],
//! [`Transaction::abort`] and dropping it require that the future is gone, which the compiler checks.
//!
//! Wakers are user code: they are called only while the queue is in a consistent state, and may use the
//! same queue. If one panics, the panic is caught, and the next waiter is woken instead.
//!
//! # Bounded queues
//!
//! [`Queue::bounded`] sets the capacity of a queue. The ready items count toward it, plus, for each
//! open transaction, the larger of the numbers it holds and has staged. So a transaction may push as
//! many items as it holds even when the queue is full, and a commit or an abort never fails for lack of
//! room. The sum never exceeds the capacity.
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
//! tx.push(*job * 10)?; // uses the permit of `job`
//! assert!(tx.push(4).unwrap_err().is_full());
//! tx.commit();
//! assert_eq!(queue.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`PushError::Full`] means that at some point during the call no room was free: it was taken by
//! items, or reserved by another call in progress, which may briefly reserve more than it uses. Waiters
//! for room are woken in FIFO order as room becomes free. Two transactions, or a transaction and a
//! batch that gathers room, deadlock if each waits for room that only the end of the other would free.
//! A push that could never fit is refused at once.
//!
//! # Pace
//!
//! A queue can limit the rate at which items are started ([`Builder::pace`], [`Queue::set_pace`]) and
//! the number in flight ([`Builder::max_held`]), and can be paused ([`Queue::pause`]). Pushes are not
//! affected. A pop that is refused for such a reason returns [`PopError::Empty`]; one that waits sleeps
//! until it is allowed, and waiters are served in FIFO order.
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
//! A committed item spends a token of the rate limit. The token of an item that is aborted, retried or
//! forgotten is returned if its interval is not over; but without a burst no two starts are closer
//! together than the interval, whatever happens to the items. A new pace counts from the last start on.
//! Clones of a pace share one limit, in any number of queues, and [`Pace::set_interval`] changes it for
//! all of them; a pop that is refused a token because another queue took it tries again after its
//! interval, even if it is returned earlier. A [`Limiter`] in a store serves several processes, and can limit the
//! items in flight, since it is told of [each commit](Limiter::spend). A pop
//! on a rate-limited queue reads the clock; an unlimited pace costs next to nothing.
//!
//! # Closing and draining
//!
//! After [`Queue::close`] pushes fail with [`PushError::Closed`], except those of a transaction that
//! holds an item of the queue; items staged before are still committed. Pops take the remaining items,
//! those aborted later included. They return [`PopError::Closed`] when nothing is ready or delayed and
//! no transaction holds or has staged anything; until then a plain pop returns [`PopError::Empty`], and
//! one that waits goes on waiting. A push that races with the close either returns `Ok`, and the item
//! can be popped, or `Closed`, and it cannot.
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
//! A waiting pop in a transaction that itself holds or has staged something returns [`PopError::Empty`]
//! at once if the queue is closed and nothing is ready: two such transactions would wait for each
//! other. Dropping queues and handles closes nothing. A forgotten transaction keeps a closed queue from
//! being drained until its handle is used or dropped.
//!
//! # Batches
//!
//! A batch of pushes is one transaction: all items become ready at once, or all come back. In a bounded
//! queue [`Handle::push_batch_blocking`] waits until there is room for all of them. The first waiter
//! keeps the room it gets until it has enough, so small pushes that wait cannot starve a large batch. A
//! batch larger than the capacity is refused at once. [`Transaction::push_batch`] stages all items of a
//! batch, or none.
//!
//! A batch of pops takes the ready items, up to a maximum, from as many shards as needed. The forms
//! that wait do so until they have a minimum, or until the timeout; items are taken as they arrive.
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
//! A task selects among the futures of several handles with any `select!`: the futures dropped by it
//! lose nothing. A thread that waits for several queues of one item type calls [`pop_any()`], or
//! [`hold_any()`] with a transaction of each; earlier queues take precedence.
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
//! *Wait-free* and *lock-free* have their usual meaning (Herlihy, "Wait-free synchronization", 1991),
//! the allocator and system calls excepted. The first table applies to a queue without rate limit,
//! `max_held`, leases, named handles, timestamps and current waiters. Its operations take no lock, and
//! a thread that stalls or dies in one of them delays no other thread.
//!
//! | operation | progress | shared writes |
//! |---|---|---|
//! | push, commit through a handle | wait-free | one store |
//! | pop, hold | lock-free | one read-modify-write for up to a segment of items |
//! | abort | lock-free | two read-modify-writes for each shard it took from |
//! | abort with dead letters or delays | lock-free, unless the [dead letters overflow](Builder::on_dead_overflow) | two more read-modify-writes for each such item |
//! | [`commit_all()`] | lock-free | four stores per queue |
//! | push, pop without a handle | as with one, after the first call of a thread | as with a handle |
//! | push on a bounded queue | lock-free | one store for the permit; a search if the handle has none cached |
//! | pop on a bounded queue | lock-free | one store to return the permit |
//!
//! Other operations take a lock, for some instructions or for the stated number of items. A thread that
//! stalls in one of them delays those that take the same lock:
//!
//! | operation | lock | delays |
//! |---|---|---|
//! | entering, polling or leaving the wait queue; publishing while there are waiters; [`Queue::close`] | of the wait queue | waiters, and calls that would wake them |
//! | a pop while something is due | of the delayed items, by `try_lock` | due items |
//! | a pop on a queue with a [pace](Builder::pace) | of the pace | pops of all queues with this pace |
//! | the first item of a transaction, with a named handle or timestamps, on another thread than the one before | of the handle | [`Queue::held`], and vice versa |
//! | a pop, a renewal and the end of a transaction on a queue with leases | of the handle | calls that reclaim expired items, and vice versa |
//! | a pop on a [`FairQueue`] or a [`PriorityQueue`], which also sorts in the items pushed since the last one | of the order | all pops of the queue |
//! | a push on a [`FairQueue`], and the commit of held items | of one of 128 tables of keys | pushes and commits of the keys in it |
//! | a push with a time on a [`PriorityQueue`] | of one of eight tables of times | such pushes with the same table |
//! | an abort that makes the dead letters [overflow](Builder::on_dead_overflow); taking letters out | of the letters | each other |
//! | [`Queue::begin_owned`], and the end of such a transaction | of the pool of handles | each other |
//! | making or dropping a handle that is named or belongs to a queue with timestamps; [`Queue::held`], [`Queue::recover`] | of the list of such handles | each other |
//!
//! No user code runs under these locks, except the `Eq` of a key, which runs under the lock of a
//! consistent table. The allocator may run under all of them and must not use queues itself.
//!
//! # Memory
//!
//! A slot costs the size of its item. A drained queue frees its memory, except a segment of about 2 KiB
//! for each live handle that has pushed and at most one for each that has popped, and some 700 bytes of
//! bookkeeping (400 more in a bounded queue) for each handle of the largest number alive at the same
//! time; this grows by doubling. A waiter costs about 64 bytes while it waits, a delayed item or a dead
//! letter its own size and some 40 bytes, an item with a timestamp or another order sixteen bytes more,
//! and a leased one its copy; an item in order of priority costs forty more, and up to four times that where each
//! has a priority of its own. An open transaction retains only its own items, and a handle up to 32 KiB of blocks for
//! the items of the next ones, after large ones.
//!
//! # Trade-offs
//!
//! - There is no order between handles. If you need one global FIFO, use a channel or
//!   `crossbeam_queue::SegQueue`, or push without handles, at the speed of those.
//! - Returning `Empty` reads the shard of each handle twice that has pushed lately. Idle handles cost nothing after a few
//!   pops that found nothing, on Linux; elsewhere only those that never pushed or were dropped. The next push of an idle
//!   handle takes some ten nanoseconds more. In a bounded queue `Full` reads the permits of all living handles.
//!   [`Queue::stats`] adds up the counts of all handles that were ever alive at the same time.
//! - While there are waiters, and for some pushes after, each push executes a full fence. On Linux the
//!   first waiter after a time without waiters makes all running threads of the process execute one
//!   (`membarrier`), and so does a push that revokes permits cached by another handle. Elsewhere every
//!   push and commit executes a full fence.
//! - A bound costs a store for each push and pop. It is slowest when the queue is nearly full: then
//!   each push searches for a permit.
//! - A transaction moves an item twice, a plain pop once: box large ones.
//! - Positions are 64-bit words; the crate builds on 64-bit targets only.
//!
//! # How it works, and how it is verified
//!
//! See `docs/protocol.md` in the repository, included here as [`protocol`]. The tests are loom models
//! with checked tables of weakened orderings, shuttle schedules, a differential fuzz target, stress
//! tests with a history checker, and `AddressSanitizer`.
//!
//! # Features and supported Rust
//!
//! | feature | what it adds |
//! |---|---|
//! | `tokio` | workers as tasks of tokio: `WorkersBuilder::run_async` |
//! | `metrics` | queues with a [name](Builder::name) emit to the crate `metrics`: histograms `requeue_attempts`, `requeue_wait_seconds` (with [times](Builder::timestamps)), `requeue_hold_seconds` of transactions; with each [`Queue::stats`] the counters `requeue_{pushed,committed,aborted,expired,dead}_total` and the gauges `requeue_{ready,held,delayed,waiting,oldest_seconds}`; all labelled `queue` |
//! | `tracing` | queues with a name emit events with the target `requeue`: retries, dead letters, expired leases, closing |
//! | `stream` | `Handle::stream`, a `futures_core::Stream` of items, and `Handle::sink`, a `futures_sink::Sink` for them; `into_stream` and `into_sink` own the handle |
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

/// The part of [`workers`] that has a model.
#[cfg(all(loom, test))]
#[path = "workers/progress.rs"]
mod progress;

/// Queues that are fair by key: a key with many items cannot starve the others.
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

/// Runs the examples of the README as doc tests.
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
pub use rate::{Limiter, Pace, RateSlot, WeakPace};
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
