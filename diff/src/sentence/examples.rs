//! Examples of all sentences that the enums in [`super`] and [`Flaw`] define. A sentence with several wordings has an
//! example of each wording.

use std::time::Duration;

use heapdiff_units::{Size, Span};
use hprof::flaw::Flaw;
use hprof::repair::Repaired;

use super::samples::{Alive, First, Loss, Rate, Samples, Whole};
use super::{Change, Evidence, Names, Verdict, Warning, Waste};

/// Replaces names in the example sentences. This character does not occur in any golden case (expected output in the
/// tests).
pub(super) const NAME: &str = "§";
/// Replaces numbers in the example sentences.
const N: u64 = 7777;

fn name() -> String {
    NAME.to_owned()
}

/// Returns the two forms of a change: from one number to another, as in a comparison, and only the last number, as in a
/// report on a single dump.
fn changes() -> [Change; 2] {
    [Some(1), None].map(|first| Change {
        first,
        last: N,
        things: name(),
    })
}

pub(super) fn evidence() -> Vec<Evidence> {
    let class = name;
    let field = name;
    let size = Size(N);
    let names = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
    let usage = |put, removed, read| Evidence::Usage {
        span: Span(Duration::from_secs(60)),
        watched: 3,
        collections: N,
        put,
        removed,
        read,
    };
    let [change, number] = changes();
    let mut all = vec![
        Evidence::GrewInPlace { before: 1, now: 1 },
        Evidence::GrewInPlace { before: 0, now: 1 },
        Evidence::GrewInPlace { before: 1, now: N },
        Evidence::MoreObjects,
        Evidence::MoreHeld { before: 0, now: N },
        Evidence::MoreHeld { before: N, now: N },
        Evidence::MoreHeld { before: 1, now: N },
        Evidence::MostlyOne {
            holders: N,
            class: class(),
        },
        Evidence::SeveralPaths,
        Evidence::Shared {
            fields: Names(names(&[NAME, NAME])),
            grew: Names(Vec::new()),
        },
        Evidence::Shared {
            fields: Names(names(&[NAME, NAME])),
            grew: Names(names(&[NAME])),
        },
        Evidence::AlsoReachable {
            holder: field(),
            other: field(),
        },
        Evidence::CollectionGrew {
            field: field(),
            growth: size,
        },
        Evidence::CollectionHolds {
            field: field(),
            size,
        },
        Evidence::FiguresOfClass { dump: 2 },
        Evidence::FiguresInterpolated { dump: 2 },
        Evidence::NotInSummary,
        Evidence::OneLargeObject {
            class: class(),
            size,
        },
        Evidence::OneObject { class: class() },
        Evidence::SmallParts {
            objects: N,
            class: class(),
            mean: size,
        },
        Evidence::Objects {
            objects: N,
            class: class(),
            mean: size,
            largest: size,
        },
        Evidence::Chain {
            objects: N,
            class: class(),
            mean: size,
        },
        Evidence::Tree {
            objects: N,
            class: class(),
            mean: size,
        },
        Evidence::HeldInEach {
            field: field(),
            objects: N,
            class: class(),
        },
        Evidence::Metaspace,
        Evidence::ThreadStacks {
            threads: N,
            names: names(&[NAME]),
            states: vec![("WAITING", 7777)],
        },
        Evidence::ArraySlices {
            small: N,
            checked: N,
            class: class(),
            used: size,
            pinned: size,
        },
        Evidence::ListSlices {
            small: N,
            checked: N,
            class: class(),
            used: N,
            pinned: N,
        },
        Evidence::HashKeys {
            checked: N,
            alike: N,
            class: class(),
        },
        Evidence::MoreClassLoaders(change.clone()),
        Evidence::LoadersPinned { field: field() },
        Evidence::DeleteOnExit(change.clone()),
        Evidence::StuckThread {
            thread: name(),
            frame: name(),
        },
        Evidence::ThreadLocal,
        Evidence::KeptByThreads {
            names: names(&[NAME]),
            threads: 1,
            at_least: false,
        },
        Evidence::WeakMapValues {
            referring: N,
            checked: N,
        },
        Evidence::SoftReferences { class: class() },
        Evidence::MostlySoftReferences { class: class() },
        Evidence::StaysWhenCleared {
            class: class(),
            stays: size,
        },
        Evidence::WeakHashMap,
        Evidence::WeakReferences { class: class() },
        Evidence::EmptySlots { empty: N, slots: N },
        Evidence::EldestEntry { class: class() },
        Evidence::StatedBound {
            field: field(),
            bound: N,
            held: N,
            is_full: false,
            is_one: false,
        },
        Evidence::ClassesLoaded { classes: N },
        usage(N, N, N),
    ];
    for before in [Some(N), None] {
        all.push(Evidence::Spread {
            holders: N,
            class: class(),
            mean: N,
            before,
        });
    }
    for change in [change, number] {
        all.extend([
            Evidence::DirectBuffers {
                size,
                before: change.first.map(Size),
                buffers: change.clone(),
            },
            Evidence::ClassLoaders {
                class: class(),
                loaders: change.clone(),
            },
            Evidence::Finalizers(change.clone()),
            Evidence::CleaningActions(change.clone()),
            Evidence::TimerTasks(change.clone()),
            Evidence::Listeners {
                field: field(),
                listeners: change.clone(),
            },
            Evidence::PoolTasks(change.clone()),
            Evidence::Queue(change),
        ]);
    }
    for flag in [false, true] {
        all.extend([
            Evidence::CancelledTasks {
                cancelled: N,
                checked: N,
                is_timer: flag,
            },
            Evidence::VirtualThreads {
                threads: changes()[0].clone(),
                with_locals: flag,
            },
            Evidence::LibraryBound {
                class: class(),
                field: field(),
                bound: N,
                is_weighed: flag,
            },
            Evidence::StatedBound {
                field: field(),
                bound: N,
                held: N,
                is_full: flag,
                is_one: true,
            },
            Evidence::Samples {
                held: N,
                kept: N,
                permille: flag.then_some(N),
            },
            Evidence::KeptByThreads {
                names: names(&[NAME]),
                threads: 9,
                at_least: flag,
            },
        ]);
    }
    all
}

pub(super) fn samples() -> Vec<Samples> {
    let size = Size(N);
    let of_size = |bytes: u64| Rate::Bytes(bytes);
    let each = |is_filtered, has_lost, is_counted| Rate::Each {
        is_filtered,
        has_lost,
        is_counted,
    };
    let rates = [
        (Rate::Milliseconds(N), First::Same),
        (Rate::OfClass(N), First::Same),
        (of_size(N), First::Other(each(false, false, true))),
        (Rate::Objects(N), First::Counted(Rate::Objects(N))),
        (each(true, false, false), First::Same),
        (each(false, true, false), First::Same),
        (each(true, true, false), First::Same),
    ];
    let mut all: Vec<Samples> = rates
        .map(|(rate, first)| Samples::Rate { rate, first })
        .into();
    all.extend([
        Samples::Freed {
            samples: N,
            median_ms: Some(N),
        },
        Samples::AgentHeap {
            size,
            samples: N,
            sample_bytes: N,
            stacks: N,
            stack_bytes: N,
        },
        Samples::Exact,
        Samples::NoStack,
        Samples::AllocatedColumns,
        Samples::Through {
            permille: N,
            stacks: N,
            of: 7777,
        },
        Samples::NotTracked,
        Samples::UncoveredHeap {
            size,
            reachable: size,
        },
        Samples::OtherStacks { size },
        Samples::Lost { size },
        Samples::AllLost {
            reasons: vec![(N, name())],
            size,
        },
        Samples::LargeObjects {
            size,
            is_live: true,
        },
        Samples::AliveUnknown,
        Samples::ByTime,
        Samples::AgentFailed,
        Samples::Unreadable { why: name() },
        Samples::LessThanCounted,
        Samples::MoreThanCounted,
    ]);
    for focus in [None, Some(name())] {
        all.push(Samples::Live {
            amount: name(),
            samples: N,
            from: name(),
            reachable: size,
            focus,
        });
    }
    all.push(Samples::Allocated {
        amount: name(),
        span: name(),
        things: name(),
        from: name(),
        focus: None,
    });
    let alive = [Alive::Permille(1000), Alive::Permille(1), Alive::Unknown];
    all.extend(alive.map(|alive| Samples::Stack {
        objects: N,
        samples: N,
        is_counted: false,
        alive,
    }));
    for whole in [Whole::Growth, Whole::Retained] {
        all.extend([
            Samples::Covered {
                sampled: size,
                size,
                whole,
                samples: N,
            },
            Samples::Uncovered { size, whole },
            Samples::MoreThan(whole),
        ]);
    }
    let reasons = [
        Loss::TableFull,
        Loss::TrackedFull,
        Loss::HeapFull,
        Loss::Exception,
    ];
    all.extend(reasons.map(|reason| Samples::AgentLost {
        size,
        reasons: vec![(N, reason)],
    }));
    all
}

pub(super) fn verdict() -> Vec<Verdict> {
    let least = Size(N);
    let (explained, grown) = (least, least);
    let (rises, steps) = (2, 3);
    let span = Some(Span(Duration::from_secs(60)));
    vec![
        Verdict::Steady { rises, steps },
        Verdict::Uneven { rises, steps },
        Verdict::Slowing { rises, steps },
        Verdict::Late,
        Verdict::Plateau,
        Verdict::NearlyPlateau { percent: 9 },
        Verdict::WarmUp,
        Verdict::NearlyWarmUp,
        Verdict::Jump,
        Verdict::Sawtooth,
        Verdict::RisingSawtooth,
        Verdict::TwoDumps,
        Verdict::ShortLevel { span },
        Verdict::ShortLevel { span: None },
        Verdict::IdleLevel,
        Verdict::SlightSteps { permille: N },
        Verdict::FewObjects { objects: N },
        Verdict::MayHaveMoved,
        Verdict::Replaced,
        Verdict::WithinTurnover,
        Verdict::CountedRemovals,
        Verdict::CountedReads,
        Verdict::Explained { explained, grown },
        Verdict::PartlyExplained { explained, grown },
        Verdict::Unexplained { grown },
        Verdict::NoGrowth,
        Verdict::NoLeak,
        Verdict::LeftOut { least },
        Verdict::NoneInReport { least },
        Verdict::NoAccumulation { least },
        Verdict::Accumulated {
            retained: least,
            reachable: least,
            share: name(),
            places: N,
            least,
        },
        Verdict::AccumulatedOffHeap {
            size: least,
            places: N,
        },
    ]
}

pub(super) fn warning() -> Vec<Warning> {
    let path = name;
    let (first, second) = (name(), name());
    vec![
        Warning::Damaged { path: path() },
        Warning::NoParkedFrames { path: path() },
        Warning::NoRoots { path: path() },
        Warning::NamedTwice { path: path() },
        Warning::SameDump {
            first: path(),
            second: path(),
        },
        Warning::Order {
            first: path(),
            second: path(),
        },
        Warning::TwoPrograms {
            first: path(),
            second: path(),
            common: 7,
            of: 7777,
        },
        Warning::TwoJvms {
            first,
            second,
            why: name(),
        },
        Warning::Unwatched { collections: N },
    ]
}

pub(super) fn waste() -> Vec<Waste> {
    let (size, share) = (name(), name());
    vec![
        Waste::Savings { size, share },
        Waste::SavingsSince {
            size: name(),
            change: name(),
            share: name(),
        },
        Waste::SmallKinds,
        Waste::DuplicateStrings,
        Waste::DuplicateArrays,
        Waste::DuplicateBoxes,
        Waste::BoxedValues,
        Waste::EmptyCollections,
        Waste::SparseCollections,
        Waste::ZeroArrays,
        Waste::LongArrays,
    ]
}

pub(super) fn flaw() -> Vec<Flaw> {
    const AT: usize = 7777;
    let (base, names) = (name(), name());
    let count = || "7777 unmerged segments".to_owned();
    let kind = "§";
    let with_layout = |agree| Flaw::AssumedSizes {
        agree,
        reference: 4,
        header: 12,
        align: 8,
    };
    let doubt = |mode, is_measured| Flaw::OtherLayout {
        mode,
        is_measured,
        reference: 4,
    };
    let damage = || {
        Box::new(Flaw::CutSubRecord {
            kind: 0x21,
            needs: AT,
            left: AT,
        })
    };
    vec![
        Flaw::CompressedTwice,
        Flaw::IncompleteTransfer,
        Flaw::AfterGzip { bytes: AT, at: AT },
        Flaw::DamagedGzip { reason: name() },
        Flaw::LaterHeap { at: AT, own: 1 },
        Flaw::LaterDump { at: AT, own: 1 },
        Flaw::ReadSegments {
            base,
            count: count(),
            names,
        },
        Flaw::UnreadSegments {
            count: count(),
            names: name(),
            reason: name(),
        },
        Flaw::NoSegments { names: name() },
        Flaw::CutSegmentHeader {
            name: name(),
            left: 7,
            needs: 9,
        },
        Flaw::NoSegmentRecord {
            name: name(),
            at: AT,
            left: AT,
        },
        Flaw::CutSegment {
            name: name(),
            left: AT,
            needs: N,
        },
        Flaw::CutHeader { left: 3 },
        Flaw::CutRecord {
            kind: 0x1c,
            needs: N,
            left: N,
        },
        Flaw::NoLength { bytes: N },
        Flaw::NoEnd,
        Flaw::Repaired(Repaired {
            lacks_end: true,
            records: 1,
            left_out: 7777,
            thread_roots: 7777,
            ..Repaired::default()
        }),
        Flaw::NoHeapRecord,
        Flaw::UnknownRecords { records: N },
        Flaw::CutSubRecord {
            kind: 0x22,
            needs: AT,
            left: AT,
        },
        Flaw::UnknownSubRecord { kind: 0x77 },
        Flaw::UnknownElement { element: 99 },
        Flaw::SkippedRest {
            flaw: damage(),
            bytes: AT,
        },
        Flaw::SameClasses { classes: N },
        Flaw::SameObjects { objects: N },
        Flaw::WrittenTwice { classes: AT },
        Flaw::TooManyFields { classes: N },
        Flaw::ShortBodies { fields: N },
        Flaw::CutArray {
            class: name(),
            id: hprof::ObjectId(7),
            elements: 7777,
            least: N,
            most: Some(N),
            of_objects: true,
        },
        Flaw::NoRoots,
        Flaw::MissingRoots,
        Flaw::NoSystemClasses,
        Flaw::OnlyThreads { added: AT, kind },
        Flaw::NoParkedFrames {
            threads: AT,
            version: name(),
            added: AT,
            kind,
        },
        Flaw::NoVirtualStacks { threads: N },
        with_layout(None),
        with_layout(Some((AT, AT))),
        Flaw::NoTrailingNulls,
        doubt(None, false),
        doubt(Some(name()), true),
        Flaw::FlattenedValues {
            values: N,
            classes: 2,
        },
        Flaw::TruncatedRecord { kind: 0x77 },
        Flaw::TruncatedHeader,
        Flaw::NameWithHeader,
        Flaw::NotARecord { kind: 0x77 },
        Flaw::ZeroedEnd { bytes: AT },
        Flaw::ZeroedInstances { classes: N },
        Flaw::ZeroedRest {
            flaw: damage(),
            bytes: AT,
        },
    ]
}
