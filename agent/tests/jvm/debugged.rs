//! Checks that a debugger and stack traces show the same lines and variables with and without an allocation count.

use std::fs;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use testdata::jvm::{Jdk, Launch, Target};
use testdata::programs;

use crate::counted::{begin, end};
use crate::{jdks, library};

const PATIENCE: Duration = Duration::from_secs(120);

/// A program to which a debugger can attach.
struct Debugged {
    jdk: Jdk,
    program: Target,
    /// The port on which the JVM waits for a debugger.
    port: String,
}

/// The result of one round of the test.
#[derive(Debug, PartialEq)]
struct Seen {
    /// Lines that the program prints: stack traces and results.
    printed: Vec<String>,
    /// Code locations where the debugger stopped, with variables and their values at each location.
    stops: Vec<String>,
}

fn compiled(jdk: &Jdk, name: &str) -> PathBuf {
    jdk.compile(&programs::agent(name)).unwrap()
}

impl Debugged {
    fn started(jdk: &Jdk, options: Option<&str>) -> Self {
        let launch = Launch::class(jdk, compiled(jdk, "Debugged.java"), "Debugged")
            .flag("-XX:+EnableDynamicAgentLoading")
            .flag("-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=127.0.0.1:0")
            .timeout(PATIENCE);
        let launch = match options {
            Some(options) => launch.agent(&library(), options),
            None => launch,
        };
        let mut program = launch.start().unwrap();
        let port = listens(&mut program);
        program.wait_ready(1).unwrap();
        Debugged {
            jdk: jdk.clone(),
            program,
            port,
        }
    }

    /// Runs the program's code once with a new debugger. A debugger cannot be used twice, because it caches lines and
    /// variables of methods.
    fn round(&mut self) -> Seen {
        let classes = compiled(&self.jdk, "Stops.java");
        let mut debugger = Launch::class(&self.jdk, classes, "Stops")
            .timeout(PATIENCE)
            .arg(&self.port)
            .arg("Debugged")
            .arg("stops")
            .start()
            .unwrap();
        debugger.wait_ready(1).unwrap();
        debugger.tell("set").unwrap();
        debugger.wait_ready(2).unwrap();
        self.program.proceed().unwrap();
        let printed = self.program.lines_until_ready().unwrap();
        debugger.tell("tell").unwrap();
        let stops = debugger.lines_until_ready().unwrap();
        assert!(debugger.finish().unwrap());
        self.port = listens(&mut self.program);
        wait_for_its_end(&self.program);
        Seen { printed, stops }
    }
}

/// Waits until the JVM's thread that reads a debugger's commands has ended. This happens shortly after the JVM begins
/// to wait for the next debugger.
pub(crate) fn wait_for_its_end(program: &Target) {
    let reads = |task: fs::DirEntry| {
        let name = fs::read_to_string(task.path().join("comm"));
        name.is_ok_and(|name| name.starts_with("JDWP Command"))
    };
    let threads = format!("/proc/{}/task", program.pid());
    let start = Instant::now();
    while fs::read_dir(&threads).unwrap().flatten().any(reads) {
        assert!(start.elapsed() < PATIENCE);
        sleep(Duration::from_millis(20));
    }
}

fn listens(program: &mut Target) -> String {
    let line = program.wait_line("Listening").unwrap();
    line.rsplit(' ').next().unwrap().to_owned()
}

/// Checks that the program printed its lines, and that the debugger saw each variable.
fn assert_sees(seen: &Seen) {
    assert!(seen.printed.len() > 25, "{seen:#?}");
    let traced = |text: &str| seen.printed.iter().any(|line| line.contains(text));
    assert!(traced("NegativeArraySizeException levels:"), "{seen:#?}");
    assert!(traced("IllegalStateException <init>:"), "{seen:#?}");
    assert!(seen.stops.len() > 25, "{seen:#?}");
    let stopped = |text: &str| seen.stops.iter().any(|line| line.ends_with(text));
    assert!(
        stopped(
            "size=3 text=text sum=3 half=1.5 numbers=int[][0, 0, 0] i=0 each=java.lang.Object[][]"
        ),
        "{seen:#?}"
    );
    assert!(stopped("inner=text first=t"), "{seen:#?}");
    assert!(stopped("message=caught"), "{seen:#?}");
}

#[test]
fn stack_traces_and_variables_are_the_same_while_counted_and_after() {
    for jdk in jdks() {
        let which = jdk.version();
        let mut debugged = Debugged::started(&jdk, None);
        let plain = debugged.round();
        assert_sees(&plain);
        begin(&debugged.program, "");
        assert_eq!(debugged.round(), plain, "{which}");
        let counts = end(&debugged.program);
        let mut of = counts.sites.iter().filter(|s| s.class == "Debugged");
        let counted = of.find(|s| s.method == "stops" && s.allocated == "java.lang.Object[]");
        assert_eq!(counted.unwrap().objects, 3, "{which}");
        assert_eq!(debugged.round(), plain, "{which}");

        let mut debugged = Debugged::started(&jdk, Some("count=on"));
        assert_eq!(debugged.round(), plain, "{which}");
    }
}
