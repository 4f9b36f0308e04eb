//! Embeds agent libraries in the program, if environment variables contain their paths. The embedded libraries are
//! compressed with gzip.
//!
//! Environment variables contain the paths of the libraries: `HEAPDIFF_EMBED_AGENT_GLIBC` for glibc, and
//! `HEAPDIFF_EMBED_AGENT_MUSL` for musl. If the variable for the program's own C library is not set,
//! `HEAPDIFF_EMBED_AGENT` replaces it. `cargo xtask install` and `cargo xtask dist` set these variables. If none is
//! set, no library is embedded.

use std::env;
use std::path::Path;

const OWN: &str = "HEAPDIFF_EMBED_AGENT";

fn main() {
    println!("cargo::rerun-if-env-changed={OWN}");
    let built_for_musl = env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "musl");
    for (is_own, c_library) in [(!built_for_musl, "glibc"), (built_for_musl, "musl")] {
        println!("cargo::rustc-check-cfg=cfg(carries_{c_library}_agent)");
        let name = format!("{OWN}_{}", c_library.to_uppercase());
        println!("cargo::rerun-if-env-changed={name}");
        if !embed(&name, c_library) && is_own {
            embed(OWN, c_library);
        }
    }
}

/// Embeds the library whose path is in the environment variable `name`. Returns false if the variable is empty or not
/// set.
fn embed(name: &str, c_library: &str) -> bool {
    let Some(library) = env::var_os(name).filter(|path| !path.is_empty()) else {
        return false;
    };
    let library = Path::new(&library);
    let shown = library.display();
    if library.is_absolute() && library.is_file() {
        let carried = format!("HEAPDIFF_CARRIED_AGENT_{}", c_library.to_uppercase());
        println!("cargo::rerun-if-changed={shown}");
        println!("cargo::rustc-env={carried}={shown}");
        println!("cargo::rustc-cfg=carries_{c_library}_agent");
    } else {
        println!("cargo::error={name}: {shown} is not the absolute path of a file");
    }
    true
}
