//! Tests `heapdiff guard`, which summarizes and uploads the dump of a JVM that dies.

use std::fs;

use testdata::jvm::{Jdk, Launch, Target};
use testdata::programs;
use testdata::stub_server::{Answer, StubServer};

use crate::support::{ended, files, first_line, folder, jdks, ready, run, start, until};
use crate::trace::library;

/// Flags for a small heap, which the program fills quickly.
const SMALL: [&str; 2] = ["-Xmx48m", "-XX:+UseSerialGC"];

/// Starts a program that waits until its standard input is closed, and then fills the heap.
fn waiting(jdk: &Jdk, flags: &[&str]) -> Target {
    let classes = jdk.compile(&programs::agent("Guarded.java"));
    let launch = Launch::class(jdk, classes.expect("classes"), "Guarded");
    ready(&launch.flag("-Dwaits=true").flags(flags))
}

#[test]
fn a_jvm_that_dies_is_summarized_and_uploaded() {
    for jdk in jdks() {
        let (home, library) = (folder(), library());
        let library = library.to_str().expect("a name");
        let target = waiting(&jdk, &SMALL);
        let pid = target.pid().to_string();
        let ok = Answer::says(200, "text/plain", "");
        let server = StubServer::start(vec![ok.clone(), ok]);
        let url = format!("{}/dumps/?sig=secret", server.url());
        let args = [
            "guard",
            &pid,
            "--agent",
            library,
            "--to",
            "new/dumps",
            "--upload",
            &url,
            "--upload-dump",
        ];
        let mut child = start(home.path(), &args);
        let (line, stderr) = first_line(&mut child);
        assert!(line.contains("guarded until it ends"), "{line}");
        let (_, errors) = target.finish_with_errors().expect("an end");
        let done = ended(child).well();
        let said = std::io::read_to_string(stderr).expect("standard error");
        assert!(!said.contains("secret"), "{said}");
        assert!(done.stdout.is_empty(), "{}", done.stdout);

        let dumps = home.path().join("new/dumps");
        let names = files(&dumps);
        let of = |end: &str| {
            names
                .iter()
                .find(|name| name.ends_with(end))
                .unwrap_or_else(|| panic!("no {end} in {names:?}: {said}{errors}"))
        };
        let (summary, dump) = (of(".heap"), of(".hprof"));
        assert!(
            !names.iter().any(|name| name.ends_with(".part")),
            "{names:?}"
        );
        let received = server.received();
        for (request, name) in received.iter().zip([summary, dump]) {
            assert_eq!(request.method, "PUT");
            assert_eq!(request.target, format!("/dumps/{name}?sig=secret"));
            let content = fs::read(dumps.join(name)).expect("the file");
            assert!(request.body == content, "{name}");
            assert!(
                said.contains(&format!("uploaded new/dumps/{name} to ")),
                "{said}"
            );
        }
        assert_eq!(received.len(), 2);
        let report = run(&dumps, &[dump, "--no-index"]).well().stdout;
        assert!(report.contains("Guarded.orders"), "{report}");
    }
}

#[test]
fn the_guards_dump_is_the_second_of_a_hunt() {
    let (home, library) = (folder(), library());
    let library = library.to_str().expect("a name");
    let target = waiting(&jdks()[0], &SMALL);
    let pid = target.pid().to_string();
    let args = ["hunt", &pid, "--guard", "--for", "1h", "--enough", "1g"];
    let hunt = start(
        home.path(),
        &[&args[..], &["-o", "x", "--agent", library]].concat(),
    );
    let dump = home.path().join("x/before.hprof");
    until("a dump", || dump.exists());
    target.finish_with_errors().expect("an end");
    let done = ended(hunt).well();
    let files = files(&home.path().join("x"));
    let second = files
        .iter()
        .find(|name| name.starts_with("heapdiff-guard-") && name.ends_with(".hprof"))
        .unwrap_or_else(|| panic!("{files:?}: {}", done.stderr));
    let said = format!("the second dump is that of the guard, x/{second}");
    assert!(done.stderr.contains(&said), "{}", done.stderr);
    assert!(done.stdout.contains("Guarded.orders"), "{}", done.stdout);
    assert!(done.stdout.contains("Guarded.book"), "{}", done.stdout);
}

#[test]
fn a_jvm_that_is_killed_leaves_its_trace() {
    let (home, library) = (folder(), library());
    let library = library.to_str().expect("a name");
    let target = waiting(&jdks()[0], &["-Dpassword=secret"]);
    let pid = target.pid().to_string();
    let server = StubServer::start(vec![Answer::says(200, "text/plain", "")]);
    let url = format!("{}/traces/", server.url());
    let args = ["guard", &pid, "--agent", library, "--upload", &url];
    let mut child = start(home.path(), &args);
    let (line, stderr) = first_line(&mut child);
    assert!(line.contains("guarded until it ends"), "{line}");
    let name = format!("heapdiff-guard-{pid}.db");
    let path = home.path().join(&name);
    let runs = || heapdiff_trace::Trace::open(&path).and_then(|trace| trace.runs());
    until("a trace", || runs().is_ok_and(|runs| !runs.is_empty()));
    drop(target);
    let done = ended(child).well();
    let said = std::io::read_to_string(stderr).expect("standard error");
    let next = format!("the trace shows what grew: heapdiff trace top ./{name}");
    assert!(said.contains(&next), "{done:?} {said}");

    let received = server.received();
    assert_eq!(received.len(), 1, "{said}");
    let request = &received[0];
    assert_eq!(request.target, format!("/traces/{name}"));
    let has_password = |bytes: &[u8]| bytes.windows(6).any(|part| part == b"secret");
    assert!(has_password(runs().expect("runs")[0].flags.as_bytes()));
    assert!(
        !has_password(&request.body),
        "no arguments leave the machine"
    );
    let copy = home.path().join("copy.db");
    fs::write(&copy, &request.body).expect("a copy");
    let shown = run(home.path(), &["trace", "info", "copy.db"]).well();
    assert!(shown.stdout.contains("Guarded"), "{}", shown.stdout);
}

#[test]
fn a_guard_that_cannot_work_says_why() {
    let home = folder();
    for (args, why) in [
        (&["--upload-dump"][..], "--upload"),
        (
            &["--upload", "http://h/x", "--upload-dump"],
            "must end in /",
        ),
        (&["--upload", "http://me:secret@h/"], "do not put a user"),
        (&["--no-attach", "--heap", "80%"], "cannot be used with"),
        (&["--heap", "100%"], "from 1% to 99%"),
        (&["--to", "new"], "no process"),
    ] {
        let mut all = vec!["guard", "2147483647"];
        all.extend(args);
        let done = run(home.path(), &all);
        assert_ne!(done.code, Some(0), "{args:?}");
        assert!(done.stderr.contains(why), "{args:?}: {}", done.stderr);
        assert!(!done.stderr.contains("secret"), "{}", done.stderr);
    }
    assert!(files(home.path()).is_empty(), "no folder is left");
}
