//! Sets `cfg(on_unimplemented)` if the compiler knows `#[diagnostic::on_unimplemented]`: since Rust 1.78.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if minor_version().is_some_and(|minor| minor >= 78) {
        println!("cargo:rustc-cfg=on_unimplemented");
    }
}

/// The 78 of `rustc 1.78.0`.
fn minor_version() -> Option<u32> {
    let output = Command::new(env::var_os("RUSTC")?)
        .arg("--version")
        .output()
        .ok()?;
    let version = String::from_utf8(output.stdout).ok()?;
    version.split('.').nth(1)?.parse().ok()
}
