//! The Java programs that are no leak scenarios. Compile them with [`Jdk::compile`] or run the source.
//!
//! [`Jdk::compile`]: crate::jvm::Jdk::compile

use std::path::{Path, PathBuf};

/// The agent's library, which lies next to a test's program.
///
/// # Panics
/// It is not there: the agent was not built.
#[must_use]
pub fn agent_library() -> PathBuf {
    let here = std::env::current_exe().expect("this program");
    let library = here.with_file_name("libheapdiff_agent.so");
    assert!(library.is_file(), "{} is missing", library.display());
    library
}

/// `LayoutZoo.java`: object layouts of every kind, still at three `READY`s. Main class `LayoutZoo`.
pub fn layout_zoo() -> PathBuf {
    java("LayoutZoo.java")
}

/// `DeepSizes.java`: objects of all kinds that the program measures itself, as the agent that
/// `-javaagent` loads; reports, then is still at one `READY`. Main class `DeepSizes`.
pub fn deep_sizes() -> PathBuf {
    java("DeepSizes.java")
}

/// `Contents.java`: keeps collections of every kind in static fields, says what each holds in lines of
/// `HOLDS field kind size elements`, and is still at one `READY`. Main class `Contents`.
pub fn contents() -> PathBuf {
    java("Contents.java")
}

/// `Hashes.java [SECRETS [SEED]]`: puts secrets through the JDK's classes that keep hashes, prints each hash in a line of
/// `HASH number`, and is still at one `READY`. Main class `Hashes`.
pub fn hashes() -> PathBuf {
    java("Hashes.java")
}

/// `Waste.java`: wastes memory in known ways, which it counts itself as the agent that `-javaagent` loads;
/// reports, then is still at one `READY`. Main class `Waste`.
pub fn waste() -> PathBuf {
    java("Waste.java")
}

/// `Shelf.java [MEGABYTES]`: keeps 10,000 more boxes before each of three `READY`s. Main class `Shelf`.
pub fn shelf() -> PathBuf {
    java("Shelf.java")
}

/// `BigHeap.java SCALE FIRST.hprof [SECOND.hprof [GROWTH]]`: builds a heap of any size and dumps it
/// before and after a leak. Main class `BigHeap`.
pub fn big_heap() -> PathBuf {
    java("BigHeap.java")
}

/// A program for the agent's tests, in `java/agent`.
pub fn agent(name: &str) -> PathBuf {
    java("agent").join(name)
}

/// A program for the tests of rewritten classes, in `java/bytecode`.
pub fn bytecode(name: &str) -> PathBuf {
    java("bytecode").join(name)
}

/// `Late.java CALM GROW`: begins to leak after a while, and says when. Main class `Late`.
pub fn late() -> PathBuf {
    java("trace/Late.java")
}

/// `Full.java`: a full cache whose entries are replaced one after the other. Main class `Full`.
pub fn full() -> PathBuf {
    java("trace/Full.java")
}

/// `Heapster.java`: a web service whose interceptor keeps a `byte[]` for each request. Prints `LISTENING port`
/// and serves until its standard input ends. Main class `Heapster`.
pub fn web() -> PathBuf {
    java("web").join("Heapster.java")
}

/// Classes of a Kotlin and a Scala program that keep arrays, in a jar. Main classes
/// `com.acme.kotlin.OrdersKt` and `com.acme.scala.Orders`.
pub fn languages() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("languages/orders.jar")
}

/// A program that ProGuard shortened, its source and the mapping between both. Main class `com.acme.shop.Shop`.
pub fn shrunk() -> [PathBuf; 3] {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("shrunk");
    ["shop.jar", "Shop.java", "mapping.txt"].map(|name| folder.join(name))
}

/// `Service.java MEGABYTES BUSY`: keeps small objects and answers requests on a port of the loopback. Prints `READY`, how
/// many objects of `Service$Entry` it keeps, and the port. Main class `Service`.
pub fn forks() -> PathBuf {
    java("forks").join("Service.java")
}

/// A program whose operations are counted and timed, in `java/overhead`.
pub fn overhead(name: &str) -> PathBuf {
    java("overhead").join(name)
}

fn java(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("java")
        .join(name)
}
