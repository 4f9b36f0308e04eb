//! Tests allocation counts while another agent redefines the same classes, and while a debugger stops in these classes.

use std::thread::sleep;
use std::time::{Duration, Instant};

use heapdiff_sites::{Counts, attach};
use testdata::jvm::{Jdk, Launch, Target};
use testdata::programs;

use crate::counted::{USUAL, ask, assert_exact, begin, end, shown};
use crate::debugged::wait_for_its_end;
use crate::jdks;

/// Returns the counts of a class, sorted. Each count consists of source line, allocated class and number of objects.
fn of(counts: &Counts, class: &str) -> Vec<(Option<u32>, String, u64)> {
    let sites = counts.sites.iter().filter(|site| site.class == class);
    let mut all: Vec<_> = sites
        .map(|site| (site.line, site.allocated.clone(), site.objects))
        .collect();
    all.sort();
    all
}

/// Returns the number of the first source line that contains `text`. Line numbers begin with 1.
pub(crate) fn line(program: &str, text: &str) -> Option<u32> {
    let source = std::fs::read_to_string(programs::agent(program)).unwrap();
    let found = source.lines().position(|line| line.contains(text));
    u32::try_from(found.expect("no such line") + 1).ok()
}

/// Sends a line to the program and returns the words of its answer.
pub(crate) fn answer_to(target: &mut Target, what: &str) -> Vec<String> {
    target.tell(what).unwrap();
    let line = target.wait_line("READY").unwrap();
    line.split_whitespace().skip(1).map(str::to_owned).collect()
}

const N: u64 = 1000;

pub(crate) fn redefined(jdk: &Jdk) -> Target {
    let classes = jdk.compile(&programs::agent("Redefined.java")).unwrap();
    let may = "Can-Redefine-Classes: true\nCan-Retransform-Classes: true\n";
    let scratch = tempfile::tempdir().unwrap();
    let jar = jdk.agent_jar("Redefined", may, scratch.path()).unwrap();
    let mut target = Launch::class(jdk, classes, "Redefined")
        .flag("-XX:+EnableDynamicAgentLoading")
        .flag(format!("-javaagent:{}", jar.display()))
        .arg(N.to_string())
        .start()
        .unwrap();
    target.wait_line("READY").unwrap();
    target
}

/// While a count runs, another agent replaces the body of a class. The allocation sites of both bodies are counted.
#[test]
fn a_class_that_others_redefine() {
    const ONE: &str = "Redefined$One";
    let old = line("Redefined.java", "return new byte[i % 10]");
    let first = line("Redefined.java", "Object first = new Two()");
    let array = line("Redefined.java", "new Object[] {first");
    let site = |line, class: &str, objects| (line, class.to_owned(), objects);
    for jdk in jdks() {
        let which = format!("JDK {}", jdk.version());
        let mut target = redefined(&jdk);
        begin(&target, "");
        answer_to(&mut target, "work");
        assert_eq!(answer_to(&mut target, "redefine"), ["Object[]", "plain"]);
        answer_to(&mut target, "work");
        let counts = end(&target);
        let mut expected = vec![
            site(old, "byte[]", N),
            site(first, ONE, 2 * N),
            site(array, "java.lang.Object[]", 2 * N),
            site(array, "long[]", 2 * N),
        ];
        expected.sort();
        assert_eq!(of(&counts, ONE), expected, "{which}");
        // When a class is changed for the first time, JVMs before JDK 20 cache its file. They use the cached file for
        // every later retransformation (JDK-7124710).
        let body = answer_to(&mut target, "work");
        match jdk.major() {
            20.. => assert_eq!(body, ["Object[]", "plain"], "{which}"),
            _ => assert_eq!(body, ["byte[]", "plain"], "{which}"),
        }
        // After the count has ended, nothing is counted. Later counts use the current code of the class.
        begin(&target, "include=^nothing$");
        answer_to(&mut target, "work");
        assert_eq!(of(&end(&target), ONE), [], "{which}");
        begin(&target, "");
        answer_to(&mut target, "work");
        let sum: u64 = of(&end(&target), ONE).iter().map(|site| site.2).sum();
        let each = if jdk.major() < 20 { 1 } else { 3 };
        assert_eq!(sum, each * N, "{which}");
        let (well, errors) = target.finish_with_errors().unwrap();
        assert!(well, "{which}: {errors}");
    }
}

/// While a count runs, another agent adds a transformer and retransforms the class. Both changes apply, and the
/// transformer's change stays after the count.
#[test]
fn a_class_that_others_transform() {
    const ONE: &str = "Redefined$One";
    for jdk in jdks() {
        let which = format!("JDK {}", jdk.version());
        let mut target = redefined(&jdk);
        begin(&target, "");
        assert_eq!(answer_to(&mut target, "transform"), ["byte[]", "plain"]);
        assert_eq!(answer_to(&mut target, "retransform"), ["byte[]", "other"]);
        assert_eq!(answer_to(&mut target, "retransform"), ["byte[]", "other"]);
        let counts = end(&target);
        let expected = (
            line("Redefined.java", "return new byte[i % 10]"),
            "byte[]".to_owned(),
            3 * N,
        );
        assert_eq!(of(&counts, ONE), [expected], "{which}");
        assert_eq!(
            answer_to(&mut target, "work"),
            ["byte[]", "other"],
            "{which}"
        );
        assert!(target.finish().unwrap(), "{which}");
    }
}

/// Returns the port on which the JVM waits for a debugger, read from the JVM's next message.
fn listens(target: &mut Target) -> String {
    let listening = target.wait_line("Listening for transport").unwrap();
    listening.rsplit([' ', ':']).next().unwrap().to_owned()
}

/// Starts a debugger with a breakpoint in a line of the program. The debugger attaches to the port `port`, which the
/// JVM announced last.
fn debugger(jdk: &Jdk, port: &str, line: u32) -> Target {
    let classes = jdk.compile(&programs::agent("Debugger.java")).unwrap();
    let mut debugger = Launch::class(jdk, classes, "Debugger")
        .arg(port)
        .arg("Counted")
        .arg(line.to_string())
        .timeout(Duration::from_secs(120))
        .start()
        .unwrap();
    debugger.wait_line("READY").unwrap();
    debugger
}

/// Debuggers are attached before, during and after a count. A debugger stops at each call and steps to the next source
/// line. The agent changes no class while a debugger is attached, because the debugger library would keep the old line
/// table.
#[test]
fn a_debugger() {
    for jdk in jdks() {
        let which = format!("JDK {}", jdk.version());
        let n = 100;
        let (at, next) = (
            line("Counted.java", "case 1: sink = new byte[8]").unwrap(),
            line("Counted.java", "return 0;").unwrap(),
        );
        let every = format!("{} [{next}]", n / 4);
        let classes = jdk.compile(&programs::agent("Counted.java")).unwrap();
        // The JVM chooses a free port and announces the port. It listens again after a debugger has disconnected.
        let jdwp = "-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=127.0.0.1:0";
        let mut target = Launch::class(&jdk, classes, "Counted")
            .flags([jdwp, "-XX:+EnableDynamicAgentLoading"])
            .arg("1")
            .arg(n.to_string())
            .arg("plain")
            .timeout(Duration::from_secs(120))
            .start()
            .unwrap();
        let port = listens(&mut target);
        let mut first = debugger(&jdk, &port, at);
        target.advance(2).unwrap();
        assert_eq!(
            answer_to(&mut first, "").join(" "),
            every,
            "{which}: before"
        );
        let refused = ask(&target, &format!("{}seconds=60", attach::COUNT));
        assert_eq!(refused, attach::DEBUGGED, "{which}");
        target.advance(3).unwrap();
        assert_eq!(
            answer_to(&mut first, "").join(" "),
            every,
            "{which}: refused"
        );
        assert!(first.finish().unwrap(), "{which}");
        let port = listens(&mut target);
        wait_for_its_end(&target);
        begin(&target, "");
        let mut second = debugger(&jdk, &port, at);
        target.advance(4).unwrap();
        let ended = ask(&target, &format!("{}one", attach::COUNT_END));
        assert_eq!(ended, attach::DEBUGGED, "{which}");
        assert_exact(&shown(&target, "one"), (1, n), USUAL, &which);
        assert_eq!(
            answer_to(&mut second, "").join(" "),
            every,
            "{which}: meanwhile"
        );
        target.advance(5).unwrap();
        assert_eq!(
            answer_to(&mut second, "").join(" "),
            every,
            "{which}: stays"
        );
        assert!(second.finish().unwrap(), "{which}");
        let port = listens(&mut target);
        // Counters are removed after the debugger has disconnected. Then a new count can start.
        until(|| ask(&target, &format!("{}seconds=60", attach::COUNT)) == attach::DONE);
        target.advance(6).unwrap();
        assert_exact(&end(&target), (1, n), USUAL, &which);
        let mut third = debugger(&jdk, &port, at);
        target.advance(7).unwrap();
        assert_eq!(
            answer_to(&mut third, "").join(" "),
            every,
            "{which}: afterwards"
        );
        assert!(third.finish().unwrap(), "{which}");
        listens(&mut target);
        let (well, errors) = target.finish_with_errors().unwrap();
        assert!(well, "{which}: {errors}");
        for says in [
            "cannot count: a debugger is attached",
            "the counters stay in the classes until the debugger disconnects",
            "the debugger has disconnected, so the agent removed the counters",
        ] {
            assert!(errors.contains(says), "{which}: {says}: {errors}");
        }
    }
}

/// Waits until `is_so` returns true, but at most one minute.
fn until(mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "in a minute");
        sleep(Duration::from_millis(50));
    }
}
