//! Tests many counts in one JVM, one after another, while the program is under load.

use std::fs;
use std::time::Duration;

use heapdiff_sites::{Counts, attach};
use testdata::jvm::{Jdk, Launch, Target};
use testdata::programs;

use crate::counted::{TOKEN, USUAL, jdks};
use crate::library;

const THREADS: u64 = 4;
const N: u64 = 60;

/// Values that the program reports about its JVM.
#[derive(Debug)]
struct Figures {
    metaspace: u64,
    committed: u64,
    code: u64,
    /// Number of constant pool entries.
    pools: i64,
    rounds: u64,
    wrong: String,
}

fn asked(target: &mut Target, what: &str) -> Vec<String> {
    target.tell(what).unwrap();
    let line = target.wait_line("READY").unwrap();
    line.split_whitespace().skip(1).map(str::to_owned).collect()
}

fn figures(target: &mut Target) -> Figures {
    let words = asked(target, "figures");
    let number = |at: usize| words[at].parse().unwrap();
    Figures {
        metaspace: number(0),
        committed: number(1),
        code: number(2),
        pools: words[3].parse().unwrap(),
        rounds: number(4),
        wrong: words[5].clone(),
    }
}

fn started(jdk: &Jdk) -> Target {
    let classes = jdk.compile(&programs::agent("Rounds.java")).unwrap();
    let open = |package: &str| format!("--add-exports=java.base/{package}=ALL-UNNAMED");
    let mut target = Launch::class(jdk, classes, "Rounds")
        .flags(["-Xmx256m", "-XX:+EnableDynamicAgentLoading"])
        .flag("-Djdk.attach.allowAttachSelf=true")
        .flags([open("jdk.internal.access"), open("jdk.internal.reflect")])
        .arg(THREADS.to_string())
        .timeout(Duration::from_secs(300))
        .start()
        .unwrap();
    target.wait_line("READY").unwrap();
    target
}

/// Makes the program load the agent into its own JVM.
fn load(target: &mut Target, options: &str) {
    let line = format!("load {} {options}", library().display());
    assert_eq!(asked(target, &line), ["0"], "{}", target.errors());
}

fn counts(target: &Target) -> Counts {
    let sign = format!("/memfd:{}", attach::counts_file_name(TOKEN));
    let files = fs::read_dir(format!("/proc/{}/fd", target.pid())).unwrap();
    let mut files = files.flatten().map(|file| file.path());
    let file = files.find(|file| {
        let link = fs::read_link(file).unwrap_or_default();
        link.to_string_lossy().starts_with(&sign)
    });
    Counts::decode(&fs::read(file.expect("no counts")).unwrap()).unwrap()
}

fn assert_exact(counts: &Counts, which: &str) {
    let of = |method: &str, allocated: &str| {
        let sites = counts.sites.iter();
        let sites = sites.filter(|s| s.class == "Rounds" && s.method == method);
        let sites = sites.filter(|s| s.allocated == allocated);
        sites.fold((0, 0), |(objects, bytes), site| {
            (objects + site.objects, bytes + site.bytes.unwrap())
        })
    };
    let all = THREADS * N;
    let arrays =
        |element: u64, every: u64| -> u64 { (0..N).map(|i| USUAL.array(element, i % every)).sum() };
    let thrown = N.div_ceil(16);
    assert_eq!(of("object", "Rounds$Node").0, all, "{which}");
    assert_eq!(
        of("bytes", "byte[]"),
        (all, THREADS * arrays(1, 100)),
        "{which}"
    );
    assert_eq!(of("levels", "int[][]").0, all, "{which}");
    assert_eq!(of("levels", "int[]").0, 2 * all, "{which}");
    assert_eq!(of("caught", "long[]").0, all - THREADS * thrown, "{which}");
    assert_eq!(of("caught", "Rounds$1").0, THREADS * thrown, "{which}");
    assert_eq!(of("lambda$lambdas$0", "Rounds$Node").0, all, "{which}");
    assert_eq!(
        (counts.uncounted, counts.left_alone, counts.refused),
        (0, 0, 0)
    );
}

/// Runs many counts. Each result is exact, and the program continues. After a GC, the JVM's memory contains nothing
/// that belongs to a count. Set `HEAPDIFF_COUNT_ROUNDS=1000` for a test with many rounds.
#[test]
fn counters_are_inserted_and_removed_repeatedly() {
    let asked_for = std::env::var("HEAPDIFF_COUNT_ROUNDS").ok();
    let rounds: u64 = asked_for.map_or(20, |rounds| rounds.parse().unwrap());
    let options = "seconds=60,jdk=on,include=^(Rounds.*|java\\.util\\.(ArrayDeque|LinkedHashMap|HashMap|TreeMap))$";
    // JDK 12 and later can report constant pool entries.
    for jdk in jdks().into_iter().filter(|jdk| jdk.major() > 11) {
        let mut target = started(&jdk);
        asked(&mut target, "work 5000");
        let mut seen: Vec<(u64, Figures)> = Vec::new();
        for round in 1..=rounds {
            let which = format!("JDK {}, round {round}", jdk.version());
            load(&mut target, &format!("{}{options}", attach::COUNT));
            asked(&mut target, &format!("work {N}"));
            load(&mut target, &format!("{}{TOKEN}", attach::COUNT_END));
            assert_exact(&counts(&target), &which);
            if round == 2 || round % (rounds / 20).max(10) == 0 {
                // Request a GC that frees the memory of earlier versions of classes. Without the request, a JVM may
                // wait long until it runs such a GC, while its metaspace grows.
                asked(&mut target, "collect");
                let now = figures(&mut target);
                println!("{which}: {now:?}");
                assert_eq!(now.wrong, "none", "{which}");
                seen.push((round, now));
            }
        }
        // The program has continued to work, but no constant pool has grown after the first rounds.
        let (first, last) = (&seen[0].1, &seen[seen.len() - 1].1);
        assert!(first.rounds < last.rounds, "{seen:?}");
        assert!(first.pools > 0 && first.pools == last.pools, "{seen:?}");
        // A GC frees the memory of earlier versions of classes.
        let most = seen.iter().map(|(_, f)| f.committed.max(f.metaspace)).max();
        assert!(most.is_some_and(|most| most < 40_000_000), "{seen:?}");
        assert!(last.code < 64_000_000, "{seen:?}");
        let (well, errors) = target.finish_with_errors().unwrap();
        assert!(well, "{errors}");
    }
}
