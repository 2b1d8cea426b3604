//! The board as a program.

mod demo;
mod options;

use options::{Options, USAGE};
use requeue_board::{serve, Board, Error};
use std::process::ExitCode;
use tokio::net::TcpListener;

fn main() -> ExitCode {
    let options = match Options::read(std::env::args().skip(1), |name| std::env::var(name).ok()) {
        Ok(Some(options)) => options,
        Ok(None) => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("requeue-board: {error}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let ran = runtime
        .map_err(Into::into)
        .and_then(|runtime| runtime.block_on(run(options)));
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("requeue-board: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options) -> Result<(), Error> {
    let mut board = Board::new().hosts(options.hosts.clone()).always();
    if let Some(token) = &options.token {
        board = board.token(token).on_change(|change| eprintln!("{change}"));
    }
    if options.is_open() {
        board = board.private();
    }
    let mut demo = None;
    board = match options.url.as_deref() {
        None => {
            let (running, board) = demo::start(board);
            demo = Some(running);
            board
        }
        Some(url) if options::is_postgres(url) => postgres(board, url).await?,
        Some(path) => store(board, path, &options)?,
    };
    let listener = TcpListener::bind(options.listen).await?;
    eprintln!("http://{}/", listener.local_addr()?);
    tokio::select! {
        served = serve(listener, board.into_router()) => served?,
        _ = tokio::signal::ctrl_c() => {}
    }
    drop(demo);
    Ok(())
}

#[cfg(feature = "postgres")]
async fn postgres(board: Board, url: &str) -> Result<Board, Error> {
    Ok(board.source(requeue_board::InPostgres::connect(url).await?))
}

#[cfg(not(feature = "postgres"))]
async fn postgres(_: Board, _: &str) -> Result<Board, Error> {
    std::future::ready(Err(
        "this program was built without the feature `postgres`".into()
    ))
    .await
}

#[cfg(feature = "durable")]
fn store(board: Board, path: &str, options: &Options) -> Result<Board, Error> {
    Ok(board.source(requeue_board::InStore::open(path, options.token.is_some())?))
}

#[cfg(not(feature = "durable"))]
fn store(_: Board, _: &str, _: &Options) -> Result<Board, Error> {
    Err("this program was built without the feature `durable`".into())
}
