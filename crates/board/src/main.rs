//! The board as a program.

mod demo;
mod options;

use options::{Options, USAGE};
use requeue_board::{serve, Board, Error, InPostgres, InStore};
use std::process::ExitCode;
use tokio::net::TcpListener;

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    match Options::read(std::env::args().skip(1), |name| std::env::var(name).ok()) {
        Ok(Some(options)) => match run(options).await {
            Ok(()) => return ExitCode::SUCCESS,
            Err(error) => eprintln!("requeue-board: {error}"),
        },
        Ok(None) => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(error) => eprintln!("requeue-board: {error}\n\n{USAGE}"),
    }
    ExitCode::FAILURE
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
        Some(url) if options::is_postgres(url) => board.source(InPostgres::connect(url).await?),
        Some(path) => board.source(InStore::open(path, options.token.is_some())?),
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
