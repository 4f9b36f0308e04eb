//! Tests that a comparison that reads cached summaries gives the same report as one that reads the dumps. Also tests
//! that damaged summaries are rejected.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::{self, app::App};
use heapdiff_diff::{Comparison, Filter, Summary, Verdict};
use heapdiff_mapping::Mapping;
use hprof::index::IndexFault;
use hprof::{NameMapping, Options, Refs, Silent, Snapshot};
use testdata::dumps::unpacked;
use testdata::writer::Rng;

const NAMES: [&str; 4] = ["before", "after", "sampled-before", "sampled-after"];

/// The dumps that are committed with the tests, both decompressed and compressed.
struct Dumps {
    folder: tempfile::TempDir,
    all: Vec<PathBuf>,
}

impl Dumps {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut all = Vec::new();
        for name in NAMES {
            let packed = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../testdata")
                .join(format!("{name}.hprof.gz"));
            let plain = folder.path().join(format!("{name}.hprof"));
            fs::write(&plain, unpacked(&packed)).unwrap();
            let copy = folder.path().join(format!("{name}.hprof.gz"));
            fs::copy(packed, &copy).unwrap();
            all.extend([plain, copy]);
        }
        Self { folder, all }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn options(refs: Refs) -> Options {
    let mut options = Options::default();
    options.refs = refs;
    options
}

fn open(dump: &Path, refs: Refs) -> Snapshot {
    Snapshot::open(dump, &options(refs), &Silent).unwrap()
}

fn name(dump: &Path) -> String {
    dump.file_name().unwrap().to_str().unwrap().to_owned()
}

fn file_of(dump: &Path) -> PathBuf {
    let mut file = dump.as_os_str().to_owned();
    file.push(".hds");
    file.into()
}

/// Caches the summary of a dump.
fn keep(dump: &Path, refs: Refs) {
    let snapshot = open(dump, refs);
    let summary = Summary::new(&snapshot, "another name".to_owned()).unwrap();
    let file = summary.to_kept(&snapshot).unwrap();
    assert!(hprof::index::is_index(&file), "it is found and cleaned");
    assert!(file.len() < snapshot.source().len() / 8);
    fs::write(file_of(dump), file).unwrap();
}

/// A dump and its new summary.
struct Opened {
    dump: PathBuf,
    snapshot: Snapshot,
    summary: Summary,
}

impl Opened {
    /// Opens a dump and caches its summary.
    fn new(dump: PathBuf, refs: Refs) -> Self {
        keep(&dump, refs);
        let snapshot = open(&dump, refs);
        let summary = Summary::new(&snapshot, name(&dump)).unwrap();
        Self {
            dump,
            snapshot,
            summary,
        }
    }

    fn kept(&self, of: Option<&Snapshot>) -> Summary {
        let (file, options) = (file_of(&self.dump), options(self.snapshot.refs()));
        Summary::from_kept(&self.dump, &file, &options, name(&self.dump), of).unwrap()
    }
}

/// The dumps of a comparison for which the cached summary is used instead of the dump.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kept {
    Nothing,
    AllButTheLast,
    All,
}

/// Returns the whole report on a comparison as text.
fn report_text(dumps: &[&Opened], kept: Kept) -> String {
    let (last, earlier) = dumps.split_last().unwrap();
    let earlier = earlier.iter().map(|dump| match kept {
        Kept::Nothing => dump.summary.clone(),
        _ => dump.kept(None),
    });
    let mut summaries: Vec<Summary> = earlier.collect();
    summaries.push(match kept {
        Kept::All => last.kept(Some(&last.snapshot)),
        _ => last.summary.clone(),
    });
    let filter = Filter {
        recording: None,
        classes: &|_| true,
        suspects: usize::MAX,
    };
    let comparison = Comparison::new(&summaries, &last.snapshot).unwrap();
    let told = comparison.report_with_stacks(&filter);
    format!("{told:#?}")
}

#[test]
fn comparisons_with_cached_summaries_are_the_same() {
    let dumps = Dumps::new();
    for refs in [Refs::Soft, Refs::Strong, Refs::All] {
        let all = dumps.all.iter().filter(|dump| {
            let packed = dump.extension().is_some_and(|e| e == "gz");
            refs == Refs::Soft || !packed
        });
        let opened: Vec<Opened> = all.map(|dump| Opened::new(dump.clone(), refs)).collect();
        for names in [
            &["before.hprof", "after.hprof"][..],
            &["sampled-before.hprof", "sampled-after.hprof"],
            &["sampled-before.hprof", "sampled-before.hprof"],
            &["sampled-after.hprof", "before.hprof"],
            &["sampled-after.hprof.gz", "sampled-before.hprof"],
            &["before.hprof.gz", "after.hprof", "after.hprof.gz"],
            &[
                "sampled-before.hprof",
                "sampled-before.hprof.gz",
                "sampled-after.hprof.gz",
            ],
        ] {
            let find = |n: &&str| opened.iter().find(|o| o.dump == dumps.at(n));
            let Some(named) = names.iter().map(find).collect::<Option<Vec<_>>>() else {
                continue;
            };
            let expected = report_text(&named, Kept::Nothing);
            for kept in [Kept::AllButTheLast, Kept::All] {
                assert!(
                    report_text(&named, kept) == expected,
                    "{names:?}, {refs:?}, {kept:?}"
                );
            }
        }
    }
}

/// Compares summary files in place of the dumps. The report is the same, except for the commands that read objects and
/// for the names of threads.
#[test]
fn comparisons_of_summary_files_are_the_same() {
    let dumps = Dumps::new();
    let all = [
        &["before.hprof", "after.hprof"][..],
        &["sampled-before.hprof", "sampled-after.hprof"],
        &["before.hprof", "after.hprof", "after.hprof.gz"],
        &["after.hprof", "before.hprof"],
        &["before.hprof", "before.hprof"],
        &["before.hprof", "sampled-after.hprof"],
    ];
    for names in all {
        let paths: Vec<PathBuf> = names.iter().map(|name| dumps.at(name)).collect();
        let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
        let report = common::of_files(&paths);
        assert_eq!(report.snapshots.len(), names.len());
    }
}

/// A summary stores evidence about a limited number of trie nodes, the largest ones. It cannot show that the collection
/// in a smaller trie node has no limit. So the verdict on this trie node is less certain than the verdict from the
/// dumps.
#[test]
fn a_place_without_facts_is_not_called_a_leak() {
    let folder = tempfile::tempdir().unwrap();
    let dumps: Vec<PathBuf> = (0..3)
        .map(|step: usize| {
            let mut app = App::at(1_000_000 + 60_000 * step as u64);
            // Each of many class objects retains more than the list that grows.
            for number in 0..1100 {
                let class = app.class(&format!("com.acme.Table{number}"), &[], &["rows"]);
                let rows = app.bytes(24 << 10);
                app.heap.set_static(class, "rows", rows);
            }
            let row = app.class("com.acme.Row", &["body"], &[]);
            let holder = app.class("com.acme.Log", &[], &["rows"]);
            let rows = app.rows(row, 10 + 45 * step, 150);
            let rows = app.array(rows);
            app.heap.set_static(holder, "rows", rows);
            let dump = folder.path().join(step.to_string());
            fs::write(&dump, app.heap.build()).unwrap();
            dump
        })
        .collect();
    let opened: Vec<Opened> = dumps
        .into_iter()
        .map(|dump| Opened::new(dump, Refs::Soft))
        .collect();
    let summaries: Vec<Summary> = opened.iter().map(|o| o.summary.clone()).collect();
    let last = &opened.last().unwrap().snapshot;
    let of_dumps = Comparison::new(&summaries, last).unwrap();
    let of_dumps = of_dumps.report(&Filter::default()).suspects.remove(0);
    let read: Vec<Summary> = opened
        .iter()
        .map(|opened| {
            let file = folder.path().join("saved.heap");
            fs::write(&file, opened.summary.to_file(&opened.snapshot).unwrap()).unwrap();
            Summary::from_file(&file, &options(Refs::Soft), String::new()).unwrap()
        })
        .collect();
    let report = Comparison::from_summaries(&read).unwrap();
    let report = report.report(&Filter::default());
    let of_summaries = &report.suspects[0];
    assert_eq!(of_dumps.holder, "com.acme.Log.rows");
    assert_eq!(of_summaries.holder, of_dumps.holder);
    assert_eq!(of_dumps.verdict, Verdict::Leak);
    assert_eq!(of_summaries.verdict, Verdict::Growth);
    let part = "limits and known leak patterns of small suspects";
    assert!(report.left_out.iter().any(|own| own == part));
}

/// A summary file of an earlier version can replace any dump of a comparison except the last dump.
#[test]
fn summary_files_without_facts_are_not_the_last_dump() {
    let dumps = Dumps::new();
    let opened = Opened::new(dumps.at("before.hprof"), Refs::Soft);
    let content = heapdiff_diff::fuzz::content(&opened.summary, &opened.snapshot);
    let old = hprof::index::Kept {
        stamp: None,
        refs: Refs::Soft,
        version: 6,
    };
    let file = dumps.at("old.heap");
    fs::write(&file, old.file(&content)).unwrap();
    let read = || Summary::from_file(&file, &options(Refs::Soft), "old".to_owned());
    let summaries = [read().unwrap(), read().unwrap()];
    assert!(Comparison::from_summaries(&summaries).is_none());
    let summaries = [read().unwrap(), opened.summary.clone()];
    let comparison = Comparison::new(&summaries, &opened.snapshot).unwrap();
    assert!(comparison.report(&Filter::default()).left_out.is_empty());
    for version in [5, 8] {
        fs::write(&file, hprof::index::Kept { version, ..old }.file(&content)).unwrap();
        assert!(matches!(read(), Err(IndexFault::Other(_))));
    }
}

/// The content of the summary files of the committed dumps, as a hash. If it changes, raise `FILE_VERSION` in
/// `diff/src/summary/kept.rs`, and write the new version and hash here.
#[test]
fn summary_files_change_only_with_their_version() {
    const FILE: (u32, u64) = (7, 9_836_183_195_396_034_022);
    let mut words = Vec::new();
    for name in ["before", "after"] {
        let path = format!("{}/../testdata/{name}.hprof.gz", env!("CARGO_MANIFEST_DIR"));
        let snapshot = open(Path::new(&path), Refs::Soft);
        let summary = Summary::new(&snapshot, String::new()).unwrap();
        words.extend(heapdiff_diff::fuzz::file_content(&summary, &snapshot));
    }
    let found = (
        heapdiff_diff::fuzz::FILE_VERSION,
        hprof::bytes::hash(&words),
    );
    assert_eq!(found, FILE, "raise the version: see the comment here");
}

#[test]
fn damaged_dumps_have_reproducible_summaries() {
    let dumps = Dumps::new();
    let (before, after) = (dumps.at("before.hprof"), dumps.at("sampled-after.hprof"));
    let bytes = fs::read(&before).unwrap();
    let after = Opened::new(after, Refs::Soft);
    for (from, to) in [(bytes.len() * 2 / 3, bytes.len()), (2_500_000, 2_500_400)] {
        let mut damaged = bytes.clone();
        damaged.drain(from..to);
        fs::write(&before, damaged).unwrap();
        let before = Opened::new(before.clone(), Refs::Soft);
        for pair in [[&before, &after], [&after, &before]] {
            let expected = report_text(&pair, Kept::Nothing);
            assert!(expected.contains("partial: true"));
            assert!(report_text(&pair, Kept::All) == expected);
        }
    }
}

#[test]
fn foreign_and_damaged_summaries_are_refused() {
    let dumps = Dumps::new();
    let (dump, other) = (dumps.at("sampled-after.hprof"), dumps.at("after.hprof"));
    keep(&dump, Refs::Soft);
    let file = file_of(&dump);
    let whole = fs::read(&file).unwrap();
    let read =
        |dump: &Path, refs| Summary::from_kept(dump, &file, &options(refs), String::new(), None);
    assert!(read(&dump, Refs::Soft).is_ok());
    assert!(matches!(read(&dump, Refs::All), Err(IndexFault::Other(_))));
    assert!(matches!(read(&other, Refs::Soft), Err(IndexFault::Stale)));
    let opened = open(&other, Refs::Soft);
    let of_other = Summary::from_kept(
        &dump,
        &file,
        &options(Refs::Soft),
        String::new(),
        Some(&opened),
    );
    assert!(matches!(of_other, Err(IndexFault::Stale)));
    // Damages the file in one of five ways: truncates it, inverts the bytes of a page, flips a bit, adds bytes or
    // rotates all bytes.
    let mut rng = Rng::new(5);
    for round in 0..300 {
        let mut bytes = whole.clone();
        let at = rng.below(bytes.len());
        match round % 5 {
            0 => bytes.truncate(at),
            1 => bytes[at..].iter_mut().take(4096).for_each(|b| *b = !*b),
            2 => bytes[at] ^= 1 << (round % 8),
            3 => bytes.extend_from_slice(&whole[..at.max(1)]),
            _ => bytes.rotate_left(at.max(1)),
        }
        fs::write(&file, bytes).unwrap();
        assert!(read(&dump, Refs::Soft).is_err(), "{round}, at {at}");
    }
    fs::write(&file, &whole).unwrap();
    assert!(read(&dump, Refs::Soft).is_ok());
    // Replace the dump by another one that has the same length and modification time.
    let time = fs::metadata(&dump).unwrap().modified().unwrap();
    let mut bytes = fs::read(&dump).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&dump, &bytes).unwrap();
    let set = fs::File::options().write(true).open(&dump).unwrap();
    set.set_modified(time).unwrap();
    assert!(matches!(read(&dump, Refs::Soft), Err(IndexFault::Stale)));
    fs::remove_file(&file).unwrap();
    assert!(matches!(
        read(&dump, Refs::Soft),
        Err(IndexFault::Unreadable(_))
    ));
}

/// Checks the content of the summaries of the dumps in the repository, as a hash. If the hash changes, raise `VERSION`
/// in `diff/src/summary/kept.rs`, and write the new version and hash here. Otherwise, summaries that were cached before
/// the change would lead to other reports than new summaries.
#[test]
fn summaries_change_only_with_their_version() {
    const KEPT: (u32, u64) = (6, 337_644_958_572_373_243);
    let mut words = Vec::new();
    for name in ["before", "after"] {
        let path = format!("{}/../testdata/{name}.hprof.gz", env!("CARGO_MANIFEST_DIR"));
        let snapshot = open(Path::new(&path), Refs::Soft);
        let summary = Summary::new(&snapshot, String::new()).unwrap();
        words.extend(heapdiff_diff::fuzz::content(&summary, &snapshot));
    }
    let found = (
        heapdiff_diff::fuzz::KEPT_VERSION,
        hprof::bytes::hash(&words),
    );
    assert_eq!(found, KEPT, "raise the version: see the comment here");
}

/// A cached summary is read only with the mapping with which it was made.
#[test]
fn cached_summaries_are_used_only_with_their_mapping() {
    let mapping = |text: &str| Arc::new(Mapping::new([text.as_bytes().to_vec()]).unwrap());
    let own = mapping("com.acme.Sessions -> com.acme.shop.SessionRegistry:\n");
    let other = mapping("x.Y -> y:\n");
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata");
    let dump = testdata.join("after.hprof.gz");
    let options = |mapping: Option<&Arc<Mapping>>| {
        let mut options = Options::default();
        options.mapping = mapping.map(|mapping| mapping.clone() as _);
        options
    };
    let open = |mapping| Snapshot::open(&dump, &options(mapping), &Silent).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("summary");
    let read = |names| Summary::from_kept(&dump, &file, &options(names), String::new(), None);
    let alone = |names| Summary::from_file(&file, &options(names), String::new());
    let snapshot = open(Some(&own));
    let summary = Summary::new(&snapshot, String::new()).unwrap();
    fs::write(&file, summary.to_kept(&snapshot).unwrap()).unwrap();
    let again = mapping("com.acme.Sessions -> com.acme.shop.SessionRegistry:\n");
    assert!(read(Some(&again)).is_ok() && again.fits());
    for names in [None, Some(&other)] {
        assert!(matches!(read(names), Err(IndexFault::Other(_))));
    }
    // A summary file that is used in place of its dump keeps the names of the mapping with which it was made.
    fs::write(&file, summary.to_file(&snapshot).unwrap()).unwrap();
    assert!(alone(Some(&other)).is_ok() && alone(None).is_ok());
    let snapshot = open(None);
    let summary = Summary::new(&snapshot, String::new()).unwrap();
    fs::write(&file, summary.to_file(&snapshot).unwrap()).unwrap();
    assert!(matches!(alone(Some(&other)), Err(IndexFault::Other(_))));
    assert!(alone(None).is_ok());
    fs::write(&file, summary.to_kept(&snapshot).unwrap()).unwrap();
    assert!(matches!(read(Some(&own)), Err(IndexFault::Other(_))));
    assert!(read(None).is_ok() && !other.fits());
}
