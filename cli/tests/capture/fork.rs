//! `dump --fork`: a child of the JVM writes; what is whole gets its name, and nothing else stays.

use std::fs;

use crate::support::{BOX, agent, files, folder, instances, jdks, ready, run, shelf};
use crate::trace::library;

#[test]
fn a_child_writes_what_the_jvm_holds() {
    for jdk in jdks() {
        let target = ready(&shelf(&jdk));
        let pid = target.pid().to_string();
        let home = folder();
        let library = library();
        let agent = library.to_str().expect("a path");
        let dump = |more: &[&str]| {
            let args = [&["dump", &pid, "--fork", "--agent", agent], more].concat();
            run(home.path(), &args)
        };
        let done = dump(&["-o", "forked.hprof"]).well();
        assert!(
            done.stdout.contains("reachable objects of process"),
            "{done:?}"
        );
        // Compressed by heapdiff, and to standard output as well.
        dump(&["-o", "packed.hprof.gz"]).well();
        assert_eq!(files(home.path()), ["forked.hprof", "packed.hprof.gz"]);
        assert_eq!(
            fs::read(home.path().join("packed.hprof.gz")).expect("it")[..2],
            [0x1f, 0x8b]
        );
        for name in ["forked.hprof", "packed.hprof.gz"] {
            assert_eq!(instances(&home.path().join(name), &[BOX]), [10_000]);
        }
        dump(&["-o", "forked.hprof"]).failed(2, "exists already");
        assert!(target.finish().expect("an end"));
    }
}

#[test]
fn a_refusal_names_the_ordinary_dump_and_leaves_nothing() {
    for jdk in jdks() {
        let target = ready(&shelf(&jdk).flag("-XX:+UseZGC"));
        let pid = target.pid().to_string();
        let home = folder();
        let library = library();
        let agent = library.to_str().expect("a path");
        let args = [
            "dump",
            &pid,
            "--fork",
            "--agent",
            agent,
            "-o",
            "forked.hprof",
        ];
        let done = run(home.path(), &args).failed(3, "its heap is shared memory");
        assert!(done.stderr.contains("without --fork"), "{done:?}");
        assert!(files(home.path()).is_empty());
        assert!(target.finish().expect("an end"));
    }
}

#[test]
fn an_agent_that_cannot_is_told() {
    let jdk = jdks().remove(0);
    let home = folder();
    let stub = agent(&jdk, home.path());
    let target = ready(&shelf(&jdk));
    let pid = target.pid().to_string();
    let stub = stub.to_str().expect("a path");
    let before = files(home.path());
    // It says that all went well, and wrote no file.
    let args = [
        "dump",
        &pid,
        "--fork",
        "--agent",
        stub,
        "-o",
        "forked.hprof",
    ];
    run(home.path(), &args).failed(2, "forked.hprof");
    assert_eq!(files(home.path()), before);
    assert!(target.finish().expect("an end"));
}
