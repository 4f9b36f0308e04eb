//! Made-up reports for tests here and in the browser. The tests need names that no compiler generates, and more stacks
//! than a small program has.

use heapdiff_model::diff::AllocatedAt;

use heapdiff_diff::{
    Allocated, AllocatedLine, ClassGrowth, Coverage, Delta, Died, Growth, HeapClass, HeapCoverage,
    HeapReport, HeapSuspect, HeapThread, HeapWaste, LayoutInfo, Report, SnapshotInfo, Stack,
    Suspect, ThreadHold, Verdict,
};

/// A class name for tests. It is an injection attack: it contains characters with a special meaning in the output
/// formats.
pub const HOSTILE: &str =
    "com.acme.</script><script>window.hacked=1</script>'\"&<b>|`x`\u{202e}]]>*_@all.Map<K,V>";

fn number(list: &mut Vec<String>, text: &str) -> u32 {
    let at = list.iter().position(|t| t == text);
    let at = at.unwrap_or_else(|| {
        list.push(text.to_owned());
        list.len() - 1
    });
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// Builds allocated objects from lines. A line has the frames (the root first, separated by spaces), the class, and the
/// bytes before and after.
#[must_use]
pub fn allocated(lines: &[(&str, &str, [u64; 2])]) -> Allocated {
    let mut all = Allocated::default();
    for &(frames, class, bytes) in lines {
        let frames: Vec<String> = split_frames(frames);
        let line = AllocatedLine {
            frames: frames
                .iter()
                .rev()
                .map(|f| number(&mut all.frames, f))
                .collect(),
            class: number(&mut all.classes, class),
            samples: bytes.map(|b| u64::from(b > 0)).to_vec(),
            objects: bytes.map(|b| u64::from(b > 0)).to_vec(),
            bytes: bytes.to_vec(),
        };
        all.lines.push(line);
    }
    all
}

/// Splits a text at spaces into frames, but not before `(lambda)`, which is part of a frame.
fn split_frames(frames: &str) -> Vec<String> {
    let frames = frames.replace(" (", "\u{1}(");
    frames.split(' ').map(|f| f.replace('\u{1}', " ")).collect()
}

/// Returns a stack of these frames, the root first. The interval of its estimated bytes is `bytes` ± `half`.
#[must_use]
pub fn stack(frames: &str, bytes: u64, half: u64) -> Stack {
    let mut frames = split_frames(frames);
    frames.reverse();
    Stack {
        frames,
        class: "com.acme.Entry".to_owned(),
        samples: 10,
        estimated_bytes: bytes,
        ci95: [bytes - half, bytes + half],
        sampled: None,
        estimated_objects: bytes / 8,
        survival_permille: 900,
        survival_known: true,
        threads: vec!["main".to_owned()],
        ..Stack::default()
    }
}

/// Returns a suspect with one stack.
#[must_use]
pub fn suspect(rank: u32, holder: &str, verdict: Verdict, grown: u32) -> Suspect {
    let bytes = u64::from(grown);
    Suspect {
        rank,
        verdict,
        reasons: vec![
            "the number of objects grew, and the number of holders did not change".to_owned(),
        ],
        root: "static com.acme.Registry".to_owned(),
        path: vec![
            holder.to_owned(),
            "java.util.HashMap.table".to_owned(),
            "java.util.HashMap$Node.value".to_owned(),
        ],
        holder: holder.to_owned(),
        class: "com.acme.Entry".to_owned(),
        objects: vec![10, 10 + bytes / 8],
        shallow_bytes: vec![80, 80 + bytes],
        retained_bytes: vec![100, 100 + bytes],
        growth: Growth {
            objects: i64::from(grown / 8),
            shallow_bytes: grown.into(),
            retained_bytes: grown.into(),
        },
        stacks: vec![stack(
            "com.acme.Main.main(Main.java:7) com.acme.Web.put(Web.java:42)",
            bytes,
            0,
        )],
        coverage: Coverage {
            samples: 10,
            sampled_bytes: bytes,
            growth_bytes: bytes,
            ..Coverage::default()
        },
        holders: 1,
        ..Suspect::default()
    }
}

fn snapshot(path: &str, bytes: u64) -> SnapshotInfo {
    SnapshotInfo {
        path: path.to_owned(),
        bytes,
        taken_ms: 1_700_000_000_000 + bytes,
        id_size: 8,
        jvm: Some("17.0.15+6".to_owned()),
        layout: LayoutInfo {
            reference: 4,
            header: 12,
            array_header: 16,
            align: 8,
            source: "addresses".into(),
        },
        objects: bytes / 32,
        reachable_objects: bytes / 40,
        reachable_bytes: bytes,
        ..SnapshotInfo::default()
    }
}

/// Returns a report with these suspects and with this number of classes.
#[must_use]
pub fn report(suspects: Vec<Suspect>, classes: u32) -> Report {
    let class = |i: u32| ClassGrowth {
        class: match i {
            0 => HOSTILE.to_owned(),
            _ => format!("com.acme.module{}.Class{i}", i % 97),
        },
        loader: i
            .is_multiple_of(3)
            .then(|| "com.acme.PluginLoader".to_owned()),
        objects: vec![10, 10 + u64::from(i)],
        shallow_bytes: vec![1000, 1000 + u64::from(classes - i) * 8],
        retained_bytes: vec![2000, 2000 + u64::from(classes - i) * 16],
    };
    Report {
        schema: "heapdiff.diff/1".into(),
        snapshots: vec![
            snapshot("before.hprof", 9 << 20),
            snapshot("after.hprof", 17 << 20),
        ],
        comparable: true,
        warnings: Vec::new(),
        delta: Delta {
            objects: 1000,
            shallow_bytes: 8 << 20,
        },
        oom: None,
        heap_trend: None,
        explained_bytes: 7 << 20,
        noise_bytes: 16 << 10,
        classes: (0..classes).map(class).collect(),
        suspects,
        owners: None,
        unreachable: None,
        recordings: Vec::new(),
        left_out: Vec::new(),
    }
}

/// Returns a report of one dump with this number of suspects, and one entry in each other list. Its names try to break
/// out of every format.
#[must_use]
pub fn heap(suspects: u32) -> HeapReport {
    let suspect = |rank: u32| HeapSuspect {
        rank,
        reasons: vec![format!("held by {HOSTILE}")],
        root: "static com.acme.Registry".to_owned(),
        path: vec![
            if rank == 1 {
                HOSTILE
            } else {
                "com.acme.Registry.all"
            }
            .to_owned(),
            "java.lang.Object[*]".to_owned(),
        ],
        holder: if rank == 1 {
            HOSTILE
        } else {
            "com.acme.Registry.all"
        }
        .to_owned(),
        class: "com.acme.Entry".to_owned(),
        objects: 1000,
        shallow_bytes: 24_000,
        retained_bytes: 2 << 20,
        holders: 1,
        stacks: vec![stack(
            "com.acme.Main.main(Main.java:7) com.acme.Web.put(Web.java:42)",
            1 << 20,
            4096,
        )],
        coverage: HeapCoverage {
            samples: 10,
            sampled_bytes: 1 << 20,
            unseen_bytes: 0,
            unsampled_bytes: 1 << 20,
        },
        holder_id: Some("0x7f00a8".to_owned()),
        next: vec!["heapdiff show after.hprof com.acme.Registry.all".to_owned()],
        ..HeapSuspect::default()
    };
    HeapReport {
        schema: HeapReport::SCHEMA.into(),
        snapshot: snapshot("a.hprof", 4 << 20),
        warnings: vec!["--include a: no class has a name that this matches".to_owned()],
        least_bytes: (4 << 20) / 50,
        explained_bytes: 2 << 20,
        died: Some(Died {
            thread: Some(HOSTILE.to_owned()),
            frames: vec!["com.acme.Main.main(Main.java:7)".to_owned(); 12],
        }),
        suspects: (1..=suspects).map(|rank| suspect(rank).into()).collect(),
        threads: vec![HeapThread {
            name: Some(HOSTILE.to_owned()),
            retained_bytes: 1 << 20,
            local: Some(ThreadHold {
                frame: "com.acme.Main.main(Main.java:7)".to_owned(),
                class: "com.acme.Entry[]".to_owned(),
                retained_bytes: 1 << 19,
            }),
        }],
        waste: vec![HeapWaste {
            kind: "duplicate_strings".into(),
            objects: 40,
            bytes_to_win: 4096,
            holder: Some("com.acme.Entry.name".to_owned()),
        }],
        classes: vec![HeapClass {
            class: HOSTILE.to_owned(),
            loader: None,
            objects: 1000,
            shallow_bytes: 24_000,
            retained_bytes: 2 << 20,
        }],
        unreachable: None,
        recordings: Vec::new(),
    }
}

/// Returns a report and stacks that fill a page to its maximum size. Each suspect has fifty stacks. The stacks differ
/// and have at most sixty frames.
#[must_use]
pub fn largest_page_report(suspects: u32, stacks: u32) -> (Report, Allocated) {
    let verdicts = [
        Verdict::Leak,
        Verdict::Growth,
        Verdict::Cache,
        Verdict::Warmup,
    ];
    let suspect = |i: u32| {
        let holder = match i {
            1 => HOSTILE.to_owned(),
            _ => format!("com.acme.module{}.Service{i}.entries", i % 31),
        };
        let verdict = verdicts[(i % 7 % 4) as usize];
        let mut suspect = suspect(i, &holder, verdict, (suspects - i + 1) * 4096);
        suspect.coverage.unsampled_bytes = suspect.coverage.growth_bytes / 2 * u64::from(i % 2);
        suspect.stacks = (0..50)
            .map(|s| {
                let frames = (0..24)
                    .map(|d| format!("com.acme.layer{d}.Step{}.call(Step.java:{s})", i % 13 + s));
                stack(&frames.collect::<Vec<_>>().join(" "), 4096, 512)
            })
            .collect();
        suspect
    };
    let report = report((1..=suspects).map(suspect).collect(), 20_000);
    let mut all = Allocated::default();
    // A call tree. Methods on every third level call ten methods each. Methods on all other levels call one method
    // each.
    const WAYS: u32 = 10;
    for level in 0..60 {
        for way in 0..WAYS {
            let frame = format!(
                "com.acme.layer{level}.Handler{way}.handle(Handler.java:{})",
                level + way
            );
            all.frames.push(frame);
        }
    }
    all.frames[7] = format!("{HOSTILE}(Evil.java:1)");
    all.classes = (0..40).map(|i| format!("com.acme.Data{i}")).collect();
    all.lines = (0..stacks)
        .map(|i| {
            let depth = 12 + i % 49;
            let mut rest = i;
            let mut frames: Vec<u32> = (0..depth)
                .map(|level| {
                    let forks = level.is_multiple_of(3);
                    let way = if forks { rest % WAYS } else { 0 };
                    rest /= if forks { WAYS } else { 1 };
                    level * WAYS + way
                })
                .collect();
            frames.reverse();
            let grown = u64::from(i % 1000) * 64 + 8;
            AllocatedLine {
                frames,
                class: i % 40,
                samples: vec![1, 2],
                objects: vec![4, 4 + grown / 16],
                bytes: vec![if i.is_multiple_of(5) { grown * 2 } else { 64 }, 64 + grown],
            }
        })
        .collect();
    (report, all)
}

/// For test reports with deep stacks: number of frames of each stack ([`DEPTH`]), and number of outermost frames that
/// are equal in all growing stacks ([`SHARED`]).
pub const DEPTH: usize = 60;
pub const SHARED: usize = 58;

/// Returns a class name of 80 letters.
fn long_class(number: usize) -> String {
    let name = format!("com.acme.warehouse.Confirmation{number:02}");
    format!("{name}{}", "NotificationService".repeat(3))
        .chars()
        .take(80)
        .collect()
}

/// Returns a stack of [`DEPTH`] frames with long names, the root first. All such stacks have the same [`SHARED`]
/// outermost frames. The method of each other frame is `method`.
fn deep_frames(method: &str) -> String {
    let frames = (0..DEPTH).map(|at| {
        let method = if at < SHARED { "confirm" } else { method };
        format!("{}.{method}(C.java:{at})", long_class(at))
    });
    frames.collect::<Vec<_>>().join(" ")
}

/// Gives a suspect long names and deep stacks. The second suspect has only stacks that allocated its class, dead or
/// alive (`allocated_at`). The third suspect has no stacks, only the sentence that the allocating code is unknown
/// (`joined`).
fn deepen(suspect: &mut Suspect) {
    let field = format!("{}.CURRENT", long_class(70));
    suspect.holder.clone_from(&field);
    suspect.class = long_class(71);
    suspect.reasons = vec![format!("held by {field}, {field} and {field}")];
    suspect.stacks = ["load", "store"]
        .map(|m| stack(&deep_frames(m), 2048, 64))
        .into();
    suspect.stacks[1].frames.clear();
    match suspect.rank {
        1 => {
            suspect.root = "thread java.lang.Thread \"worker\"".to_owned();
            suspect.path = vec!["java.lang.ThreadLocal$ThreadLocalMap$Entry.value".to_owned()];
            suspect.detector = Some("thread-local".into());
            suspect.thread_local = Some(field);
        }
        2 => {
            suspect.path = (0..20)
                .map(|at| format!("{}.next", long_class(at)))
                .collect();
            let frames = std::mem::take(&mut suspect.stacks).swap_remove(0).frames;
            suspect.allocated_at = vec![AllocatedAt {
                frames,
                samples: 3,
                estimated_bytes: 5000,
            }];
        }
        _ => {
            suspect.stacks.clear();
            suspect.joined = Some("allocating code unknown: no matching sample".to_owned());
        }
    }
}

/// Returns a comparison with long names and deep stacks. All stacks that grew have their outermost frames in common.
/// One stack that shrank does not have these frames.
#[must_use]
pub fn deep_report() -> (Report, Allocated) {
    let verdicts = [Verdict::Leak, Verdict::Growth, Verdict::Cache];
    let suspects = (1..).zip(verdicts).map(|(rank, verdict)| {
        let mut one = suspect(rank, "a.B.c", verdict, 8192);
        deepen(&mut one);
        one
    });
    let mut report = report(suspects.collect(), 3);
    report.classes[1].class = long_class(72);
    let allocated = allocated(&[
        (&deep_frames("load"), &long_class(73), [0, 4096]),
        (&deep_frames("store"), &long_class(73), [0, 4096]),
        ("com.acme.Main.main(Main.java:7)", "byte[]", [2048, 1024]),
    ]);
    (report, allocated)
}

/// Returns the report of one dump with long names and deep stacks.
#[must_use]
pub fn deep_heap() -> HeapReport {
    let mut heap = heap(3);
    heap.suspects.iter_mut().for_each(deepen);
    heap.classes[0].class = long_class(72);
    heap.died = None;
    heap
}
