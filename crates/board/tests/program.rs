//! The program: what it shows, and what it says when it cannot.

#![cfg(all(feature = "durable", feature = "postgres"))]

use requeue_durable::Store;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};

fn program(arguments: &[&str]) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_requeue-board"));
    program.args(arguments).env_remove("REQUEUE_BOARD_TOKEN");
    program.stdout(Stdio::piped()).stderr(Stdio::piped());
    program
}

#[track_caller]
fn says(output: &Output, code: i32, text: &str) {
    let all = [&output.stdout[..], &output.stderr].concat();
    let all = String::from_utf8(all).unwrap();
    assert!(all.contains(text), "{all}");
    assert_eq!(output.status.code(), Some(code), "{all}");
}

/// A program that serves, until it is dropped.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the program, and asks for its first page.
fn first_page(arguments: &[&str]) -> (Serving, String) {
    let mut serving = Serving(program(arguments).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(serving.0.stderr.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let address = line.trim().strip_prefix("http://").expect("an address");
    let mut stream = TcpStream::connect(address.trim_end_matches('/')).unwrap();
    stream
        .write_all(b"GET / HTTP/1.0\r\nhost: localhost\r\n\r\n")
        .unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    (serving, page)
}

#[test]
fn the_demo_shows_its_queues() {
    let (_serving, page) = first_page(&["--demo", "--listen", "127.0.0.1:0"]);
    for part in ["200 OK", "mails", "webhooks", "parked", "read-only"] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn a_store_is_shown_unless_it_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let store = Store::open(path).unwrap();
    store.queue("jobs").unwrap().push(1).unwrap();
    says(
        &program(&[path]).output().unwrap(),
        1,
        "is open in another store",
    );
    drop(store);
    let (serving, page) = first_page(&[path, "--listen", "127.0.0.1:0"]);
    assert!(page.contains("jobs"), "{page}");
    assert!(Store::open(path).is_err()); // it is its own meanwhile
    drop(serving);
    Store::open(path).unwrap();
}

#[test]
fn what_is_wrong_is_said() {
    says(&program(&["--help"]).output().unwrap(), 0, "--listen");
    says(&program(&[]).output().unwrap(), 1, "either --demo");
    let open = ["--demo", "--listen", "0.0.0.0:0"];
    says(&program(&open).output().unwrap(), 1, "needs a token");
    let nobody = "postgres://nobody@127.0.0.1:1/nothing";
    says(&program(&[nobody]).output().unwrap(), 1, "requeue-board: ");
}
