//! Tests that the real agent stops, and starts again with other options.

use std::path::Path;

use heapdiff_trace::Trace;
use serde_json::Value;
use testdata::jvm::Launch;

use crate::support::{folder, jdks, ready, run};
use crate::trace::library;

/// Returns the report of `sites` on a new dump. The key `agent` is null if the dump has no data of an agent.
fn sites_of(home: &Path, pid: &str) -> Value {
    run(home, &["dump", pid, "-o", "a.hprof", "--force"]).well();
    let done = run(home, &["sites", "a.hprof", "--format", "json"]);
    if done.stderr.contains("it was taken without the agent") {
        Value::Null
    } else {
        serde_json::from_str(&done.well().stdout).expect("JSON")
    }
}

fn agent_of(home: &Path, pid: &str) -> Value {
    sites_of(home, pid)["snapshot"]["agent"].clone()
}

#[test]
fn a_stopped_agent_restarts_with_other_options() {
    let library = library();
    let library = library.to_str().expect("a name");
    for jdk in jdks() {
        let home = folder();
        let home = home.path();
        let classes = jdk.compile(&testdata::programs::agent("Steady.java"));
        let steady = Launch::class(&jdk, classes.expect("classes"), "Steady").arg("20000");
        let mut target = ready(&steady.flag("-Xmx256m"));
        let pid = target.pid().to_string();
        let attach = |options: &str| run(home, &["attach", &pid, options, "--agent", library]);
        run(home, &["detach", &pid]).failed(3, "no agent is loaded");
        let done = attach("interval=1k").well();
        assert!(done.stdout.contains("the agent is loaded;"), "{done:?}");
        // The JVM chooses the first sample at random, based on its own interval of 512 KiB. So there may be several
        // megabytes of allocations before the first sample.
        for phase in 2..=4 {
            target.advance(phase).expect("more");
        }
        let agent = agent_of(home, &pid);
        assert_eq!(agent["interval_bytes"], 1024);
        assert!(agent["live_samples"].as_u64() >= Some(100), "{agent}");

        // Set another interval, a trace and a filter while the agent samples.
        let trace = home.join("t.db");
        let options = format!(
            "interval=0,tick=100ms,include=Kept,trace={}",
            trace.display()
        );
        let done = attach(&options).well();
        assert!(done.stdout.contains("uses these options now"), "{done:?}");
        // A thread uses the new interval only after its next sample.
        target.advance(5).expect("more");
        let sites = sites_of(home, &pid);
        let agent = &sites["snapshot"]["agent"];
        assert_eq!(agent["interval_bytes"], 0);
        let samples = agent["live_samples"].as_u64().expect("samples");
        assert!((19_000..=20_000).contains(&samples), "{agent}");
        let stacks = sites["stacks"].as_array().expect("stacks").iter();
        let classes: Vec<String> = stacks.map(|stack| stack["class"].to_string()).collect();
        assert!(
            classes.iter().all(|class| class.contains("Kept")),
            "{classes:?}"
        );
        // If the trace cannot be written or options are invalid, nothing changes.
        let nowhere = attach("trace=/no/such/folder/t.db");
        nowhere.failed(3, "cannot write this file: No such file or directory");
        attach("trace=/tmp").failed(3, "trace=/tmp: the user ");
        attach("interval=soon").failed(3, "the agent rejected its options");
        assert_eq!(agent_of(home, &pid)["interval_bytes"], 0);

        let done = run(home, &["detach", &pid]).well();
        assert!(done.stdout.contains("stopped sampling"), "{done:?}");
        let runs = Trace::open(&trace).and_then(|trace| trace.runs());
        let runs = runs.expect("a trace");
        assert_eq!(runs.len(), 1);
        assert!(runs[0].ended_ms.is_some(), "the trace has ended");
        assert_eq!(agent_of(home, &pid), Value::Null);
        let done = run(home, &["detach", &pid]).well();
        assert!(
            done.stdout.contains("the agent was not sampling"),
            "{done:?}"
        );

        let done = attach("interval=0").well();
        assert!(done.stdout.contains("the agent is loaded;"), "{done:?}");
        target.advance(6).expect("more");
        let agent = agent_of(home, &pid);
        let samples = agent["live_samples"].as_u64().expect("samples");
        assert!(samples >= 19_000, "{agent}");
        assert!(target.finish().expect("an end"));
    }
}
