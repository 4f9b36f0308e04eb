//! The Java programs that are not leak scenarios. Compile a program with [`Jdk::compile`], or run its source file.
//!
//! [`Jdk::compile`]: crate::jvm::Jdk::compile

use std::path::{Path, PathBuf};

/// Returns the agent's library, which is in the folder of the test's executable.
///
/// # Panics
/// Panics if the library does not exist because the agent was not built.
#[must_use]
pub fn agent_library() -> PathBuf {
    let here = std::env::current_exe().expect("this program");
    let library = here.with_file_name("libheapdiff_agent.so");
    assert!(library.is_file(), "{} is missing", library.display());
    library
}

/// `LayoutZoo.java`: creates objects with every kind of field layout, in three phases. At the end of each phase the
/// program prints `READY` and waits. Main class `LayoutZoo`.
pub fn layout_zoo() -> PathBuf {
    java("LayoutZoo.java")
}

/// `DeepSizes.java`: creates objects of all kinds and measures their sizes with `java.lang.instrument`. Prints the
/// sizes, then one line `READY`, and waits. Main class `DeepSizes`.
pub fn deep_sizes() -> PathBuf {
    java("DeepSizes.java")
}

/// `Contents.java`: keeps collections of every kind in static fields. For each collection, prints a line
/// `HOLDS field kind size elements`. Then prints one line `READY`, and waits. Main class `Contents`.
pub fn contents() -> PathBuf {
    java("Contents.java")
}

/// `Hashes.java [SECRETS [SEED]]`: passes secrets to the JDK classes that store hashes, and prints a line `HASH number`
/// for each hash. Then prints one line `READY`, and waits. Main class `Hashes`.
pub fn hashes() -> PathBuf {
    java("Hashes.java")
}

/// `Waste.java`: wastes memory in known ways, and measures the wasted bytes with `java.lang.instrument`. Prints them,
/// then one line `READY`, and waits. Main class `Waste`.
pub fn waste() -> PathBuf {
    java("Waste.java")
}

/// `Shelf.java [MEGABYTES]`: has three phases. In each phase it adds 10,000 objects, prints `READY` and waits. Main
/// class `Shelf`.
pub fn shelf() -> PathBuf {
    java("Shelf.java")
}

/// `BigHeap.java SCALE FIRST.hprof [SECOND.hprof [GROWTH]]`: builds a heap of the given size and dumps it. If a second
/// file is given, the program adds a leak and dumps the heap again. Main class `BigHeap`.
pub fn big_heap() -> PathBuf {
    java("BigHeap.java")
}

/// `Pending.java DUMP`: waits with known numbers of threads, tasks and futures, and dumps the heap. Main class `Pending`.
pub fn pending() -> PathBuf {
    java("pending").join("Pending.java")
}

/// Returns the path of a program in `java/owners`, whose plugins share memory.
pub fn owners(name: &str) -> PathBuf {
    java("owners").join(name)
}

/// Returns the path of a program in `java/agent`, for tests of the agent.
pub fn agent(name: &str) -> PathBuf {
    java("agent").join(name)
}

/// Returns the sources of the library heapdiff-labels and of the program `Labelled`, whose threads allocate objects
/// with labels.
pub fn labelled() -> Vec<PathBuf> {
    with_label_library(agent("Labelled.java"))
}

/// Returns the sources of the library heapdiff-labels and of the program `Booking`, a service that never removes the
/// bookings of one tenant. The program handles 1,000 requests for each line of its input.
pub fn booking() -> Vec<PathBuf> {
    with_label_library(java("labels").join("Booking.java"))
}

/// Returns the sources of the library heapdiff-labels and of the program `ScopeCost`, which measures the CPU time of
/// its scopes.
pub fn scope_cost() -> Vec<PathBuf> {
    with_label_library(java("labels").join("ScopeCost.java"))
}

/// Returns the sources of a program and of the Java library heapdiff-labels.
fn with_label_library(program: PathBuf) -> Vec<PathBuf> {
    let library = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../java/labels/src/main/java/io/github/heapdiff/labels"
    );
    let classes = ["LabelScope", "AgentLabels", "Mdc", "CurrentSpan", "Library"];
    let library = classes.map(|name| Path::new(library).join(name).with_extension("java"));
    std::iter::once(program).chain(library).collect()
}

/// Returns the path of a program in `java/bytecode`, for tests that rewrite bytecode.
pub fn bytecode(name: &str) -> PathBuf {
    java("bytecode").join(name)
}

/// `Late.java CALM GROW`: begins to leak after `CALM` milliseconds, and prints the time at which the leak began. Main
/// class `Late`.
pub fn late() -> PathBuf {
    java("trace/Late.java")
}

/// `Ages.java ROUNDS`: allocates objects that survive known numbers of GCs, and prints these numbers. Main class `Ages`.
pub fn ages() -> PathBuf {
    java("trace/Ages.java")
}

/// `Full.java`: a full cache whose entries are replaced one by one. Main class `Full`.
pub fn full() -> PathBuf {
    java("trace/Full.java")
}

/// `Heapster.java`: a web service whose interceptor keeps a `byte[]` for each request. Prints `LISTENING port`
/// and serves until its standard input ends. Main class `Heapster`.
pub fn web() -> PathBuf {
    java("web").join("Heapster.java")
}

/// A jar with the classes of two programs that keep arrays, one in Kotlin and one in Scala. Main classes
/// `com.acme.kotlin.OrdersKt` and `com.acme.scala.Orders`.
pub fn languages() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("languages/orders.jar")
}

/// A program whose names ProGuard shortened, its source, and the mapping from the short names to the original ones.
/// Main class `com.acme.shop.Shop`.
pub fn shrunk() -> [PathBuf; 3] {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("shrunk");
    ["shop.jar", "Shop.java", "mapping.txt"].map(|name| folder.join(name))
}

/// `Service.java MEGABYTES BUSY`: keeps small objects and answers requests on a port of the loopback address. Prints
/// `READY`, the number of its `Service$Entry` objects, and the port. Main class `Service`.
pub fn forks() -> PathBuf {
    java("forks").join("Service.java")
}

/// Returns the path of a program for the matrix of JDKs: main class `Jdks`, whose list grows with each line of input,
/// or `Unloaded CLASSES`, which loads and unloads classes.
pub fn jdks(name: &str) -> PathBuf {
    java("jdks").join(name)
}

/// A Java agent that lets another thread allocate while a program runs. Agent class `Beside`.
pub fn beside() -> PathBuf {
    java("jfr").join("Beside.java")
}

/// A Java agent that spreads the work of a program over a given time. Agent class `Paced`; needs JDK 24 or later.
pub fn paced() -> PathBuf {
    java("jfr").join("Paced.java")
}

/// Returns the path of a program in `java/overhead`, which counts its operations and measures their time.
pub fn overhead(name: &str) -> PathBuf {
    java("overhead").join(name)
}

fn java(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("java")
        .join(name)
}
