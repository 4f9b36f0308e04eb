//! Tests dumps that are complete but lack GC roots: every format reports this, and no gate passes.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use testdata::writer::{FieldType, HeapBuilder, Options, Root, Value};

/// Programs that write dumps without some of the GC roots.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Writer {
    Jhsdb,
    Jdk21,
}

const WRITERS: [Writer; 2] = [Writer::Jhsdb, Writer::Jdk21];

impl Writer {
    const fn doubt(self) -> &'static str {
        match self {
            Self::Jhsdb => "has no Java frames, no JNI globals and no system classes",
            Self::Jdk21 => "has no frames of parked virtual threads",
        }
    }

    const fn kind(self) -> &'static str {
        match self {
            Self::Jhsdb => "unknown (no referrer)",
            Self::Jdk21 => "parked virtual threads, frames not in this dump",
        }
    }

    /// Returns a dump with a list of arrays that only a local variable holds. The dump does not contain the local
    /// variable.
    fn dump(self, arrays: usize) -> Vec<u8> {
        let mut heap = HeapBuilder::new(Options {
            sticky_classes: self == Self::Jdk21,
            ..Options::default()
        });
        let boot = heap.boot();
        heap.set_system_properties(&[("java.vm.version", "21.0.8+9-LTS")]);
        let list = [("all", FieldType::Object)];
        let list = heap.add_class("com.acme.Requests", Some(boot.object), &list, &[]);
        let bytes = testdata::writer::Elements::Zeros(FieldType::Byte, 10_000);
        let all: Vec<_> = (0..arrays)
            .map(|_| heap.add_primitive_array(bytes.clone()))
            .collect();
        let all = heap.add_object_array(boot.object, all);
        heap.add_instance(list, &[all.into()]);
        let _ = heap.add_thread("main", &[]);
        let held = heap.add_string("held");
        let local = Root::JniLocal {
            thread: 1,
            frame: -1,
        };
        heap.add_root(local, held);
        if self == Self::Jdk21 {
            let size = [("size", FieldType::Int)];
            let stack = "jdk.internal.vm.StackChunk";
            let stack = heap.add_class(stack, Some(boot.object), &size, &[]);
            heap.add_instance(stack, &[Value::Int(9)]);
            let fields = [("task", FieldType::Object)];
            let thread = "java.lang.VirtualThread";
            let thread = heap.add_class(thread, Some(boot.object), &fields, &[]);
            heap.add_instance(thread, &[Value::NULL]);
        }
        heap.build()
    }
}

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new(writer: Writer) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, arrays) in [("a.hprof", 100), ("b.hprof", 2000)] {
            fs::write(folder.path().join(name), writer.dump(arrays)).expect("a dump");
        }
        Self { folder }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = crate::support::heapdiff(self.folder.path(), args);
        command.env("XDG_CACHE_HOME", self.at("cache"));
        command.output().expect("a run")
    }

    /// Returns standard output and standard error of a run that ends with `code`.
    #[track_caller]
    fn ends(&self, code: i32, args: &[&str]) -> (String, String) {
        let done = self.run(args);
        let text = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            // Join wrapped lines.
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let (out, err) = (text(&done.stdout), text(&done.stderr));
        assert_eq!(done.status.code(), Some(code), "{args:?}: {err}");
        (out, err)
    }
}

#[test]
fn no_gate_passes_on_dumps_that_lack_roots() {
    for writer in WRITERS {
        let place = Place::new(writer);
        for gate in [&["--fail-on-growth", "1MiB"][..], &["--fail-on-suspect"]] {
            let args = [&["a.hprof", "b.hprof", "--no-index"], gate].concat();
            let (_, err) = place.ends(3, &args);
            let undecided = "the gates (--fail-on-...) were not checked: a.hprof";
            assert!(
                err.contains(undecided) && err.contains(writer.doubt()),
                "{err}"
            );
            for (by, why) in [
                (
                    Writer::Jhsdb,
                    "no system classes among its GC roots (jhsdb), so reachable objects may count as unreachable",
                ),
                (
                    Writer::Jdk21,
                    "has no frames of parked virtual threads (JDK 19 to 21), so reachable objects",
                ),
            ] {
                assert_eq!(err.contains(why), writer == by, "{err}");
            }
            place.ends(1, &[&args[..], &["--allow-partial"]].concat());
        }
        // The second run uses a cached summary and an index. After these two runs, a summary file replaces the first
        // dump.
        for _ in 0..2 {
            let args = ["a.hprof", "b.hprof", "--fail-on-growth", "1MiB"];
            place.ends(3, &args);
        }
        place.ends(0, &["summarize", "a.hprof", "-o", "a.heap"]);
        let args = ["a.heap", "b.hprof", "--fail-on-growth", "1MiB"];
        let (_, err) = place.ends(3, &args);
        assert!(err.contains(writer.doubt()), "{err}");
        // The report still names the growing field.
        let (out, _) = place.ends(0, &["a.hprof", "b.hprof"]);
        assert!(out.contains("com.acme.Requests.all"), "{out}");
        let (_, err) = place.ends(3, &["top", "a.hprof", "--strict"]);
        let strict = "GC roots are missing, and --strict refuses incomplete dumps";
        assert!(
            err.contains(strict)
                && err
                    .contains("leave out --strict for a report on the objects that could be read")
        );
        let (_, err) = place.ends(3, &["summarize", "a.hprof", "-o", "b.heap", "--strict"]);
        assert!(err.contains(strict), "{err}");
    }
}

#[test]
fn every_format_warns_about_missing_roots() {
    for writer in WRITERS {
        let place = Place::new(writer);
        for format in ["text", "json", "html", "md", "junit", "sarif", "github"] {
            let (out, _) = place.ends(0, &["a.hprof", "b.hprof", "--format", format, "--quiet"]);
            assert!(out.contains(writer.doubt()), "{format}: {out}");
        }
        for format in ["text", "json", "html", "md", "sarif", "github"] {
            let (out, _) = place.ends(0, &["b.hprof", "--format", format, "--quiet"]);
            assert!(out.contains(writer.doubt()), "{format}: {out}");
        }
        let (out, _) = place.ends(0, &["b.hprof", "--format", "openmetrics", "--quiet"]);
        assert!(out.contains("heapdiff_snapshot_damaged 1"), "{out}");
        for command in ["top", "histo", "threads", "waste"] {
            let more: &[&str] = if command == "histo" {
                &["--retained"]
            } else {
                &[]
            };
            let args = [&[command, "b.hprof"], more].concat();
            let (_, err) = place.ends(0, &args);
            assert!(
                err.contains("as GC roots of") || err.contains(writer.kind()),
                "{err}"
            );
            let (out, _) = place.ends(0, &[&args[..], &["--format", "json"]].concat());
            assert!(
                out.contains("\"partial\": true") && out.contains(writer.kind()),
                "{out}"
            );
            let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
            assert_eq!(crate::schema::faults(command, &report), [] as [String; 0]);
        }
        let (_, err) = place.ends(0, &["top", "b.hprof"]);
        assert!(
            !err.contains("leave out --strict for a report on the objects that could be read"),
            "{err}"
        );
        let select = "SELECT class, root FROM objects WHERE class = 'com.acme.Requests'";
        let (_, err) = place.ends(0, &["query", "b.hprof", select]);
        assert!(err.contains(writer.kind()), "{err}");
        let (out, _) = place.ends(0, &["paths", "b.hprof", "com.acme.Requests"]);
        assert!(out.contains(writer.kind()), "{out}");
    }
}

#[test]
fn a_file_without_heap_record_makes_no_report() {
    let place = Place::new(Writer::Jdk21);
    let whole = fs::read(place.at("a.hprof")).expect("a dump");
    fs::write(place.at("cut.hprof"), &whole[..60]).expect("a file");
    for args in [
        &["cut.hprof", "b.hprof"][..],
        &["a.hprof", "cut.hprof"],
        &["cut.hprof"],
        &["histo", "cut.hprof"],
        &["top", "cut.hprof"],
        &[
            "a.hprof",
            "cut.hprof",
            "--allow-partial",
            "--fail-on-suspect",
        ],
        &["summarize", "cut.hprof", "-o", "cut.heap"],
    ] {
        let (out, err) = place.ends(3, args);
        assert!(out.is_empty(), "{out}");
        assert!(err.contains("the dump contains no objects"), "{err}");
    }
}

#[test]
fn a_dump_that_has_classes_but_no_objects_is_refused() {
    let place = Place::new(Writer::Jdk21);
    let mut heap = HeapBuilder::new(Options::default());
    heap.boot();
    fs::write(place.at("empty.hprof"), heap.build()).expect("a dump");
    for args in [
        &["empty.hprof"][..],
        &["empty.hprof", "b.hprof", "--allow-partial"],
        &["a.hprof", "empty.hprof", "--allow-partial"],
        &["top", "empty.hprof"],
        &["summarize", "empty.hprof", "-o", "empty.heap"],
        &["query", "empty.hprof", "SELECT count(*) FROM objects"],
    ] {
        let (out, err) = place.ends(3, args);
        assert!(out.is_empty(), "{out}");
        assert!(
            err.contains("the dump has classes but no objects")
                && err.contains("jcmd PID GC.heap_dump"),
            "{err}"
        );
    }
}
