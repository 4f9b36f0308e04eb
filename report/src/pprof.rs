//! A profile for `go tool pprof` and all that reads its format (profile.proto, gzipped).
//!
//! Sample types: growth (which may be negative: pprof shows it so, as it shows profiles with a base),
//! before and after, each in objects and bytes; of a single dump, `inuse` alone. The class that was allocated is the label `class`.

mod heap;
mod proto;

use std::collections::HashMap;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use heapdiff_diff::Report;
use prost::Message;

use crate::stacks::{Frame, Stacks, less};
pub use heap::{HeapSample, render_heap};
use proto::{Function, Label, Line, Location, Mapping, Profile, Sample, ValueType};

const NANOS_PER_MS: i64 = 1_000_000;

/// What a profile says of the dumps that it is made of.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// When the first dump was taken, in milliseconds since 1970.
    pub from_ms: u64,
    /// When the last dump was taken.
    pub to_ms: u64,
    /// Mean bytes between samples.
    pub interval_bytes: u64,
    /// The dumps.
    pub dumps: Vec<String>,
}

impl About {
    /// The dumps of a diff.
    #[must_use]
    pub fn of(report: &Report, interval_bytes: u64) -> Self {
        let taken = |s: Option<&heapdiff_diff::SnapshotInfo>| s.map_or(0, |s| s.taken_ms);
        Self {
            from_ms: taken(report.snapshots.first()),
            to_ms: taken(report.snapshots.last()),
            interval_bytes,
            dumps: report.snapshots.iter().map(|s| s.path.clone()).collect(),
        }
    }
}

/// Writes a gzipped profile of stacks whose names are frames with file and line.
///
/// # Errors
/// When the stream fails.
pub fn render(stacks: &Stacks, about: &About, out: &mut dyn Write) -> io::Result<()> {
    // No time of now in the header: two runs give the same bytes.
    let mut gzip = GzEncoder::new(out, Compression::default());
    gzip.write_all(&profile(stacks, about).encode_to_vec())?;
    gzip.finish()?.flush()
}

/// Strings, each once; the first is empty, as the format wants it.
struct Strings {
    texts: Vec<String>,
    index: HashMap<String, i64>,
}

impl Strings {
    fn new() -> Self {
        Self {
            texts: vec![String::new()],
            index: HashMap::from([(String::new(), 0)]),
        }
    }

    fn number(&mut self, text: &str) -> i64 {
        if let Some(&number) = self.index.get(text) {
            return number;
        }
        let number = self.texts.len() as i64;
        self.texts.push(text.to_owned());
        self.index.insert(text.to_owned(), number);
        number
    }
}

fn profile(stacks: &Stacks, about: &About) -> Profile {
    let mut strings = Strings::new();
    let mut sample_type = Vec::new();
    let kinds = match about.dumps.len() {
        1 => &["inuse"][..],
        _ => &["growth", "before", "after"],
    };
    for when in kinds {
        for (what, unit) in [("objects", "count"), ("space", "bytes")] {
            sample_type.push(ValueType {
                r#type: strings.number(&format!("{when}_{what}")),
                unit: strings.number(unit),
            });
        }
    }
    let class_key = strings.number("class");
    let mut sample = Vec::new();
    for line in &stacks.lines {
        let (before, after) = (line.before, line.after);
        let [before_objects, after_objects] = [before.objects, after.objects].map(whole);
        let [before_bytes, after_bytes] = [before.bytes, after.bytes].map(whole);
        let value = match about.dumps.len() {
            1 => vec![after_objects, after_bytes],
            _ => vec![
                less(after.objects, before.objects),
                line.growth(),
                before_objects,
                before_bytes,
                after_objects,
                after_bytes,
            ],
        };
        if value.iter().all(|&v| v == 0) {
            continue;
        }
        sample.push(Sample {
            location_id: line
                .frames
                .iter()
                .rev()
                .map(|&f| u64::from(f) + 1)
                .collect(),
            value,
            label: vec![Label {
                key: class_key,
                str: strings.number(stacks.class(line)),
                ..Label::default()
            }],
        });
    }
    let (location, function) = locations(stacks, &mut strings);
    let [from, to] = [about.from_ms, about.to_ms].map(whole);
    let nanos = |ms: i64| ms.saturating_mul(NANOS_PER_MS);
    let first = format!("{}_space", kinds[0]);
    let [space, bytes, first] = ["space", "bytes", &first].map(|s| strings.number(s));
    let dumps = about.dumps.iter();
    let comment = dumps.map(|dump| strings.number(&format!("heap dump: {dump}")));
    Profile {
        sample_type,
        sample,
        mapping: vec![Mapping {
            id: 1,
            has_functions: true,
            has_filenames: true,
            has_line_numbers: true,
        }],
        location,
        function,
        time_nanos: nanos(to),
        duration_nanos: nanos(to.saturating_sub(from).max(0)),
        period_type: Some(ValueType {
            r#type: space,
            unit: bytes,
        }),
        period: whole(about.interval_bytes),
        comment: comment.collect(),
        default_sample_type: first,
        string_table: strings.texts,
    }
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A location for each frame that a stack has, numbered as the frame is, from 1.
fn locations(stacks: &Stacks, strings: &mut Strings) -> (Vec<Location>, Vec<Function>) {
    let mut used = vec![false; stacks.names.len()];
    for &frame in stacks.lines.iter().flat_map(|l| &l.frames) {
        if let Some(used) = used.get_mut(frame as usize) {
            *used = true;
        }
    }
    let mut functions: Vec<Function> = Vec::new();
    let mut numbers: HashMap<(i64, i64), u64> = HashMap::new();
    let mut location = Vec::new();
    for (id, (text, _)) in (1..)
        .zip(stacks.names.iter().zip(used))
        .filter(|(_, (_, used))| *used)
    {
        let frame = Frame::parse(text);
        let name = strings.number(frame.function);
        let filename = strings.number(frame.file.unwrap_or_default());
        let function_id = *numbers.entry((name, filename)).or_insert_with(|| {
            let id = functions.len() as u64 + 1;
            functions.push(Function {
                id,
                name,
                system_name: name,
                filename,
                start_line: 0,
            });
            id
        });
        location.push(Location {
            id,
            mapping_id: 1,
            line: vec![Line {
                function_id,
                line: frame.line.map_or(0, i64::from),
            }],
            ..Location::default()
        });
    }
    (location, functions)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::stacks::Names;
    use crate::tests::allocated;

    #[test]
    fn a_profile_reads_back() {
        let all = allocated(&[
            (
                "a.Main.main(M.java:1) a.Foo.add(F.java:3)",
                "X",
                [1000, 5000],
            ),
            ("a.Main.main(M.java:2)", "Y", [9000, 1000]),
            ("a.Main.main(M.java:7)", "Z", [0, 0]),
        ]);
        let stacks = Stacks::new(&all, None, Names::Frames);
        let about = About {
            from_ms: 5,
            to_ms: 9,
            interval_bytes: 512,
            dumps: vec!["a.hprof".into(), "b.hprof".into()],
        };
        let mut bytes = Vec::new();
        render(&stacks, &about, &mut bytes).unwrap();
        let mut again = Vec::new();
        render(&stacks, &about, &mut again).unwrap();
        assert_eq!(bytes, again);
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&bytes[..])
            .read_to_end(&mut plain)
            .unwrap();
        let profile = Profile::decode(&plain[..]).unwrap();
        assert_eq!(profile.string_table[0], "");
        let text = |at: i64| &*profile.string_table[at as usize];
        assert_eq!(text(profile.default_sample_type), "growth_space");
        assert_eq!(
            (profile.time_nanos, profile.duration_nanos),
            (9_000_000, 4_000_000)
        );
        let values: Vec<&[i64]> = profile.sample.iter().map(|s| &*s.value).collect();
        assert_eq!(
            values,
            [
                &[0, 4000, 1, 1000, 1, 5000][..],
                &[0, -8000, 1, 9000, 1, 1000]
            ]
        );
        let of = |id: u64| {
            let location = profile.location.iter().find(|l| l.id == id).unwrap();
            let line = &location.line[0];
            let function = profile.function.iter().find(|f| f.id == line.function_id);
            let function = function.unwrap();
            (text(function.name), text(function.filename), line.line)
        };
        let frames: Vec<_> = profile.sample[0]
            .location_id
            .iter()
            .map(|&l| of(l))
            .collect();
        assert_eq!(
            frames,
            [("a.Foo.add", "F.java", 3), ("a.Main.main", "M.java", 1)]
        );
        assert_eq!(text(profile.sample[0].label[0].str), "X");
        // Lines of one method are one function.
        assert_eq!(profile.function.len(), 2);
        assert_eq!(text(profile.comment[0]), "heap dump: a.hprof");
    }
}
