//! Tests that the results of queries with an index equal the results from the dump, and that a damaged index is
//! rejected.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

use hprof::answers::{DeepOptions, Histogram, Merge, PathOptions};
use hprof::dominators::Thresholds;
use hprof::index::IndexFault;
use hprof::{ObjectIndex, Options, Progress, Refs, Silent, Snapshot};
use proptest::prelude::*;
use testdata::dumps::unpacked;
use testdata::writer::graph::{self, NodeKind};
use testdata::writer::{self, Elements, FieldType, FileOrder, JvmLayout, Place, Rng, Root, Value};

/// Offset of the section table in an index, and the number of sections.
const TABLE: usize = 128;
const SECTIONS: usize = 31;

/// Returns the results of all queries as text: first about the dump, then about each of the first objects.
fn figures(snapshot: &Snapshot) -> Vec<String> {
    let count = u32::try_from(snapshot.object_count()).unwrap();
    let all: Vec<ObjectIndex> = (0..count.min(3000)).map(ObjectIndex).collect();
    let some: Vec<ObjectIndex> = all.iter().step_by(all.len() / 8 + 1).copied().collect();
    let tree = snapshot.tree();
    let mut lines = vec![
        format!("{:?} {:?}", snapshot.header(), snapshot.refs()),
        format!("{:?} {}", snapshot.warnings(), snapshot.is_partial()),
        format!("{:?} {count} {}", snapshot.layout(), tree.node_count()),
        format!("{:?}", snapshot.classes().iter().collect::<Vec<_>>()),
        format!("{:?}", snapshot.histogram()),
        format!("{:?} {:?}", snapshot.jvm(), snapshot.layout_doubt()),
        format!("{} {:?}", snapshot.unreachable_bytes(), snapshot.threads()),
        format!("{:?}", tree.roots().collect::<Vec<_>>()),
        format!("{:?}", snapshot.allocation_traces().collect::<Vec<_>>()),
        format!("{:?}", snapshot.locate(&all)),
        format!("{:?}", snapshot.strings(&all, 20)),
        format!(
            "{:?}",
            all.chunks(500)
                .map(|part| snapshot.referrers(part, 5, &[]))
                .collect::<Vec<_>>()
        ),
        format!("{:?}", snapshot.gc_roots()),
    ];
    for (&object, id) in all.iter().zip(snapshot.ids(&all)) {
        let id = id.unwrap_or_default();
        lines.push(format!(
            "{id} {:?} {} {} {:?} {:?} {:?} {:?}",
            snapshot.find(id),
            snapshot.name(object),
            snapshot.shallow_bytes(object),
            snapshot.retained_bytes(object),
            snapshot.retained_objects(object),
            snapshot.array_length(object),
            tree.dominator(object).map(|node| {
                let leaves = tree.leaves(node).take(50).collect::<Vec<_>>();
                let below = tree.children(node).take(50).collect::<Vec<_>>();
                (tree.object(node), tree.end(node), leaves, below)
            }),
        ));
    }
    let mut options = PathOptions::default();
    options.follow = Refs::All;
    let paths = snapshot.paths(&some, &options, &Silent).unwrap();
    let path = |&o: &ObjectIndex| paths.path(snapshot, o);
    lines.push(format!("{:?}", some.iter().map(path).collect::<Vec<_>>()));
    lines.push(format!("{:?}", paths.merged(snapshot, Merge::Class, 20)));
    let mut deep = snapshot.deep(&DeepOptions::default(), &Silent).unwrap();
    lines.push(format!("{:?}", deep.of_set(&some)));
    drop(deep);
    let together = snapshot.retained_by_all(&some, &Silent).unwrap();
    lines.push(format!("{together:?}"));
    lines.extend(each(snapshot, &some));
    let holders = snapshot.holders().unwrap();
    let held = |&o: &ObjectIndex| snapshot.hold_of(&holders, o);
    lines.push(format!("{:?}", all.iter().map(held).collect::<Vec<_>>()));
    lines
}

/// Returns the results of queries about one or two objects. With an index, these queries read a few objects. Without an
/// index, they read the whole dump.
fn each(snapshot: &Snapshot, objects: &[ObjectIndex]) -> Vec<String> {
    let mut lines = Vec::new();
    let options = DeepOptions::default();
    for (&object, &other) in objects.iter().zip(objects.iter().skip(1)).step_by(3) {
        let pair = [object, other];
        let mut deep = snapshot.deep_from(&pair, &options, &Silent).unwrap();
        let (set, tree) = (deep.of_set(&pair), deep.tree(&pair, 3));
        let one = deep.of_one(object, u64::MAX);
        let retained = snapshot.retained_by_all(&pair, &Silent).unwrap();
        lines.push(format!("{set:?} {tree:?} {one:?} {retained:?}"));
        for (follow, from_statics, except) in [
            (Refs::Strong, true, &[][..]),
            (Refs::Soft, false, &objects[..1]),
        ] {
            let mut options = PathOptions::default();
            options.follow = follow;
            options.from_statics = from_statics;
            options.except = except;
            for asked in [&pair[..1], &pair] {
                let paths = snapshot.paths(asked, &options, &Silent).unwrap();
                let found: Vec<_> = asked.iter().map(|&o| paths.path(snapshot, o)).collect();
                let merged = paths.merged(snapshot, Merge::Object, 50);
                lines.push(format!("{found:?} {:?} {merged:?}", paths.missing()));
            }
        }
    }
    lines
}

fn histogram(histogram: &Histogram) -> String {
    let classes: Vec<_> = histogram.classes().iter().collect();
    let (header, layout) = (histogram.header(), histogram.layout());
    let (warnings, totals) = (histogram.warnings(), histogram.totals());
    format!("{header:?} {layout:?} {warnings:?} {totals:?} {classes:?}")
}

fn options(refs: Refs) -> Options {
    let mut options = Options::default();
    options.refs = refs;
    // With low thresholds, as many objects as possible that refer only to their class are treated as objects without
    // references.
    options.set_thresholds(Thresholds::LOW);
    options
}

/// Writes the dump's index to a file beside it.
fn indexed(dump: &Path, options: &Options) -> (Snapshot, PathBuf) {
    let snapshot = Snapshot::open(dump, options, &Silent).unwrap();
    assert!(hprof::index::can_be_written(&snapshot));
    let index = dump.with_extension("hdx");
    let mut bytes = Vec::new();
    hprof::index::write(&snapshot, &mut bytes).unwrap();
    assert!(bytes.len() as u64 <= hprof::index::max_bytes(&snapshot));
    assert!(hprof::index::is_index(&bytes));
    fs::write(&index, bytes).unwrap();
    (snapshot, index)
}

/// Checks that queries give the same results with and without an index. Repeats this for each choice of reference
/// objects (soft, weak, ...) that retain their referents.
#[track_caller]
fn same(what: &str, dump: &Path) {
    for refs in [Refs::Soft, Refs::Strong, Refs::All] {
        let options = options(refs);
        let (fresh, index) = indexed(dump, &options);
        let mapped = Snapshot::from_index(dump, &index, &options);
        let mapped = mapped.unwrap_or_else(|fault| panic!("{what}, {refs:?}: {fault}"));
        let (expected, found) = (figures(&fresh), figures(&mapped));
        assert_eq!(expected.len(), found.len(), "{what}");
        for (expected, found) in expected.iter().zip(&found) {
            assert_eq!(expected, found, "{what}, {refs:?}");
        }
        let mut again = Vec::new();
        hprof::index::write(&mapped, &mut again).unwrap();
        assert!(again == fs::read(&index).unwrap(), "{what}: written again");
        let expected = Histogram::open(dump, &options, &Silent).unwrap();
        let found = Histogram::from_index(dump, &index, &options).unwrap();
        assert_eq!(histogram(&expected), histogram(&found), "{what}, {refs:?}");
    }
}

#[test]
fn committed_dumps_are_the_same_from_an_index() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["before", "after", "sampled-before", "sampled-after"] {
        let packed = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../testdata")
            .join(format!("{name}.hprof.gz"));
        let bytes = unpacked(&packed);
        let dump = folder.path().join(format!("{name}.hprof"));
        fs::write(&dump, &bytes).unwrap();
        same(name, &dump);
        fs::write(&dump, &bytes[..bytes.len() * 2 / 3]).unwrap();
        same(&format!("{name}, cut off"), &dump);
        let snapshot = Snapshot::open(&packed, &Options::default(), &Silent).unwrap();
        assert!(!hprof::index::can_be_written(&snapshot), "it is compressed");
        assert!(hprof::index::write(&snapshot, &mut Vec::new()).is_err());
    }
}

/// Returns a dump of a random graph with the other contents of a heap: strings, weak and soft references, allocation
/// sites, properties, a distant object.
fn dump(options: writer::Options, gap: u64) -> Vec<u8> {
    let mut rng = Rng::new(7);
    let nodes = 400;
    let edges: Vec<(usize, usize)> = (0..900)
        .map(|_| (rng.below(nodes), rng.below(nodes)))
        .collect();
    let (mut heap, objects) = graph::heap(nodes, &edges, &[3, 50, 99], NodeKind::Mixed, options);
    heap.set_system_properties(&[("java.vm.version", "17.0.15+6")]);
    let boot = heap.boot();
    for kind in [writer::ReferenceKind::Soft, writer::ReferenceKind::Weak] {
        let reference = heap.add_reference(kind, objects[7]);
        heap.add_root(Root::JniGlobal { global_ref: 9 }, reference);
    }
    let long = heap.add_primitive_array(Elements::Zeros(FieldType::Int, 5000));
    heap.add_gap(gap);
    let text = heap.add_string("at the other end");
    let both = heap.add_object_array(boot.object, [long, text]);
    let class = heap.add_class(
        "com.acme.Last",
        Some(boot.object),
        &[("it", FieldType::Object)],
        &[("last", Value::NULL)],
    );
    heap.set_static(class, "last", both);
    // The index stores lists of more than 16 referrers in a separate section.
    let crowd = heap.add_object_array(boot.object, [text; 40]);
    heap.add_root(Root::JniGlobal { global_ref: 10 }, crowd);
    heap.build()
}

#[test]
fn synthetic_dumps_are_the_same_from_an_index() {
    let folder = tempfile::tempdir().unwrap();
    let dump_of = |bytes: &[u8]| {
        let path = folder.path().join("dump.hprof");
        fs::write(&path, bytes).unwrap();
        path
    };
    let usual = writer::Options::default();
    let wide = JvmLayout::WIDE;
    for (what, options, gap) in [
        ("usual", usual, 0),
        ("sparse", usual, 8 << 20),
        ("in blocks", usual, 1 << 40),
        ("too sparse for blocks", usual, 1 << 60),
        ("32 bits", writer::Options::bits_32(), 0),
        ("Android", writer::Options::android(), 64),
        (
            "wide",
            writer::Options {
                layout: wide,
                ..usual
            },
            0,
        ),
        (
            "two runs",
            writer::Options {
                order: FileOrder::Runs(2),
                ..usual
            },
            0,
        ),
        (
            "no order",
            writer::Options {
                order: FileOrder::Shuffled(3),
                ..usual
            },
            0,
        ),
        (
            "classes last",
            writer::Options {
                classes: Place::End,
                ..usual
            },
            0,
        ),
        (
            "roots first",
            writer::Options {
                roots: Place::Start,
                ..usual
            },
            0,
        ),
        (
            "no system classes",
            writer::Options {
                sticky_classes: false,
                ..usual
            },
            0,
        ),
    ] {
        let bytes = dump(options, gap);
        same(what, &dump_of(&bytes));
        same(
            &format!("{what}, cut off"),
            &dump_of(&bytes[..bytes.len() - 2000]),
        );
        // Overwrite class records, names or objects with zeros. This makes some classes unknown and damages records.
        for at in [bytes.len() / 3, bytes.len() / 2] {
            let mut bytes = bytes.clone();
            bytes[at..at + 40].fill(0);
            same(&format!("{what}, damaged"), &dump_of(&bytes));
        }
    }
}

#[test]
fn an_index_of_something_else_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dump.hprof");
    let bytes = dump(writer::Options::default(), 0);
    fs::write(&path, &bytes).unwrap();
    let (_, index) = indexed(&path, &options(Refs::Soft));
    let fault = |refs| Snapshot::from_index(&path, &index, &options(refs)).err();
    assert!(fault(Refs::Soft).is_none());
    assert!(matches!(fault(Refs::All), Some(IndexFault::Other(_))));
    let whole = fs::read(&index).unwrap();
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = whole.clone();
        change(&mut bytes);
        fs::write(&index, bytes).unwrap();
        fault(Refs::Soft)
    };
    let cut = changed(&|b| b.truncate(b.len() - 64));
    assert!(matches!(
        cut,
        Some(IndexFault::Damaged("the file is truncated"))
    ));
    assert!(matches!(
        changed(&|b| b.truncate(100)),
        Some(IndexFault::Damaged(_))
    ));
    assert!(matches!(changed(&|b| b.clear()), Some(IndexFault::Foreign)));
    assert!(matches!(
        changed(&|b| b[0] = b'H'),
        Some(IndexFault::Foreign)
    ));
    assert!(matches!(
        changed(&|b| b[16] += 1),
        Some(IndexFault::Other(_))
    ));
    // Changes each word of the table, and the first and last byte of each section. The damage is reported at once, or
    // when the section is used.
    let word = |at: usize| u64::from_le_bytes(*whole[at..].first_chunk().unwrap()) as usize;
    let mut late = 0;
    for section in 0..SECTIONS {
        let entry = TABLE + section * 24;
        for at in [entry, entry + 8, entry + 16] {
            let found = changed(&|b| b[at] ^= 1);
            assert!(matches!(found, Some(IndexFault::Damaged(_))), "{section}");
        }
        let (first, len) = (word(entry), word(entry + 8));
        for at in [first, first + len.saturating_sub(1)] {
            if len == 0 {
                continue;
            }
            if changed(&|b| b[at] ^= 1).is_none() {
                late += 1;
                let options = options(Refs::Soft);
                let expected = Snapshot::open(&path, &options, &Silent).unwrap();
                let found = Snapshot::from_index(&path, &index, &options).unwrap();
                assert!(!hprof::index::is_damaged(&found));
                assert!(figures(&found) == figures(&expected), "{section}");
                assert!(hprof::index::is_damaged(&found), "{section}: it is used");
            }
        }
    }
    assert_eq!(
        late, 4,
        "both sections of who refers to what, at either end"
    );
    // A page of zeros, as if the page had not been written to the disk.
    let lost = changed(&|b| b[4096..8192].fill(0));
    assert!(matches!(lost, Some(IndexFault::Damaged(_))));
    fs::write(&index, &whole).unwrap();
    assert!(fault(Refs::Soft).is_none());
    // The dump keeps its length, but gets another modification time, and then other content.
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    let at = |offset| {
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(time + std::time::Duration::from_nanos(offset))
            .unwrap();
    };
    at(100);
    assert!(matches!(fault(Refs::Soft), Some(IndexFault::Stale)));
    at(0);
    assert!(fault(Refs::Soft).is_none());
    let mut other = bytes.clone();
    *other.last_mut().unwrap() ^= 1;
    fs::write(&path, &other).unwrap();
    at(0);
    assert!(matches!(fault(Refs::Soft), Some(IndexFault::Stale)));
    fs::write(&path, &bytes[1..]).unwrap();
    at(0);
    assert!(matches!(fault(Refs::Soft), Some(IndexFault::Stale)));
    fs::remove_file(&index).unwrap();
    assert!(matches!(fault(Refs::Soft), Some(IndexFault::Unreadable(_))));
}

/// Records the phases of a query in their order.
#[derive(Default)]
struct Phases(Mutex<Vec<&'static str>>);

impl Progress for Phases {
    fn advance(&self, _: u64) {}
    fn phase(&self, name: &'static str, _: u64) {
        self.0.lock().unwrap().push(name);
    }
}

/// With the index, queries about few objects return the same results as without it, but most of them do not build the
/// heap graph. The phases of a query show whether it builds the graph.
#[test]
fn questions_about_few_objects_do_without_the_graph() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dump.hprof");
    fs::write(&path, dump(writer::Options::default(), 0)).unwrap();
    let options = options(Refs::Soft);
    let (fresh, index) = indexed(&path, &options);
    let mapped = Snapshot::from_index(&path, &index, &options).unwrap();
    let phases = |snapshot: &Snapshot, objects: &[ObjectIndex]| {
        let phases = Phases::default();
        let paths = PathOptions::default();
        snapshot.paths(objects, &paths, &phases).unwrap();
        let deep = DeepOptions::default();
        snapshot.deep_from(objects, &deep, &phases).unwrap();
        snapshot.retained_by_all(objects, &phases).unwrap();
        phases.0.into_inner().unwrap()
    };
    let tree = mapped.tree();
    let held = tree.nodes().filter(|&n| tree.retained_objects(n) < 100);
    let held: Vec<ObjectIndex> = held.filter_map(|n| tree.object(n)).collect();
    let instances = held.iter().filter(|&&o| mapped.represents(o).is_none());
    let pairs: Vec<[ObjectIndex; 2]> = instances
        .clone()
        .zip(instances.skip(1))
        .map(|(&a, &b)| [a, b])
        .collect();
    assert!(pairs.len() > 20);
    let mut quick = 0;
    for pair in &pairs {
        assert!(phases(&fresh, pair).contains(&"linking objects"));
        for set in [&pair[..], &[pair[0], pair[0]]] {
            let retained = |snapshot: &Snapshot| snapshot.retained_by_all(set, &Silent).unwrap();
            assert_eq!(retained(&fresh), retained(&mapped), "{set:?}");
        }
        let paths = |snapshot: &Snapshot| {
            let options = PathOptions::default();
            let paths = snapshot.paths(pair, &options, &Silent).unwrap();
            pair.map(|o| paths.path(snapshot, o))
        };
        assert_eq!(paths(&fresh), paths(&mapped), "{pair:?}");
        quick += usize::from(
            phases(&mapped, pair)
                .iter()
                .all(|&p| p == "searching for paths"),
        );
    }
    // With the index, the queries for most pairs of objects have only the phase "searching for paths". For the other
    // pairs, soft references change the results, so the queries have more phases.
    assert!(quick * 4 > pairs.len() * 3, "{quick} of {}", pairs.len());
}

/// A dump, the index of the dump, and the results that the tests expect. They are computed once.
struct Sample {
    folder: tempfile::TempDir,
    dump: PathBuf,
    index: Vec<u8>,
    expected: Vec<String>,
    histogram: String,
}

fn samples() -> &'static [Sample] {
    static SAMPLES: OnceLock<Vec<Sample>> = OnceLock::new();
    SAMPLES.get_or_init(|| {
        let usual = writer::Options::default();
        let shuffled = writer::Options {
            order: FileOrder::Shuffled(3),
            ..usual
        };
        let runs = writer::Options {
            order: FileOrder::Runs(3),
            ..usual
        };
        [(usual, 0), (shuffled, 0), (usual, 1 << 40), (runs, 0)]
            .map(|(options_of_dump, gap)| {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("dump.hprof");
                fs::write(&path, dump(options_of_dump, gap)).unwrap();
                let options = Options::default();
                let (snapshot, index) = indexed(&path, &options);
                let of_classes = Histogram::open(&path, &options, &Silent).unwrap();
                Sample {
                    index: fs::read(index).unwrap(),
                    expected: figures(&snapshot),
                    histogram: histogram(&of_classes),
                    dump: path,
                    folder,
                }
            })
            .into()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Checks that a damaged index is either rejected or gives the same answers as the dump.
    #[test]
    fn damage_is_reported_or_does_no_harm(
        which in 0..4_usize,
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1..=255_u8), 1..4),
        cut in prop::option::weighted(0.1, any::<prop::sample::Index>()),
        case in any::<u64>(),
    ) {
        let sample = &samples()[which];
        let mut bytes = sample.index.clone();
        for (at, flip) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let index = sample.folder.path().join(format!("{case:x}.hdx"));
        fs::write(&index, &bytes).unwrap();
        let options = Options::default();
        if let Ok(found) = Snapshot::from_index(&sample.dump, &index, &options) {
            prop_assert!(figures(&found) == sample.expected);
        }
        if let Ok(found) = Histogram::from_index(&sample.dump, &index, &options) {
            prop_assert_eq!(&histogram(&found), &sample.histogram);
        }
        fs::remove_file(&index).unwrap();
    }

    /// An index that was changed and then got valid checksums may give wrong answers, but must do no other harm.
    #[test]
    fn right_checksums_of_wrong_content_do_no_harm(
        which in 0..4_usize,
        words in prop::collection::vec(
            (any::<prop::sample::Index>(), prop_oneof![any::<u32>(), 0..3000_u32]), 1..4),
        case in any::<u64>(),
    ) {
        let sample = &samples()[which];
        let mut bytes = sample.index.clone();
        for (at, word) in words {
            // Change neither the header nor the table of sections, which both end before offset 1,024.
            let at = 1024 + at.index((bytes.len() - 1024) / 4) * 4;
            bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        hprof::fuzz::seal_index(&mut bytes);
        let index = sample.folder.path().join(format!("{case:x}.sealed.hdx"));
        fs::write(&index, &bytes).unwrap();
        let options = Options::default();
        if let Ok(found) = Snapshot::from_index(&sample.dump, &index, &options) {
            prop_assert!(!figures(&found).is_empty());
        }
        if let Ok(found) = Histogram::from_index(&sample.dump, &index, &options) {
            prop_assert!(!histogram(&found).is_empty());
        }
        fs::remove_file(&index).unwrap();
    }
}
