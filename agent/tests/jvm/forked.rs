//! Compares snapshots by a forked child with dumps by the JVM itself, while the program is idle.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use heapdiff_sites::attach;
use hprof::answers::{Content, Value};
use hprof::{ClassIndex, ObjectIndex, Options, Silent, Snapshot};
use testdata::jvm::{DumpOptions, Jdk, Launch, Selection, Target};
use testdata::programs;

use crate::{CHECKED, collectors, library};

const PROGRAM: &str = "Forked";
/// Flags of collectors whose heap is in shared memory. A forked child gets no copy of shared memory, so it cannot write
/// a dump.
const SHARED: [&str; 1] = ["-XX:+UseZGC"];

/// Maximum time for a forked dump. The child has the lowest priority: while other processes use all processors, the
/// child gets 1 or 2 % of a processor.
pub(crate) const PATIENCE: Duration = Duration::from_secs(400);

fn launch(jdk: &Jdk, count: u32) -> Launch {
    let classes = jdk.compile(&programs::agent("Forked.java")).unwrap();
    Launch::class(jdk, classes, PROGRAM)
        .flags(["-Xmx512m", "-XX:+EnableDynamicAgentLoading"])
        .arg(count.to_string())
        .timeout(PATIENCE)
}

/// Returns the JVMs to test, JDK 11 or later. Fails if there are none.
pub(crate) fn jdks() -> Vec<Jdk> {
    let jdks = Jdk::all_for_agent();
    assert!(!jdks.is_empty(), "a JDK of 11 or later is needed");
    jdks
}

fn private_collectors(jdk: &Jdk) -> Vec<&'static str> {
    let mut flags = collectors(jdk);
    flags.retain(|flag| !SHARED.contains(flag));
    flags
}

/// Returns the flags for each object layout that the JVM supports. The default layout is the first one.
fn layouts(jdk: &Jdk) -> Vec<&'static [&'static str]> {
    let all: [&[&str]; 5] = [
        &[],
        &["-XX:-UseCompressedOops"],
        &["-XX:-UseCompressedOops", "-XX:-UseCompressedClassPointers"],
        &["-XX:ObjectAlignmentInBytes=16"],
        &[
            "-XX:+UnlockExperimentalVMOptions",
            "-XX:+UseCompactObjectHeaders",
        ],
    ];
    let starts = |flags: &&[&str]| {
        let run = Command::new(jdk.java())
            .args(*flags)
            .arg("-version")
            .output();
        run.unwrap().status.success()
    };
    all.into_iter().filter(starts).collect()
}

/// Returns the flags of every collector with the default object layout, and of one collector with every other layout.
fn collectors_and_layouts(jdk: &Jdk) -> Vec<(&'static str, &'static [&'static str])> {
    let collectors = private_collectors(jdk);
    let others = layouts(jdk).into_iter().skip(1);
    let others = others.filter_map(|layout| Some((*collectors.first()?, layout)));
    let with_default = collectors.iter().map(|&collector| (collector, &[][..]));
    with_default.chain(others).collect()
}

pub(crate) fn started(launch: &Launch) -> Target {
    let mut target = launch.start().unwrap();
    target.wait_ready(1).unwrap();
    target
}

/// Requests a snapshot and returns the agent's result code.
fn ask(target: &Target, file: &Path) -> i32 {
    let options = format!("{}{}", attach::SNAPSHOT, file.display());
    let answer = target.load_agent(&library(), &options).unwrap();
    let code = answer.lines().find_map(|l| l.strip_prefix("return code:"));
    code.unwrap_or_else(|| panic!("{answer}"))
        .trim()
        .parse()
        .unwrap()
}

pub(crate) fn take(target: &Target, folder: &Path) -> PathBuf {
    let file = folder.join("forked.hprof");
    let _ = fs::remove_file(&file);
    assert_eq!(ask(target, &file), attach::DONE, "{}", target.errors());
    file
}

pub(crate) fn open(file: &Path) -> Snapshot {
    let snapshot = Snapshot::open(file, &Options::default(), &Silent).unwrap();
    assert!(!snapshot.is_partial(), "{:?}", snapshot.warnings());
    snapshot
}

/// Returns the number of objects and the bytes of each class, by the class's name.
pub(crate) fn histogram(snapshot: &Snapshot) -> BTreeMap<String, (u64, u64)> {
    let mut by_name = BTreeMap::new();
    for (index, class) in snapshot.classes().iter() {
        let total = snapshot.totals()[index.index()].all;
        let sum: &mut (u64, u64) = by_name.entry(class.name.to_string()).or_default();
        sum.0 += total.objects;
        sum.1 += total.bytes;
    }
    by_name.retain(|_, sum| sum.0 > 0);
    by_name
}

/// Returns the child processes of a process.
fn children(pid: u32) -> Vec<u32> {
    let of_thread = |thread: std::io::Result<fs::DirEntry>| {
        let children = thread.ok()?.path().join("children");
        fs::read_to_string(children).ok()
    };
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let texts: Vec<String> = threads.filter_map(of_thread).collect();
    let words = texts.iter().flat_map(|text| text.split_whitespace());
    words.map(|word| word.parse().unwrap()).collect()
}

fn open_files(target: &Target) -> usize {
    let pid = target.jvm_pid().unwrap();
    fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// Beginnings of the names of classes that the comparison leaves out. The JVM counts objects of these classes that no
/// JVMTI walk reaches:
/// - threads that JVMTI hides, and their parts
/// - call sites of application classes, and objects that only these call sites hold
/// - class objects in the CDS archive whose classes were never loaded; the snapshot contains these objects as instances
///   of one size
/// - filler objects, which collectors put into gaps
/// - objects that commands create between the snapshot and the histogram
const EXCEPT: [&str; 9] = [
    "java.lang.Thread",
    "java.lang.invoke.",
    "java.lang.Class",
    "java.security.AccessControlContext",
    "jdk.internal.ref.CleanerImpl$PhantomCleanableRef",
    "jdk.internal.vm.Filler",
    "java.util.concurrent.ConcurrentHashMap$Node",
    "java.lang.StringConcatHelper",
    "int[]",
];
/// More classes that the comparison leaves out for JDKs before 17. The JVM's native code creates objects of these
/// classes while it runs the commands.
const EXCEPT_BEFORE: [&str; 5] = [
    "java.lang.Object[]",
    "java.lang.ref.ReferenceQueue",
    "java.util.WeakHashMap$Entry",
    // The JVM itself has added fields to the objects of this class.
    "jdk.internal.loader.ClassLoaders$AppClassLoader",
    "Forked$$Lambda$",
];
/// Classes whose numbers of objects may differ between the dump and the JVM's histogram. The reason is that objects of
/// the classes in `EXCEPT` hold some objects of these classes. Each number is the maximum difference.
const NEARLY: [(&str, u64); 7] = [
    ("byte[]", 20),
    ("java.lang.String", 20),
    ("java.lang.Object[]", 20),
    ("java.lang.String[]", 4),
    ("java.lang.Object", 8),
    ("java.lang.Class[]", 4),
    ("java.util.ImmutableCollections$", 20),
];

#[test]
fn the_histogram_is_the_jvms() {
    for jdk in jdks() {
        for layout in layouts(&jdk) {
            for collector in private_collectors(&jdk) {
                let launch = launch(&jdk, 20_000).flag(collector);
                let target = started(&launch.flags(layout.iter().copied()));
                let what = format!("JDK {} {collector} {layout:?}", jdk.version());
                compare_histograms(&jdk, collector, &target, &what);
                assert!(target.finish().unwrap());
            }
        }
    }
}

/// Returns the number of unreferenced strings of the CDS archive, by class. JDK 11 with G1 counts them as live.
fn archived(
    jdk: &Jdk,
    collector: &str,
    target: &Target,
    folder: &Path,
) -> BTreeMap<String, (u64, u64)> {
    let mut archived = BTreeMap::new();
    if jdk.major() >= 17 || !collector.contains("G1") {
        return archived;
    }
    let file = folder.join("archive.hprof");
    target.dump(&file, DumpOptions::default()).unwrap();
    let snapshot = open(&file);
    for ((_, class), total) in snapshot.classes().iter().zip(snapshot.histogram()) {
        let (objects, bytes) = (
            total.all.objects - total.reachable.objects,
            total.all.bytes - total.reachable.bytes,
        );
        if objects > 0 && ["byte[]", "java.lang.String"].contains(&&*class.name) {
            archived.insert(class.name.to_string(), (objects, bytes));
        }
    }
    let objects: u64 = archived.values().map(|sum| sum.0).sum();
    // With an object layout other than the default, the JVM does not map the CDS archive. In that case, the strings
    // that were found are not from the archive: only weak references hold these strings.
    if objects < 1000 {
        archived.clear();
    }
    archived
}

/// Compares the number of objects and the bytes of every class with the JVM's histogram.
fn compare_histograms(jdk: &Jdk, collector: &str, target: &Target, what: &str) {
    let folder = tempfile::tempdir().unwrap();
    // When the agent is loaded for the first time, some objects are created. So load the agent before the comparison.
    take(target, folder.path());
    let own = target.histogram(Selection::Live).unwrap();
    let found = histogram(&open(&take(target, folder.path())));
    let archived = archived(jdk, collector, target, folder.path());
    let mut expected: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for class in &own.classes {
        let sum = expected.entry(class.class.clone()).or_default();
        sum.0 += class.instances;
        sum.1 += class.bytes;
    }
    for (name, archived) in &archived {
        let sum = expected.entry(name.clone()).or_default();
        sum.0 = sum.0.saturating_sub(archived.0);
        sum.1 = sum.1.saturating_sub(archived.1);
    }
    assert_eq!(found["Forked$Leaf"].0, 20_000);
    let before: &[&str] = if jdk.major() < 17 {
        &EXCEPT_BEFORE
    } else {
        &[]
    };
    // Shenandoah counts some unreachable strings as live. JDK 11 with G1 counts strings of the CDS archive as live. In
    // this case, a forked dump also contains some other strings that only weak references hold.
    let most_of_all = if collector.contains("Shenandoah") {
        400
    } else if !archived.is_empty() {
        60
    } else {
        0
    };
    let mut differ = Vec::new();
    for name in found.keys().chain(expected.keys()) {
        let (ours, theirs) = (found.get(name), expected.get(name));
        let is_exception = EXCEPT.iter().chain(before).any(|e| name.starts_with(e));
        let (ours, theirs) = (
            ours.copied().unwrap_or_default(),
            theirs.copied().unwrap_or_default(),
        );
        let nearly = NEARLY.iter().find(|(start, _)| name.starts_with(start));
        let is_near = nearly.is_some_and(|&(_, most)| {
            ours.0.abs_diff(theirs.0) <= most.max(most_of_all)
                && ours.1.abs_diff(theirs.1) <= theirs.1 / 20 + 4096
        });
        if ours != theirs && !is_exception && !is_near {
            differ.push(format!("{name}: {ours:?}, the JVM {theirs:?}"));
        }
    }
    differ.dedup();
    println!("{what}: {} classes", expected.len());
    assert!(differ.is_empty(), "{what}: {differ:#?}");
}

/// Two dumps of the same heap, which are compared object by object.
struct Pair<'a> {
    ours: &'a Snapshot,
    theirs: &'a Snapshot,
    known: HashMap<ObjectIndex, ObjectIndex>,
    open: VecDeque<(ObjectIndex, ObjectIndex)>,
}

impl Pair<'_> {
    fn value(&mut self, what: &str, ours: Value, theirs: Value) {
        let (Value::Object(_, ours), Value::Object(_, theirs)) = (ours, theirs) else {
            assert_eq!(format!("{ours:?}"), format!("{theirs:?}"), "{what}");
            return;
        };
        let (Some(ours), Some(theirs)) = (ours, theirs) else {
            assert_eq!(ours.is_none(), theirs.is_none(), "{what}");
            return;
        };
        match self.known.insert(ours, theirs) {
            None => self.open.push_back((ours, theirs)),
            Some(before) => assert_eq!(before, theirs, "{what}"),
        }
    }

    fn statics(&mut self, ours: ClassIndex, theirs: ClassIndex) {
        let fields: Vec<String> = self.theirs.classes()[theirs]
            .statics
            .iter()
            .map(|field| field.name.to_string())
            .filter(|name| !name.starts_with('<'))
            .collect();
        for name in fields {
            let theirs = self.theirs.static_value(theirs, &name).unwrap();
            let ours = self.ours.static_value(ours, &name);
            self.value(&name, ours.unwrap_or_else(|| panic!("{name}")), theirs);
        }
    }

    fn objects(&mut self) {
        while let Some((ours, theirs)) = self.open.pop_front() {
            let name = self.theirs.name(theirs);
            if let Some(class) = self.theirs.represents(theirs) {
                let of = self.ours.represents(ours).unwrap();
                assert_eq!(
                    self.ours.classes()[of].name,
                    self.theirs.classes()[class].name
                );
                continue;
            }
            let class =
                |snapshot: &Snapshot, object| snapshot.class(object).unwrap().name.to_string();
            assert_eq!(class(self.ours, ours), class(self.theirs, theirs), "{name}");
            let (a, b) = (
                self.ours.shallow_bytes(ours),
                self.theirs.shallow_bytes(theirs),
            );
            assert_eq!(a, b, "{name}");
            let (a, b) = (
                self.ours.retained_bytes(ours),
                self.theirs.retained_bytes(theirs),
            );
            assert_eq!(a, b, "retained by {name}");
            let (one, other) = (self.ours, self.theirs);
            let (a, b) = (one.read(ours).unwrap(), other.read(theirs).unwrap());
            match (a.content, b.content) {
                (Content::Instance(mut a), Content::Instance(mut b)) => {
                    // HotSpot lists fields from last to first, JVMTI from first to last.
                    a.sort_by_key(|field| field.name);
                    b.sort_by_key(|field| field.name);
                    assert_eq!(a.len(), b.len(), "{name}");
                    for (a, b) in a.iter().zip(&b) {
                        assert_eq!(a.name, b.name, "{name}");
                        let what = format!("{name}.{}", a.name);
                        self.value(&what, a.value.unwrap(), b.value.unwrap());
                    }
                }
                (Content::Array(a), Content::Array(b)) => {
                    assert_eq!(a.len, b.len, "{name}");
                    for (a, b) in a.elements(0..a.len).zip(b.elements(0..b.len)) {
                        self.value(&name, a, b);
                    }
                }
                (a, b) => panic!("{name}: {a:?} {b:?}"),
            }
        }
    }
}

#[test]
fn every_object_equals_that_in_a_dump_of_the_jvm() {
    for jdk in jdks() {
        for (collector, layout) in collectors_and_layouts(&jdk) {
            let folder = tempfile::tempdir().unwrap();
            let target = started(&launch(&jdk, 3000).flag(collector).flags(layout));
            let ours = open(&take(&target, folder.path()));
            let file = folder.path().join("own.hprof");
            target.dump(&file, DumpOptions::default()).unwrap();
            let theirs = open(&file);
            let mut pair = Pair {
                ours: &ours,
                theirs: &theirs,
                known: HashMap::new(),
                open: VecDeque::new(),
            };
            for (index, class) in theirs.classes().iter() {
                if class.name.starts_with(PROGRAM) && !class.name.contains('/') {
                    let same = ours.classes().by_name(&class.name);
                    assert_eq!(same.len(), 1, "{}", class.name);
                    let fields =
                        |class: &hprof::records::Class| format!("{:?}", class.fields.len());
                    assert_eq!(fields(&ours.classes()[same[0]]), fields(class));
                    pair.statics(same[0], index);
                }
            }
            pair.objects();
            println!(
                "JDK {} {collector} {layout:?}: {} objects alike",
                jdk.version(),
                pair.known.len()
            );
            assert!(pair.known.len() > 3000 * 4);
            // Taking a snapshot does not start the carrier threads of virtual threads.
            let starts = ["ForkJoinPool", "VirtualThread"];
            for thread in ours.threads() {
                let name = thread.name.unwrap_or_default();
                assert!(
                    !starts.iter().any(|start| name.starts_with(start)),
                    "{name}"
                );
            }
            // In both dumps, the local variable must be held by the same frame of the same thread.
            let holder = |snapshot: &Snapshot| {
                let threads = snapshot.threads();
                let thread = threads.iter().find(|t| t.name.as_deref() == Some("holder"));
                thread.unwrap_or_else(|| panic!("{threads:?}")).clone()
            };
            let (a, b) = (holder(&ours), holder(&theirs));
            assert_eq!(frames(&ours, &a), frames(&theirs, &b));
            let held = frames(&ours, &a).join(" ");
            assert!(
                held.contains("hold") && held.contains("Forked$Held"),
                "{held}"
            );
            assert!(target.finish().unwrap());
        }
    }
}

/// Returns a thread's frames, each with the classes of its local variables.
pub(crate) fn frames(snapshot: &Snapshot, thread: &hprof::answers::Thread) -> Vec<String> {
    let class = |local: &hprof::answers::Local| {
        let class = snapshot.class(local.object).unwrap();
        format!("{:?} {}", local.kind, class.name)
    };
    let frame = |frame: &hprof::answers::StackFrame| {
        let locals: Vec<String> = frame.locals.iter().map(class).collect();
        format!("{} {locals:?}", frame.frame)
    };
    thread.frames.iter().map(frame).collect()
}

/// Returns how long the program was stopped for each run of a safepoint operation, in milliseconds. The times are from
/// the JVM's log of safepoints.
fn pauses(log: &Path, operation: &str) -> Vec<f64> {
    let text = fs::read_to_string(log).unwrap();
    let lines = text
        .lines()
        .filter(|l| l.contains(&format!("\"{operation}\"")));
    let nanos = |line: &str| -> f64 {
        let total = line.split("Total: ").nth(1).unwrap();
        total.split(' ').next().unwrap().parse().unwrap()
    };
    lines.map(|line| nanos(line) / 1e6).collect()
}

#[test]
fn a_forked_dump_pauses_the_program_only_briefly() {
    // In earlier JDKs, the log of safepoints does not name the operations.
    for jdk in crate::jdks() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("safepoints.log");
        let flag = format!("-Xlog:safepoint:file={}", log.display());
        let target = started(&launch(&jdk, 300_000).flags(["-XX:+UseG1GC", &flag]));
        take(&target, folder.path());
        let file = folder.path().join("own.hprof");
        target.dump(&file, DumpOptions::default()).unwrap();
        let (ours, theirs) = (
            pauses(&log, "HeapWalkOperation"),
            pauses(&log, "HeapDumper"),
        );
        println!(
            "JDK {}: {ours:?} ms with a fork, {theirs:?} ms for the JVM's own dump",
            jdk.version()
        );
        assert_eq!(theirs.len(), 1);
        // Each child that is forked for a dump pauses the program. A child that waits for a lock is replaced.
        assert!((1..=10).contains(&ours.len()), "{ours:?}");
        assert!(
            ours.iter().all(|pause| pause * 5.0 < theirs[0]),
            "{ours:?} {theirs:?}"
        );
        assert!(target.finish().unwrap());
    }
}

#[test]
fn a_shared_heap_is_refused() {
    for jdk in jdks() {
        for collector in collectors(&jdk) {
            if SHARED.contains(&collector) {
                let folder = tempfile::tempdir().unwrap();
                let target = started(&launch(&jdk, 100).flag(collector));
                let file = folder.path().join("forked.hprof");
                assert_eq!(ask(&target, &file), attach::SHARED_HEAP);
                assert!(!file.exists());
                assert!(target.prints("the heap is in shared memory", 1));
                assert!(target.finish().unwrap());
            }
        }
    }
}

#[test]
fn many_snapshots_leave_nothing_behind() {
    for jdk in jdks() {
        let folder = tempfile::tempdir().unwrap();
        let target = started(&launch(&jdk, 2000).flags(CHECKED));
        take(&target, folder.path());
        let files = open_files(&target);
        for _ in 0..20 {
            take(&target, folder.path());
            assert_eq!(
                children(target.jvm_pid().unwrap()),
                [0_u32; 0],
                "a child, or what is left of one"
            );
        }
        // The JVM closes the connection of an attach command after it has answered the command.
        let end = Instant::now() + Duration::from_secs(20);
        while open_files(&target) > files && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(open_files(&target) <= files);
        open(&folder.path().join("forked.hprof"));
        let (well, errors) = target.finish_with_errors().unwrap();
        assert!(well);
        assert_eq!(errors, "", "JDK {}", jdk.version());
    }
}

#[test]
fn a_killed_child_does_no_harm() {
    for jdk in jdks() {
        let folder = tempfile::tempdir().unwrap();
        let target = started(&launch(&jdk, 200_000));
        let file = folder.path().join("killed.hprof");
        let pid = target.jvm_pid().unwrap();
        let killer = std::thread::spawn(move || {
            let until = Instant::now() + Duration::from_secs(60);
            loop {
                let found = children(pid);
                if let Some(child) = found.first() {
                    let kill = Command::new("kill")
                        .args(["-9", &child.to_string()])
                        .status();
                    return kill.unwrap().success();
                }
                assert!(Instant::now() < until, "no child");
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let code = ask(&target, &file);
        assert!(killer.join().unwrap());
        assert_eq!(code, attach::FAILED);
        assert!(
            target.prints("ended with code -9", 1),
            "{}",
            target.errors()
        );
        assert_eq!(children(target.jvm_pid().unwrap()), [0_u32; 0]);
        let next = open(&take(&target, folder.path()));
        assert_eq!(histogram(&next)["Forked$Leaf"].0, 200_000);
        assert!(target.finish().unwrap());
    }
}
