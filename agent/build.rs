//! Links the agent so that its library is never unloaded (`-z nodelete`).
//!
//! If loading the agent returns an error code, some JVMs (JDK 17, for example) unload the library. But classes that the
//! agent has defined, and calls of the agent in other threads, would still refer to the library's code. Also, a second
//! load would not find the agent's state from the first load.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
