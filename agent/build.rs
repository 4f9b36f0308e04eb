//! Links the agent so that it is never taken out of memory. A JVM closes the library when loading it returned a refusal, as
//! that of JDK 17 was seen to; what it has defined, and other threads' calls, would lead nowhere then, and a second load would know nothing of the first.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
