//! Code for all profiles in pprof format: tables of strings and locations, labels, and the header.

use std::collections::HashMap;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use heapdiff_diff::FrameParts;
use prost::Message;

use super::proto::{Function, Label, Line, Location, Mapping, Profile, Sample, ValueType};
use super::{About, NANOS_PER_MS, to_i64};

/// A profile that is being built.
pub(super) struct Builder {
    strings: Strings,
    profile: Profile,
    of_frame: HashMap<String, u64>,
    of_method: HashMap<(i64, i64), u64>,
}

impl Builder {
    /// Creates a profile with two sample types for each kind, one in objects and one in bytes. For example, the kind
    /// `inuse` has the sample types `inuse_objects` and `inuse_space`.
    pub(super) fn new(kinds: &[&str]) -> Self {
        let mut strings = Strings::new();
        let mut sample_type = Vec::new();
        for kind in kinds {
            for (what, unit) in [("objects", "count"), ("space", "bytes")] {
                sample_type.push(ValueType {
                    r#type: strings.number(&format!("{kind}_{what}")),
                    unit: strings.number(unit),
                });
            }
        }
        Self {
            strings,
            profile: Profile {
                sample_type,
                mapping: vec![Mapping {
                    id: 1,
                    has_functions: true,
                    has_filenames: true,
                    has_line_numbers: true,
                }],
                ..Profile::default()
            },
            of_frame: HashMap::new(),
            of_method: HashMap::new(),
        }
    }

    /// Returns the id of the profile's `Location` for a frame with file and line. Each frame has its own `Location`.
    /// All `Location`s in a method refer to the same `Function`.
    pub(super) fn place(&mut self, text: &str) -> u64 {
        if let Some(&id) = self.of_frame.get(text) {
            return id;
        }
        let frame = FrameParts::parse(text);
        let name = self.strings.number(frame.function);
        let filename = self.strings.number(frame.file.unwrap_or_default());
        let functions = &mut self.profile.function;
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
        let id = self.profile.location.len() as u64 + 1;
        self.profile.location.push(Location {
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

    /// Adds a stack that allocated objects of a class. The locations in `location_id` begin with the innermost frame.
    /// `value` has one value for each sample type.
    pub(super) fn sample(&mut self, location_id: Vec<u64>, value: Vec<i64>, class: &str) {
        self.add_stack(location_id, value, Some(("class", class)));
    }

    /// Adds a stack with or without a label.
    pub(super) fn add_stack(
        &mut self,
        location_id: Vec<u64>,
        value: Vec<i64>,
        label: Option<(&str, &str)>,
    ) {
        let label = label.map(|(key, text)| Label {
            key: self.strings.number(key),
            str: self.strings.number(text),
            ..Label::default()
        });
        self.profile.sample.push(Sample {
            location_id,
            value,
            label: label.into_iter().collect(),
        });
    }

    /// Returns the finished profile. `time_ms` is the time of the profile. Viewers show the bytes of the kind `default`
    /// unless the user chooses another sample type.
    pub(super) fn finish(
        mut self,
        about: &About,
        time_ms: u64,
        default: &str,
        comments: impl Iterator<Item = String>,
    ) -> Profile {
        let nanos = |ms: u64| to_i64(ms).saturating_mul(NANOS_PER_MS);
        let strings = &mut self.strings;
        let default = format!("{default}_space");
        let [space, bytes, default] = ["space", "bytes", &default].map(|s| strings.number(s));
        Profile {
            time_nanos: nanos(time_ms),
            duration_nanos: nanos(about.to_ms.saturating_sub(about.from_ms)),
            period_type: Some(ValueType {
                r#type: space,
                unit: bytes,
            }),
            period: to_i64(about.interval_bytes),
            comment: comments.map(|text| strings.number(&text)).collect(),
            default_sample_type: default,
            string_table: self.strings.texts,
            ..self.profile
        }
    }
}

/// Writes a gzipped profile. The gzip header has no time, so that two runs write the same bytes.
pub(super) fn write(profile: &Profile, out: &mut dyn Write) -> io::Result<()> {
    let mut gzip = GzEncoder::new(out, Compression::default());
    gzip.write_all(&profile.encode_to_vec())?;
    gzip.finish()?.flush()
}

/// The string table, without duplicates. The format requires that the first string is empty.
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
