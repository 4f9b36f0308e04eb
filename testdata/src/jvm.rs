//! Real JVMs for the tests. Finds the JDKs of this machine, starts programs on them, takes dumps and reads the JVM's
//! own histogram. Tests compare results with the histogram, because it is exact.
//!
//! ```no_run
//! use testdata::jvm::{DumpOptions, Jdk, Launch, Selection};
//!
//! # fn main() -> Result<(), testdata::jvm::JvmError> {
//! for jdk in Jdk::all() {
//!     let mut target = Launch::source(&jdk, "Shop.java").flag("-Xmx128m").arg("leak").start()?;
//!     target.wait_ready(1)?;
//!     target.dump("before.hprof".as_ref(), DumpOptions::default())?;
//!     target.advance(2)?;
//!     let sessions = target.histogram(Selection::Live)?.instances("com.acme.shop.Session");
//!     assert!(sessions > 0);
//! }
//! # Ok(())
//! # }
//! ```

#![cfg_attr(test, allow(clippy::unwrap_used))]

#[cfg(unix)]
mod attach;
mod command;
mod error;
mod histogram;
mod jdk;
mod target;

pub use error::JvmError;
pub use histogram::{ClassCount, Histogram};
pub use jdk::{HOMES, Jdk, class_cache};
pub use target::{DumpOptions, Launch, Selection, Target};
