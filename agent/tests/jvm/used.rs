//! Tests that with `usage=on` the counts for each method of each JDK collection are exact.

use std::time::Duration;

use heapdiff_sites::attach;
use testdata::jvm::{Jdk, Launch, Target};
use testdata::programs;

use crate::counted::ask;
use crate::{CHECKED, jdks, library};

fn program(jdk: &Jdk, times: u32) -> Launch {
    let classes = jdk.compile(&programs::agent("Used.java")).unwrap();
    let opens = ["java.lang", "java.util", "java.util.concurrent"]
        .map(|package| format!("--add-opens=java.base/{package}=ALL-UNNAMED"));
    Launch::class(jdk, classes, "Used")
        .flags(opens)
        .flags(["-Xmx512m", "-XX:+EnableDynamicAgentLoading"])
        .arg(times.to_string())
        .timeout(Duration::from_secs(200))
}

/// Returns the lines that the program prints before it waits for the next command.
fn program_output(target: &mut Target) -> String {
    target.lines_until_ready().unwrap().join("\n")
}

fn assert_exact(program_output: &str, which: &str) {
    assert!(
        program_output.contains("wrong 0") && !program_output.contains("DIFFERS"),
        "{which}:\n{program_output}"
    );
}

/// Counts calls from the start of the program. Meanwhile, the JIT compiler compiles the counted methods.
#[test]
fn calls_of_each_collection_method_are_counted() {
    for jdk in jdks() {
        let launch = program(&jdk, 20_000).agent(&library(), "usage=on");
        let mut target = launch.start().unwrap();
        target.wait_ready(1).unwrap();
        target.proceed().unwrap();
        assert_exact(
            &program_output(&mut target),
            &format!("JDK {}", jdk.version()),
        );
        let (well, errors) = target.finish_with_errors().unwrap();
        assert!(
            well && errors.contains("JDK collection classes"),
            "{errors}"
        );
        assert!(!errors.contains("not watched"), "{errors}");
    }
}

/// Counts calls in interpreted code. The count starts when the agent is attached, and ends when the agent is detached.
#[test]
fn counting_starts_on_attach_and_stops_on_detach() {
    for jdk in jdks() {
        let which = format!("JDK {}", jdk.version());
        let launch = program(&jdk, 200).flags(CHECKED).flags(["-Xint"]);
        let mut target = launch.start().unwrap();
        target.wait_ready(1).unwrap();
        assert_eq!(ask(&target, "usage=on"), attach::DONE, "{which}");
        target.proceed().unwrap();
        assert_exact(&program_output(&mut target), &which);
        assert_eq!(ask(&target, attach::DETACH), attach::DETACHED, "{which}");
        target.proceed().unwrap();
        assert!(program_output(&mut target).contains("watched 0"), "{which}");
        let (well, errors) = target.finish_with_errors().unwrap();
        assert!(well, "{errors}");
        assert!(
            !errors.contains("WARNING") && !errors.contains("stays in JDK classes"),
            "{errors}"
        );
    }
}

/// Eight threads run at once, and each call is counted exactly once.
#[test]
fn calls_of_eight_threads_on_one_collection_are_counted_exactly() {
    for jdk in jdks() {
        let launch = program(&jdk, 20_000).arg("together");
        let mut target = launch.agent(&library(), "usage=on").start().unwrap();
        target.wait_ready(1).unwrap();
        target.proceed().unwrap();
        assert_exact(
            &program_output(&mut target),
            &format!("JDK {}", jdk.version()),
        );
        let (well, errors) = target.finish_with_errors().unwrap();
        assert!(well && !errors.contains("not watched"), "{errors}");
    }
}
