//! Tests dumps of JVMs that died while they merged segments. Segments are the files that the JVM's dumper threads write
//! in parallel. The dump and its segments are read as one dump, or a warning reports why the segments were not read.

use std::fs;
use std::path::{Path, PathBuf};

use hprof::answers::Histogram;
use hprof::bytes::{dump_of, has_segments};
use hprof::index::FileStamp;
use hprof::{Options, Silent, Snapshot, Source};
use testdata::writer::{
    Elements, FieldType, Framing, Gzip, HeapBuilder, Options as Written, Place, Root, Value,
    compress, tag,
};

/// Size of a record's header in bytes.
const HEAD: usize = 9;

/// A dump, and the parts that HotSpot writes before it merges them into the dump.
struct Parts {
    whole: Vec<u8>,
    base: Vec<u8>,
    segments: [Vec<u8>; 3],
}

impl Parts {
    /// Creates a dump with a linked list of 400 nodes, and splits it into parts. The base has at least `padding`
    /// additional bytes.
    fn new(padding: usize) -> Self {
        let mut heap = HeapBuilder::new(Written {
            framing: Framing::Segments { bytes: 1000 },
            ..Written::default()
        });
        let object = heap.boot().object;
        let fields = [("next", FieldType::Object), ("size", FieldType::Int)];
        let statics = [("head", Value::NULL)];
        let node = heap.add_class("com.acme.Node", Some(object), &fields, &statics);
        let mut next = Value::NULL;
        for i in 0..400 {
            next = heap.add_instance(node, &[next, Value::Int(i)]).into();
        }
        heap.set_static(node, "head", next);
        let numbers = heap.add_primitive_array(Elements::Zeros(FieldType::Long, 1000));
        heap.add_root(Root::JniGlobal { global_ref: 1 }, numbers);
        if padding > 0 {
            let text = [&u64::MAX.to_be_bytes()[..], &vec![b'x'; padding]].concat();
            heap.add_record(Place::Start, tag::UTF8, &text);
        }
        Self::of(&heap.build())
    }

    /// Splits a dump into a base, which ends before the first heap record, and three segments with the heap records.
    fn of(whole: &[u8]) -> Self {
        let all = records(whole);
        let heap: Vec<usize> = all
            .iter()
            .copied()
            .filter(|&at| whole[at] == 0x1c)
            .collect();
        let end = whole.len() - HEAD;
        assert!(heap.len() > 9 && whole[end] == 0x2c && all.last() == Some(&end));
        let third = heap.len() / 3;
        let cuts = [heap[0], heap[third], heap[2 * third], end];
        let segment = |n: usize| whole[cuts[n]..cuts[n + 1]].to_vec();
        Self {
            whole: whole.to_vec(),
            base: whole[..cuts[0]].to_vec(),
            segments: [segment(0), segment(1), segment(2)],
        }
    }

    /// Returns the base (the dump's main file) after the JVM appended the first `segments` segments and `bytes` bytes
    /// of the next one.
    fn merged(&self, segments: usize, bytes: usize) -> Vec<u8> {
        let mut base = self.base.clone();
        base.extend(self.segments[..segments].concat());
        base.extend(&self.segments[segments][..bytes]);
        base
    }

    /// Creates a folder with the given base and the segments that have these numbers.
    fn left(&self, base: Vec<u8>, segments: &[usize]) -> Folder {
        let folder = Folder::new(&base);
        for &n in segments {
            folder.write(n, &self.segments[n]);
        }
        folder
    }
}

/// Returns the offsets of the records outside the heap.
fn records(dump: &[u8]) -> Vec<usize> {
    let mut at = dump.iter().position(|&b| b == 0).unwrap() + 13;
    let mut all = Vec::new();
    while at < dump.len() {
        all.push(at);
        let length = dump[at + 5..at + HEAD].try_into().unwrap();
        at += HEAD + u32::from_be_bytes(length) as usize;
    }
    all
}

/// A folder with a dump `x.hprof`.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new(base: &[u8]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        fs::write(folder.dump(), base).unwrap();
        folder
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn dump(&self) -> PathBuf {
        self.at("x.hprof")
    }

    fn segment(&self, number: usize) -> PathBuf {
        self.at(&format!("x.hprof.p{number}"))
    }

    fn write(&self, number: usize, bytes: &[u8]) {
        fs::write(self.segment(number), bytes).unwrap();
    }

    fn open(&self) -> (Vec<u8>, Vec<String>, bool) {
        opened(&self.dump())
    }

    /// Checks that opening the dump in the folder reads the dump with all of its segment files. The only warning must
    /// be `note`, the warning that segments were read.
    #[track_caller]
    fn holds(&self, whole: &[u8], note: &str) {
        let (bytes, warnings, is_partial) = self.open();
        assert_eq!(warnings, [note]);
        assert!(!is_partial);
        assert!(bytes == whole, "{} of {} bytes", bytes.len(), whole.len());
        // A part of the first segment may also be in the dump.
        let source = Source::open(&self.dump()).unwrap();
        let files = fs::read_dir(self.0.path()).unwrap().flatten();
        let all: u64 = files.map(|file| file.metadata().unwrap().len()).sum();
        assert!(source.file_bytes() <= all && source.file_bytes() > all / 2);
        assert!(has_segments(&self.dump()));
    }

    /// Checks that the dump is read without its segments, with a warning that contains `why`.
    #[track_caller]
    fn is_apart(&self, why: &str) {
        let base = fs::read(self.dump()).unwrap();
        let source = Source::open(&self.dump()).unwrap();
        assert!(source[..] == base);
        match Snapshot::of(source, &Options::default(), &Silent) {
            Ok(snapshot) => {
                assert!(snapshot.is_partial());
                let said = texts(&snapshot);
                let fits = |w: &String| w.contains("not read (") && w.contains(why);
                assert!(said.iter().any(fits), "{said:?}");
            }
            // The base has no heap record.
            Err(error) => {
                let said = error.to_string();
                assert!(said.contains("not read (") && said.contains(why), "{said}");
            }
        }
    }
}

fn texts(snapshot: &Snapshot) -> Vec<String> {
    snapshot
        .warnings()
        .iter()
        .map(ToString::to_string)
        .collect()
}

/// Returns the bytes of a dump, its warnings, and whether it is partial.
fn opened(path: &Path) -> (Vec<u8>, Vec<String>, bool) {
    let bytes = Source::open(path).unwrap().to_vec();
    let snapshot = Snapshot::open(path, &Options::default(), &Silent).unwrap();
    (bytes, texts(&snapshot), snapshot.is_partial())
}

fn objects(path: &Path) -> u64 {
    let histogram = Histogram::open(path, &Options::default(), &Silent).unwrap();
    histogram.totals().iter().map(|t| t.all.objects).sum()
}

const ALL: &str =
    "heapdiff read x.hprof together with 3 unmerged segments (x.hprof.p0, x.hprof.p1, x.hprof.p2)";
const LAST_TWO: &str =
    "heapdiff read x.hprof together with 2 unmerged segments (x.hprof.p1, x.hprof.p2)";
const LAST: &str = "heapdiff read x.hprof together with 1 unmerged segment (x.hprof.p2)";

#[test]
fn an_unmerged_dump_is_read_with_all_segments() {
    let parts = Parts::new(0);
    let folder = parts.left(parts.base.clone(), &[0, 1, 2]);
    folder.holds(&parts.whole, ALL);
    // A dumper thread that found no objects leaves an empty segment file.
    folder.write(3, b"");
    let (bytes, warnings, is_partial) = folder.open();
    assert!(bytes == parts.whole && !is_partial, "{warnings:?}");
    assert!(warnings[0].contains("4 unmerged segments"));
}

#[test]
fn a_dump_is_read_wherever_the_merge_of_its_first_segment_stopped() {
    let parts = Parts::new(0);
    let first = &parts.segments[0];
    let second = HEAD + u32::from_be_bytes(first[5..HEAD].try_into().unwrap()) as usize;
    // Four points at which the merge stops: within a record's header, within a record's body, at the end of a record,
    // and at the end of the segment.
    for merged in [
        1,
        8,
        HEAD,
        HEAD + 1,
        200,
        second,
        second + 3,
        first.len() - 1,
        first.len(),
    ] {
        let folder = parts.left(parts.merged(0, merged), &[0, 1, 2]);
        folder.holds(&parts.whole, ALL);
    }
}

#[test]
fn a_dump_with_merged_and_deleted_segments_is_read() {
    let parts = Parts::new(0);
    for merged in [0, 1, HEAD, 300, parts.segments[1].len()] {
        let folder = parts.left(parts.merged(1, merged), &[1, 2]);
        folder.holds(&parts.whole, LAST_TWO);
    }
    for merged in [0, 7, 300, parts.segments[2].len()] {
        let folder = parts.left(parts.merged(2, merged), &[2]);
        folder.holds(&parts.whole, LAST);
    }
    // The JVM appended the first segment to the base, but could not delete it.
    let folder = parts.left(parts.merged(1, 500), &[0, 1, 2]);
    folder.holds(&parts.whole, ALL);
}

#[test]
fn a_base_that_ends_with_a_full_buffer_may_be_unfinished() {
    const BUFFER: usize = 64 << 10;
    let small = Parts::new(1).base.len();
    let parts = Parts::new(1 + BUFFER - small % BUFFER);
    assert_eq!(parts.base.len() % BUFFER, 0);
    let folder = parts.left(parts.base.clone(), &[0, 1, 2]);
    let (bytes, warnings, is_partial) = folder.open();
    assert!(is_partial && bytes == parts.whole[..parts.whole.len() - HEAD]);
    assert!(warnings.iter().any(|w| w == ALL));
    let said = warnings.join("\n");
    assert!(
        said.contains("the dump is truncated: its closing record is missing"),
        "{said}"
    );
    // The base (the file to which the JVM appends the segments) ends with bytes of a segment. So the JVM had begun to
    // merge, and all segments were complete.
    let folder = parts.left(parts.merged(0, 40), &[0, 1, 2]);
    folder.holds(&parts.whole, ALL);
    let folder = parts.left(parts.merged(1, 0), &[1, 2]);
    folder.holds(&parts.whole, LAST_TWO);
}

#[test]
fn a_segment_that_is_cut_off_loses_its_end_and_no_other_segment() {
    let parts = Parts::new(0);
    for n in 0..3 {
        let segment = &parts.segments[n];
        let last = last_record(segment);
        for (cut, part) in [
            (
                segment.len() - 5,
                "bytes of its last heap record; objects and GC roots",
            ),
            (last + HEAD, "0 of the "),
            (
                last + 4,
                "is truncated inside the header of a record (4 of 9 bytes are there)",
            ),
        ] {
            let folder = parts.left(parts.base.clone(), &[0, 1, 2]);
            folder.write(n, &segment[..cut]);
            let (_, warnings, is_partial) = folder.open();
            assert!(is_partial);
            let said = warnings.join("\n");
            let name = format!("x.hprof.p{n}");
            assert!(
                said.contains(ALL) && said.contains(&name) && said.contains(part),
                "{said}"
            );
            // The undamaged segments have about 265 objects.
            assert!(objects(&folder.dump()) > 240, "{}", objects(&folder.dump()));
        }
    }
    let folder = parts.left(parts.base.clone(), &[0, 1, 2]);
    let all = objects(&folder.dump());
    folder.write(1, &parts.segments[1][..parts.segments[1].len() - 5]);
    let left = objects(&folder.dump());
    assert!(left < all && left > all - 50, "{left} of {all}");
}

fn last_record(segment: &[u8]) -> usize {
    let (mut at, mut last) = (0, 0);
    while at < segment.len() {
        last = at;
        let length = segment[at + 5..at + HEAD].try_into().unwrap();
        at += HEAD + u32::from_be_bytes(length) as usize;
    }
    last
}

#[test]
fn bytes_outside_the_heap_record_of_a_segment_are_not_read() {
    let parts = Parts::new(0);
    let folder = parts.left(parts.base.clone(), &[0, 1, 2]);
    let (_, warnings, _) = folder.open();
    assert!(!warnings.join("").contains("no heap record"));
    let garbage = [&parts.segments[1][..], b"#!/bin/sh\necho"].concat();
    folder.write(1, &garbage);
    let (bytes, warnings, is_partial) = folder.open();
    let said = warnings.join("\n");
    assert!(
        is_partial && said.contains("x.hprof.p1 is damaged: it has no heap record at byte"),
        "{said}"
    );
    assert!(said.contains("heapdiff skips its last 14 bytes"), "{said}");
    assert!(bytes == parts.whole[..parts.whole.len() - HEAD]);
}

#[test]
fn a_lost_segment_is_reported() {
    let parts = Parts::new(0);
    for (left, lost) in [
        (&[0, 2][..], "x.hprof.p1"),
        (&[1, 2], "x.hprof.p0"),
        (&[2], "x.hprof.p0, x.hprof.p1"),
    ] {
        let folder = parts.left(parts.base.clone(), left);
        let (_, warnings, is_partial) = folder.open();
        let said = warnings.join("\n");
        let part = format!(
            "segments not found: {lost}. Their objects and GC roots are missing from all figures"
        );
        assert!(is_partial && said.contains(&part), "{left:?}: {said}");
    }
    let (_, warnings, _) = parts.left(parts.merged(1, 0), &[1, 2]).open();
    assert!(!warnings.join("").contains("segments not found"));
}

#[test]
fn segments_are_not_read_without_a_merge_point() {
    let parts = Parts::new(0);
    let none =
        "heapdiff did not find where in the dump file the content of the first segment begins";
    let all = "(x.hprof.p0, x.hprof.p1, x.hprof.p2)";
    // The JVM died while it wrote a name to the base, which is the part of the dump before the segments.
    let cut = parts.base[..parts.base.len() - 5].to_vec();
    let folder = parts.left(cut, &[0, 1, 2]);
    folder.is_apart(none);
    folder.is_apart(all);
    // The last bytes of the base are not in any segment, or only in a segment whose file is missing.
    let mut other = parts.merged(1, 300);
    let last = other.len() - 1;
    other[last] ^= 1;
    parts.left(other, &[1, 2]).is_apart(none);
    parts.left(parts.merged(1, 300), &[2]).is_apart(none);
    // The base contains 300 bytes of the last segment, but the segment's file has only 200 bytes.
    let folder = parts.left(parts.merged(2, 300), &[2]);
    folder.write(2, &parts.segments[2][..200]);
    folder.is_apart(none);
}

#[test]
fn segments_are_not_read_with_more_than_one_merge_point() {
    let parts = Parts::new(0);
    let first = &parts.segments[0];
    let record = &first[..HEAD + u32::from_be_bytes(first[5..HEAD].try_into().unwrap()) as usize];
    let segment = [record, record, record, record].concat();
    let base = [&parts.base[..], record, record, &record[..100]].concat();
    let folder = parts.left(base, &[1, 2]);
    folder.write(0, &segment);
    folder
        .is_apart("the content of the first segment may begin at several places in the dump file");
    // The search for the merge point gives up if comparing the dump with the segments would take too long.
    let zeros = [0x1c, 0, 0, 0, 0, 0, 0, 0, 0].repeat(20_000);
    let folder = Folder::new(&[&parts.base[..], &zeros, b"\x1c\0\0\x01"].concat());
    folder.write(0, &[&zeros[..], &zeros].concat());
    folder.is_apart("may begin at several places");
}

#[test]
fn only_regular_files_are_read_as_segments() {
    let parts = Parts::new(0);
    let folder = parts.left(parts.merged(0, 2000), &[0, 2]);
    fs::create_dir(folder.segment(1)).unwrap();
    folder.is_apart("x.hprof.p1 is not a regular file");
    #[cfg(unix)]
    {
        fs::remove_dir(folder.segment(1)).unwrap();
        let elsewhere = folder.at("elsewhere");
        fs::write(&elsewhere, &parts.segments[1]).unwrap();
        std::os::unix::fs::symlink(&elsewhere, folder.segment(1)).unwrap();
        folder.is_apart("x.hprof.p1 is not a regular file");
        fs::remove_file(folder.segment(1)).unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(folder.segment(1))
            .status();
        assert!(made.unwrap().success());
        folder.is_apart("x.hprof.p1 is not a regular file");
    }
    // Replace the directory or the pipe at the segment's path by the segment's regular file.
    if fs::remove_dir(folder.segment(1)).is_err() {
        fs::remove_file(folder.segment(1)).unwrap();
    }
    folder.write(1, &parts.segments[1]);
    let (_, warnings, _) = folder.open();
    assert!(!warnings.iter().any(|w| w.contains("not a regular file")));
    folder.holds(&parts.whole, ALL);
}

#[test]
fn too_many_segments_are_not_read() {
    let parts = Parts::new(0);
    let folder = parts.left(parts.merged(0, 2000), &[0, 1, 2]);
    for n in 3..512 {
        folder.write(n, b"");
    }
    let (bytes, warnings, is_partial) = folder.open();
    assert!(bytes == parts.whole && !is_partial);
    assert!(
        warnings[0].contains("512 unmerged segments (x.hprof.p0, x.hprof.p1,")
            && warnings[0].ends_with("x.hprof.p7 and 504 more)"),
        "{warnings:?}"
    );
    let is_said = |part| warnings.iter().any(|w| w.contains(part));
    assert!(!is_said("more than 512") && !is_said("at most 512"));
    folder.write(512, b"");
    folder.is_apart("more than 512 unmerged segments");
    folder.is_apart("heapdiff reads at most 512 segments");
}

#[test]
fn other_files_are_no_segments() {
    let parts = Parts::new(0);
    let folder = parts.left(parts.base.clone(), &[0, 1, 2]);
    for name in [
        "x.hprof.p",
        "x.hprof.p01",
        "x.hprof.p+3",
        "x.hprof.p4.txt",
        "x.hprof.q5",
        "y.hprof.p6",
        "x.hprof.p99999999999",
    ] {
        fs::write(folder.at(name), b"other").unwrap();
    }
    folder.holds(&parts.whole, ALL);
}

#[test]
fn segments_beside_a_complete_dump_are_not_read() {
    let parts = Parts::new(0);
    let folder = parts.left(parts.whole.clone(), &[0, 1]);
    let (bytes, warnings, is_partial) = folder.open();
    assert!(
        bytes == parts.whole && warnings.is_empty() && !is_partial,
        "{warnings:?}"
    );
    assert!(!has_segments(&folder.dump()));
    let snapshot = Snapshot::open(&folder.dump(), &Options::default(), &Silent).unwrap();
    assert!(!texts(&snapshot).join("").contains("not read ("));
    // The base is compressed.
    let packed = compress(&parts.whole, Gzip::Plain).unwrap();
    let folder = parts.left(packed, &[0, 1]);
    let (bytes, warnings, _) = folder.open();
    assert!(bytes == parts.whole && warnings.is_empty(), "{warnings:?}");
}

#[test]
fn opening_a_segment_reads_the_whole_dump() {
    let parts = Parts::new(0);
    let folder = parts.left(parts.merged(0, 100), &[0, 1, 2]);
    for n in 0..3 {
        assert_eq!(dump_of(&folder.segment(n)), folder.dump());
        let source = Source::open(&folder.segment(n)).unwrap();
        assert!(source[..] == parts.whole && source.path() == folder.dump());
    }
    // A complete dump that has the name of a segment file is read as a dump. A segment cannot be read if the dump to
    // which it belongs is missing.
    for packed in [Gzip::None, Gzip::Plain] {
        let dump = compress(&parts.whole, packed).unwrap();
        folder.write(3, &dump);
        assert_eq!(dump_of(&folder.segment(3)), folder.segment(3));
        let source = Source::open(&folder.segment(3)).unwrap();
        assert!(source[..] == parts.whole && source.path() == folder.segment(3));
    }
    fs::remove_file(folder.dump()).unwrap();
    assert_eq!(dump_of(&folder.segment(0)), folder.segment(0));
    let error = Source::open(&folder.segment(0))
        .map(|source| hprof::records::Records::read(&source).map(drop));
    assert!(matches!(error, Ok(Err(hprof::Error::NotADump(_)))));
}

#[test]
fn an_empty_dump_with_segments_gives_the_reason() {
    let parts = Parts::new(0);
    let folder = parts.left(Vec::new(), &[0, 1]);
    let said = Source::open(&folder.dump()).unwrap_err().to_string();
    assert!(
        said.contains("the JVM ended before it wrote names and classes"),
        "{said}"
    );
    assert!(said.contains("(x.hprof.p0, x.hprof.p1)"), "{said}");
    let alone = Folder::new(b"");
    let said = Source::open(&alone.dump()).unwrap_err().to_string();
    assert!(
        said.contains("the file is empty") && !said.contains("segments"),
        "{said}"
    );
}

/// Returns the gzip members that HotSpot writes for a segment, without a comment that gives the block size.
fn members(segment: &[u8]) -> Vec<u8> {
    let member = |block: &[u8]| compress(block, Gzip::Plain).unwrap();
    segment.chunks(4000).flat_map(member).collect()
}

#[test]
fn compressed_segments_are_read() {
    let parts = Parts::new(0);
    let base = compress(&parts.base, Gzip::Blocks { bytes: 4096 }).unwrap();
    let packed = [0, 1, 2].map(|n| members(&parts.segments[n]));
    let left = |base: &[&[u8]], segments: &[usize]| {
        let folder = Folder::new(&base.concat());
        for &n in segments {
            folder.write(n, &packed[n]);
        }
        folder
    };
    for merged in [0, 1, 20, packed[0].len() / 2, packed[0].len()] {
        left(&[&base, &packed[0][..merged]], &[0, 1, 2]).holds(&parts.whole, ALL);
    }
    for merged in [0, 1, 20, packed[1].len() / 2, packed[1].len()] {
        let base = [&base, &packed[0], &packed[1][..merged]];
        left(&base, &[1, 2]).holds(&parts.whole, LAST_TWO);
    }
    // A truncated segment, a file that is not a segment, and a base that was truncated earlier.
    let folder = left(&[&base], &[0, 1, 2]);
    folder.write(1, &packed[1][..packed[1].len() - 20]);
    let (_, warnings, is_partial) = folder.open();
    let said = warnings.join("\n");
    assert!(
        is_partial
            && said.contains("x.hprof.p1, at byte ")
            && said.contains("gzip data is truncated"),
        "{said}"
    );
    assert!(objects(&folder.dump()) > 240);
    folder.write(1, b"no gzip data");
    let (_, warnings, is_partial) = folder.open();
    let said = warnings.join("\n");
    assert!(is_partial && said.contains("x.hprof.p1"), "{said}");
    let folder = left(&[&base[..base.len() - 30]], &[0, 1, 2]);
    let error = Snapshot::open(&folder.dump(), &Options::default(), &Silent).unwrap_err();
    let said = error.to_string();
    assert!(said.contains("the dump contains no objects"), "{said}");
}

#[test]
fn a_file_stamp_covers_segments() {
    let parts = Parts::new(0);
    let folder = parts.left(parts.base.clone(), &[0, 1, 2]);
    let stamp = || FileStamp::read(&folder.dump()).unwrap().unwrap();
    let with_all = stamp();
    assert_eq!(with_all, stamp());
    let snapshot = Snapshot::open(&folder.dump(), &Options::default(), &Silent).unwrap();
    assert_eq!(snapshot.file_stamp(), Some(with_all));
    // A dump with segments has no index, because an index needs the bytes of one file.
    assert!(!hprof::index::can_be_written(&snapshot));
    let mut segment = parts.segments[1].clone();
    segment[100] ^= 1;
    folder.write(1, &segment);
    let with_other = stamp();
    assert_ne!(with_other, with_all);
    fs::remove_file(folder.segment(2)).unwrap();
    assert_ne!(stamp(), with_other);
    let packed = Folder::new(&compress(&parts.base, Gzip::Plain).unwrap());
    let alone = FileStamp::read(&packed.dump()).unwrap();
    packed.write(0, &members(&parts.segments[0]));
    assert_ne!(FileStamp::read(&packed.dump()).unwrap(), alone);
    // Segments beside a complete dump are ignored.
    let whole = Folder::new(&parts.whole);
    let alone = FileStamp::read(&whole.dump()).unwrap();
    whole.write(0, &parts.segments[0]);
    assert_eq!(FileStamp::read(&whole.dump()).unwrap(), alone);
}
