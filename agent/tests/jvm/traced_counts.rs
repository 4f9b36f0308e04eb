//! With `count=on`, the trace contains exactly what each line of code allocated.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use heapdiff_sites::attach;
use heapdiff_trace::{CountedLine, CountedPart, Trace, Window};
use testdata::jvm::{Jdk, Launch, Target};
use testdata::programs;

use crate::counted::{USUAL, ask, begin, end, expected};
use crate::traced::Traced;
use crate::{CHECKED, jdks, library};

fn launch(jdk: &Jdk, (threads, n): (u64, u64)) -> Launch {
    let classes = jdk.compile(&programs::agent("Counted.java")).unwrap();
    Launch::class(jdk, classes, "Counted")
        .flags(["-Xmx256m", "-XX:+EnableDynamicAgentLoading"])
        .flags(CHECKED)
        .arg(threads.to_string())
        .arg(n.to_string())
        .timeout(Duration::from_secs(300))
}

fn started(launch: &Launch) -> Target {
    let mut target = launch.start().unwrap();
    target.wait_ready(1).unwrap();
    target
}

/// Returns the counts in a time window of a run, and the part of the run for which they are valid.
fn lines(path: &Path, run: i64, window: Window) -> (Option<CountedPart>, Vec<CountedLine>) {
    let trace = Trace::open(path).unwrap();
    let mut lines = Vec::new();
    let part = trace.each_counted_line(run, window, |line| lines.push(line));
    let part = part.unwrap();
    assert_eq!(trace.invalid_number_count(), 0);
    (part, lines)
}

fn assert_exact(lines: &[CountedLine], (t, n): (u64, u64), times: u64, which: &str) {
    let mut sums: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
    for line in lines
        .iter()
        .filter(|line| line.class.starts_with("Counted"))
    {
        let sum = sums.entry((&line.method, &line.allocated)).or_default();
        sum.0 += line.objects;
        sum.1 += line.bytes.unwrap_or_else(|| panic!("{which}: {line:?}"));
    }
    for (method, class, objects, bytes) in expected(t, n, USUAL) {
        let found = sums.get(&(method, class)).copied().unwrap_or_default();
        assert_eq!(found.0, times * objects, "{which}: {method} {class}");
        match bytes {
            Some(bytes) => assert_eq!(found.1, times * bytes, "{which}: bytes of {method} {class}"),
            None => assert!(
                found.1 >= 16 * found.0 && found.1 <= 40 * found.0,
                "{which}: {found:?}"
            ),
        }
    }
}

/// Checks the counts of the whole run, and the counts in a part of the run.
#[test]
fn a_trace_contains_all_counts() {
    for jdk in jdks() {
        let which = format!("JDK {}", jdk.version());
        let of = (4, 5000);
        let traced = Traced::new();
        let options = traced.options("count=on,tick=100ms");
        let mut target = started(&launch(&jdk, of).agent(&library(), &options));
        let ticks = "SELECT max(uptime_ms) FROM counted_span";
        target.advance(2).unwrap();
        traced.wait_tick();
        let between = traced.number(ticks);
        assert_exact(&lines(&traced.path(), 1, Window::ALL).1, of, 1, &which);
        // Nothing is allocated between the last reading of the counters and the second phase. So the time window after
        // `between` contains exactly the allocations of the second phase.
        target.advance(3).unwrap();
        traced.wait_tick();
        let window = |from_ms, to_ms| Window { from_ms, to_ms };
        let ms = between.unsigned_abs();
        let second = lines(&traced.path(), 1, window(ms + 1, u64::MAX));
        assert_exact(&second.1, of, 1, &which);
        assert!(second.0.unwrap().from_ms >= ms, "{which}: {second:?}");
        assert_exact(&lines(&traced.path(), 1, window(0, ms)).1, of, 1, &which);
        // The third phase ends when the JVM ends.
        target.advance(4).unwrap();
        let (well, errors) = target.finish_with_errors().unwrap();
        assert!(
            well && !errors.contains("WARNING") && !errors.contains("heapdiff"),
            "{errors}"
        );
        let (part, all) = lines(&traced.path(), 1, Window::ALL);
        assert_exact(&all, of, 3, &which);
        let source = std::fs::read_to_string(programs::agent("Counted.java")).unwrap();
        let at = source.lines().position(|l| l.contains("new Removed(i).v"));
        let removed = all.iter().find(|line| line.method == "removed").unwrap();
        assert_eq!(removed.line, Some(at.unwrap() as u64 + 1), "{which}");
        assert!(
            all.iter().all(|line| line.class.starts_with("Counted")),
            "{which}"
        );
        let run = Trace::open(&traced.path())
            .unwrap()
            .counted_run(1)
            .unwrap()
            .unwrap();
        let part = part.unwrap();
        assert_eq!(
            (run.from_ms, run.to_ms),
            (part.from_ms, part.to_ms),
            "{which}"
        );
        assert!(
            !run.jdk && run.classes > 0 && run.missed_sites == 0,
            "{which}: {run:?}"
        );
        assert_eq!(
            run.missed_methods + run.missed_classes,
            0,
            "{which}: {run:?}"
        );
        assert!(run.from_ms < 30_000, "{which}: {run:?}");
        traced.assert_whole();
    }
}

/// Each agent in a JVM writes a separate run with separate counts. A run without counters has no counts. A count by
/// `heapdiff count` changes nothing in the trace.
#[test]
fn each_run_has_its_own_counts() {
    for jdk in jdks() {
        let which = format!("JDK {}", jdk.version());
        let of = (2, 2000);
        let traced = Traced::new();
        let options = traced.options("count=on,tick=100ms");
        let mut target = started(&launch(&jdk, of).agent(&library(), &options));
        target.advance(2).unwrap();
        begin(&target, "");
        target.advance(3).unwrap();
        end(&target);
        assert_eq!(ask(&target, attach::DETACH), attach::DETACHED);
        assert_exact(&lines(&traced.path(), 1, Window::ALL).1, of, 2, &which);
        // The agent first runs without counters, and then with counters in some classes.
        target.advance(4).unwrap();
        assert_eq!(ask(&target, &traced.options("tick=100ms")), attach::DONE);
        target.advance(5).unwrap();
        traced.wait_tick();
        assert_eq!(lines(&traced.path(), 2, Window::ALL), (None, Vec::new()));
        let some = traced.options("tick=100ms,count=on,exclude=Pair$");
        assert_eq!(ask(&target, &format!("change:{some}")), attach::CHANGED);
        target.advance(6).unwrap();
        let (well, errors) = target.finish_with_errors().unwrap();
        assert!(well, "{errors}");
        assert_exact(&lines(&traced.path(), 1, Window::ALL).1, of, 2, &which);
        assert_eq!(lines(&traced.path(), 2, Window::ALL), (None, Vec::new()));
        assert_exact(&lines(&traced.path(), 3, Window::ALL).1, of, 1, &which);
        traced.assert_whole();
    }
}
