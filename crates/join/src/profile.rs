//! Reads collapsed stacks and pprof profiles. These files have neither times nor the name of a JVM, so they are
//! evidence of allocations only.
//!
//! A line of a collapsed file has the frames of a stack, outermost first and separated by `;`, and a number. The last
//! frame is the allocated class. In pprof, the class is the label `class`, or else the innermost frame.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use heapdiff_sites::types;

use crate::evidence::{Evidence, Seen};
use crate::stacks::FrameId;

/// Maximum size of a decompressed profile in bytes.
const MOST_BYTES: u64 = 256 << 20;
/// Maximum number of entries of a profile: lines or samples.
const MOST_ENTRIES: usize = 1 << 22;
/// Maximum number of entries in a table of a pprof profile: locations, functions or strings.
const MOST_ROWS: usize = 1 << 21;
/// Maximum number of value types in a pprof profile.
const MOST_TYPES: usize = 64;
/// Maximum number of bytes in the names of all frames and classes.
const MOST_NAMES: usize = 64 << 20;
/// Maximum number of bytes of a name that are stored.
const MOST_NAME: usize = 4096;
/// Maximum number of frames in a stack.
const MOST_FRAMES: usize = 2048;
/// Maximum number of frames in all stacks together.
const MOST_FRAMES_IN_ALL: usize = 1 << 24;

/// The reason why a file is not a profile.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages document the variants")]
pub enum ProfileError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("line {line} (byte {offset}): expected `frame;frame;class number`, found \"{found}\"")]
    Line {
        line: u64,
        offset: u64,
        found: String,
    },
    #[error(
        "byte {offset} of the profile: the field with tag {tag} has the impossible length or type {value}"
    )]
    Field { offset: u64, tag: u64, value: u64 },
    #[error("byte {offset} of the profile: the data ends inside a field")]
    Short { offset: u64 },
    #[error("the profile has {count} strings, but no string {index}")]
    NoString { index: i64, count: usize },
    #[error(
        "the profile is larger than {} when decompressed",
        heapdiff_units::Size(MOST_BYTES)
    )]
    TooLarge,
    #[error("the profile has more than {} {what}", heapdiff_units::grouped(*.most as u64))]
    TooMany { what: &'static str, most: usize },
    #[error("not a recording: expected a JFR file, collapsed stacks or a pprof profile, found {0}")]
    Unknown(String),
}

/// Reads a profile, gzipped or not.
pub(crate) fn open(path: &Path) -> Result<Evidence, ProfileError> {
    read(BufReader::new(File::open(path)?))
}

pub(crate) fn read(mut input: impl BufRead) -> Result<Evidence, ProfileError> {
    let mut bytes = Vec::new();
    if input.fill_buf()?.starts_with(&[0x1f, 0x8b]) {
        let unpacked = MultiGzDecoder::new(input);
        unpacked.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    } else {
        input.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    }
    if bytes.len() as u64 > MOST_BYTES {
        return Err(ProfileError::TooLarge);
    }
    let mut profile = Profile::default();
    // A pprof profile begins with a message: the tag byte of field 1, 2 or 3, and a length. A collapsed line begins
    // with a printable character.
    match bytes.first() {
        Some(0x0a | 0x12 | 0x1a) => profile.pprof(&bytes)?,
        Some(b' '..=0x7e | 0x80..) => profile.collapsed(&bytes)?,
        Some(_) => {
            let start = &bytes[..bytes.len().min(16)];
            return Err(ProfileError::Unknown(format!(
                "\"{}\"",
                start.escape_ascii()
            )));
        }
        None => return Err(ProfileError::Unknown("an empty file".to_owned())),
    }
    let mut evidence = profile.evidence;
    evidence.notes = vec![
        "the file names no JVM and no time, and no live objects: probabilities are at most 0.75"
            .to_owned(),
    ];
    Ok(evidence)
}

#[derive(Default)]
struct Profile {
    evidence: Evidence,
    /// Number of frames in all stacks.
    frames: usize,
    /// Number of bytes in the names of all frames and classes. A name is counted each time that it occurs.
    names: usize,
}

/// The figures of an entry.
struct Figures {
    /// Number of bytes, or a number in another unit that is the same in all entries.
    weight: i64,
    /// Number of samples; 0 if the file does not record it.
    count: i64,
}

impl Profile {
    /// Adds an entry with the frames of its stack, innermost first.
    fn add(
        &mut self,
        class: &str,
        frames: Vec<FrameId>,
        figures: &Figures,
    ) -> Result<(), ProfileError> {
        self.frames += frames.len();
        limited("frames", self.frames, MOST_FRAMES_IN_ALL)?;
        limited("entries", self.evidence.seen.len(), MOST_ENTRIES)?;
        let Ok(weight @ 1..) = u64::try_from(figures.weight) else {
            return Ok(());
        };
        if frames.is_empty() {
            return Ok(());
        }
        let class = self.evidence.stacks.texts.id(&class_name(class));
        let stack = self.evidence.stacks.stack(frames);
        self.evidence.seen.push(Seen {
            at_ns: None,
            survived: false,
            class,
            length: None,
            size: None,
            weight,
            count: u64::try_from(figures.count).unwrap_or(0),
            stack,
            chain: 0,
        });
        Ok(())
    }

    /// Adds a frame: `com/acme/Foo.add`, `com.acme.Foo.add:31` or `com.acme.Foo.add(Foo.java:31)`.
    fn frame(&mut self, text: &str, line: i32) -> Result<FrameId, ProfileError> {
        let (name, number) = parts(unmarked(text));
        let name = name.replace('/', ".");
        let (class, method) = name.rsplit_once('.').unwrap_or((&name, ""));
        let stacks = &mut self.evidence.stacks;
        let before = stacks.count();
        let frame = stacks.frame(class, method, number.unwrap_or(line));
        if stacks.count() > before {
            self.names += name.len();
            limited("bytes of names", self.names, MOST_NAMES)?;
        }
        Ok(frame)
    }

    fn collapsed(&mut self, bytes: &[u8]) -> Result<(), ProfileError> {
        let mut offset = 0;
        for (line, bytes) in (1..).zip(bytes.split(|&b| b == b'\n')) {
            let at = offset;
            offset += bytes.len() as u64 + 1;
            let text = String::from_utf8_lossy(bytes);
            let text = text.trim_end();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let malformed = || ProfileError::Line {
                line,
                offset: at,
                found: text
                    .chars()
                    .take(80)
                    .collect::<String>()
                    .escape_debug()
                    .to_string(),
            };
            let (stack, value) = text.rsplit_once(' ').ok_or_else(malformed)?;
            let value: i64 = value.parse().map_err(|_| malformed())?;
            let (stack, class) = stack.rsplit_once(';').unwrap_or(("", stack));
            let frames = stack
                .rsplit(';')
                .filter(|f| !f.is_empty() && !f.starts_with('['));
            let frames = frames.take(MOST_FRAMES);
            let frames = frames.map(|frame| self.frame(cut(frame), 0));
            let frames = frames.collect::<Result<_, _>>()?;
            // The value is a number of samples or of bytes. The file does not record which.
            let figures = Figures {
                weight: value,
                count: 0,
            };
            self.add(cut(class), frames, &figures)?;
        }
        Ok(())
    }

    fn pprof(&mut self, bytes: &[u8]) -> Result<(), ProfileError> {
        let mut tables = Tables::default();
        let mut fields = Fields::new(bytes, 0);
        while let Some((tag, field)) = fields.next()? {
            match (tag, field) {
                (1, Field::Bytes(body)) => {
                    limited("value types", tables.types.len() + 1, MOST_TYPES)?;
                    let [name, unit] = body.numbers([1, 2])?;
                    tables.types.push((name.cast_signed(), unit.cast_signed()));
                }
                (4, Field::Bytes(body)) => {
                    let (id, lines) = location(body)?;
                    tables.lines += lines.len();
                    limited("frames", tables.lines, MOST_FRAMES_IN_ALL)?;
                    tables.locations.insert(id, lines);
                    limited("locations", tables.locations.len(), MOST_ROWS)?;
                }
                (5, Field::Bytes(body)) => {
                    let [id, name] = body.numbers([1, 2])?;
                    tables.functions.insert(id, name.cast_signed());
                    limited("functions", tables.functions.len(), MOST_ROWS)?;
                }
                (6, Field::Bytes(body)) => {
                    tables.strings.push(body.bytes);
                    limited("strings", tables.strings.len(), MOST_ROWS)?;
                }
                _ => {}
            }
        }
        let values = tables.values()?;
        let mut fields = Fields::new(bytes, 0);
        while let Some((tag, field)) = fields.next()? {
            if let (2, Field::Bytes(body)) = (tag, field) {
                self.sample(&tables, body, values)?;
            }
        }
        Ok(())
    }

    fn sample(
        &mut self,
        tables: &Tables<'_>,
        body: Fields<'_>,
        (weight, count): (usize, Option<usize>),
    ) -> Result<(), ProfileError> {
        let (mut locations, mut values, mut class) = (Vec::new(), Vec::new(), None);
        let mut fields = body;
        while let Some((tag, field)) = fields.next()? {
            match tag {
                1 => field.integers(&mut locations, MOST_FRAMES)?,
                2 => field.integers(&mut values, MOST_FRAMES)?,
                3 => {
                    if let Field::Bytes(label) = field {
                        let [key, text] = label.numbers([1, 2])?;
                        if tables.text(key.cast_signed())? == "class" {
                            class = Some(tables.text(text.cast_signed())?);
                        }
                    }
                }
                _ => {}
            }
        }
        let mut frames = Vec::new();
        for id in locations {
            for &(function, line) in tables.locations.get(&id).map_or(&[][..], |lines| lines) {
                let name = tables.functions.get(&function).copied().unwrap_or(0);
                frames.push((tables.text(name)?, line));
                if frames.len() >= MOST_FRAMES {
                    break;
                }
            }
        }
        let mut frames = &frames[..];
        let class = match (class, frames.split_first()) {
            (Some(class), _) => class,
            (None, Some((leaf, rest))) => {
                frames = rest;
                leaf.0.clone()
            }
            (None, None) => return Ok(()),
        };
        let frames = frames.iter().map(|(name, line)| self.frame(name, *line));
        let frames = frames.collect::<Result<_, _>>()?;
        let value = |at: usize| values.get(at).copied().unwrap_or(0).cast_signed();
        let figures = Figures {
            weight: value(weight),
            count: count.map_or(0, value),
        };
        self.add(&class, frames, &figures)
    }
}

/// Returns an error if `count` is more than `most`.
const fn limited(what: &'static str, count: usize, most: usize) -> Result<(), ProfileError> {
    if count > most {
        return Err(ProfileError::TooMany { what, most });
    }
    Ok(())
}

/// Returns the first bytes of a name that is too long.
fn cut(name: &str) -> &str {
    let mut end = name.len().min(MOST_NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

/// Returns the name of a class as in Java source, without the suffix that async-profiler appends, such as `_[i]`.
fn class_name(name: &str) -> String {
    let name = unmarked(name);
    // Names in the form of Java source do not change here, except those of generated classes.
    types::of_class(name)
}

/// Removes the suffix that async-profiler appends to a name, such as `_[i]`.
fn unmarked(name: &str) -> &str {
    match name
        .len()
        .checked_sub(4)
        .and_then(|at| name.split_at_checked(at))
    {
        Some((start, mark)) if mark.starts_with("_[") && mark.ends_with(']') => start,
        _ => name,
    }
}

/// Splits a frame into the name and the line.
fn parts(text: &str) -> (&str, Option<i32>) {
    let (name, place) = match text.split_once('(') {
        // A suffix such as ` (lambda)` is part of the name, not a line number.
        Some((name, rest)) if !name.ends_with(' ') => {
            (name, rest.strip_suffix(')').unwrap_or(rest))
        }
        _ => match text.rsplit_once(':') {
            Some((name, number)) if number.parse::<i32>().is_ok() => (name, number),
            _ => (text, ""),
        },
    };
    let number = place.rsplit(':').next();
    (name, number.and_then(|number| number.parse().ok()))
}

/// The tables of a pprof profile.
#[derive(Default)]
struct Tables<'a> {
    strings: Vec<&'a [u8]>,
    /// Name of each function, by id.
    functions: HashMap<u64, i64>,
    /// Functions and lines of each location, by id, the innermost first.
    locations: HashMap<u64, Vec<(u64, i32)>>,
    /// Number of lines of all locations.
    lines: usize,
    /// Name and unit of each value of a sample.
    types: Vec<(i64, i64)>,
}

impl Tables<'_> {
    fn text(&self, index: i64) -> Result<String, ProfileError> {
        let bytes = usize::try_from(index)
            .ok()
            .and_then(|at| self.strings.get(at));
        let bytes = bytes.ok_or(ProfileError::NoString {
            index,
            count: self.strings.len(),
        })?;
        Ok(String::from_utf8_lossy(&bytes[..bytes.len().min(MOST_NAME)]).into_owned())
    }

    /// Returns the index of the value to use: allocated bytes if there are any, otherwise other bytes, otherwise the
    /// first value. Also returns the index of the number of samples, if there is one.
    fn values(&self) -> Result<(usize, Option<usize>), ProfileError> {
        let (mut allocated, mut bytes, mut count) = (None, None, None);
        for (at, &(name, unit)) in self.types.iter().enumerate() {
            let (name, unit) = (self.text(name)?, self.text(unit)?);
            if unit == "bytes" && name.starts_with("alloc") {
                allocated = allocated.or(Some(at));
            }
            if unit == "bytes" {
                bytes = bytes.or(Some(at));
            }
            if unit == "count" && name.starts_with("sample") {
                count = count.or(Some(at));
            }
        }
        Ok((allocated.or(bytes).unwrap_or(0), count))
    }
}

/// Reads the id of a location, and the functions and lines in it.
fn location(body: Fields<'_>) -> Result<(u64, Vec<(u64, i32)>), ProfileError> {
    let (mut id, mut lines) = (0, Vec::new());
    let mut fields = body;
    while let Some((tag, field)) = fields.next()? {
        match (tag, field) {
            (1, Field::Number(number)) => id = number,
            (4, Field::Bytes(line)) if lines.len() < MOST_FRAMES => {
                let [function, line] = line.numbers([1, 2])?;
                lines.push((function, i32::try_from(line).unwrap_or(0)));
            }
            _ => {}
        }
    }
    Ok((id, lines))
}

/// The fields of a protobuf message.
#[derive(Clone, Copy)]
struct Fields<'a> {
    bytes: &'a [u8],
    /// Offset of `bytes` in the profile.
    offset: u64,
}

enum Field<'a> {
    Number(u64),
    Bytes(Fields<'a>),
}

impl<'a> Fields<'a> {
    const fn new(bytes: &'a [u8], offset: u64) -> Self {
        Self { bytes, offset }
    }

    fn varint(&mut self) -> Result<u64, ProfileError> {
        let mut value = 0;
        for place in 0..10 {
            let Some((&byte, rest)) = self.bytes.split_first() else {
                return Err(ProfileError::Short {
                    offset: self.offset,
                });
            };
            self.bytes = rest;
            self.offset += 1;
            value |= u64::from(byte & 0x7f) << (7 * place).min(63);
            if byte < 0x80 {
                break;
            }
        }
        Ok(value)
    }

    fn take(&mut self, length: u64) -> Option<Self> {
        let (taken, rest) = self.bytes.split_at_checked(usize::try_from(length).ok()?)?;
        let taken = Self::new(taken, self.offset);
        self.bytes = rest;
        self.offset += length;
        Some(taken)
    }

    fn next(&mut self) -> Result<Option<(u64, Field<'a>)>, ProfileError> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let offset = self.offset;
        let key = self.varint()?;
        let tag = key >> 3;
        let bad = |value| ProfileError::Field { offset, tag, value };
        let field = match key & 7 {
            0 => Field::Number(self.varint()?),
            1 => Field::Bytes(self.take(8).ok_or_else(|| bad(8))?),
            2 => {
                let length = self.varint()?;
                Field::Bytes(self.take(length).ok_or_else(|| bad(length))?)
            }
            5 => Field::Bytes(self.take(4).ok_or_else(|| bad(4))?),
            other => return Err(bad(other)),
        };
        Ok(Some((tag, field)))
    }

    /// Returns the numbers in the fields with these tags; 0 for a missing field. If a field occurs several times, the
    /// last value is used.
    fn numbers<const N: usize>(mut self, tags: [u64; N]) -> Result<[u64; N], ProfileError> {
        let mut numbers = [0; N];
        while let Some((tag, field)) = self.next()? {
            if let Field::Number(number) = field
                && let Some(at) = tags.iter().position(|&own| own == tag)
            {
                numbers[at] = number;
            }
        }
        Ok(numbers)
    }
}

impl Field<'_> {
    /// Adds the integers of a repeated field, packed or not, until `to` has `most` integers.
    fn integers(self, to: &mut Vec<u64>, most: usize) -> Result<(), ProfileError> {
        match self {
            Field::Number(number) if to.len() < most => to.push(number),
            Field::Number(_) => {}
            Field::Bytes(mut packed) => {
                while !packed.bytes.is_empty() && to.len() < most {
                    to.push(packed.varint()?);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(evidence: &Evidence) -> Vec<String> {
        let stacks = &evidence.stacks;
        let line = |seen: &Seen| {
            let frames = stacks.frames(seen.stack).iter();
            let frames: Vec<&str> = frames.map(|&f| &*stacks.get(f).unwrap().text).collect();
            format!(
                "{} {} {}",
                stacks.texts.text(seen.class),
                seen.weight,
                frames.join(" ")
            )
        };
        evidence.seen.iter().map(line).collect()
    }

    #[test]
    fn collapsed_stacks_end_with_the_class() {
        let text = "[main tid=7];com/acme/Main.main;com/acme/Foo.add:31;byte[]_[i] 4096\n\
                    # a comment\n\
                    a.B.c(B.java:7);a.Entry 3\n";
        let evidence = read(text.as_bytes()).unwrap();
        assert_eq!(
            shown(&evidence),
            [
                "byte[] 4096 com.acme.Foo.add(line 31) com.acme.Main.main",
                "a.Entry 3 a.B.c(line 7)",
            ]
        );
        assert!(!evidence.is_timed());
        let error = read(&b"a;b 1\na;b c\n"[..]).unwrap_err().to_string();
        let expected = "line 2 (byte 6): expected `frame;frame;class number`, found \"a;b c\"";
        assert_eq!(error, expected);
    }

    fn message(fields: &[(u8, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (tag, body) in fields {
            bytes.extend([tag << 3 | 2, u8::try_from(body.len()).unwrap()]);
            bytes.extend(*body);
        }
        bytes
    }

    #[test]
    fn pprof_samples_have_a_class_label_or_leaf() {
        let strings = [
            "",
            "alloc_space",
            "bytes",
            "com.acme.Foo.add",
            "class",
            "a.Entry",
            "count",
        ];
        let mut fields: Vec<(u8, &[u8])> = vec![
            (1, &[8, 2, 16, 6]),
            (1, &[8, 1, 16, 2]),
            (2, &[10, 1, 1, 18, 2, 5, 77, 26, 4, 8, 4, 16, 5]),
            (2, &[8, 2, 8, 1, 16, 5, 16, 9]),
            (4, &[8, 1, 34, 4, 8, 1, 16, 31]),
            (4, &[8, 2, 34, 2, 8, 2]),
            (5, &[8, 1, 16, 3]),
            (5, &[8, 2, 16, 5]),
        ];
        fields.extend(strings.iter().map(|s| (6, s.as_bytes())));
        let bytes = message(&fields);
        let evidence = read(&bytes[..]).unwrap();
        assert_eq!(
            shown(&evidence),
            [
                "a.Entry 77 com.acme.Foo.add(line 31)",
                "a.Entry 9 com.acme.Foo.add(line 31)"
            ]
        );
        let error = read(&bytes[..9]).unwrap_err().to_string();
        assert_eq!(
            error,
            "byte 6 of the profile: the field with tag 1 has the impossible length or type 4"
        );
    }
}
