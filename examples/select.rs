//! Receives from several queues: in a `tokio::select!`, in a `futures::select!`, and on a thread with
//! `requeue::pop_any`.
//!
//! Run it with `cargo run --release --example select`.

use std::env;
use std::process::ExitCode;

use futures::FutureExt;
use requeue::{pop_any, Handle, PopError, Queue};
use tokio::sync::Notify;

const USAGE: &str = "\
Usage: select

Waits for the first of several queues: in tokio::select!, in futures::select!,
and on a thread with pop_any.

Options:
  -h, --help  print this help

Exit codes: 0 nothing was lost, 2 a bad argument.
";

type Orders = Queue<&'static str>;

fn main() -> ExitCode {
    if let Some(answer) = answer_to(env::args().nth(1).as_deref()) {
        return answer;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime on this thread");
    runtime.block_on(with_tokio());
    futures::executor::block_on(with_futures());
    on_a_thread();
    println!("nothing was lost");
    ExitCode::SUCCESS
}

/// Handles the arguments: `None` if there are none.
fn answer_to(argument: Option<&str>) -> Option<ExitCode> {
    match argument? {
        "-h" | "--help" => {
            print!("{USAGE}");
            Some(ExitCode::SUCCESS)
        }
        other => {
            eprintln!("select: what is \"{other}\"?\n\n{}", USAGE.trim_end());
            Some(ExitCode::from(2))
        }
    }
}

/// Orders take precedence over returns. The losing future is dropped, which loses no item.
async fn with_tokio() {
    let (orders, returns) = (Orders::unbounded(), Orders::unbounded());
    let (mut new, mut back) = (orders.handle(), returns.handle());
    let taken = Notify::new();
    let customers = async {
        returns.push("a boot").expect("returns are open");
        taken.notified().await;
        returns.push("a glove").expect("returns are open");
        orders.push("a hat").expect("orders are open");
        orders.close();
        returns.close();
    };
    let desk = async {
        let mut seen = Vec::new();
        loop {
            let next = tokio::select! {
                biased;
                Ok(order) = new.pop_async() => ("sell", order),
                Ok(item) = back.pop_async() => ("take back", item),
                else => break seen, // both are closed and drained
            };
            println!("tokio::select!: {} {}", next.0, next.1);
            seen.push(next);
            taken.notify_one();
        }
    };
    let (seen, ()) = tokio::join!(desk, customers);
    let [boot, hat, glove] = seen[..] else {
        panic!("three were pushed: {seen:?}")
    };
    assert_eq!(boot, ("take back", "a boot"));
    assert_eq!(hat, ("sell", "a hat"));
    assert_eq!(glove, ("take back", "a glove"));
}

/// The same without a runtime; the futures are fused.
async fn with_futures() {
    let (orders, returns) = (Orders::unbounded(), Orders::unbounded());
    let (mut new, mut back) = (orders.handle(), returns.handle());
    let belt = async { orders.push("a belt").expect("orders are open") };
    let (sold, ()) = futures::join!(first(&mut new, &mut back), belt);
    assert_eq!(sold, ("sell", "a belt"));

    let scarf = async { returns.push("a scarf").expect("returns are open") };
    let (taken_back, ()) = futures::join!(first(&mut new, &mut back), scarf);
    assert_eq!(taken_back, ("take back", "a scarf"));
    assert!(orders.is_empty() && returns.is_empty());
}

async fn first(
    new: &mut Handle<&'static str>,
    back: &mut Handle<&'static str>,
) -> (&'static str, &'static str) {
    let (verb, item) = futures::select! {
        order = new.pop_async().fuse() => ("sell", order),
        item = back.pop_async().fuse() => ("take back", item),
    };
    let item = item.expect("nobody closes");
    println!("futures::select!: {verb} {item}");
    (verb, item)
}

/// A thread that waits for several queues at once, until all of them are closed and drained.
fn on_a_thread() {
    let (orders, returns) = (Orders::unbounded(), Orders::unbounded());
    let mut handles = [orders.handle(), returns.handle()];
    let desk = std::thread::spawn(move || {
        let mut counts = [0, 0];
        loop {
            match pop_any(&mut handles) {
                Ok((queue, item)) => {
                    println!("pop_any: {item} from queue {queue}");
                    counts[queue] += 1;
                }
                Err(PopError::Closed) => return counts,
                Err(PopError::Empty) => unreachable!("it waits"),
            }
        }
    });
    for item in ["a coat", "a sock"] {
        orders.push(item).expect("orders are open");
    }
    returns.push("a shoe").expect("returns are open");
    orders.close();
    returns.close();
    assert_eq!(desk.join().expect("the desk does not panic"), [2, 1]);
}
