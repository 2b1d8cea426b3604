//! A shop without a web page: worker processes pay orders and send receipts, and are killed while they do.
//!
//! `cargo run --release -p requeue-postgres --example orders [KILLS]` starts a server in a temporary folder and four worker
//! processes. It kills a random one of them 300 times (`kill -9`), cuts a connection at every fifth kill, and then compares jobs
//! with rows: each order is paid once, and has one receipt. `shop.rs` is what a program of one's own looks like.

mod check;
#[allow(dead_code, unreachable_pub)] // the tests use more of it
#[path = "../../tests/it/server.rs"]
mod server;
mod shop;
mod worker;

use requeue_postgres::Error;
use server::Server;
use shop::Shop;
use std::process::ExitCode;
use worker::Worker;

const WORKERS: usize = 4;
const ORDERS_PER_KILL: i64 = 10;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ended = match arguments[..] {
        [worker::ARGUMENT, url] => worker::run(url).await.map(|()| true),
        [] => sell(300).await,
        [kills] => match kills.parse() {
            Ok(kills) => sell(kills).await,
            Err(_) => return usage(),
        },
        _ => return usage(),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("orders: {error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: orders [KILLS]");
    ExitCode::from(2)
}

/// Sells orders while workers are killed. Returns whether jobs and rows agree at the end.
async fn sell(kills: u32) -> Result<bool, Error> {
    println!("starting a server …");
    let server = Server::start("on");
    let shop = Shop::connect(&server.url()).await?;
    shop.open().await?;
    let orders = ORDERS_PER_KILL * i64::from(kills.max(1));
    shop.place(orders).await?;
    println!("{orders} orders, {WORKERS} worker processes, {kills} kills");
    let url = server.url();
    println!("to watch: cargo run -p requeue-postgres --example top -- '{url}' payments receipts");

    let mut workers: Vec<Worker> = (0..WORKERS).map(|_| Worker::start(&url)).collect();
    let (mut done, mut cut) = (0, 0);
    for kill in 1..=kills {
        done += shop
            .finished(fastrand::i64(0..2 * ORDERS_PER_KILL).min(orders - done))
            .await?;
        workers[fastrand::usize(..WORKERS)].replace();
        if kill % 5 == 0 {
            cut += shop.cut_a_connection().await?;
        }
        if kill % (kills / 10).max(1) == 0 {
            println!("{done} orders done, {kill} workers killed, {cut} connections cut");
        }
    }
    shop.finished(orders - done).await?;
    drop(workers);
    let books = check::books(&shop).await?;
    println!("{books}");
    let agree = books.agree(orders);
    println!(
        "{}",
        if agree {
            "nothing lost, nothing done twice"
        } else {
            "JOBS AND ROWS DISAGREE"
        }
    );
    Ok(agree)
}
