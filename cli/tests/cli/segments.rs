//! Tests dumps of JVMs that died while they merged the segments of a dump. Every command must read the dump with its
//! segments, and every format must report that segments were not merged. If segments are not read, no gate
//! (`--fail-on-...`) passes.

use std::fs;
use std::path::PathBuf;

use testdata::writer::{Elements, FieldType, HeapBuilder, Options, Place as Writes, Root};

/// Length of a record's header, in bytes.
const HEAD: usize = 9;
const NOTE: &str =
    "heapdiff read b.hprof together with 2 unmerged segments (b.hprof.p0, b.hprof.p1)";

/// Returns a dump with a list. The list holds this number of arrays, each of 10,000 bytes.
fn dump(arrays: usize) -> Vec<u8> {
    // HotSpot writes roots to the first segment.
    let mut heap = HeapBuilder::new(Options {
        roots: Writes::Start,
        ..Options::default()
    });
    let boot = heap.boot();
    let all = [("all", FieldType::Object)];
    let requests = heap.add_class("com.acme.Requests", Some(boot.object), &all, &[]);
    let bytes = Elements::Zeros(FieldType::Byte, 10_000);
    let all: Vec<_> = (0..arrays)
        .map(|_| heap.add_primitive_array(bytes.clone()))
        .collect();
    let all = heap.add_object_array(boot.object, all);
    let holder = heap.add_instance(requests, &[all.into()]);
    let _ = heap.add_thread("main", &[]);
    heap.add_root(Root::JniGlobal { global_ref: 1 }, holder);
    heap.build()
}

/// A folder with three dumps. `a.hprof` and `whole.hprof` are complete. `b.hprof` is the same dump as `whole.hprof`,
/// but two of its segments are in separate files: the JVM died while it merged the first of these segments.
struct Place {
    folder: tempfile::TempDir,
    /// Offsets of the heap records in `whole.hprof`.
    heap: Vec<usize>,
    whole: Vec<u8>,
}

impl Place {
    fn new() -> Self {
        let whole = dump(2000);
        let mut at = whole.iter().position(|&b| b == 0).expect("a header") + 13;
        let mut heap = Vec::new();
        while at < whole.len() {
            if whole[at] == 0x1c {
                heap.push(at);
            }
            let length = [5, 6, 7, 8].map(|n| whole[at + n]);
            at += HEAD + u32::from_be_bytes(length) as usize;
        }
        let place = Self {
            folder: tempfile::tempdir().expect("a folder"),
            heap,
            whole,
        };
        place.write("a.hprof", &dump(100));
        place.write("whole.hprof", &place.whole);
        let merged = place.heap[1] + 1000;
        place.write("b.hprof", &place.whole[..merged]);
        let [first, last] = place.segments();
        place.write("b.hprof.p0", first);
        place.write("b.hprof.p1", last);
        place
    }

    fn segments(&self) -> [&[u8]; 2] {
        let middle = self.heap[self.heap.len() / 2];
        let end = self.whole.len() - HEAD;
        [&self.whole[self.heap[0]..middle], &self.whole[middle..end]]
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.at(name), bytes).expect("a file");
    }

    /// Returns standard output and standard error of a run that ends with `code`.
    #[track_caller]
    fn ends(&self, code: i32, args: &[&str]) -> (String, String) {
        let mut command = crate::support::heapdiff(self.folder.path(), args);
        command.env("XDG_CACHE_HOME", self.at("cache"));
        let done = command.output().expect("a run");
        let text = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            // Join wrapped lines.
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let (out, err) = (text(&done.stdout), text(&done.stderr));
        assert_eq!(done.status.code(), Some(code), "{args:?}: {err}");
        (out, err)
    }

    /// Checks that no gate (`--fail-on-...`) is checked, and that every format contains the reason `why`. With
    /// `--allow-partial`, the gates must be checked, and the exit code must be `code`.
    #[track_caller]
    fn is_undecided(&self, why: &str, code: i32) {
        let gate = ["a.hprof", "b.hprof", "--fail-on-growth", "1MiB"];
        let (_, err) = self.ends(3, &gate);
        let undecided = "the gates (--fail-on-...) were not checked: b.hprof";
        assert!(err.contains(undecided) && err.contains(why), "{err}");
        self.ends(code, &[&gate[..], &["--allow-partial"]].concat());
        for format in ["text", "json", "html", "md", "junit", "sarif", "github"] {
            let (out, err) = self.ends(0, &["a.hprof", "b.hprof", "--format", format]);
            assert!(
                out.contains(why) || err.contains(why),
                "{format}: {out} {err}"
            );
        }
        for format in ["text", "json", "html", "md", "sarif", "github"] {
            let (out, err) = self.ends(0, &["b.hprof", "--format", format]);
            assert!(
                out.contains(why) || err.contains(why),
                "{format}: {out} {err}"
            );
        }
        let (out, _) = self.ends(0, &["top", "b.hprof", "--format", "json"]);
        assert!(out.contains("\"partial\": true"), "{out}");
        let (_, err) = self.ends(3, &["top", "b.hprof", "--strict"]);
        assert!(err.contains("--strict refuses damaged files"), "{err}");
    }
}

#[test]
fn a_dump_and_its_segments_are_judged_as_one_dump() {
    let place = Place::new();
    for dump in ["b.hprof", "b.hprof.p0", "b.hprof.p1"] {
        for gate in [&["--fail-on-growth", "1MiB"][..], &["--fail-on-suspect"]] {
            let (out, err) = place.ends(1, &[&["a.hprof", dump], gate].concat());
            assert!(
                out.contains("com.acme.Requests.all") && err.contains(NOTE),
                "{out} {err}"
            );
        }
        place.ends(
            0,
            &[
                "whole.hprof",
                dump,
                "--fail-on-growth",
                "1MiB",
                "--allow-partial",
            ],
        );
        let (out, err) = place.ends(0, &["top", dump, "--strict", "--format", "json"]);
        assert!(
            out.contains(NOTE) && out.contains("\"partial\": false"),
            "{out}"
        );
        assert!(
            out.contains("\"path\": \"b.hprof\"") && err.contains(NOTE),
            "{out}"
        );
        let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!(crate::schema::faults("top", &report), [] as [String; 0]);
    }
    for format in ["text", "json", "html", "md"] {
        let (out, err) = place.ends(0, &["a.hprof", "b.hprof", "--format", format]);
        assert!(
            out.contains(NOTE) || err.contains(NOTE),
            "{format}: {out} {err}"
        );
        let (out, err) = place.ends(0, &["b.hprof", "--format", format]);
        assert!(
            out.contains(NOTE) || err.contains(NOTE),
            "{format}: {out} {err}"
        );
    }
}

#[test]
fn every_command_reads_a_dump_with_its_segments() {
    let place = Place::new();
    let select =
        "SELECT class, count(*), sum(retained_bytes) FROM objects GROUP BY class ORDER BY 1";
    for args in [
        &["histo"][..],
        &["histo", "--retained"],
        &["top"],
        &["threads"],
        &["waste"],
        &["query", select],
        &["paths", "com.acme.Requests"],
        &["show", "com.acme.Requests"],
        &["sizeof", "com.acme.Requests"],
    ] {
        let of = |dump| {
            let (command, rest) = (&args[..1], &args[1..]);
            let (out, err) = place.ends(0, &[command, &[dump], rest].concat());
            (out.replace(dump, "DUMP"), err)
        };
        // The second run on the complete dump has an index. A dump with segments does not get an index.
        for _ in 0..2 {
            let (whole, _) = of("whole.hprof");
            let (out, err) = of("b.hprof");
            assert_eq!(out, whole, "{args:?}");
            assert!(err.contains(NOTE), "{args:?}: {err}");
        }
    }
    assert!(!place.at("b.hprof.hdx").exists());
    let (_, err) = place.ends(0, &["summarize", "b.hprof.p1", "-o", "b.heap"]);
    assert!(err.contains(NOTE), "{err}");
}

#[test]
fn a_cached_summary_covers_the_dump_and_its_segments() {
    let place = Place::new();
    let gate = ["a.hprof", "b.hprof", "--fail-on-growth", "12MiB"];
    place.ends(1, &gate);
    assert!(place.at("b.hprof.hds").exists());
    let (_, err) = place.ends(1, &gate);
    assert!(err.contains(NOTE), "{err}");
    fs::remove_file(place.at("b.hprof.p1")).expect("a segment");
    let (out, err) = place.ends(0, &["a.hprof", "b.hprof", "--format", "json"]);
    assert!(
        out.contains("heapdiff read b.hprof together with 1 unmerged segment (b.hprof.p0)"),
        "{err}"
    );
    place.ends(0, &gate);
}

#[test]
fn no_gate_passes_if_a_segment_is_cut_off() {
    let place = Place::new();
    let [first, last] = place.segments();
    place.write("b.hprof.p1", &last[..last.len() - 20]);
    place.is_undecided("b.hprof.p1 is truncated", 1);
    place.write("b.hprof.p1", last);
    place.write("b.hprof.p0", &first[..first.len() - 20]);
    place.is_undecided(
        "objects and GC roots in the rest of the record are missing from all figures",
        1,
    );
}

#[test]
fn no_gate_passes_if_segments_are_not_read() {
    let place = Place::new();
    let heap = &place.heap;
    let all = "2 unmerged segments not read (b.hprof.p0, b.hprof.p1): ";
    // The end of the dump's main file (`b.hprof`) matches no segment, because one byte was changed. So heapdiff does
    // not find out where the segments belong, and reads none of them. The object that holds the arrays is in a segment.
    let mut base = place.whole[..heap[6] + 300].to_vec();
    base[heap[5] + 200] ^= 1;
    place.write("b.hprof", &base);
    place.is_undecided(all, 0);
    place.is_undecided(
        "heapdiff did not find where in the dump file the content of the first segment begins",
        0,
    );
    // The segment may begin at two offsets in the dump's main file (`b.hprof`): the end of this file matches it at
    // both offsets.
    let record = &place.whole[heap[2]..heap[3]];
    place.write(
        "b.hprof",
        &[&place.whole[..heap[6]], record, record].concat(),
    );
    place.write("b.hprof.p0", &[record, record, record].concat());
    place.is_undecided(
        "the content of the first segment may begin at several places in the dump file",
        0,
    );
    // The dump's main file (`b.hprof`) contains no heap records.
    place.write("b.hprof", &place.whole[..heap[0] - 1]);
    let (_, err) = place.ends(3, &["top", "b.hprof"]);
    assert!(
        err.contains("the dump contains no objects") && err.contains(all),
        "{err}"
    );
}

#[test]
fn a_repaired_dump_is_the_merged_dump() {
    let place = Place::new();
    let (out, err) = place.ends(0, &["repair", "b.hprof.p1", "-o", "y.hprof"]);
    assert!(
        out.contains("missing nothing") && err.contains(NOTE),
        "{out} {err}"
    );
    assert!(fs::read(place.at("y.hprof")).expect("a dump") == place.whole);
    for output in ["b.hprof", "b.hprof.p0"] {
        place.ends(2, &["repair", "b.hprof", "-o", output, "--force"]);
    }
}

#[test]
fn a_redacted_dump_is_complete_and_no_segment_is_overwritten() {
    let place = Place::new();
    let (_, err) = place.ends(0, &["redact", "b.hprof.p0", "-o", "redacted.hprof"]);
    assert!(err.contains(NOTE), "{err}");
    let redacted = fs::read(place.at("redacted.hprof")).expect("a dump");
    assert_eq!(redacted.len(), place.whole.len());
    let (_, err) = place.ends(0, &["top", "redacted.hprof", "--strict"]);
    assert_eq!(err, "");
    place.ends(0, &["redact", "redacted.hprof", "--check"]);
    for output in ["b.hprof", "b.hprof.p0", "b.hprof.p1"] {
        let before = fs::read(place.at(output)).expect("a file");
        place.ends(2, &["redact", "b.hprof", "-o", output]);
        place.ends(2, &["top", "b.hprof", "--format", "text", "-o", output]);
        assert!(fs::read(place.at(output)).expect("a file") == before);
    }
}
