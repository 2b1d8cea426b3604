//! Tests of the example `top` without a terminal: its unit tests, and its output.

/// The example's modules, so that their own tests run here.
#[allow(dead_code)]
#[path = "../../examples/top/main.rs"]
mod example;

use std::process::{Output, Stdio};

use crate::program;

fn run(args: &[&str]) -> Output {
    program("top").args(args).output().unwrap()
}

#[test]
fn frames_are_printed_without_a_terminal() {
    let output = run(&["--frames", "2"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(printed.matches("requeue top").count(), 2, "{printed}");
    for name in ["mail-0", "images-1", "reports-0", "dead ever"] {
        assert_eq!(printed.matches(name).count(), 2, "{name} in {printed}");
    }
    assert!(printed.contains("mail: "), "{printed}");
}

#[test]
fn a_bad_argument_is_reported() {
    let output = run(&["--frames", "many"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr)
        .unwrap()
        .contains("Usage: top"));
}

#[test]
fn a_reader_that_leaves_ends_it_quietly() {
    let mut command = program("top");
    command.args(["--frames", "2"]);
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}
