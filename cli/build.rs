//! Embeds the agent library in the program if the environment variable `HEAPDIFF_EMBED_AGENT` contains the path of the
//! library. The embedded library is compressed with gzip.
//!
//! `cargo xtask install` and `cargo xtask dist` set this variable. If the variable is not set, no library is embedded.

use std::env;
use std::path::{Path, PathBuf};

const NAME: &str = "HEAPDIFF_EMBED_AGENT";

fn main() {
    println!("cargo::rustc-check-cfg=cfg(carries_agent)");
    println!("cargo::rerun-if-env-changed={NAME}");
    let Some(library) = env::var_os(NAME).filter(|name| !name.is_empty()) else {
        return;
    };
    let library = PathBuf::from(library);
    if !library.is_absolute() || !library.is_file() {
        println!(
            "cargo::error={NAME}: {} is not the absolute path of a file",
            Path::new(&library).display()
        );
        return;
    }
    let library = library.display();
    println!("cargo::rerun-if-changed={library}");
    println!("cargo::rustc-env=HEAPDIFF_CARRIED_AGENT={library}");
    println!("cargo::rustc-cfg=carries_agent");
}
