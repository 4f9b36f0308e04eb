//! The configurations of the JVM that are compared: without a tool, with the agent, and with other tools.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use testdata::jvm::Jdk;

/// A configuration: a name and the JVM's flags.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) flags: Vec<OsString>,
    /// True if the tool is our agent.
    pub(super) ours: bool,
    /// Mean number of allocated bytes between two samples, if the tool has a sampling interval.
    pub(super) interval: Option<u64>,
    /// Approximate factor by which the tool slows the program down. The number of operations in a slice of the
    /// program's work is divided by this factor.
    pub(super) part: u32,
}

/// The value of [`Tool::part`] for tools that sample every allocation.
const SLOW: u32 = 100;

const NONE: &str = "none";

impl Tool {
    fn new(name: &str, flags: Vec<OsString>) -> Self {
        Self {
            name: name.to_owned(),
            flags,
            ours: false,
            interval: None,
            part: 1,
        }
    }

    /// True if this configuration is the baseline that the other configurations are compared with.
    pub(super) fn is_baseline(&self) -> bool {
        self.name == NONE
    }
}

fn flag(parts: &[&dyn AsRef<OsStr>]) -> OsString {
    parts.iter().fold(OsString::new(), |mut flag, part| {
        flag.push(part.as_ref());
        flag
    })
}

/// Returns all configurations in the order of the table. `earlier` is the agent of an earlier version, to compare with.
pub(super) fn all(
    jdk: &Jdk,
    (agent, earlier): (&Path, Option<&Path>),
    profiler: Option<&PathBuf>,
    scratch: &Path,
) -> Vec<Tool> {
    let file = |name: &str| scratch.join(format!("{name}-{}.jfr", jdk.major()));
    let mut tools = vec![
        Tool::new(NONE, Vec::new()),
        Tool::new(
            "without a tool, measured again to show the noise",
            Vec::new(),
        ),
    ];
    for kib in [512, 64] {
        let options = format!("interval={kib}k");
        tools.push(Tool {
            ours: true,
            interval: Some(kib << 10),
            ..Tool::new(
                &format!("heapdiff {kib} KiB"),
                vec![flag(&[&"-agentpath:", &agent, &"=", &options])],
            )
        });
        if let Some(earlier) = earlier {
            let earlier = std::path::absolute(earlier).unwrap_or_else(|_| earlier.to_owned());
            tools.push(Tool {
                interval: Some(kib << 10),
                ..Tool::new(
                    &format!("heapdiff {kib} KiB, earlier version"),
                    vec![flag(&[&"-agentpath:", &earlier, &"=", &options])],
                )
            });
        }
        // Use the same sampling interval, but let the agent also write a trace. Each JVM writes to a new file.
        let trace = scratch.join(format!("trace-{kib}-{}.db", jdk.major()));
        for end in ["", "-wal", "-shm"] {
            let mut file = trace.clone().into_os_string();
            file.push(end);
            // Ignore errors: the file may not exist, and if it cannot be removed, the agent appends to it.
            let _ = std::fs::remove_file(file);
        }
        tools.push(Tool {
            ours: true,
            interval: Some(kib << 10),
            ..Tool::new(
                &format!("heapdiff {kib} KiB with a trace"),
                vec![flag(&[
                    &"-agentpath:",
                    &agent,
                    &"=",
                    &options,
                    &",trace=",
                    &trace,
                ])],
            )
        });
        if kib == 512 {
            // A guard also records a trace. The cost of the guard alone is the difference from the previous
            // configuration.
            let folder = scratch.join(format!("guard-{}", jdk.major()));
            tools.push(Tool {
                ours: true,
                interval: Some(kib << 10),
                ..Tool::new(
                    &format!("heapdiff, interval {kib} KiB, with the option guard"),
                    vec![flag(&[
                        &"-agentpath:",
                        &agent,
                        &"=",
                        &options,
                        &",guard=90%,guard-container=90%,guard-to=",
                        &folder,
                    ])],
                )
            });
        }
        if let Some(library) = profiler {
            let options = format!("=start,event=alloc,alloc={kib}k,live,file=");
            let file = file(&format!("async-profiler-{kib}"));
            tools.push(Tool {
                interval: Some(kib << 10),
                ..Tool::new(
                    &format!("async-profiler {kib} KiB alloc,live"),
                    vec![flag(&[&"-agentpath:", library, &options, &file])],
                )
            });
        }
    }
    // Record fewer frames for each sample, to show how much time a shorter stack walk saves.
    tools.push(Tool {
        ours: true,
        interval: Some(64 << 10),
        ..Tool::new(
            "heapdiff 64 KiB depth=16",
            vec![flag(&[&"-agentpath:", &agent, &"=interval=64k,depth=16"])],
        )
    });
    // Measure the cost of counting every allocation: once with samples at the default interval, and once with almost no
    // samples.
    for options in [
        "interval=512k,count=on",
        "interval=512k,count=jdk",
        "interval=1g",
        "interval=1g,count=on",
        "interval=1g,count=jdk",
    ] {
        tools.push(Tool {
            ours: true,
            ..Tool::new(
                &format!("heapdiff {options}"),
                vec![flag(&[&"-agentpath:", &agent, &"=", &options])],
            )
        });
    }
    // These configurations sample every allocation.
    tools.push(Tool {
        part: SLOW,
        ..Tool::new(
            "heapdiff interval=0",
            vec![flag(&[&"-agentpath:", &agent, &"=interval=0"])],
        )
    });
    if let Some(library) = profiler {
        let file = file("async-profiler-1");
        tools.push(Tool {
            part: SLOW,
            ..Tool::new(
                "async-profiler alloc=1",
                vec![flag(&[
                    &"-agentpath:",
                    library,
                    &"=start,event=alloc,alloc=1,file=",
                    &file,
                ])],
            )
        });
    }
    let recording = "-XX:StartFlightRecording:settings=profile,filename=";
    tools.push(Tool::new(
        "JFR settings=profile",
        vec![flag(&[&recording, &file("recording")])],
    ));
    tools
}
