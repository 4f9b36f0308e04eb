//! Links the agent so that its library is never unloaded (`-z nodelete`).
//!
//! A JVM (JDK 17, for example) closes the library if loading the agent returned an error code. But classes that the
//! agent has defined, and its calls in other threads, would still refer to the library's code. Also, a second load
//! would not find the state of the first one.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
