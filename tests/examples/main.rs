//! The examples: their common options, and the unit tests of those without a file here.

mod census;
mod top;

#[allow(dead_code)]
#[path = "../../examples/broker/main.rs"]
mod broker;
#[allow(dead_code)]
#[path = "../../examples/crawl/main.rs"]
mod crawl;
#[allow(dead_code)]
#[path = "../../examples/service/main.rs"]
mod service;
#[allow(dead_code)]
#[path = "../../examples/soak/main.rs"]
mod soak;
#[allow(dead_code)]
#[path = "../../examples/timers/main.rs"]
mod timers;

use std::env;
use std::process::{Command, Output};

const EXAMPLES: [&str; 7] = [
    "census", "crawl", "select", "service", "soak", "tenants", "top",
];

/// The built example: cargo puts it in `examples`, next to the `deps` directory of this test.
fn program(name: &str) -> Command {
    let test = env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).unwrap();
    let file = format!("{name}{}", env::consts::EXE_SUFFIX);
    let program = profile.join("examples").join(file);
    let hint = "`cargo test` without a filter builds it, and so does `cargo build --examples`";
    assert!(program.is_file(), "no {}: {hint}", program.display());
    Command::new(program)
}

fn run(name: &str, argument: &str) -> Output {
    program(name).arg(argument).output().unwrap()
}

#[test]
fn all_say_how_they_are_used() {
    for name in EXAMPLES {
        for option in ["--help", "-h"] {
            let output = run(name, option);
            assert_eq!(output.status.code(), Some(0), "{name}: {output:?}");
            let printed = String::from_utf8(output.stdout).unwrap();
            let usage = format!("Usage: {name}");
            assert!(printed.starts_with(&usage), "{printed}");
            assert!(output.stderr.is_empty());
        }
    }
}

#[test]
fn all_reject_unknown_arguments() {
    for name in EXAMPLES {
        let output = run(name, "--nonsense");
        assert_eq!(output.status.code(), Some(2), "{name}: {output:?}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(&format!("Usage: {name}")), "{stderr}");
        assert!(output.stdout.is_empty());
    }
}
