//! Builds the shim for the queues in C++, and passes the compiler's version on.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let version = Command::new(rustc).arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_string());
    println!(
        "cargo:rustc-env=COMPARE_RUSTC={}",
        version.unwrap_or_default()
    );
    #[cfg(feature = "cpp")]
    shim();
}

#[cfg(feature = "cpp")]
fn shim() {
    println!("cargo:rerun-if-changed=cpp/shim.cpp");
    let built = cc::Build::new()
        .cpp(true)
        .std("c++17")
        .opt_level(3)
        .cargo_warnings(false)
        .define("NDEBUG", None)
        .file("cpp/shim.cpp")
        .try_compile("compare_shim");
    if let Err(error) = built {
        eprintln!(
            "the feature `cpp` needs a C++ compiler, moodycamel's ConcurrentQueue and oneTBB:"
        );
        eprintln!("    apt-get install g++ libconcurrentqueue-dev libtbb-dev");
        eprintln!("{error}");
        std::process::exit(1);
    }
    println!("cargo:rustc-link-lib=tbb");
}
