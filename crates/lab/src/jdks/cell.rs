//! One cell of the test matrix: a JDK with a collector and an object layout.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use hprof::answers::Histogram;
use hprof::{Options, Silent};
use serde::Deserialize;
use testdata::jvm::{DumpOptions, Jdk, Launch, Selection, Target};
use testdata::programs;

use super::Tools;

/// A collector with its flags, and the JDKs that have it.
struct Collector {
    name: &'static str,
    flags: &'static [&'static str],
    since: u32,
    /// True if a forked child can write a dump of this collector's heap. ZGC's heap is a shared mapping, so a child
    /// cannot.
    forks: bool,
}

const COLLECTORS: [Collector; 5] = [
    Collector {
        name: "G1",
        flags: &["-XX:+UseG1GC"],
        since: 8,
        forks: true,
    },
    Collector {
        name: "Serial",
        flags: &["-XX:+UseSerialGC"],
        since: 8,
        forks: true,
    },
    Collector {
        name: "Parallel",
        flags: &["-XX:+UseParallelGC"],
        since: 8,
        forks: true,
    },
    // In JDK 11, Shenandoah and ZGC are experimental.
    Collector {
        name: "Shenandoah",
        flags: &["-XX:+UnlockExperimentalVMOptions", "-XX:+UseShenandoahGC"],
        since: 11,
        forks: true,
    },
    Collector {
        name: "ZGC",
        flags: &["-XX:+UnlockExperimentalVMOptions", "-XX:+UseZGC"],
        since: 11,
        forks: false,
    },
];

/// Layouts to test: the JVM flags that select the layout, and the first and the last JDK on which it is tested.
const LAYOUTS: [(&[&str], u32, u32); 6] = [
    (&[], 8, u32::MAX),
    (&["-XX:-UseCompressedOops"], 8, u32::MAX),
    (&["-XX:ObjectAlignmentInBytes=16"], 8, u32::MAX),
    (&["-XX:+UseCompactObjectHeaders"], 25, 26),
    (&["-XX:-UseCompactObjectHeaders"], 27, u32::MAX),
    (&["--enable-preview"], 28, u32::MAX),
];
/// A layout that combines two of [`LAYOUTS`].
const COMBINED: (&[&str], u32, u32) = (
    &["--enable-preview", "-XX:-UseCompactObjectHeaders"],
    28,
    u32::MAX,
);

/// The field that grows in the planted leak. The next constant is the method that makes it grow.
const HOLDER: &str = "Jdks.leaked";
const METHOD: &str = "Jdks.grow";
const ENTRY: &str = "Jdks$Entry";
/// Number of entries that each phase of the program adds.
const ENTRIES: u64 = 20_000;

pub(super) struct Cell {
    jdk: Jdk,
    pub(super) collector: &'static str,
    flags: Vec<&'static str>,
    layout: &'static [&'static str],
    forks: bool,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.collector)?;
        self.layout.iter().try_for_each(|flag| write!(f, " {flag}"))
    }
}

/// Returns the cells (combinations of collector and object layout) of the test matrix for a JDK.
pub(super) fn all(jdk: &Jdk) -> Vec<Cell> {
    let major = jdk.major();
    let collectors = COLLECTORS.iter().filter(|c| major >= c.since);
    let layouts = || {
        let all = LAYOUTS.iter().chain([&COMBINED]);
        all.filter(|&&(_, since, until)| (since..=until).contains(&major))
    };
    let cells = collectors.flat_map(|collector| {
        // ZGC has no compressed references.
        let is_possible =
            |flags: &[&str]| collector.name != "ZGC" || !flags.contains(&"-XX:-UseCompressedOops");
        let layouts = layouts().filter(move |(flags, ..)| is_possible(flags));
        layouts.map(|&(layout, ..)| Cell {
            jdk: jdk.clone(),
            collector: collector.name,
            flags: collector.flags.to_vec(),
            layout,
            forks: collector.forks,
        })
    });
    cells.collect()
}

/// The results of one cell (JDK, collector and object layout) of the test matrix. Each cell consists of steps, such as
/// a comparison or a forked dump.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Number of classes whose objects and bytes were compared with those of the JVM's histogram.
    pub(super) classes: usize,
    /// Reasons why the figures of some classes may differ from the histogram. A difference with such a reason is no
    /// fault.
    pub(super) excepted: BTreeSet<&'static str>,
    /// Number of flattened value objects in the dump.
    pub(super) flattened: u64,
    pub(super) rounds: u32,
    /// Names of the steps that succeeded.
    pub(super) steps: Vec<&'static str>,
    pub(super) faults: Vec<String>,
}

impl Outcome {
    pub(super) fn check(&mut self, step: &'static str, result: Result<()>) {
        match result {
            Ok(()) => self.steps.push(step),
            Err(e) => self.faults.push(format!("{step}: {e:#}")),
        }
    }
}

/// The fields of a comparison that are checked.
#[derive(Debug, Deserialize)]
struct Comparison {
    suspects: Vec<Suspect>,
}

/// The fields of a histogram that are checked.
#[derive(Debug, Deserialize)]
struct Classes {
    classes: Vec<ClassRow>,
}

#[derive(Debug, Deserialize)]
struct Suspect {
    holder: String,
    #[serde(default)]
    stacks: Vec<Stack>,
}

#[derive(Debug, Deserialize)]
struct Stack {
    frames: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct ClassRow {
    class: String,
    objects: u64,
}

impl Cell {
    pub(super) fn is_usual_layout(&self) -> bool {
        self.layout.is_empty() || self.layout == ["--enable-preview"]
    }

    /// Runs all steps of this cell of the test matrix, such as a comparison and a forked dump. Records each failed step
    /// as a fault.
    pub(super) fn run(&self, tools: &Tools, rounds: u32) -> Outcome {
        println!("JDK {} {self}", self.jdk.version());
        let mut outcome = Outcome::default();
        if let Err(e) = self.steps(tools, rounds, &mut outcome) {
            outcome.faults.push(format!("{e:#}"));
        }
        outcome
    }

    fn start(&self) -> Result<Target> {
        let classes = self.jdk.compile(&programs::jdks("Jdks.java"))?;
        let mut flags = vec![
            "-Xmx256m",
            "-Xcheck:jni",
            // The messages of -Xcheck:jni go to standard error, because standard output has the lines of the program.
            "-XX:+DisplayVMOutputToStderr",
        ];
        if self.jdk.major() >= 21 {
            flags.push("-XX:+EnableDynamicAgentLoading");
        }
        flags.extend(self.flags.iter().chain(self.layout));
        let launch = Launch::class(&self.jdk, classes, "Jdks").flags(flags);
        Ok(launch.timeout(Duration::from_secs(120)).start()?)
    }

    fn steps(&self, tools: &Tools, rounds: u32, outcome: &mut Outcome) -> Result<()> {
        let has_agent = self.jdk.major() >= 11;
        let mut target = self.start()?;
        target.wait_ready(0)?;
        let pid = target.pid().to_string();
        let file = |name: &str| tools.scratch.join(name);
        let [before, after, forked] = ["before.hprof", "after.hprof", "forked.hprof"].map(file);
        if has_agent {
            let done = tools.attach(&pid, "interval=4k");
            outcome.check("attach", done);
        }
        target.dump(&before, DumpOptions::default())?;
        target.advance(1)?;
        target.advance(2)?;
        outcome.compare(&target, &after)?;
        let found = leak(tools, &before, &after, has_agent);
        outcome.check("leak", found);
        if has_agent {
            if self.forks {
                let done = tools.fork(&pid, &forked, 3 * ENTRIES);
                outcome.check("forked dump", done);
            }
            let done = tools.run(&["sites", &after.to_string_lossy(), "--format", "json"]);
            let samples = done.and_then(|text| {
                ensure!(text.contains(METHOD), "no stack has {METHOD}");
                Ok(())
            });
            outcome.check("samples", samples);
            target.tell("busy")?;
            outcome.check("count", tools.count(&pid));
            outcome.check("usage", tools.attach(&pid, "usage=on"));
            outcome.check("detach", tools.run(&["detach", &pid, "--quiet"]).map(drop));
            let rounds = if self.is_usual_layout() { rounds } else { 0 };
            for round in 1..=rounds {
                let done = self.round(tools, &pid, &forked);
                if let Err(e) = done {
                    outcome.faults.push(format!("round {round}: {e:#}"));
                    break;
                }
                outcome.rounds = round;
            }
        }
        let (well, errors) = target.finish_with_errors()?;
        ensure!(well, "the JVM ended with an error: {errors}");
        let own = |line: &&str| !line.starts_with("heapdiff agent:") && !is_expected(line);
        let printed: Vec<&str> = errors.lines().filter(own).take(3).collect();
        ensure!(
            printed.is_empty(),
            "the JVM printed: {}",
            printed.join(" / ")
        );
        Ok(())
    }

    /// Attaches the agent to the busy JVM, takes a dump, and detaches the agent.
    fn round(&self, tools: &Tools, pid: &str, file: &Path) -> Result<()> {
        tools.attach(pid, "interval=16k")?;
        if self.forks {
            tools.fork(pid, file, 3 * ENTRIES)?;
        } else {
            let file = file.to_string_lossy();
            tools.run(&["dump", pid, "--quiet", "--force", "-o", &file])?;
        }
        tools.run(&["detach", pid, "--quiet"]).map(drop)
    }
}

/// True if a line on a JVM's standard error does not report a fault.
fn is_expected(line: &str) -> bool {
    // JDK 8 and 11 print such a warning for experimental flags.
    line.trim().is_empty() || line.starts_with("OpenJDK 64-Bit Server VM warning: Options ")
}

/// Compares two dumps, and fails unless the first suspect is the planted leak. With the agent, the suspect must also
/// have the stack that allocated it.
fn leak(tools: &Tools, before: &Path, after: &Path, has_agent: bool) -> Result<()> {
    let files = [before, after].map(Path::to_string_lossy);
    let text = tools.run(&[&files[0], &files[1], "--format", "json", "--no-index"])?;
    check_leak(&text, has_agent)
}

/// Fails unless the first suspect of a comparison is the planted leak. If `has_stacks` is true, the suspect must also
/// have the stack that allocated it.
pub(super) fn check_leak(json: &str, has_stacks: bool) -> Result<()> {
    let report: Comparison = serde_json::from_str(json)?;
    let suspect = report.suspects.first().context("no suspect")?;
    ensure!(suspect.holder == HOLDER, "the holder is {}", suspect.holder);
    if has_stacks {
        let stack = suspect.stacks.first().context("no stack")?;
        let is_method = |frame: &String| frame.contains(METHOD);
        ensure!(
            stack.frames.iter().any(is_method),
            "the stack is {:?}",
            stack.frames
        );
    }
    Ok(())
}

impl Tools {
    /// Runs heapdiff and returns its output.
    pub(super) fn run(&self, args: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.heapdiff);
        let done = command
            .args(args)
            .current_dir(&self.scratch)
            .stdin(Stdio::null())
            .output();
        let done = done.context("cannot start heapdiff")?;
        let errors = String::from_utf8_lossy(&done.stderr);
        // Every exit code except 0 is a failure.
        ensure!(
            done.status.success(),
            "heapdiff {}: {}",
            args[0],
            errors.trim()
        );
        Ok(String::from_utf8(done.stdout)?)
    }

    fn attach(&self, pid: &str, options: &str) -> Result<()> {
        let agent = self.agent.to_string_lossy();
        self.run(&["attach", pid, options, "--quiet", "--agent", &agent])
            .map(drop)
    }

    /// Lets a forked child write a dump. Fails if the dump has fewer than `entries` entries, or at least twice as many.
    fn fork(&self, pid: &str, file: &Path, entries: u64) -> Result<()> {
        let (agent, name) = (self.agent.to_string_lossy(), file.to_string_lossy());
        let args = [
            "dump", pid, "--fork", "--quiet", "--force", "--agent", &agent, "-o", &name,
        ];
        self.run(&args)?;
        let text = self.run(&["histo", &name, "--format", "json", "--no-index", "--strict"])?;
        let report: Classes = serde_json::from_str(&text)?;
        let entry = report.classes.iter().find(|row| row.class == ENTRY);
        let found = entry.map_or(0, |row| row.objects);
        // The program's threads create further objects of the class [`ENTRY`]. The dump also contains those that the
        // agent sampled, because the agent refers to sampled objects by weak references.
        ensure!(
            (entries..2 * entries).contains(&found),
            "{found} entries, not {entries}"
        );
        Ok(())
    }

    /// Counts allocations for a second. The counts must include the entries that the program's threads create.
    fn count(&self, pid: &str) -> Result<()> {
        let agent = self.agent.to_string_lossy();
        let counted = self.run(&[
            "count",
            pid,
            "--for",
            "1s",
            "--include",
            "^Jdks",
            "--format",
            "json",
            "--quiet",
            "--agent",
            &agent,
        ])?;
        ensure!(counted.contains(ENTRY), "{ENTRY} is not counted");
        Ok(())
    }
}

/// Number of objects and bytes of each class, by class name.
type Table = BTreeMap<String, (u64, u64)>;

fn jvm(target: &Target) -> Result<Table> {
    let mut table = Table::new();
    let is_old = target.jdk().major() < 15;
    for entry in target.histogram(Selection::All)?.classes {
        // Before JDK 15, the class name in the dump lacks the number of a VM anonymous class.
        let name = match entry.class.split_once('/') {
            Some((name, _)) if is_old => name.to_owned(),
            _ => entry.class,
        };
        let line = table.entry(name).or_default();
        *line = (line.0 + entry.instances, line.1 + entry.bytes);
    }
    Ok(table)
}

impl Outcome {
    /// Takes a dump of all objects, and compares each class with the JVM's histogram.
    fn compare(&mut self, target: &Target, file: &Path) -> Result<()> {
        let all = DumpOptions {
            selection: Selection::All,
            ..DumpOptions::default()
        };
        let mut before = jvm(target)?;
        if file.exists() {
            fs::remove_file(file)?;
        }
        target.dump(file, all)?;
        let mut after = jvm(target)?;
        let histogram = Histogram::open(file, &Options::default(), &Silent)?;
        let mut ours = Table::new();
        for ((_, class), total) in histogram.classes().iter().zip(histogram.totals()) {
            self.flattened += total.flattened;
            let objects = total.all.objects - total.flattened;
            if total.all.objects > 0 {
                let line = ours.entry(class.name.to_string()).or_default();
                *line = (line.0 + objects, line.1 + total.all.bytes);
            }
        }
        for table in [&mut before, &mut after] {
            self.join_fillers(table, &ours);
        }
        let names: BTreeSet<&String> = ours.keys().chain(before.keys()).collect();
        for name in names {
            let of = |table: &Table| table.get(name).copied().unwrap_or_default();
            if of(&before) != of(&after) {
                // The program or the diagnostic command created objects of this class between the two histograms.
                continue;
            }
            self.classes += 1;
            let (dump, jvm) = (of(&ours), of(&before));
            if dump == jvm {
                continue;
            }
            match exception(target.jdk().major(), name, dump, jvm) {
                Some(reason) => _ = self.excepted.insert(reason),
                None => self
                    .faults
                    .push(format!("{name}: {dump:?}, the JVM has {jvm:?}")),
            }
        }
        ensure!(
            self.classes > 150,
            "only {} classes were compared",
            self.classes
        );
        self.steps.push("histogram");
        Ok(())
    }

    /// Makes filler arrays, with which the JVM fills unused parts of the heap, comparable with the dump. Since JDK 19,
    /// the JVM's histogram lists them under their own name. Up to JDK 27, the dump contains them as `int[]`. JDK 28
    /// does not write them to the dump.
    fn join_fillers(&mut self, table: &mut Table, ours: &Table) {
        const FILLERS: &str = "jdk.internal.vm.FillerElement[]";
        let ints = "int[]".to_owned();
        let of = |table: &Table| table.get(&ints).copied().unwrap_or_default();
        let has_fillers = of(ours) != of(table);
        if ours.contains_key(FILLERS) {
            return;
        }
        if let Some(fillers) = table.remove(FILLERS) {
            if has_fillers {
                let line = table.entry(ints).or_default();
                *line = (line.0 + fillers.0, line.1 + fillers.1);
            } else {
                self.excepted
                    .insert("filler objects, which this dump does not contain");
            }
        }
    }
}

/// Returns the reason why the figures of a class in the dump and in the JVM's histogram may differ. Returns `None` if
/// they must not differ.
fn exception(major: u32, class: &str, dump: (u64, u64), jvm: (u64, u64)) -> Option<&'static str> {
    match class {
        // The histogram also counts class objects in the CDS archive that no class uses yet, and static fields of
        // classes that are not linked.
        "java.lang.Class"
            if dump.1 <= jvm.1
                && (dump.0 < jvm.0 || dump.0 == jvm.0 && jvm.1 - dump.1 <= jvm.1 / 100) =>
        {
            Some("java.lang.Class, of archived or unlinked classes")
        }
        // The model of static fields is not exact for JDK 8.
        "java.lang.Class" if major == 8 && dump.0 == jvm.0 && dump.1 <= jvm.1 + jvm.1 / 50 => {
            Some("java.lang.Class, by at most 2 % of its bytes")
        }
        // JDK 8 does not write the sentinel object of deleted JNI handles to the dump.
        "java.lang.Object" if major == 8 && dump.0 + 1 == jvm.0 => {
            Some("one java.lang.Object, which marks deleted JNI handles")
        }
        _ => None,
    }
}
