//! Tests cached summaries beside dumps. They make the next comparison faster, and do not change its results.

use std::fs;
use std::path::{Path, PathBuf};

use testdata::writer::{Elements, FieldType, HeapBuilder, Options, Root, Value};

/// A folder with three dumps of one program. Each dump is large enough that heapdiff caches its summary.
struct Place {
    folder: tempfile::TempDir,
}

const BEFORE: &str = "before.hprof";
const AFTER: &str = "after.hprof";
const LATER: &str = "later.hprof";

fn dump(entries: usize) -> Vec<u8> {
    let mut heap = HeapBuilder::new(Options::default());
    let boot = heap.boot();
    let loader_class = heap.add_class("com.acme.AppLoader", Some(boot.class_loader), &[], &[]);
    let loader = heap.add_class_loader(loader_class, "app");
    let registry = [("entries", Value::NULL)];
    let registry = heap.add_class("com.acme.Registry", Some(boot.object), &[], &registry);
    heap.set_loader(registry, loader);
    heap.add_root(Root::JniGlobal { global_ref: 1 }, loader);
    let size = Elements::Zeros(FieldType::Byte, 1000);
    let bytes: Vec<_> = (0..entries)
        .map(|_| heap.add_primitive_array(size.clone()))
        .collect();
    let all = heap.add_object_array(boot.object, bytes);
    heap.set_static(registry, "entries", all);
    let large = heap.add_primitive_array(Elements::Zeros(FieldType::Long, 5 << 19));
    heap.add_root(Root::JniGlobal { global_ref: 5 }, large);
    heap.build()
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, entries) in [(BEFORE, 300), (AFTER, 700), (LATER, 1100)] {
            fs::write(folder.path().join(name), dump(entries)).expect("a dump");
        }
        Self { folder }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns standard output and standard error of a run that succeeds.
    #[track_caller]
    fn answer(&self, args: &[&str]) -> (String, String) {
        let mut command = crate::support::heapdiff(self.folder.path(), args);
        command.env("XDG_CACHE_HOME", self.at("cache"));
        let done = command.output().expect("a run");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let stderr = text(&done.stderr);
        assert!(done.status.success(), "{args:?}: {stderr}");
        (text(&done.stdout), stderr)
    }

    fn kept(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).expect("the folder");
        let names = entries.map(|e| e.expect("an entry").file_name());
        let names = names.map(|name| name.to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|n| !n.ends_with(".hprof")).collect();
        names.sort();
        names
    }
}

/// A message that is printed only if two dumps are read at the same time.
const BOTH: &str = "both dumps are loaded at the same time";

#[test]
fn dumps_loaded_in_parallel_give_the_same_report() {
    let place = Place::new();
    for format in ["text", "json", "html"] {
        let of = |more: &[&str]| {
            let args = [BEFORE, AFTER, "--format", format, "--verbose", "--no-index"];
            place.answer(&[&args[..], more].concat())
        };
        let (alone, said) = of(&["--threads", "7"]);
        assert!(!said.contains(BOTH), "{said}");
        let (both, said) = of(&["--threads", "8"]);
        assert!(said.contains(BOTH), "{said}");
        assert_eq!(both, alone, "{format}");
        let (limited, said) = of(&["--threads", "8", "--max-memory", "1G"]);
        assert!(!said.contains(BOTH), "{said}");
        assert_eq!(limited, alone, "{format}");
    }
    // The first of these runs writes the summaries of both dumps beside the dumps. The second run uses the summary of
    // the earlier dump, so heapdiff has to read only one dump.
    let args = [BEFORE, AFTER, "--threads", "8", "--verbose"];
    let (first, said) = place.answer(&args);
    assert!(said.contains(BOTH), "{said}");
    assert_eq!(place.kept(), ["after.hprof.hds", "before.hprof.hds"]);
    let (again, said) = place.answer(&args);
    assert!(!said.contains(BOTH), "{said}");
    assert_eq!(again, first);
    // The error names the dump that cannot be read.
    for bad in [BEFORE, AFTER] {
        let mut bytes = fs::read(place.at(bad)).expect("a dump");
        bytes.truncate(64);
        fs::write(place.at("bad.hprof"), bytes).expect("a file");
        let dumps = match bad {
            BEFORE => ["bad.hprof", AFTER],
            _ => [BEFORE, "bad.hprof"],
        };
        let args = [&dumps[..], &["--threads", "8", "--strict"]].concat();
        let done = crate::support::heapdiff(&place.at(""), &args).output();
        let done = done.expect("a run");
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert!(
            !done.status.success() && stderr.contains("bad.hprof"),
            "{stderr}"
        );
    }
}

#[test]
fn a_second_comparison_loads_only_the_last_dump() {
    let place = Place::new();
    let formats = ["text", "json", "html", "md", "junit"];
    let of = |dumps: &[&str], format: &str, more: &[&str]| {
        place.answer(&[dumps, &["--format", format], more].concat())
    };
    for dumps in [&[BEFORE, AFTER][..], &[BEFORE, AFTER, LATER]] {
        let expected = formats.map(|format| of(dumps, format, &["--no-index"]).0);
        assert!(expected[1].contains("com.acme.Registry.entries"));
        let _ = place.answer(&["index", "clean", "."]);
        for round in ["made", "kept"] {
            let found = formats.map(|format| of(dumps, format, &[]).0);
            for (format, (expected, found)) in formats.iter().zip(expected.iter().zip(&found)) {
                assert!(expected == found, "{dumps:?}, {round}, {format}");
            }
        }
        let mut files: Vec<String> = dumps.iter().map(|d| format!("{d}.hds")).collect();
        files.sort();
        assert_eq!(place.kept(), files, "no index is written");
        let (_, said) = of(dumps, "text", &["-v"]);
        assert_eq!(said.matches("linking").count(), 1, "{said}");
        assert!(!said.contains("merging the dominator tree"), "{said}");
    }
    // The first dump is now compared with a different second dump.
    let _ = place.answer(&["index", "clean", LATER, AFTER]);
    let (_, said) = of(&[BEFORE, LATER], "text", &["-v"]);
    assert_eq!(said.matches("linking").count(), 1, "{said}");
    assert_eq!(
        said.matches("merging the dominator tree").count(),
        1,
        "{said}"
    );
    assert_eq!(place.kept(), ["before.hprof.hds", "later.hprof.hds"]);
}

/// Writes two dumps with samples to the folder, and returns their file names. Each dump has a long string that is not
/// used, which makes it large enough for a cached summary.
fn sampled(place: &Place) -> [&'static str; 2] {
    let mut name = vec![1];
    name.extend(0_u32.to_be_bytes());
    name.extend((17_u32 << 20).to_be_bytes());
    name.resize(name.len() + (17 << 20), b'n');
    let testdata = crate::support::testdata();
    for (from, to) in [("sampled-before", BEFORE), ("sampled-after", AFTER)] {
        let mut bytes = testdata::dumps::unpacked(&testdata.join(format!("{from}.hprof.gz")));
        bytes.extend(&name);
        fs::write(place.at(to), bytes).expect("a dump");
    }
    [BEFORE, AFTER]
}

#[test]
fn cached_summaries_give_the_same_stacks_in_every_format() {
    let place = Place::new();
    crate::support::prepare(place.folder.path());
    let pair = sampled(&place);
    let formats = [
        "text",
        "json",
        "html",
        "md",
        "junit",
        "collapsed",
        "pprof",
        "svg",
    ];
    let options: [&[&str]; 4] = [
        &[],
        &["--trace", "shop.db"],
        &["--include", "Orders*"],
        &["--refs", "strong"],
    ];
    for more in options {
        let report = |format: &str, last: &[&str]| {
            let file = format!("report.{format}");
            let of_report = ["--format", format, "-o", &file, "-v"];
            let said = place
                .answer(&[&pair[..], &of_report, more, last].concat())
                .1;
            (fs::read(place.at(&file)).expect("a report"), said)
        };
        let expected = formats.map(|format| report(format, &["--no-index"]).0);
        assert!(expected.iter().all(|report| report.len() > 100), "{more:?}");
        place.answer(&["index", "clean", "."]);
        for round in ["made", "kept"] {
            for (format, expected) in formats.iter().zip(&expected) {
                let (found, said) = report(format, &[]);
                assert!(
                    found == *expected,
                    "{more:?}, {round}, {format}: another report"
                );
                let read = said.contains("reading the summary");
                assert_eq!(
                    read,
                    (round, *format) != ("made", "text"),
                    "{format}: {said}"
                );
            }
        }
    }
}

#[test]
fn a_summary_file_replaces_its_dump_in_every_format() {
    let place = Place::new();
    crate::support::prepare(place.folder.path());
    let [before, after] = sampled(&place);
    let third = "testdata/sampled-after.hprof.gz";
    for format in ["text", "json", "html", "pprof"] {
        for (dumps, refs) in [
            (&[before, after][..], "soft"),
            (&[before, after, third], "all"),
        ] {
            let report = |dumps: &[&str]| {
                let file = format!("report.{format}");
                let more = [
                    "--format",
                    format,
                    "-o",
                    &file,
                    "--no-index",
                    "--refs",
                    refs,
                ];
                place.answer(&[dumps, &more].concat());
                fs::read(place.at(&file)).expect("a report")
            };
            let expected = report(dumps);
            // Each dump except the last is renamed, and its summary file gets the name that the dump had.
            let mut named = Vec::new();
            for dump in &dumps[..dumps.len() - 1] {
                let away = format!("{dump}.away");
                place.answer(&["summarize", dump, "-o", "one.heap", "--refs", refs]);
                fs::rename(place.at(dump), place.at(&away)).expect("a dump");
                fs::rename(place.at("one.heap"), place.at(dump)).expect("a summary");
                named.push((away, *dump));
            }
            let found = report(dumps);
            for (away, dump) in named {
                fs::rename(place.at(&away), place.at(dump)).expect("a dump");
            }
            assert!(found == expected, "{format}, {refs}");
        }
    }
}

/// Two summaries are compared like their dumps. Each format lists the parts of the report that are left out.
#[test]
fn two_summaries_are_compared_in_every_format() {
    let place = Place::new();
    for name in [BEFORE, AFTER, LATER] {
        place.answer(&["summarize", name, "-o", &format!("{name}.heap")]);
    }
    let heap = |name: &str| format!("{name}.heap");
    let (before, after, later) = (heap(BEFORE), heap(AFTER), heap(LATER));
    let report = |dumps: &[&str], format: &str| {
        let args = [dumps, &["--format", format]].concat();
        place.answer(&args).0
    };
    const LEFT_OUT: &str = "eft out, because later.hprof.heap is a summary: ";
    for format in ["text", "md", "html"] {
        let told = report(&[&before, &after, &later], format);
        assert!(told.contains(LEFT_OUT), "{format}: {told}");
        assert!(told.contains("com.acme.Registry.entries"), "{format}");
        let told = report(&[&before, &after, LATER], format);
        assert!(!told.contains("eft out, because"), "{format}: {told}");
    }
    let json = |dumps: &[&str]| -> serde_json::Value {
        let mut report: serde_json::Value =
            serde_json::from_str(&report(dumps, "json")).expect("JSON");
        for at in 0..3 {
            report["snapshots"][at]["path"] = "dump".into();
        }
        report
    };
    let mut of_summaries = json(&[&before, &after, &later]);
    let left_out = of_summaries["left_out"].take();
    assert_eq!(left_out, serde_json::json!(["next commands"]));
    for suspect in of_summaries["suspects"].as_array_mut().expect("a list") {
        let own = suspect.as_object_mut().and_then(|s| s.remove("left_out"));
        assert_eq!(own, Some(left_out.clone()));
    }
    // All arguments except the last can also be dumps.
    let mut mixed = json(&[&before, AFTER, &later]);
    for suspect in mixed["suspects"].as_array_mut().expect("a list") {
        suspect.as_object_mut().and_then(|s| s.remove("left_out"));
    }
    assert_eq!(mixed["left_out"].take(), left_out);
    assert_eq!(mixed, of_summaries);
    let mut of_dumps = json(&[BEFORE, AFTER, LATER]);
    assert!(of_dumps.get("left_out").is_none());
    of_dumps["left_out"] = serde_json::Value::Null;
    let suspects = of_dumps["suspects"].as_array_mut().expect("a list");
    for suspect in suspects {
        assert!(
            suspect["next"]
                .as_array()
                .is_some_and(|next| !next.is_empty())
        );
        suspect["next"] = serde_json::json!([]);
    }
    assert_eq!(of_dumps, of_summaries);
}

/// In a comparison, a summary with a recording replaces the dump and the recording. A recording can also be given
/// together with summaries of the dumps.
#[test]
fn a_summary_keeps_the_stacks_of_a_recording() {
    let place = Place::new();
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata");
    for name in [
        "joined-before.hprof.gz",
        "joined-after.hprof.gz",
        "joined.jfr.gz",
        "recorded.jfr.gz",
    ] {
        fs::copy(testdata.join(name), place.at(name)).expect("a copy");
    }
    let (before, after) = ("joined-before.hprof.gz", "joined-after.hprof.gz");
    let with = ["--recording", "joined.jfr.gz"];
    place.answer(&["summarize", before, "-o", "before.heap"]);
    place.answer(&["summarize", after, "-o", "plain.heap"]);
    place.answer(&[&["summarize", after, "-o", "after.heap"], &with[..]].concat());
    let json = |args: &[&str]| -> serde_json::Value {
        let args = [args, &["--format", "json", "--top", "100"]].concat();
        let report = place.answer(&args).0;
        let mut report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
        for suspect in report["suspects"].as_array_mut().expect("a list") {
            suspect["next"] = serde_json::json!([]);
            suspect.as_object_mut().and_then(|s| s.remove("left_out"));
        }
        report
    };
    let expected = json(&[&[before, after], &with[..]].concat());
    let stack = &expected["suspects"][0]["stacks"][0];
    assert_eq!(stack["source"], "recording");
    assert!(
        stack["probability_permille"].as_u64() > Some(500),
        "{stack}"
    );
    for args in [
        &["before.heap", "after.heap"][..],
        &[before, "after.heap"],
        &["before.heap", "plain.heap", "--recording", "joined.jfr.gz"],
        &["before.heap", "after.heap", "--recording", "joined.jfr.gz"],
    ] {
        let report = json(args);
        assert_eq!(report["suspects"], expected["suspects"], "{args:?}");
        assert_eq!(report["recordings"][0]["path"], "joined.jfr.gz");
        assert_eq!(report["recordings"].as_array().map(Vec::len), Some(1));
    }
    assert!(
        json(&["before.heap", "plain.heap"])
            .get("recordings")
            .is_none()
    );
    let other = [
        "summarize",
        after,
        "-o",
        "x.heap",
        "--recording",
        "recorded.jfr.gz",
    ];
    let mut refused = crate::support::heapdiff(place.folder.path(), &other);
    let refused = refused.output().expect("a run");
    assert_eq!(refused.status.code(), Some(3));
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        message.contains("not a recording of the JVM of the dumps"),
        "{message}"
    );
    assert!(!place.at("x.heap").exists());
}

#[test]
fn the_option_no_index_disables_cached_summaries() {
    let place = Place::new();
    place.answer(&[BEFORE, AFTER, "--no-index"]);
    assert!(place.kept().is_empty());
    place.answer(&[BEFORE, AFTER]);
    let (_, said) = place.answer(&[BEFORE, AFTER, "--no-index", "-v"]);
    assert!(!said.contains("summary"), "{said}");
    // For each choice of references that retain objects (`--refs`), there is a separate summary.
    let (_, said) = place.answer(&[BEFORE, AFTER, "--refs", "strong", "-v"]);
    assert!(!said.contains("reading the summary"), "{said}");
    assert_eq!(place.kept().len(), 4);
}

#[test]
fn a_stale_or_damaged_summary_is_rebuilt() {
    let place = Place::new();
    let pair = [BEFORE, AFTER, "--format", "json"];
    let expected = place.answer(&[&pair[..], &["--no-index"]].concat()).0;
    place.answer(&pair);
    let file = place.at("before.hprof.hds");
    let whole = fs::read(&file).expect("the summary");
    for at in [0, 20, 30, 40, 90, whole.len() / 2, whole.len() - 1] {
        let mut damaged = whole.clone();
        damaged[at] ^= 8;
        fs::write(&file, damaged).expect("a damaged summary");
        let (found, said) = place.answer(&[&pair[..], &["-v"]].concat());
        assert!(found == expected, "byte {at}");
        assert!(said.contains("before.hprof.hds is not used ("), "{said}");
        assert!(fs::read(&file).expect("the summary") == whole, "byte {at}");
    }
    fs::write(&file, &whole[..whole.len() / 2]).expect("half a summary");
    let (found, said) = place.answer(&pair);
    assert!(found == expected);
    assert!(said.ends_with(
        "is not used (damaged: the file is truncated); heapdiff reads the dump instead\n"
    ));
    assert_eq!(said.lines().count(), 1, "{said}");
    // If the dump is replaced, its old summary is not an error.
    fs::copy(place.at(LATER), place.at(BEFORE)).expect("another dump");
    let (found, said) = place.answer(&pair);
    assert_eq!(said, "");
    let expected = place.answer(&[&pair[..], &["--no-index"]].concat()).0;
    assert!(found == expected);
}

#[test]
fn compressed_dumps_get_summaries_and_small_ones_do_not() {
    let place = Place::new();
    crate::support::prepare(place.folder.path());
    let packed = |name: &str| {
        let bytes = fs::read(place.at(name)).expect("a dump");
        let packed = testdata::writer::compress(&bytes, testdata::writer::Gzip::Plain)
            .expect("a packed dump");
        fs::write(place.at(&format!("{name}.gz")), packed).expect("a packed dump");
    };
    packed(BEFORE);
    packed(AFTER);
    let testdata = ["testdata/before.hprof.gz", "testdata/after.hprof.gz"];
    place.answer(&testdata);
    assert!(!Path::new(&place.at("testdata/before.hprof.gz.hds")).exists());
    let pair = ["before.hprof.gz", "after.hprof.gz"];
    let (first, _) = place.answer(&[&pair[..], &["-v"]].concat());
    assert!(place.at("before.hprof.gz.hds").exists());
    let (second, said) = place.answer(&[&pair[..], &["-v"]].concat());
    assert_eq!(said.matches("linking").count(), 1, "{said}");
    assert_eq!(first, second);
}
