//! A folder with the dumps for the tests, complete and damaged.

use std::fs;
use std::path::{Path, PathBuf};

use testdata::dumps::unpacked;

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the folder with the committed dumps.
pub(crate) fn testdata() -> PathBuf {
    root().join("testdata")
}

/// Copies the dumps to `folder/testdata/`, as in a checkout, and adds unusual files to `folder`.
pub(crate) fn prepare(folder: &Path) {
    let dumps = folder.join("testdata");
    fs::create_dir_all(&dumps).expect("a folder");
    for name in [
        "before.hprof.gz",
        "after.hprof.gz",
        "sampled-before.hprof.gz",
        "sampled-after.hprof.gz",
        "recorded.jfr.gz",
        "joined-before.hprof.gz",
        "joined-after.hprof.gz",
        "joined.jfr.gz",
        "joined-async.jfr.gz",
    ] {
        fs::copy(testdata().join(name), dumps.join(name)).expect("a copied dump");
    }
    let collapsed = "[main tid=1];Orders.main;Orders.take;Orders.book;long[]_[i] 90000\n\
        Orders.main;Orders.report;long[]_[i] 10000\n";
    fs::write(folder.join("orders.collapsed"), collapsed).expect("a written file");
    fs::write(folder.join("bad.collapsed"), "a;b 7\na;b c\n").expect("a written file");
    let bytes = unpacked(&testdata().join("before.hprof.gz"));
    fs::write(folder.join("cut.hprof"), &bytes[..3_000_000]).expect("a written file");
    let piped = [hprof::bytes::piped::MARK, &bytes[..3_000_000]].concat();
    fs::write(folder.join("piped.hprof"), piped).expect("a written file");
    leave_segments(folder, &bytes);
    fs::write(folder.join("empty.hprof"), "").expect("a written file");
    fs::write(folder.join("letter.txt"), "Dear heap,").expect("a written file");
    let known = "# known growth\n\nholder Orders.o*  # the list of orders\nclass com.acme.Gone\n";
    fs::write(folder.join("known-growth.txt"), known).expect("a written file");
    // A name mapping for the programs in the dumps, with made-up original names.
    let mapping = "# compiler: ProGuard\n\
        com.acme.book.Ledger -> Orders:\n    \
            java.util.List entries -> open\n    \
            20:40:void com.acme.book.Page.turn():7:7 -> book\n    \
            20:40:void enter(int):100 -> book\n\
        com.acme.book.Entry -> Orders$Order:\n    \
            long[] sums -> amounts\n";
    fs::write(folder.join("mapping.txt"), mapping).expect("a written file");
    let mapping = "com.acme.web.Audit -> com.acme.Interceptor:\n    \
            20:40:void com.acme.web.Log.note(java.lang.String):3:3 -> record\n    \
            20:40:void audit():70 -> record\n";
    fs::write(folder.join("shop-mapping.txt"), mapping).expect("a written file");
    let mapping = "com.acme.book.Ledger -> Recorded:\n    \
            20:40:void com.acme.book.Page.turn():7:7 -> leak\n    \
            20:40:void enter(int):100 -> leak\n\
        com.acme.book.Words -> java.lang.String:\n";
    fs::write(folder.join("recorded-mapping.txt"), mapping).expect("a written file");
    use heapdiff_trace::synthetic;
    let scene = synthetic::Scene::default();
    synthetic::write(&folder.join("shop.db"), &scene).expect("a trace");
    let counted = folder.join("counted.db");
    synthetic::write(&counted, &scene).expect("a trace");
    synthetic::count(&counted, &synthetic::LINES).expect("counts");
    // A short trace of a JVM that still runs, without a GC.
    let scene = synthetic::Scene {
        ticks: 15,
        minor: 0,
        major: 0,
        running: true,
        ..scene
    };
    synthetic::write(&folder.join("young.db"), &scene).expect("a trace");
    use testdata::recordings::live_objects;
    let recording = [live_objects(0).finish(), live_objects(1).finish()].concat();
    let write = |name: &str, bytes: &[u8]| {
        fs::write(folder.join(name), bytes).expect("a written file");
    };
    write("live.jfr", &recording);
    write("cut.jfr", &recording[..recording.len() - 5000]);
    write("begun.jfr", &recording[..5000]);
    let import = ["trace", "import", "-q", "live.jfr", "-o", "imported.db"];
    let imported = heapdiff(folder, &import).status().expect("a run");
    assert!(imported.success());
    fs::create_dir_all(folder.join("folder.hprof")).expect("a folder");
    // This dump has the name of a command.
    fs::copy(testdata().join("before.hprof.gz"), folder.join("histo")).expect("a copied dump");
}

/// Returns the path of the program to test: the value of the environment variable `HEAPDIFF_BIN`, or else the program
/// that cargo built.
pub(crate) fn program() -> PathBuf {
    let other = std::env::var_os("HEAPDIFF_BIN").map(PathBuf::from);
    other.unwrap_or_else(|| env!("CARGO_BIN_EXE_heapdiff").into())
}

/// Returns a command of the program with `folder` as its working directory.
pub(crate) fn heapdiff(folder: &Path, args: &[&str]) -> std::process::Command {
    let mut command = std::process::Command::new(program());
    command.args(args).current_dir(folder);
    command
}

/// Writes the files that a JVM leaves if it dies while it merges segments: `died.hprof` and two segments. Some bytes of
/// the first segment are also in `died.hprof`.
fn leave_segments(folder: &Path, dump: &[u8]) {
    /// Length of a record's header, in bytes.
    const HEAD: usize = 9;
    let mut at = dump.iter().position(|&b| b == 0).expect("a header") + 13;
    let mut heap = Vec::new();
    while at < dump.len() {
        if dump[at] == 0x1c {
            heap.push(at);
        }
        let length = [5, 6, 7, 8].map(|n| dump[at + n]);
        at += HEAD + u32::from_be_bytes(length) as usize;
    }
    let (first, last) = (heap[0], heap[heap.len() / 2]);
    for (name, bytes) in [
        ("died.hprof", &dump[..first + 4096]),
        ("died.hprof.p0", &dump[first..last]),
        ("died.hprof.p1", &dump[last..dump.len() - HEAD]),
    ] {
        fs::write(folder.join(name), bytes).expect("a written file");
    }
}
