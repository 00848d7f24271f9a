// SPDX-License-Identifier: MIT
//! Finds libtwheel: below `TWHEEL_LIB`, a prefix with `lib` and `include`, or by pkg-config.
use std::env;
use std::process::Command;

fn pkg_config(what: &str) -> String {
    let output = Command::new("pkg-config")
        .args([what, "libtwheel"])
        .output();
    match output {
        Ok(output) if output.status.success() => {
            String::from_utf8(output.stdout).expect("pkg-config prints text")
        }
        _ => panic!("pkg-config finds no libtwheel: install it, or set TWHEEL_LIB to its prefix"),
    }
}

fn main() {
    let (libraries, headers) = match env::var("TWHEEL_LIB") {
        Ok(prefix) => (format!("-L{prefix}/lib"), format!("-I{prefix}/include")),
        Err(_) => (pkg_config("--libs-only-L"), pkg_config("--cflags-only-I")),
    };
    println!("cargo:rerun-if-env-changed=TWHEEL_LIB");
    println!("cargo:rustc-link-lib=twheel");
    for folder in libraries.split_whitespace() {
        println!(
            "cargo:rustc-link-search=native={}",
            folder.trim_start_matches("-L")
        );
    }
    // For the test that compares the declarations with the headers.
    println!("cargo:rustc-env=TWHEEL_CFLAGS={}", headers.trim());
}
