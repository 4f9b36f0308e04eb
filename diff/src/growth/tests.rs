//! Tests that candidates are found in hand-made tries.

use super::*;
use crate::summary::ClassFigures;
use crate::summary::stats::DumpStats;
use crate::trie::Drawn;
use heapdiff_model::diff::{LayoutInfo, SnapshotInfo};
use hprof::sizes::Total;

const ROOT: (&str, LabelKind) = ("sticky class", LabelKind::Structure);
const ENTRIES: (&str, LabelKind) = ("com.acme.Registry.entries", LabelKind::ApplicationStatic);
const DATA: (&str, LabelKind) = ("java.util.ArrayList.elementData", LabelKind::RuntimeField);
const ELEMENT: (&str, LabelKind) = ("java.lang.Object[*]", LabelKind::Element);
const SHARED: (&str, LabelKind) = ("(several paths)", LabelKind::Shared);

/// Returns the summary of a dump of 1 MB. `steps` are the nodes of its trie. `instances` has pairs of a class and the
/// number of its reachable instances.
fn summary(steps: &[Drawn], instances: &[(&str, u64)]) -> Summary {
    let classes = instances.iter().map(|&(class, objects)| {
        let reachable = Total { objects, bytes: 0 };
        let figures = ClassFigures {
            reachable,
            retained_bytes: 0,
        };
        ((class.to_owned(), None), figures)
    });
    Summary {
        names: None,
        facts: None,
        recordings: Vec::new(),
        info: SnapshotInfo {
            id_size: 8,
            layout: LayoutInfo {
                reference: 4,
                header: 12,
                array_header: 16,
                align: 8,
                source: "assumed".into(),
            },
            reachable_bytes: 1 << 20,
            ..SnapshotInfo::default()
        },
        classes: classes.collect(),
        trie: Trie::drawn(steps),
        allocated: None,
        stats: DumpStats::default(),
        origin: crate::origin::Origin::default(),
    }
}

/// Returns a registry's list of entries of 1000 bytes each.
fn registry(entries: u64) -> Vec<Drawn> {
    let bytes = 1000 * entries;
    vec![
        (0, ROOT, "class com.acme.Registry", [1, 100, bytes + 200]),
        (1, ENTRIES, "java.util.ArrayList", [1, 24, bytes + 100]),
        (2, DATA, "java.lang.Object[]", [1, 76, bytes + 76]),
        (3, ELEMENT, "com.acme.Entry", [entries, 24 * entries, bytes]),
    ]
}

fn candidates(summaries: &[Summary]) -> Vec<Candidate> {
    Aligned::new(summaries).unwrap().candidates()
}

#[test]
fn objects_added_to_a_list_are_a_candidate() {
    let dumps = [100, 200, 300].map(|n| summary(&registry(n), &[]));
    let aligned = Aligned::new(&dumps).unwrap();
    let found = aligned.candidates();
    assert_eq!(found.len(), 1);
    let candidate = &found[0];
    assert_eq!((candidate.at, candidate.named), (StepId(3), StepId(4)));
    assert_eq!(
        (&*candidate.content, candidate.in_place),
        (&[StepId(4)][..], false)
    );
    assert_eq!(candidate.objects, [100, 200, 300]);
    assert_eq!(candidate.shallow, [2400, 4800, 7200]);
    assert_eq!(candidate.retained, [100_000, 200_000, 300_000]);
    assert_eq!(candidate.series, candidate.retained);
    assert_eq!((candidate.trend, candidate.tier()), (Trend::Steady, 0));
    assert_eq!(candidate.growth(), 200_000);
    assert_eq!(holder(&aligned.labels(candidate)).unwrap(), ENTRIES.0);
    assert_eq!(aligned.application_field_step(candidate), Some(StepId(2)));
    assert_eq!(aligned.first(StepId(4)), Some(StepId(4)));
    // The weight of a candidate is twice its growth if a field of the application holds it.
    assert_eq!(aligned.weight(candidate), 400_000);
    // A list that shrinks is not a candidate.
    assert!(candidates(&[200, 100].map(|n| summary(&registry(n), &[]))).is_empty());
}

#[test]
fn growth_below_the_threshold_is_noise() {
    let grown = |bytes: u64| {
        let dumps = [0, bytes].map(|more| {
            let mut steps = registry(100);
            steps[3].3[0] += more / 100;
            steps[3].3[2] += more;
            summary(&steps, &[])
        });
        candidates(&dumps).len()
    };
    assert_eq!((grown(least(0) - 1), grown(least(0))), (0, 1));
    // In a larger heap, only growth of at least 1/2000 of the heap is a candidate.
    let large = [0, 40_000].map(|more| {
        let mut steps = registry(100);
        steps[3].3[0] += more / 100;
        steps[3].3[2] += more;
        let mut summary = summary(&steps, &[]);
        summary.info.reachable_bytes = 80_000_000 + more;
        summary
    });
    assert_eq!(candidates(&large[..]).len(), 0);
}

#[test]
fn an_array_that_grew_itself_grew_in_place() {
    let matrix = |own: u64, inner: u64| {
        vec![
            (
                0,
                ROOT,
                "class com.acme.Registry",
                [1, 100, 100 + own + inner],
            ),
            (1, ENTRIES, "com.acme.Matrix", [1, own, own + inner]),
            (2, DATA, "byte[]", [1, inner, inner]),
        ]
    };
    let dumps = [matrix(100, 100), matrix(20_100, 20_100)].map(|steps| summary(&steps, &[]));
    // The matrix and the array that it holds grow equally. The array is the candidate.
    let found = candidates(&dumps);
    assert_eq!(found.len(), 1);
    assert_eq!(
        (&*found[0].content, found[0].in_place),
        (&[StepId(3)][..], true)
    );
    assert!(found[0].beside.is_empty());
    assert_eq!(found[0].retained, [100, 20_100]);
    let dumps = [matrix(100, 100), matrix(20_101, 19_000)].map(|steps| summary(&steps, &[]));
    let found = candidates(&dumps);
    assert_eq!(
        (&*found[0].content, found[0].in_place),
        (&[StepId(2)][..], true)
    );
    assert_eq!(found[0].at, StepId(1));
}

#[test]
fn growth_that_no_step_shows_has_no_candidate() {
    // The objects that grew are too small to have a trie node.
    let dumps = [(76, 10_000), (176, 60_000)].map(|(shallow, retained)| {
        let mut steps = registry(100);
        steps.truncate(3);
        steps[2].3 = [1, shallow, retained];
        steps[1].3[2] = retained + 24;
        steps[0].3[2] = retained + 124;
        summary(&steps, &[])
    });
    assert!(candidates(&dumps).is_empty());
}

#[test]
fn figures_between_two_dumps_are_interpolated() {
    assert_eq!(interpolate(100, 300, 1, 4), 150);
    assert_eq!(interpolate(100, 300, 3, 4), 250);
    assert_eq!(interpolate(0, 100, 1, 2), 50);
    assert_eq!(interpolate(u64::MAX, u64::MAX, 1, 2), u64::MAX);
    assert_eq!(interpolate(7, 9, 0, 0), 7);
    assert_eq!(
        (difference(&[5, 9, 3]), difference(&[5]), difference(&[])),
        (-2, 5, 0)
    );
}

/// Returns dumps in which a registry's list has entries of one class. For each dump, `dumps` has two numbers: the
/// entries of the list, and all instances of the class. If there are 0 entries, other paths lead to the instances.
fn elsewhere(class: &'static str, dumps: &[(u64, u64)]) -> Vec<Summary> {
    let dump = |&(entries, instances): &(u64, u64)| {
        let mut steps = registry(entries);
        steps[3].2 = class;
        if entries == 0 {
            steps.truncate(3);
        }
        summary(&steps, &[(class, instances)])
    };
    dumps.iter().map(dump).collect()
}

#[test]
fn class_totals_give_the_objects_on_other_paths() {
    const ENTRY: &str = "com.acme.Entry";
    let found = candidates(&elsewhere(ENTRY, &[(0, 150), (0, 1650), (3150, 3150)]));
    assert_eq!(found[0].objects, [150, 1650, 3150]);
    assert_eq!(found[0].shallow, [3600, 39_600, 75_600]);
    assert_eq!(found[0].retained, [150_000, 1_650_000, 3_150_000]);
    assert_eq!(found[0].series, found[0].retained);
    assert_eq!(
        (&*found[0].by_class, &*found[0].elsewhere),
        (&[0, 1][..], &[][..])
    );
    // 100 instances of the last dump are in no trie node. The estimate assumes that every dump has 100 such instances.
    let found = candidates(&elsewhere(ENTRY, &[(0, 150), (100, 300), (3150, 3250)]));
    assert_eq!(
        (&*found[0].objects, &*found[0].by_class),
        (&[50, 100, 3150][..], &[0][..])
    );
    // In the last dump, 100 instances belong to no trie node. The first dump has only 90 instances. So none of these 90
    // instances counts as an entry of the list, and the list is new.
    let found = candidates(&elsewhere(ENTRY, &[(0, 90), (3150, 3250)]));
    assert_eq!(
        (&*found[0].objects, &*found[0].by_class),
        (&[0, 3150][..], &[][..])
    );
    // Instances that only moved are not growth.
    assert!(candidates(&elsewhere(ENTRY, &[(0, 3150), (3150, 3150)])).is_empty());
}

#[test]
fn class_totals_are_not_given_to_two_suspects() {
    let dump = |lists: bool, instances| {
        let mut steps = registry(0);
        steps.truncate(3);
        let other = ("com.acme.Other.entries", LabelKind::ApplicationStatic);
        steps.push((1, other, "com.acme.Entry[]", [1, 16, 16]));
        if lists {
            steps.push((3, ELEMENT, "com.acme.Entry", [3000, 0, 3_000_000]));
            let element = ("com.acme.Entry[*]", LabelKind::Element);
            steps.push((4, element, "com.acme.Entry", [2000, 0, 2_000_000]));
        }
        summary(&steps, &[("com.acme.Entry", instances)])
    };
    let found = candidates(&[dump(false, 1000), dump(true, 5000)]);
    let objects: Vec<&[u64]> = found.iter().map(|c| &*c.objects).collect();
    assert_eq!(objects, [&[1000, 3000][..], &[0, 2000][..]]);
}

#[test]
fn unknown_figures_are_interpolated() {
    // Many other objects hold instances of a JDK class, so the number of all instances does not show how many are in
    // this list.
    const STRING: &str = "java.lang.String";
    let dumps = |there: u64, after: u64| {
        elsewhere(STRING, &[(100, 100), (200, 200), (0, there), (600, after)])
    };
    let found = candidates(&dumps(300, 600));
    assert_eq!(found[0].retained, [100_000, 200_000, 400_000, 600_000]);
    assert_eq!(found[0].objects, [100, 200, 400, 600]);
    assert_eq!(found[0].shallow, [2400, 4800, 9600, 14_400]);
    assert_eq!(found[0].series, found[0].retained);
    assert_eq!(
        (&*found[0].elsewhere, &*found[0].by_class),
        (&[2][..], &[][..])
    );
    assert_eq!(found[0].trend, Trend::Steady);
    // The third dump has no entries in the list. If it has enough instances of the class, the entries are assumed to be
    // on another path. It must have at least half as many instances as the second dump or the last dump, whichever has
    // fewer.
    for (there, after, elsewhere) in [(100, 600, true), (99, 600, false), (20, 40, true)] {
        let found = candidates(&dumps(there, after));
        assert_eq!(!found[0].elsewhere.is_empty(), elsewhere, "{there}");
        assert_eq!(found[0].series[2] == 400_000, elsewhere);
    }
}

#[test]
fn several_missing_dumps_are_interpolated_in_equal_steps() {
    let dumps = [(100, 200), (100, 200), (0, 100), (0, 100), (400, 500)];
    let found = candidates(&elsewhere("java.lang.String", &dumps));
    assert_eq!(found[0].elsewhere, [2, 3]);
    assert_eq!(
        found[0].series,
        [100_000, 100_000, 200_000, 300_000, 400_000]
    );
}

#[test]
fn resolved_constants_of_a_class_are_not_growth() {
    let dump = |bytes| {
        let constants = (
            "com.acme.Registry.<resolved_references>",
            LabelKind::ApplicationStatic,
        );
        let steps = [
            (0, ROOT, "class com.acme.Registry", [1, 100, 100 + bytes]),
            (1, constants, "java.lang.Object[]", [1, 100, bytes]),
            (2, ELEMENT, "java.lang.String", [bytes / 100, bytes, bytes]),
        ];
        summary(&steps, &[])
    };
    assert!(candidates(&[dump(100_000), dump(900_000)]).is_empty());
}

#[test]
fn fields_of_containers_count_as_jdk_fields() {
    let dumps = [100, 200].map(|n| {
        let field = ("com.acme.Fast.items", LabelKind::ApplicationField);
        let mut steps = registry(n);
        steps[1].2 = "com.acme.Fast";
        steps[2].1 = field;
        summary(&steps, &[])
    });
    let mut aligned = Aligned::new(&dumps).unwrap();
    let holder_of = |aligned: &Aligned<'_>| holder(&aligned.labels(&aligned.candidates()[0]));
    assert_eq!(holder_of(&aligned).unwrap(), "com.acme.Fast.items");
    assert!(aligned.mark_containers(["com.acme.Fast".to_owned()]));
    assert_eq!(holder_of(&aligned).unwrap(), ENTRIES.0);
    assert!(!aligned.mark_containers(["com.acme.Fast".to_owned()]));
    // Nodes of the container are nested in it. A class with a similar name is unrelated.
    assert!(aligned.is_container("com.acme.Fast$Node"));
    assert!(!aligned.is_container("com.acme.Faster") && !aligned.is_container("com.acme"));
}

/// Returns a dump with `count` direct buffers in the registry's list, which own `bytes` bytes outside of the heap.
fn buffers(count: u64, bytes: u64) -> Summary {
    let mut steps = registry(0);
    steps[3] = (
        3,
        ELEMENT,
        "java.nio.DirectByteBuffer",
        [count, 64 * count, 64 * count],
    );
    let mut summary = summary(&steps, &[]);
    let own = OffHeap {
        buffers: count,
        bytes,
    };
    summary.stats.off_heap.insert(StepId(4), own);
    summary
}

#[test]
fn growth_outside_of_the_heap_counts() {
    let dumps = [buffers(10, 1 << 20), buffers(20, 2 << 20)];
    let found = candidates(&dumps);
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].at, &*found[0].content),
        (StepId(3), &[StepId(4)][..])
    );
    let off_heap: Vec<(u64, u64)> = found[0]
        .off_heap
        .iter()
        .map(|o| (o.buffers, o.bytes))
        .collect();
    assert_eq!(off_heap, [(10, 1 << 20), (20, 2 << 20)]);
    assert_eq!(found[0].series, [(1 << 20) + 640, (2 << 20) + 1280]);
    assert_eq!(found[0].all_growth(), (1 << 20) + 640);
    // Growth below the minimum is not a candidate.
    assert!(candidates(&[buffers(10, 1 << 20), buffers(20, (1 << 20) + 1000)]).is_empty());
}

#[test]
fn buffers_of_a_too_small_step_belong_to_the_step_above() {
    let small = |at: u32| {
        let mut summary = buffers(10, 1 << 20);
        let mut steps = registry(0);
        steps.truncate(3);
        summary.trie = Trie::drawn(&steps);
        summary.stats.off_heap = [(
            StepId(at),
            OffHeap {
                buffers: 10,
                bytes: 1 << 20,
            },
        )]
        .into();
        summary
    };
    let first = |at| candidates(&[small(at), buffers(20, 2 << 20)])[0].off_heap[0].bytes;
    assert_eq!(first(3), 1 << 20);
    // Buffers that only the trie's root contains do not count, because it is unknown to which trie node they belong.
    assert_eq!(first(0), 0);
    let nothing = {
        let mut summary = small(0);
        summary.trie = Trie::drawn(&[]);
        summary
    };
    assert_eq!(
        candidates(&[nothing, buffers(20, 2 << 20)])[0].off_heap[0].bytes,
        0
    );
}

#[test]
fn buffers_of_a_candidate_are_not_a_separate_candidate() {
    let dumps = [(100, 1), (200, 2)].map(|(entries, megabytes)| {
        let mut steps = registry(entries);
        let field = ("com.acme.Entry.buffer", LabelKind::ApplicationField);
        steps.push((4, field, "java.nio.DirectByteBuffer", [entries, 0, 0]));
        let mut summary = summary(&steps, &[]);
        let own = OffHeap {
            buffers: entries,
            bytes: megabytes << 20,
        };
        summary.stats.off_heap.insert(StepId(5), own);
        summary
    });
    let found = candidates(&dumps);
    assert_eq!((found.len(), &*found[0].content), (1, &[StepId(4)][..]));
    assert_eq!(found[0].off_heap[1].bytes, 2 << 20);
    assert!(found[0].beside.is_empty());
}

/// One static field of a class holds a list that grows. Another static field holds buffers. The buffers are too small
/// to have a trie node.
#[test]
fn growing_buffers_next_to_a_growing_list_are_a_candidate() {
    let found = |bytes: [u64; 2]| {
        let dumps = [(100, bytes[0]), (200, bytes[1])].map(|(entries, bytes)| {
            let mut summary = summary(&registry(entries), &[]);
            let own = OffHeap { buffers: 1, bytes };
            summary.stats.off_heap.insert(StepId(1), own);
            summary
        });
        candidates(&dumps)
    };
    // The buffers do not grow, so only the list is a candidate.
    let level = found([1 << 20, 1 << 20]);
    assert_eq!((level.len(), &*level[0].content), (1, &[StepId(4)][..]));
    let grown = found([1 << 20, 2 << 20]);
    assert_eq!((grown.len(), &*grown[0].content), (2, &[StepId(1)][..]));
    // The first candidate is for the buffers. Its retained bytes do not include those of the list.
    assert_eq!(grown[0].retained, [200, 200]);
    assert_eq!(grown[0].all_growth(), 1 << 20);
}

#[test]
fn objects_that_only_moved_are_no_candidate() {
    let shared = |entries: u64, instances: u64| {
        let step = (0, SHARED, "com.acme.Entry", [entries, 0, 1000 * entries]);
        summary(&[step], &[("com.acme.Entry", instances)])
    };
    // Several paths now lead to 100 more objects. Before, a single path may have led to each of them, so they are not
    // necessarily new. So the growth of the class as a whole decides.
    for (more, count) in [(0, 0), (49, 0), (50, 1), (100, 1)] {
        let found = candidates(&[shared(100, 200), shared(200, 200 + more)]);
        assert_eq!(found.len(), count, "{more}");
    }
    // In the last dump, a new path leads to objects, but the total number of instances of their class did not grow. So
    // the objects are old, and there is no candidate. For JDK classes there is one: their instances are everywhere, so
    // the total shows nothing.
    let single = |class: &'static str, entries: u64| {
        let field = ("com.acme.Registry.one", LabelKind::ApplicationStatic);
        let step = (0, field, class, [entries, 0, 1000 * entries]);
        summary(&[step], &[(class, 500)])
    };
    let found = |class, before| candidates(&[single(class, before), single(class, 200)]).len();
    assert_eq!(found("com.acme.Entry", 0), 0);
    assert_eq!(found("com.acme.Entry", 100), 1);
    assert_eq!(found("java.lang.String", 0), 1);
}

#[test]
fn growth_of_a_larger_candidate_is_not_counted_twice() {
    // The list has 200 more entries, and 100 more entries are reachable on several paths. But the class has only 200
    // more instances.
    let dump = |entries: u64| {
        let mut steps = registry(2 * entries);
        steps.push((0, SHARED, "com.acme.Entry", [entries, 0, 1000 * entries]));
        summary(&steps, &[("com.acme.Entry", 2 * entries)])
    };
    let found = candidates(&[dump(100), dump(200)]);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].content, [StepId(4)]);
    // The class gains 400 instances. This is enough for the 200 new entries of the list and for the 100 other entries.
    // So both are candidates.
    let mut last = dump(200);
    last.classes = summary(&[], &[("com.acme.Entry", 600)]).classes;
    assert_eq!(candidates(&[dump(100), last]).len(), 2);
}

/// Returns a map's nodes with keys and values. `key` is the size of one key in bytes. `value` is the class of the
/// values and the size of one value.
fn map(nodes: u64, key: u64, value: (&'static str, u64)) -> Vec<Drawn> {
    let node = ("java.util.HashMap$Node[*]", LabelKind::Element);
    let table = ("java.util.HashMap.table", LabelKind::RuntimeField);
    let key_field = ("java.util.HashMap$Node.key", LabelKind::RuntimeField);
    let value_field = ("java.util.HashMap$Node.value", LabelKind::RuntimeField);
    let bytes = nodes * (32 + key + value.1);
    vec![
        (0, ROOT, "class com.acme.Registry", [1, 100, bytes]),
        (1, ENTRIES, "java.util.HashMap", [1, 48, bytes]),
        (2, table, "java.util.HashMap$Node[]", [1, 100, bytes]),
        (
            3,
            node,
            "java.util.HashMap$Node",
            [nodes, 32 * nodes, bytes],
        ),
        (
            4,
            key_field,
            "java.lang.String",
            [nodes, 24 * nodes, key * nodes],
        ),
        (
            4,
            value_field,
            value.0,
            [nodes, 24 * nodes, value.1 * nodes],
        ),
    ]
}

#[test]
fn a_maps_values_are_named() {
    for (key, value, named) in [
        // An application class is named rather than a larger JDK class.
        (900, ("com.acme.Value", 500), StepId(6)),
        (900, ("java.lang.Integer", 500), StepId(5)),
        (400, ("java.lang.Integer", 500), StepId(6)),
        // A map's values are not named if they have less than an eighth of the bytes of the pairs. A pair is a node
        // with its key and its value.
        (900, ("com.acme.Value", 100), StepId(5)),
        // A pair has 800 bytes: the node has 32, the key 668 and the value 100, which is an eighth.
        (668, ("com.acme.Value", 100), StepId(6)),
        (669, ("com.acme.Value", 100), StepId(5)),
    ] {
        let dumps = [100, 200].map(|nodes| summary(&map(nodes, key, value), &[]));
        let found = candidates(&dumps);
        assert_eq!((found.len(), found[0].named), (1, named), "{key} {value:?}");
        assert_eq!(
            (found[0].at, &*found[0].content),
            (StepId(3), &[StepId(4)][..])
        );
    }
}

#[test]
fn candidates_of_one_field_are_one() {
    // One table has two kinds of nodes, and another field has a third kind.
    let dump = |nodes: u64| {
        let mut steps = map(nodes, 200, ("com.acme.Value", 500));
        let tree = ("java.util.HashMap$Node[*]", LabelKind::Element);
        steps.push((
            3,
            tree,
            "java.util.HashMap$TreeNode",
            [nodes, 48 * nodes, 300 * nodes],
        ));
        let other = ("com.acme.Registry.other", LabelKind::ApplicationStatic);
        steps.push((1, other, "com.acme.Other[]", [1, 16, 200 * nodes]));
        let of_other = ("com.acme.Other[*]", LabelKind::Element);
        steps.push((
            8,
            of_other,
            "com.acme.Other",
            [nodes, 24 * nodes, 200 * nodes],
        ));
        summary(&steps, &[])
    };
    let found = candidates(&[dump(100), dump(200)]);
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].content, [StepId(4), StepId(7)]);
    assert_eq!(found[0].growth(), 100 * (732 + 300));
    assert_eq!(found[1].content, [StepId(9)]);
}

/// Returns a table and a list below one object that a field holds.
fn two_places(nodes: u64, class: &'static str) -> Summary {
    let field = ("com.acme.Registry.cache", LabelKind::ApplicationStatic);
    let table = ("java.util.Cache.table", LabelKind::RuntimeField);
    let list = ("java.util.Cache.list", LabelKind::RuntimeField);
    let mut dump = summary(
        &[
            (0, field, "java.util.Cache", [1, 16, 900 * nodes]),
            (1, table, "java.lang.Object[]", [1, 16, 600 * nodes]),
            (
                2,
                ELEMENT,
                "com.acme.Entry",
                [nodes, 24 * nodes, 600 * nodes],
            ),
            (1, list, "java.lang.Object[]", [1, 16, 300 * nodes]),
            (4, ELEMENT, class, [nodes, 16 * nodes, 300 * nodes]),
        ],
        &[],
    );
    let buffers = |bytes| OffHeap {
        buffers: nodes,
        bytes: bytes * nodes,
    };
    dump.stats.off_heap = [(StepId(3), buffers(5)), (StepId(5), buffers(7))].into();
    dump
}

#[test]
fn figures_of_two_places_below_one_field_add_up() {
    for (class, objects, shallow) in [
        ("com.acme.Entry", [200, 400], [4000, 8000]),
        // If the table and the list have objects of different classes, the numbers of objects are not added up.
        ("com.acme.Key", [100, 200], [2400, 4800]),
    ] {
        let found = candidates(&[100, 200].map(|n| two_places(n, class)));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].content, [StepId(3)]);
        assert_eq!(found[0].beside, [StepId(5)]);
        assert_eq!(found[0].retained, [90_000, 180_000]);
        assert_eq!(found[0].objects, objects);
        assert_eq!(found[0].shallow, shallow);
        let off_heap: Vec<_> = found[0]
            .off_heap
            .iter()
            .map(|o| (o.buffers, o.bytes))
            .collect();
        assert_eq!(off_heap, [(200, 1200), (400, 2400)]);
        assert_eq!(found[0].series, [91_200, 182_400]);
    }
}

#[test]
fn ended_growth_comes_after_ongoing_growth() {
    let tier = |series: [u64; 4]| {
        let dumps = series.map(|n| summary(&registry(n), &[]));
        candidates(&dumps)[0].tier()
    };
    assert_eq!(tier([100, 200, 300, 400]), 0);
    assert_eq!(tier([100, 200, 200, 400]), 1);
    assert_eq!(tier([100, 400, 400, 400]), 2);
}

#[test]
fn a_static_field_of_the_jdk_holds_one_candidate() {
    let found = |kind| {
        let dumps = [100, 200].map(|nodes| {
            let mut steps = two_places(nodes, "com.acme.Key").trie;
            let via = steps.names.intern("java.util.Registry.all", kind);
            let first = steps[StepId::ROOT].children[0];
            steps.set_via(first, via);
            let mut dump = summary(&[], &[]);
            dump.trie = steps;
            dump
        });
        candidates(&dumps).len()
    };
    assert_eq!(found(LabelKind::ApplicationField), 1);
    assert_eq!(found(LabelKind::RuntimeStatic), 1);
    // If an instance field of a JDK class holds the objects, they are not merged: the objects of each class are a
    // separate candidate.
    assert_eq!(found(LabelKind::RuntimeField), 2);
}

#[test]
fn the_nearest_field_that_a_developer_can_fix_is_the_holder() {
    use LabelKind::{ApplicationField, Element, RuntimeField, RuntimeStatic, Structure};
    let of = |path: &[(&str, LabelKind)]| {
        let path: Vec<Label> = path.iter().map(|&(t, k)| (t.to_owned(), k)).collect();
        holder(&path)
    };
    let thread = ("java.lang.Thread.target", RuntimeField);
    let data = ("java.util.ArrayList.elementData", RuntimeField);
    let element = ("java.lang.Object[*]", Element);
    let hook = ("java.lang.Hooks.all", RuntimeStatic);
    let own = ("com.acme.Foo.list", ApplicationField);
    let root = ("thread", Structure);
    let name = |text: &str| Some(text.to_owned());
    assert_eq!(of(&[own, hook, thread, data, element]), name(own.0));
    assert_eq!(of(&[root, hook, thread, data, element]), name(hook.0));
    // The field that holds a collection is preferred to fields inside the collection.
    assert_eq!(of(&[root, thread, data, element]), name(thread.0));
    assert_eq!(of(&[root, data, element]), name(data.0));
    assert_eq!(of(&[root, element]), None);
}

#[test]
fn objects_of_two_candidates_are_counted_once() {
    let candidate = |named: u32, objects: u64| Candidate {
        at: StepId(1),
        content: vec![StepId(named)],
        beside: Vec::new(),
        counted: vec![StepId(named)],
        named: StepId(named),
        in_place: false,
        is_rest: false,
        retained: vec![0, 24 * objects],
        objects: vec![0, objects],
        shallow: vec![0, 24 * objects],
        off_heap: vec![OffHeap::default(); 2],
        series: Vec::new(),
        trend: Trend::Level,
        by_class: Vec::new(),
        elsewhere: Vec::new(),
    };
    // A field holds a deque of direct buffers. Another field of the deque refers to its first node.
    let mut deque = candidate(7, 849);
    deque.merge(candidate(7, 849), true);
    assert_eq!(deque.objects, [0, 849]);
    deque.merge(candidate(8, 10), true);
    deque.merge(candidate(8, 10), true);
    assert_eq!(
        (&deque.objects[..], &deque.shallow[..]),
        (&[0, 859][..], &[0, 20_616][..])
    );
}
