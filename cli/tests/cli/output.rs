//! Tests how reports are written: a file is written completely or not at all, and a repeated run writes the same bytes.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Output, Stdio};
use testdata::writer::{self, Elements, HeapBuilder, Root, Value};

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    crate::support::prepare(folder.path());
    folder
}

fn run(folder: &Path, args: &[&str]) -> Output {
    crate::support::heapdiff(folder, args)
        .output()
        .expect("a run")
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .expect("the folder")
        .map(|e| e.expect("an entry").file_name().to_string_lossy().into())
        .collect();
    names.sort();
    names
}

const SAMPLED: &str = "testdata/sampled-after.hprof.gz";
const DUMP: &str = "testdata/before.hprof.gz";

#[test]
fn the_extension_names_the_format() {
    let folder = folder();
    let before = files(folder.path());
    let printed = run(folder.path(), &["histo", DUMP, "--format", "json"]);
    for _ in 0..2 {
        // The second run replaces the file of the first.
        let done = run(folder.path(), &["histo", DUMP, "-o", "report.json"]);
        assert!(done.status.success() && done.stdout.is_empty());
        let written = fs::read(folder.path().join("report.json")).expect("a report");
        assert_eq!(written, printed.stdout);
    }
    let done = run(folder.path(), &["histo", DUMP, "-o", "report.txt"]);
    assert!(done.status.success());
    let text = fs::read_to_string(folder.path().join("report.txt")).expect("a report");
    assert!(text.starts_with("testdata/before.hprof.gz  "), "{text}");
    let mut expected = before;
    expected.extend(["report.json".into(), "report.txt".into()]);
    expected.sort();
    assert_eq!(files(folder.path()), expected, "nothing else is left");
}

/// One analysis writes several reports. Each must equal the report of a separate run.
#[test]
fn a_report_goes_to_several_files() {
    let folder = folder();
    let dumps = ["testdata/sampled-before.hprof.gz", SAMPLED];
    let names = ["all.json", "all.html", "all.md", "all.collapsed", "all.xml"];
    let mut args = dumps.to_vec();
    names.iter().for_each(|name| args.extend(["-o", name]));
    args.extend(["--fail-on-suspect"]);
    let done = run(folder.path(), &args);
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    for name in names {
        let alone = name.replace("all", "one");
        let done = run(
            folder.path(),
            &[&dumps[..], &["-o", &alone, "--fail-on-suspect"]].concat(),
        );
        assert_eq!(done.status.code(), Some(1));
        let [all, one] =
            [name, &alone].map(|name| fs::read(folder.path().join(name)).expect("a report"));
        assert!(all == one, "{name}");
    }
    // The report of one dump can be written to several files, too.
    let done = run(
        folder.path(),
        &[SAMPLED, "-o", "heap.json", "-o", "heap.html"],
    );
    assert!(done.status.success(), "{done:?}");
    for (args, why) in [
        (&["-o", "a.json", "-o", "a.json"][..], "given twice"),
        (
            &["-o", "a.json", "-o", "b.html", "--format", "md"],
            "allows only one -o",
        ),
        (
            &["-o", "a.json", "-o", "b.parquet"],
            "cannot write the format parquet",
        ),
    ] {
        let done = run(folder.path(), &[&dumps[..], args].concat());
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(
            done.status.code() == Some(2) && said.contains(why),
            "{said}"
        );
    }
    assert!(!folder.path().join("a.json").exists());
}

/// A JSON report can be written again in any format, with the same result as an analysis of the dumps. Data that a JSON
/// report does not contain is missing in the output.
#[test]
fn a_json_report_is_rendered_again() {
    let folder = folder();
    let dumps = ["testdata/sampled-before.hprof.gz", SAMPLED];
    for (inputs, gates) in [
        (&dumps[..], &["--fail-on-growth", "1KiB"][..]),
        (&dumps[1..], &[]),
    ] {
        let done = run(folder.path(), &[inputs, &["-o", "report.json"]].concat());
        assert!(done.status.success());
        for format in ["text", "md", "json"] {
            let options = [&["--format", format][..], gates].concat();
            let again = run(folder.path(), &[&["report.json"], &options[..]].concat());
            let fresh = run(folder.path(), &[inputs, &options[..]].concat());
            assert_eq!(again.status.code(), fresh.status.code());
            let [again, fresh] = [again, fresh].map(|d| String::from_utf8(d.stdout).expect("text"));
            assert_eq!(again, fresh, "{format}");
        }
        let done = run(folder.path(), &["report.json", "-o", "report.html"]);
        assert!(done.status.success(), "{done:?}");
    }
    for (args, why) in [
        (
            &["report.json", "--fail-on-suspect"][..],
            "need a report of two dumps",
        ),
        (
            &["report.json", "-o", "a.svg"],
            "cannot write the format svg",
        ),
        (
            &["report.json", "--include", "Orders"],
            "--include needs dumps",
        ),
        (&["report.json", SAMPLED], "not a heap dump"),
    ] {
        let done = run(folder.path(), args);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(
            !done.status.success() && said.contains(why),
            "{args:?}: {said}"
        );
    }
    fs::write(folder.path().join("other.json"), "{\"schema\": \"x\"}").expect("a file");
    let done = run(folder.path(), &["other.json"]);
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(
        done.status.code() == Some(3)
            && said.contains("but a report about heap dumps is needed (heapdiff.diff/1)"),
        "{said}"
    );
}

#[test]
fn nonsensical_outputs_are_refused() {
    let folder = folder();
    let dump = fs::read(folder.path().join(DUMP)).expect("the dump");
    for (file, why) in [
        (DUMP, "would overwrite the input testdata/before.hprof.gz"),
        ("./testdata/../testdata/before.hprof.gz", "would overwrite"),
        ("folder.hprof", "is a directory"),
        ("no/such/report.json", "does not exist"),
        ("report.docx", "unknown extension"),
        ("report", "unknown extension"),
    ] {
        let done = run(folder.path(), &["histo", DUMP, "-o", file]);
        let stderr = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(2), "{file}: {stderr}");
        assert!(stderr.contains(why), "{file}: {stderr}");
    }
    assert_eq!(fs::read(folder.path().join(DUMP)).expect("it"), dump);
}

#[cfg(unix)]
#[test]
fn links_are_followed() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    std::os::unix::fs::symlink(at(DUMP), at("dump.json")).expect("a link");
    let done = run(folder.path(), &["histo", DUMP, "-o", "dump.json"]);
    assert_eq!(done.status.code(), Some(2), "it leads to the dump");
    fs::write(at("real.json"), "old").expect("a file");
    std::os::unix::fs::symlink(at("real.json"), at("link.json")).expect("a link");
    let done = run(folder.path(), &["histo", DUMP, "-o", "link.json"]);
    assert!(done.status.success());
    assert!(at("link.json").is_symlink());
    assert_ne!(fs::read(at("real.json")).expect("the file"), b"old");
    let done = run(
        folder.path(),
        &["histo", DUMP, "--format", "json", "-o", "/dev/null"],
    );
    assert!(done.status.success());
}

#[test]
fn a_failed_run_leaves_the_old_report() {
    let folder = folder();
    let report = folder.path().join("report.json");
    fs::write(&report, "old").expect("a file");
    let done = run(folder.path(), &["histo", "letter.txt", "-o", "report.json"]);
    assert_eq!(done.status.code(), Some(3));
    let done = run(
        folder.path(),
        &["histo", "cut.hprof", "--strict", "-o", "report.json"],
    );
    assert_eq!(done.status.code(), Some(3));
    assert_eq!(fs::read(&report).expect("the file"), b"old");
}

/// Starts a run that writes a large report, and sends a signal while it writes.
#[cfg(target_os = "linux")]
fn interrupted(folder: &Path, start: &str, signal: &str) -> std::process::ExitStatus {
    let program = env!("CARGO_BIN_EXE_heapdiff");
    let script = format!("{start} exec '{program}' top {DUMP} --top 1000000 -o report.json");
    let mut child = std::process::Command::new("sh")
        .args(["-c", &script])
        .current_dir(folder)
        .spawn()
        .expect("a run");
    let begun = || files(folder).iter().any(|f| f.starts_with(".heapdiff-"));
    while !begun() {
        assert!(child.try_wait().expect("a state").is_none(), "it ended");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let kill = format!("kill -{signal} {}", child.id());
    let sent = std::process::Command::new("sh")
        .args(["-c", &kill])
        .status();
    assert!(sent.expect("a shell").success());
    child.wait().expect("an end")
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_leaves_no_half_report() {
    use std::os::unix::process::ExitStatusExt;
    let folder = folder();
    let report = folder.path().join("report.json");
    fs::write(&report, "old").expect("a file");
    let before = files(folder.path());
    // Child processes inherit ignored signals from the tests (`nohup`, background jobs).
    let status = fs::read_to_string("/proc/self/status").expect("the state");
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    let ignored = u64::from_str_radix(mask.expect("a mask").trim(), 16).expect("a number");
    for (signal, number) in [("TERM", 15), ("HUP", 1), ("INT", 2)] {
        let ends = ignored & (1 << (number - 1)) == 0;
        // On a busy machine the signal may arrive after the report is complete. In this case the test tries again.
        for attempt in 1.. {
            fs::write(&report, "old").expect("a file");
            let end = interrupted(folder.path(), "", signal);
            assert_eq!(files(folder.path()), before, "{signal}");
            let text = fs::read(&report).expect("the file");
            assert!(text == b"old" || text.ends_with(b"}\n"), "half a report");
            let kept = text == b"old" && end.signal() == Some(number);
            if kept == ends {
                break;
            }
            assert!(attempt < 20, "{signal}: {end}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_ignored_signal_stays_ignored() {
    let folder = folder();
    for signal in ["HUP", "INT"] {
        let end = interrupted(folder.path(), "trap '' HUP INT;", signal);
        assert!(end.success(), "{signal}: {end}");
    }
    let report = fs::read_to_string(folder.path().join("report.json")).expect("a report");
    assert!(report.ends_with("}\n"));
}

#[test]
fn a_closed_output_pipe_is_not_a_failure() {
    let folder = folder();
    let mut child = crate::support::heapdiff(folder.path(), &["histo", DUMP, "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a run");
    drop(child.stdout.take());
    let mut stderr = String::new();
    let mut pipe = child.stderr.take().expect("a pipe");
    pipe.read_to_string(&mut stderr).expect("text");
    assert!(child.wait().expect("an end").success());
    assert_eq!(stderr, "");
}

#[test]
fn runs_repeat_byte_for_byte() {
    let folder = folder();
    let after = "testdata/after.hprof.gz";
    for args in [
        &["histo", DUMP, "--retained"][..],
        &["top", DUMP],
        &["show", DUMP, "/./"],
        &["threads", DUMP],
        &["paths", DUMP, "/./"],
        &["sites", SAMPLED],
        &["testdata/sampled-before.hprof.gz", SAMPLED],
        &[DUMP, after],
    ] {
        let with = |threads| {
            let more = ["--format", "json", "--threads", threads];
            run(folder.path(), &[args, &more].concat())
        };
        let one = with("1");
        assert!(one.status.success());
        assert_eq!(one.stdout, with("4").stdout, "{args:?}");
    }
    for format in ["text", "html", "md", "collapsed", "pprof", "svg", "junit"] {
        let with = |threads| {
            let args = [
                "testdata/sampled-before.hprof.gz",
                SAMPLED,
                "--fail-on-suspect",
            ];
            let more = ["--format", format, "--threads", threads];
            run(folder.path(), &[&args[..], &more].concat())
        };
        let one = with("1");
        assert_eq!(one.status.code(), Some(1), "{format}");
        assert!(one.stdout.len() > 200, "{format}");
        assert_eq!(one.stdout, with("4").stdout, "{format}");
    }
}

#[test]
fn progress_is_shown_on_request() {
    let folder = folder();
    let stderr = |more: &[&str]| {
        let done = run(folder.path(), &[&["histo", DUMP], more].concat());
        assert!(done.status.success());
        String::from_utf8(done.stderr).expect("text")
    };
    assert_eq!(stderr(&[]), "", "this is no terminal");
    assert_eq!(stderr(&["--progress", "never"]), "");
    assert!(stderr(&["--progress", "always"]).contains("reading objects"));
    assert!(stderr(&["-v"]).contains("reading objects"));
}

#[test]
fn colours_are_used_on_request() {
    let folder = folder();
    let stdout = |more: &[&str]| {
        let done = run(folder.path(), &[&["histo", DUMP], more].concat());
        String::from_utf8(done.stdout).expect("text")
    };
    assert!(!stdout(&[]).contains('\x1b'));
    assert!(stdout(&["--color", "always"]).contains('\x1b'));
    assert!(!stdout(&["--color", "always", "--format", "json"]).contains('\x1b'));
}

/// Returns the output on a terminal with this number of columns.
#[cfg(target_os = "linux")]
fn on_terminal(folder: &Path, args: &[&str], columns: u16) -> String {
    use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};
    use rustix::termios::{Winsize, tcsetwinsize};

    let shown = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    unlockpt(&shown).expect("a terminal");
    let name = ptsname(&shown, Vec::new()).expect("a name");
    let name = name.to_str().expect("a path");
    let terminal = fs::OpenOptions::new().read(true).write(true).open(name);
    let terminal = terminal.expect("a terminal");
    let size = Winsize {
        ws_row: 50,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&terminal, size).expect("a size");
    let mut program = crate::support::heapdiff(folder, args)
        .args(["--color", "never"])
        .stdout(terminal)
        .stderr(Stdio::null())
        .spawn()
        .expect("a run");
    let reader = std::thread::spawn(move || {
        let (mut text, mut part) = (Vec::new(), [0; 4096]);
        // When the program has closed the terminal, reading returns an error.
        while let Ok(read @ 1..) = rustix::io::read(&shown, &mut part) {
            text.extend_from_slice(&part[..read]);
        }
        text
    });
    assert!(program.wait().expect("a run").success());
    let text = String::from_utf8(reader.join().expect("text")).expect("text");
    text.replace('\r', "")
}

/// Names are not shortened if the output is not a terminal, so that users can copy them.
#[cfg(target_os = "linux")]
#[test]
fn names_are_shortened_only_for_a_terminal() {
    let folder = folder();
    let args = ["top", DUMP, "--top", "20"];
    let name = "jdk.internal.loader.ClassLoaders$AppClassLoader";
    let done = run(folder.path(), &args);
    assert!(String::from_utf8_lossy(&done.stdout).contains(name));
    assert!(on_terminal(folder.path(), &args, 160).contains(name));
    let narrow = on_terminal(folder.path(), &args, 90);
    let row = narrow
        .lines()
        .find(|line| line.ends_with("$AppClassLoader"));
    let row = row.expect("the class loader");
    assert!(!row.contains(name) && row.contains('…'), "{row}");
    assert_eq!(row.chars().count(), 90, "{row}");
}

#[cfg(target_os = "linux")]
#[test]
fn text_fits_a_hundred_columns() {
    let folder = folder();
    for args in [
        &["histo", DUMP, "--top", "1000"][..],
        &["top", DUMP, "--top", "1000"],
        &["show", DUMP, "/./", "--top", "100"],
        &["threads", DUMP, "--top", "100"],
        &["paths", DUMP, "/./", "--top", "1000"],
        &["sites", SAMPLED, "--top", "1000"],
        &["sites", SAMPLED, "-v", "--progress", "never"],
        &["testdata/sampled-before.hprof.gz", SAMPLED],
        &[
            "testdata/sampled-before.hprof.gz",
            SAMPLED,
            "-v",
            "--progress",
            "never",
        ],
        &[
            "testdata/sampled-before.hprof.gz",
            SAMPLED,
            "--focus",
            "take",
        ],
        &[DUMP, "testdata/after.hprof.gz", "--top", "1000"],
    ] {
        let text = on_terminal(folder.path(), args, 100);
        let widest = text.lines().max_by_key(|line| line.chars().count());
        let widest = widest.expect("a line");
        assert!(widest.chars().count() <= 100, "{args:?}: {widest}");
    }
}

#[test]
fn every_shell_gets_its_script() {
    let folder = folder();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let done = run(folder.path(), &["completions", shell]);
        let script = String::from_utf8(done.stdout).expect("text");
        assert!(done.status.success(), "{shell}");
        for command in ["histo", "sites", "attach", "dump", "hunt"] {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
}

/// The agent's objects are not part of the program's heap, so reports include them only if the selector names them.
#[test]
fn the_agents_objects_are_not_shown() {
    let folder = folder();
    let text = |args: &[&str]| {
        let output = run(folder.path(), args);
        assert!(output.status.success(), "{args:?} {output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    let shows = |text: &str| text.contains("heapdiff.SampleRef") || text.contains("heapdiff agent");
    let sampled: &[&[&str]] = &[
        &["threads", SAMPLED, "--top", "100"],
        &["histo", SAMPLED, "--retained", "--top", "10000"],
        &["top", SAMPLED, "--top", "10000"],
        &["top", SAMPLED, "--under", "/./", "--top", "10000"],
        &["show", SAMPLED, "/java/", "--top", "300"],
        &["show", SAMPLED, "java.lang.Object[]", "--top", "300"],
        &["show", SAMPLED, "Orders$Order", "--top", "300"],
        &["show", SAMPLED, "java.lang.Thread", "--top", "300"],
        &[
            "paths",
            SAMPLED,
            "Orders$Order",
            "--refs",
            "all",
            "--top",
            "300",
        ],
        &["paths", SAMPLED, "/./", "--refs", "all", "--top", "3000"],
    ];
    for args in sampled {
        for format in ["text", "json"] {
            let args = [args, &["--format", format][..]].concat();
            let text = text(&args);
            assert!(!shows(&text), "{args:?}\n{text}");
        }
    }
    let asked: &[&[&str]] = &[
        &["show", SAMPLED, "heapdiff.SampleRef"],
        &["show", SAMPLED, "class heapdiff.SampleRef"],
        &["show", SAMPLED, "/SampleRef/"],
        &["show", SAMPLED, "/heapdiff|Orders/", "--top", "300"],
        &["show", SAMPLED, "heapdiff.SampleRef.samples"],
        &["paths", SAMPLED, "heapdiff.SampleRef", "--top", "100"],
    ];
    for args in asked {
        let text = text(args);
        assert!(shows(&text), "{args:?}\n{text}");
    }
    // `histo` and `show` count the same objects.
    let json = |args: &[&str]| -> serde_json::Value {
        serde_json::from_str(&text(&[args, &["--format", "json"]].concat())).expect("JSON")
    };
    let classes = json(&["histo", SAMPLED, "--retained", "--top", "10000"]);
    let arrays = json(&["show", SAMPLED, "byte[]"]);
    let rows = classes["classes"].as_array().expect("classes");
    let row = rows.iter().find(|row| row["class"] == "byte[]");
    let row = row.expect("byte[]");
    assert_eq!(row["objects"], arrays["selected"]["objects"]);
    assert_eq!(row["shallow_bytes"], arrays["selected"]["shallow_bytes"]);
}

/// Returns a heap with a byte array in a static field of each of forty classes. The first array has the length `first`,
/// and the others have the length `each`.
fn arrays(first: usize, each: usize) -> Vec<u8> {
    let mut heap = HeapBuilder::new(writer::Options::default());
    let boot = heap.boot();
    for at in 0..40 {
        let statics = [("table", Value::NULL)];
        let name = format!("com.acme.Table{at}");
        let class = heap.add_class(&name, Some(boot.object), &[], &statics);
        heap.add_root(Root::StickyClass, class);
        let length = if at == 0 { first } else { each };
        let array = heap.add_primitive_array(Elements::Byte(vec![1; length]));
        heap.set_static(class, "table", array);
    }
    heap.build()
}

#[test]
fn a_report_without_large_suspects_mentions_it() {
    let folder = folder();
    let file = |name: &str, dump: Vec<u8>| {
        fs::write(folder.path().join(name), dump).expect("a dump");
    };
    file("before.hprof", arrays(100, 100));
    file("after.hprof", arrays(40_000, 4000));
    let text = |args: &[&str]| {
        let done = run(folder.path(), args);
        let text = String::from_utf8(done.stdout).expect("text");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let none = text(&["before.hprof"]);
    assert!(
        none.contains("no accumulation found: no place retains 16.0 KiB or more"),
        "{none}"
    );
    let partly = text(&["before.hprof", "after.hprof"]);
    assert!(
        partly.contains("the suspects account for only 39.1 KiB of the growth of 187.3 KiB: the table of classes shows the rest"),
        "{partly}"
    );
}

#[test]
fn dumps_that_cannot_be_compared_have_a_warning() {
    let folder = folder();
    let of_jvm = |name: &str, version: &str| {
        let mut heap = HeapBuilder::new(writer::Options::default());
        heap.boot();
        heap.set_system_properties(&[("java.vm.version", version)]);
        fs::write(folder.path().join(name), heap.build()).expect("a dump");
    };
    of_jvm("old.hprof", "17.0.15+6");
    of_jvm("new.hprof", "21.0.8+9");
    fs::copy(
        folder.path().join(DUMP),
        folder.path().join("copy.hprof.gz"),
    )
    .expect("a copy");
    let before = "testdata/sampled-before.hprof.gz";
    for (dumps, sentence) in [
        ([DUMP, "copy.hprof.gz"], "are the same dump"),
        (
            [DUMP, SAMPLED],
            "come from different programs (they share 0 of 2 class names): differences between them are not growth",
        ),
        (
            ["old.hprof", "new.hprof"],
            "come from two JVMs (versions 17.0.15+6 and 21.0.8+9): differences between two runs are not always growth",
        ),
    ] {
        let warned = |dumps: &[&str]| {
            let done = run(folder.path(), dumps);
            let text = String::from_utf8(done.stdout).expect("text");
            let words: Vec<&str> = text.split_whitespace().collect();
            words.join(" ").contains(sentence)
        };
        assert!(warned(&dumps), "{sentence}");
        assert!(!warned(&[before, SAMPLED]), "{sentence}");
    }
}

/// async-profiler tracks at most 1,024 live objects, because its table has this number of entries.
#[test]
fn live_bytes_of_a_full_table_are_a_lower_bound() {
    use testdata::recordings::live_objects;
    const FULL: &str = "table of live objects was full (1,024";
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, chunks: i64| {
        let chunks = (0..chunks).flat_map(|at| live_objects(at).finish());
        let recording: Vec<u8> = chunks.collect();
        fs::write(folder.path().join(name), recording).expect("a recording");
    };
    // Each chunk has 103 live objects.
    write("full.jfr", 10);
    write("room.jfr", 9);
    let printed = |args: &[&str]| {
        let done = run(folder.path(), args);
        let errors = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{errors}");
        String::from_utf8(done.stdout).expect("text") + &errors
    };
    for (recording, is_full) in [("full.jfr", true), ("room.jfr", false)] {
        let trace = recording.replace("jfr", "db");
        printed(&["trace", "import", "-q", recording, "-o", &trace]);
        for args in [["sites", recording].as_slice(), &["trace", "top", &trace]] {
            let text = printed(args);
            assert_eq!(text.contains(FULL), is_full, "{args:?}: {text}");
        }
    }
}

/// In this heap, two instances of a class refer to one array, and 10,000 other instances of the class are unreachable.
#[test]
fn a_class_retains_at_least_its_reachable_objects() {
    let mut heap = HeapBuilder::new(writer::Options::default());
    let boot = heap.boot();
    let object = writer::FieldType::Object;
    let node = heap.add_class("com.acme.Node", Some(boot.object), &[("part", object)], &[]);
    let body = heap.add_primitive_array(Elements::Byte(vec![1; 100_000]));
    for global_ref in 1..=2 {
        let one = heap.add_instance(node, &[body.into()]);
        heap.add_root(Root::JniGlobal { global_ref }, one);
    }
    // No object refers to these 10,000 objects.
    for _ in 0..10_000 {
        heap.add_instance(node, &[Value::NULL]);
    }
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a.hprof"), heap.build()).expect("a dump");
    let args = ["histo", "a.hprof", "--retained", "--format", "json"];
    let done = run(folder.path(), &args);
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let classes = report["classes"].as_array().expect("classes");
    let class = classes.iter().find(|c| c["class"] == "com.acme.Node");
    let class = class.expect("the class");
    let bytes = |key: &str| class[key].as_u64().expect(key);
    // The array is freed only if both instances are freed.
    assert_eq!(bytes("retained_bytes"), 2 * 16 + 100_016, "{class}");
    assert_eq!(bytes("reachable_shallow_bytes"), 2 * 16);
    assert_eq!(bytes("shallow_bytes"), 10_002 * 16);
}
