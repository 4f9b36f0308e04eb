//! A profile of what was allocated in a slice of time, and of what was alive at its end.

use std::collections::HashMap;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;

use super::proto::{Function, Label, Line, Location, Mapping, Profile, Sample, ValueType};
use super::{About, NANOS_PER_MS, Strings, whole};
use crate::stacks::Frame;

/// What a stack allocated in a slice of time, and what of it was alive at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeapSample<'a> {
    /// Frames with file and line, the leaf first.
    pub frames: Vec<&'a str>,
    /// What was allocated.
    pub class: &'a str,
    /// Objects and bytes allocated.
    pub allocated: [u64; 2],
    /// Objects and bytes alive.
    pub live: [u64; 2],
}

/// Writes a gzipped profile with the sample types of Go's heap profiles (`alloc_objects`, `alloc_space`,
/// `inuse_objects`, `inuse_space`), which servers of profiles know. Its time is `from_ms`, its duration lasts to
/// `to_ms`; `dumps` are comments.
///
/// # Errors
/// When the stream fails.
pub fn render_heap(
    samples: &[HeapSample<'_>],
    about: &About,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut gzip = GzEncoder::new(out, Compression::default());
    gzip.write_all(&profile(samples, about).encode_to_vec())?;
    gzip.finish()?.flush()
}

fn profile(samples: &[HeapSample<'_>], about: &About) -> Profile {
    let mut strings = Strings::new();
    let mut sample_type = Vec::new();
    for when in ["alloc", "inuse"] {
        for (what, unit) in [("objects", "count"), ("space", "bytes")] {
            sample_type.push(ValueType {
                r#type: strings.number(&format!("{when}_{what}")),
                unit: strings.number(unit),
            });
        }
    }
    let key = strings.number("class");
    let mut places = Places::default();
    let sample = samples
        .iter()
        .map(|s| Sample {
            location_id: s
                .frames
                .iter()
                .map(|f| places.number(f, &mut strings))
                .collect(),
            value: s.allocated.into_iter().chain(s.live).map(whole).collect(),
            label: vec![Label {
                key,
                str: strings.number(s.class),
                ..Label::default()
            }],
        })
        .collect();
    let nanos = |ms: u64| whole(ms).saturating_mul(NANOS_PER_MS);
    let [space, bytes, default] = ["space", "bytes", "inuse_space"].map(|s| strings.number(s));
    let comment = about
        .dumps
        .iter()
        .map(|text| strings.number(text))
        .collect();
    Profile {
        sample_type,
        sample,
        mapping: vec![Mapping {
            id: 1,
            has_functions: true,
            has_filenames: true,
            has_line_numbers: true,
        }],
        location: places.locations,
        function: places.functions,
        time_nanos: nanos(about.from_ms),
        duration_nanos: nanos(about.to_ms.saturating_sub(about.from_ms)),
        period_type: Some(ValueType {
            r#type: space,
            unit: bytes,
        }),
        period: whole(about.interval_bytes),
        comment,
        default_sample_type: default,
        string_table: strings.texts,
    }
}

/// Frames as locations, each once; lines of one method are of one function.
#[derive(Default)]
struct Places {
    locations: Vec<Location>,
    functions: Vec<Function>,
    of_frame: HashMap<String, u64>,
    of_method: HashMap<(i64, i64), u64>,
}

impl Places {
    fn number(&mut self, text: &str, strings: &mut Strings) -> u64 {
        if let Some(&id) = self.of_frame.get(text) {
            return id;
        }
        let frame = Frame::parse(text);
        let name = strings.number(frame.function);
        let filename = strings.number(frame.file.unwrap_or_default());
        let functions = &mut self.functions;
        let function_id = *self.of_method.entry((name, filename)).or_insert_with(|| {
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
        let id = self.locations.len() as u64 + 1;
        self.locations.push(Location {
            id,
            mapping_id: 1,
            line: vec![Line {
                function_id,
                line: frame.line.map_or(0, i64::from),
            }],
            ..Location::default()
        });
        self.of_frame.insert(text.to_owned(), id);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_reads_back() {
        let samples = [
            HeapSample {
                frames: vec!["a.Foo.add(F.java:3)", "a.Main.main(M.java:1)"],
                class: "byte[]",
                allocated: [10, 1000],
                live: [3, 300],
            },
            HeapSample {
                frames: vec!["a.Foo.add(F.java:5)"],
                class: "a.B",
                allocated: [0, 0],
                live: [u64::MAX, 1],
            },
        ];
        let about = About {
            from_ms: 60_000,
            to_ms: 120_000,
            interval_bytes: 512,
            dumps: vec!["service: shop".into()],
        };
        let profile = Profile::decode(&profile(&samples, &about).encode_to_vec()[..]).unwrap();
        let text = |at: i64| &*profile.string_table[at as usize];
        let types: Vec<_> = profile
            .sample_type
            .iter()
            .map(|t| (text(t.r#type), text(t.unit)))
            .collect();
        assert_eq!(
            types,
            [
                ("alloc_objects", "count"),
                ("alloc_space", "bytes"),
                ("inuse_objects", "count"),
                ("inuse_space", "bytes")
            ]
        );
        assert_eq!(profile.sample[0].value, [10, 1000, 3, 300]);
        assert_eq!(profile.sample[1].value, [0, 0, i64::MAX, 1]);
        assert_eq!(profile.sample[0].location_id, [1, 2]);
        assert_eq!((profile.location.len(), profile.function.len()), (3, 2));
        assert_eq!(
            (profile.time_nanos, profile.duration_nanos),
            (60_000_000_000, 60_000_000_000)
        );
        assert_eq!(text(profile.sample[1].label[0].str), "a.B");
    }
}
