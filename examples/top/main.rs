//! A live view of queues at work: depth, throughput, held items, dead letters.
//!
//! The queues, their producers and their workers run in the same process. Some of their tasks fail, some panic, some
//! exceed their lease. All data comes from `Queue::stats`, `Queue::held`, `Queue::dead_letters` and
//! `Workers::status`.
//!
//! Run it with `cargo run --release --example top`.

mod app;
mod history;
mod plant;
mod tasks;
mod view;

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use app::App;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::crossterm::event::{self, Event};
use ratatui::{DefaultTerminal, Terminal};

const USAGE: &str = "\
Usage: top [--frames N]

Watches three queues with producers and workers until q is pressed, and checks
then that no item was lost. The last line of the screen says what the keys do.

Options:
  --frames N  print N frames as plain text instead, without a terminal
  -h, --help  print this help

Exit codes: 0 nothing was lost, 1 something was, or there is no terminal,
2 a bad argument.
";

/// The interval between two samples.
const TICK: Duration = Duration::from_millis(200);
/// The size of a frame without a terminal.
const SIZE: (u16, u16) = (120, 32);

#[derive(Debug, PartialEq)]
enum Request {
    Help,
    Frames(u32),
    Watch,
}

fn main() -> ExitCode {
    let request = match parse(env::args().skip(1)) {
        Ok(request) => request,
        Err(message) => {
            eprintln!("top: {message}\n\n{}", USAGE.trim_end());
            return ExitCode::from(2);
        }
    };
    let result = match request {
        Request::Help => {
            print!("{USAGE}");
            Ok(())
        }
        Request::Frames(frames) => print_frames(frames),
        Request::Watch => watch(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("top: {message}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Request, String> {
    let request = match args.next().as_deref() {
        None => Request::Watch,
        Some("-h" | "--help") => return Ok(Request::Help),
        Some("--frames") => {
            let frames = args.next().ok_or("--frames needs a number")?;
            let frames = frames.parse();
            Request::Frames(frames.map_err(|error| format!("--frames: {error}"))?)
        }
        Some(other) => return Err(format!("what is \"{other}\"?")),
    };
    match args.next() {
        None => Ok(request),
        Some(extra) => Err(format!("\"{extra}\" is too much")),
    }
}

/// Runs the view in the terminal, which is restored when this returns, and also after a panic.
fn watch() -> Result<(), String> {
    let failed = |error: io::Error| format!("the terminal: {error}; try --frames 3");
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let mut app = App::start();
    let watched = show(&mut terminal, &mut app);
    drop(terminal); // shows the cursor
    ratatui::restore();
    watched.map_err(failed)?;
    app.stop()
}

/// Shows frames until a key ends it.
fn show(terminal: &mut DefaultTerminal, app: &mut App) -> io::Result<()> {
    let mut next = Instant::now();
    loop {
        if Instant::now() >= next {
            app.sample();
            next = Instant::now() + TICK;
        }
        terminal.draw(|frame| view::draw(frame, app))?;
        if !event::poll(next.saturating_duration_since(Instant::now()))? {
            continue;
        }
        if let Event::Key(key) = event::read()? {
            if key.is_press() && app.press(key).is_break() {
                return Ok(());
            }
        }
    }
}

fn print_frames(frames: u32) -> Result<(), String> {
    let mut app = App::start();
    let printed = print_to(&mut io::stdout(), frames, &mut app);
    let stopped = app.stop();
    match printed {
        // A reader that closes the pipe, such as `head`, is no error.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write to standard output: {error}"))
        }
        _ => stopped,
    }
}

fn print_to(out: &mut impl Write, frames: u32, app: &mut App) -> io::Result<()> {
    let backend = TestBackend::new(SIZE.0, SIZE.1);
    let mut terminal = Terminal::new(backend).expect("memory is no terminal that can fail");
    for _ in 0..frames {
        thread::sleep(TICK);
        app.sample();
        let drawn = terminal.draw(|frame| view::draw(frame, app));
        let frame = drawn.expect("memory is no terminal that can fail");
        writeln!(out, "{}\n", text(frame.buffer))?;
    }
    Ok(())
}

/// The lines of a frame, without colours.
fn text(frame: &Buffer) -> String {
    let line = |cells: &[Cell]| cells.iter().map(Cell::symbol).collect::<String>();
    let lines = frame.content().chunks(frame.area.width.into()).map(line);
    let lines: Vec<_> = lines.map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Result<Request, String> {
        parse(args.iter().map(ToString::to_string))
    }

    #[test]
    fn arguments() {
        assert_eq!(parsed(&[]), Ok(Request::Watch));
        assert_eq!(parsed(&["--frames", "3"]), Ok(Request::Frames(3)));
        assert_eq!(parsed(&["-h", "nonsense"]), Ok(Request::Help));
        for wrong in [
            &["--frames"][..],
            &["--frames", "x"],
            &["3"],
            &["--frames", "3", "4"],
        ] {
            assert!(parsed(wrong).is_err(), "{wrong:?}");
        }
    }
}
