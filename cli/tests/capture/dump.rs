//! Tests that dumps are complete, contain what the JVM reports, and leave no other files behind.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

use testdata::jvm::Selection;

use crate::support::{
    BOX, Done, chmod, ended, files, folder, heapdiff, instances, jdks, ready, run, shelf, signal,
    start, until,
};

#[test]
fn a_dump_contains_the_objects_that_the_jvm_counts() {
    for jdk in jdks() {
        let target = ready(&shelf(&jdk));
        let pid = target.pid().to_string();
        let home = folder();
        let done = run(home.path(), &["dump", &pid]).well();
        let name = format!("java_pid{pid}.hprof");
        assert!(done.stdout.starts_with(&name), "{done:?}");
        assert!(done.stdout.contains("live objects of process"), "{done:?}");
        assert_eq!(done.stderr, "");
        // The JVM already listens for requests, so this request needs no further signal. With `--all`, the dump
        // includes unreachable objects.
        run(home.path(), &["dump", &pid, "--all", "-o", "all.hprof"]).well();
        run(home.path(), &["dump", &pid, "--gz", "1", "-q"]).well();
        let packed = format!("{name}.gz");
        assert_eq!(files(home.path()), ["all.hprof", &name, &packed]);
        assert_eq!(
            fs::read(home.path().join(&packed)).expect("it")[..2],
            [0x1f, 0x8b]
        );
        let own = target.histogram(Selection::Live).expect("a histogram");
        let classes = [BOX, "java.lang.String", "java.lang.Object[]"];
        let expected = classes.map(|class| own.instances(class));
        assert_eq!(expected[0], 10_000);
        for dump in [&name, &packed] {
            let found = instances(&home.path().join(dump), &classes);
            assert_eq!(found[0], expected[0]);
            for (found, expected) in found.iter().zip(expected) {
                // Each diagnostic command creates a few strings. So the counts of the JVM and of the dump may differ a
                // little.
                assert!(
                    found.abs_diff(expected) <= 20 + expected / 50,
                    "{found} {expected}"
                );
            }
        }
        let all = instances(&home.path().join("all.hprof"), &[BOX, "java.lang.String"]);
        assert_eq!(all[0], 10_000);
        let socket = format!("/tmp/.attach_pid{pid}");
        assert!(!Path::new(&socket).exists());
        assert!(target.finish().expect("an end"));
    }
}

#[test]
fn a_dump_to_standard_output_leaves_no_file() {
    for jdk in jdks() {
        let target = ready(&shelf(&jdk));
        let pid = target.pid().to_string();
        let home = folder();
        let temporary = home.path().join("temporary");
        fs::create_dir(&temporary).expect("a folder");
        for (name, more) in [("plain", &[][..]), ("packed", &["--gz", "1"])] {
            let to = home.path().join(name);
            let mut command = heapdiff(home.path(), &[&["dump", &pid, "-o", "-"], more].concat());
            let output = command
                .env("TMPDIR", &temporary)
                .stdout(fs::File::create(&to).expect("a file"))
                .output();
            let done = Done::from(output.expect("a run")).well();
            let size = format!("live objects of process {pid}");
            assert!(
                done.stderr.starts_with("heapdiff: standard output: "),
                "{done:?}"
            );
            assert!(done.stderr.contains(&size), "{done:?}");
            let is_packed = fs::read(&to).expect("it")[..2] == [0x1f, 0x8b];
            assert_eq!(is_packed, name == "packed");
            assert_eq!(instances(&to, &[BOX]), [10_000]);
        }
        // If the pipe is closed, an error is reported and no file is left behind.
        let mut command = heapdiff(home.path(), &["dump", &pid, "-o", "-", "-q"]);
        let mut child = command
            .env("TMPDIR", &temporary)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a run");
        drop(child.stdout.take());
        let done = ended(child).failed(2, "cannot write standard output: Broken pipe");
        assert_eq!(done.stdout, "");
        assert_eq!(files(&temporary), [] as [&str; 0]);
        assert_eq!(files(home.path()), ["packed", "plain", "temporary"]);
    }
}

#[test]
fn a_terminal_gets_no_dump() {
    let target = ready(&shelf(&jdks()[0]));
    let home = folder();
    // The program `script` runs heapdiff on a new terminal.
    let program = env!("CARGO_BIN_EXE_heapdiff");
    let command = format!("{program} dump {} -o -", target.pid());
    let output = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .current_dir(home.path())
        .stdin(Stdio::null())
        .output();
    let output = output.expect("`script` of util-linux");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("cannot write a dump to a terminal"), "{said}");
    assert_eq!(files(home.path()), [] as [&str; 0]);
}

#[test]
fn a_name_with_gz_means_compressed() {
    for jdk in jdks() {
        let target = ready(&shelf(&jdk));
        let pid = target.pid().to_string();
        let home = folder();
        run(home.path(), &["dump", &pid, "-o", "a.hprof.gz"]).well();
        assert_eq!(files(home.path()), ["a.hprof.gz"]);
        let dump = home.path().join("a.hprof.gz");
        assert_eq!(fs::read(&dump).expect("it")[..2], [0x1f, 0x8b]);
        assert_eq!(instances(&dump, &[BOX]), [10_000]);
    }
}

#[test]
fn a_jvm_can_be_given_by_name() {
    let jdk = jdks().remove(0);
    let home = folder();
    let classes = jdk.compile(&testdata::programs::shelf()).expect("classes");
    // The test selects the JVM by the name of this jar. So no other test may use the name.
    let jar = home.path().join("OddlyNamedShelf.jar");
    let packed = Command::new(jdk.home().join("bin/jar"))
        .args(["--create", "--main-class=Shelf", "--file"])
        .arg(&jar)
        .arg("-C")
        .arg(&classes)
        .arg(".")
        .status();
    assert!(packed.expect("jar").success());
    let launch = || {
        let launch = testdata::jvm::Launch::class(&jdk, &jar, "-jar");
        launch.arg(&jar)
    };
    let target = ready(&launch());
    run(home.path(), &["dump", "OddlyNamed", "-o", "a.hprof"]).well();
    assert_eq!(instances(&home.path().join("a.hprof"), &[BOX]), [10_000]);
    let second = ready(&launch());
    let done = run(home.path(), &["dump", "OddlyNamed", "-o", "b.hprof"]);
    let done = done.failed(
        2,
        "2 JVMs have a main class or jar with `OddlyNamed` in its name",
    );
    assert!(done.stderr.contains("agent  main class\n"), "{done:?}");
    for pid in [target.pid(), second.pid()] {
        let mut lines = done.stderr.lines().map(str::trim);
        let of = lines.find(|line| line.starts_with(&format!("{pid} ")));
        assert!(
            of.is_some_and(|of| of.ends_with(" OddlyNamedShelf.jar")),
            "{done:?}"
        );
    }
}

#[test]
fn a_file_is_replaced_only_on_request() {
    let target = ready(&shelf(&jdks()[0]));
    let pid = target.pid().to_string();
    let home = folder();
    let dump = |more: &[&str]| run(home.path(), &[&["dump", &pid], more].concat());
    fs::write(home.path().join("a.hprof"), "precious").expect("a file");
    dump(&["-o", "a.hprof"]).failed(2, "-o a.hprof: the file exists");
    assert_eq!(
        fs::read(home.path().join("a.hprof")).expect("it"),
        b"precious"
    );
    dump(&["-o", "a.hprof", "--force"]).well();
    assert_eq!(instances(&home.path().join("a.hprof"), &[BOX]), [10_000]);
    fs::create_dir(home.path().join("folder")).expect("a folder");
    dump(&["-o", "folder"]).well();
    dump(&["-o", "folder"]).well();
    let names = [
        format!("java_pid{pid}-2.hprof"),
        format!("java_pid{pid}.hprof"),
    ];
    assert_eq!(files(&home.path().join("folder")), names);
    dump(&["-o", "none/a.hprof"]).failed(2, "-o none/a.hprof: the folder none does not exist");
    std::os::unix::fs::symlink("a.hprof", home.path().join("link")).expect("a link");
    dump(&["-o", "link", "--force"]).failed(2, "-o link: this path exists and is not a file");
    assert_eq!(files(home.path()), ["a.hprof", "folder", "link"]);
}

#[test]
fn an_unwritable_folder_is_reported() {
    let home = folder();
    let locked = home.path().join("locked");
    fs::create_dir(&locked).expect("a folder");
    chmod(home.path(), 0o755);
    chmod(&locked, 0o555);
    let mut command = heapdiff(home.path(), &["dump", "1", "-o", "locked/a.hprof"]);
    if crate::support::is_root() {
        // Root may write to every folder, so run heapdiff as another user.
        command = crate::elsewhere::as_nobody(&command);
    }
    let done: Done = command.output().expect("a run").into();
    done.failed(
        2,
        "-o locked/a.hprof: cannot write to locked: Permission denied",
    );
}

#[test]
fn a_dump_that_does_not_fit_is_reported_and_removed() {
    for jdk in jdks() {
        // The unit of the shell's limit is 512 bytes, so the JVM cannot write more than 2 MiB to a file.
        let limited = ["sh", "-c", "ulimit -f 4096; exec \"$0\" \"$@\""];
        let mut target = ready(&shelf(&jdk).through(limited).arg("8"));
        let pid = target.jvm_pid().expect("a JVM").to_string();
        let home = folder();
        let done = run(home.path(), &["dump", &pid, "-o", "a.hprof"]);
        let done = done.failed(3, "no space for the dump in a.hprof: the JVM gave up after");
        assert!(done.stderr.contains("--gz"), "{done:?}");
        assert_eq!(files(home.path()), [] as [&str; 0]);
        assert!(target.is_running());
    }
}

#[test]
fn an_interrupt_leaves_nothing() {
    for jdk in jdks() {
        let mut target = ready(&shelf(&jdk).arg("128"));
        let pid = target.pid().to_string();
        let home = folder();
        // With the highest compression level, the dump is slow enough that the test can interrupt heapdiff before the
        // dump is complete.
        let mut child = start(
            home.path(),
            &["dump", &pid, "--gz", "9", "-o", "a.hprof.gz"],
        );
        let some = |name: &String| {
            let meta = fs::metadata(home.path().join(name));
            meta.is_ok_and(|meta| meta.len() > 1 << 20)
        };
        until("a megabyte", || files(home.path()).iter().any(some));
        let finished = |name: &String| !name.starts_with(".heapdiff-");
        assert!(
            !files(home.path()).iter().any(finished),
            "too fast to be interrupted"
        );
        signal("INT", child.id());
        assert_eq!(child.wait().expect("an end").signal(), Some(2));
        // On JDK 25 threads of the JVM write parts of the dump. The parts stay until the JVM has finished.
        assert!(!files(home.path()).iter().any(finished));
        // The JVM finishes the dump in a file with a hidden name, removes its parts, and answers again.
        run(home.path(), &["dump", &pid, "-o", "b.hprof"]).well();
        assert_eq!(files(home.path()), ["b.hprof"]);
        assert!(target.is_running());
    }
}

#[test]
fn the_next_dump_removes_the_files_of_a_killed_run() {
    let jdk = jdks().remove(0);
    let target = ready(&shelf(&jdk).arg("96"));
    let pid = target.pid().to_string();
    let home = folder();
    let hidden = || {
        let mut names = files(home.path());
        names.retain(|name| name.starts_with(".heapdiff-"));
        names
    };
    let mut dump = start(home.path(), &["dump", &pid, "-o", "a.hprof"]);
    until("a file that is being written", || !hidden().is_empty());
    dump.kill().expect("SIGKILL");
    dump.wait().expect("an end");
    // The JVM still writes to the hidden file. heapdiff treats the file as abandoned only after nobody has written to
    // it for some time.
    let again = ["dump", &pid, "-o", "b.hprof", "--force"];
    run(home.path(), &again).well();
    let left = hidden();
    assert!(!left.is_empty(), "it may still be written to");
    for name in left {
        let aged = Command::new("touch")
            .args(["-d", "2 minutes ago"])
            .arg(home.path().join(name))
            .status();
        assert!(aged.expect("touch").success());
    }
    run(home.path(), &again).well();
    assert_eq!(files(home.path()), ["b.hprof"]);
    assert!(target.finish().expect("an end"));
}
