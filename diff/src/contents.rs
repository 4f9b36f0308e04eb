//! Finds strings and arrays by their content.

use std::ops::Range;
use std::str::FromStr;

use hprof::answers::{ArrayView, Content, PathOptions, Via};
use hprof::records::Kind;
use hprof::{ClassIndex, ObjectIndex, Progress, Snapshot};
use rayon::prelude::*;
use regex::{Regex, bytes};

use crate::ignore::pattern;
use crate::names::is_application_class_name;
use crate::samples::AgentObjects;

/// Number of objects that are read at a time.
const CHUNK: usize = 1 << 12;
/// Number of characters before a match in an excerpt.
const BEFORE: usize = 20;
/// Number of characters of an excerpt, counted from the start of the match.
const AFTER: usize = 60;
/// Maximum number of bytes of an array that are decoded for a regular expression.
const LONGEST: usize = 64 << 20;
const STRING_VALUE: &str = "java.lang.String.value";
/// Number of bytes in the excerpt of a pattern of bytes.
const BYTES: usize = 16;

/// A pattern for the content of strings and arrays.
#[derive(Clone, Debug)]
pub struct ContentPattern {
    /// The pattern as the user wrote it.
    written: String,
    kind: Kinds,
}

#[derive(Clone, Debug)]
enum Kinds {
    /// A text, as a pattern for strings and as its bytes in each encoding.
    Text(Regex, bytes::Regex),
    /// A regular expression, for strings and for bytes in UTF-8.
    Regex(Regex, bytes::Regex),
    Bytes(bytes::Regex),
}

impl ContentPattern {
    /// Returns the pattern as the user wrote it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.written
    }
}

/// Parses `/REGEX/`, `hex:CAFE` or a text.
impl FromStr for ContentPattern {
    type Err = String;

    fn from_str(written: &str) -> Result<Self, String> {
        let failed = |e: regex::Error| e.to_string();
        let kind = if let Some(digits) = written.strip_prefix("hex:") {
            let bytes = parse_hex(digits)?;
            Kinds::Bytes(bytes::Regex::new(&escaped(&bytes)).map_err(failed)?)
        } else if let Some(regex) = written
            .strip_prefix('/')
            .and_then(|rest| rest.strip_suffix('/'))
            .filter(|regex| !regex.is_empty())
        {
            Kinds::Regex(pattern(regex)?, bytes::Regex::new(regex).map_err(failed)?)
        } else if written.is_empty() {
            return Err("the pattern is empty".to_owned());
        } else {
            let text = Regex::new(&regex::escape(written)).map_err(failed)?;
            let encoded: Vec<String> = encodings(written).iter().map(|b| escaped(b)).collect();
            Kinds::Text(text, bytes::Regex::new(&encoded.join("|")).map_err(failed)?)
        };
        Ok(Self {
            written: written.to_owned(),
            kind,
        })
    }
}

fn parse_hex(digits: &str) -> Result<Vec<u8>, String> {
    let digits: String = digits.split([' ', '_']).collect();
    let is_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
    if digits.is_empty() || !is_hex || digits.len() % 2 == 1 {
        return Err("hex: needs pairs of hexadecimal digits, such as hex:cafebabe".to_owned());
    }
    let pairs = (0..digits.len()).step_by(2);
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16);
    pairs
        .map(byte)
        .collect::<Result<_, _>>()
        .map_err(|e| e.to_string())
}

/// Returns a pattern for exactly these bytes.
fn escaped(bytes: &[u8]) -> String {
    let each: String = bytes.iter().map(|b| format!("\\x{b:02x}")).collect();
    format!("(?-u:{each})")
}

/// Returns the bytes of a text in UTF-8, Latin-1 and both byte orders of UTF-16.
fn encodings(text: &str) -> Vec<Vec<u8>> {
    let units: Vec<u16> = text.encode_utf16().collect();
    let latin: Result<Vec<u8>, _> = text.chars().map(u8::try_from).collect();
    let mut all = vec![text.as_bytes().to_vec()];
    all.extend(latin.ok().filter(|latin| *latin != all[0]));
    all.push(units.iter().flat_map(|u| u.to_le_bytes()).collect());
    all.push(units.iter().flat_map(|u| u.to_be_bytes()).collect());
    all
}

/// Finds the strings that contain the pattern, and the `byte[]` and `char[]` that contain it and belong to no string.
/// The result is sorted by index. The agent's objects are left out. A pattern of bytes matches only `byte[]`, and the
/// strings to which they belong.
///
/// Cost: reads all arrays of these types. Also searches the referrers of the arrays that match, and reads the strings
/// among them.
#[must_use]
pub fn find_contents(
    snapshot: &Snapshot,
    agent_objects: &AgentObjects,
    pattern: &ContentPattern,
    progress: &dyn Progress,
) -> Vec<ObjectIndex> {
    progress.phase("searching arrays", 0);
    let mut kinds = vec![Kind::Byte];
    if !matches!(pattern.kind, Kinds::Bytes(_)) {
        kinds.push(Kind::Char);
    }
    let classes: Vec<ClassIndex> = snapshot
        .classes()
        .iter()
        .filter(|(_, class)| class.element.is_some_and(|kind| kinds.contains(&kind)))
        .map(|(index, _)| index)
        .collect();
    let arrays = snapshot.instances(&classes);
    let found: Vec<ObjectIndex> = arrays
        .par_chunks(CHUNK)
        .flat_map_iter(|chunk| {
            let records = snapshot.read_all(chunk).into_iter().flatten();
            let found = records.filter_map(|record| match record.content {
                Content::Array(array) => pattern.find_in(&array).map(|_| record.object),
                _ => None,
            });
            found.collect::<Vec<_>>()
        })
        .collect();
    let mut matches = with_strings(snapshot, pattern, &found);
    matches.retain(|object| !agent_objects.contains(*object));
    matches.sort_unstable();
    matches.dedup();
    matches
}

/// Replaces each array that belongs to a string by the string, if the string matches the pattern.
fn with_strings(
    snapshot: &Snapshot,
    pattern: &ContentPattern,
    arrays: &[ObjectIndex],
) -> Vec<ObjectIndex> {
    let is_value = |via: Via| snapshot.via_name(via) == STRING_VALUE;
    let (mut matches, mut strings) = (Vec::new(), Vec::new());
    // Many strings may share an array, after the deduplication of strings.
    let referrers = snapshot.referrers(arrays, usize::MAX, &[]);
    for (&array, referrers) in arrays.iter().zip(referrers) {
        let own = referrers.list.iter().filter(|r| is_value(r.via));
        let before = strings.len();
        strings.extend(own.map(|r| r.from));
        if strings.len() == before {
            matches.push(array);
        }
    }
    let (Kinds::Text(text, _) | Kinds::Regex(text, _)) = &pattern.kind else {
        // For a pattern of bytes, a match in the array is enough. The text of the string is not tested.
        matches.append(&mut strings);
        return matches;
    };
    matches.par_extend(strings.par_chunks(CHUNK).flat_map_iter(|chunk| {
        let texts = snapshot.strings(chunk, usize::MAX).into_iter();
        let is_match = texts.map(|string| string.is_some_and(|string| text.is_match(&string)));
        let found = chunk.iter().zip(is_match).filter(|(_, is_match)| *is_match);
        found.map(|(object, _)| *object)
    }));
    matches
}

/// The first match in an array.
enum Found {
    /// The range of bytes that match.
    Raw(Range<usize>),
    /// The index of the match, and the text around it.
    Decoded(u64, String),
}

impl ContentPattern {
    /// Returns the index of the first match in an object that matches, and the content around the match. The index
    /// counts characters in strings and `char[]`, and bytes in `byte[]`. If the pattern is one of bytes, the index
    /// always counts bytes, and the content is hexadecimal.
    #[must_use]
    pub fn first_match(&self, snapshot: &Snapshot, object: ObjectIndex) -> Option<(u64, String)> {
        if let Some(string) = snapshot.string(object, usize::MAX)
            && let Kinds::Text(text, _) | Kinds::Regex(text, _) = &self.kind
        {
            return Some(excerpt(&string, text.find(&string)?.range()));
        }
        let value = snapshot.field_values(&[object], ["value"]).pop()?;
        let array = value.and_then(|[value]| value?.object());
        let Content::Array(array) = snapshot.read(array.unwrap_or(object)).ok()?.content else {
            return None;
        };
        Some(match self.find_in(&array)? {
            Found::Raw(found) => (found.start as u64, self.excerpt_of_bytes(&array, found)),
            Found::Decoded(at, excerpt) => (at, excerpt),
        })
    }

    fn find_in(&self, array: &ArrayView<'_>) -> Option<Found> {
        let bytes = array.bytes();
        let raw = |raw: &bytes::Regex| raw.find(bytes).map(|found| Found::Raw(found.range()));
        match &self.kind {
            Kinds::Bytes(pattern) => raw(pattern),
            Kinds::Text(_, pattern) if array.kind == Kind::Byte => raw(pattern),
            Kinds::Regex(text, pattern) if array.kind == Kind::Byte => raw(pattern).or_else(|| {
                let other = decodings(bytes.get(..LONGEST).unwrap_or(bytes)).skip(1);
                let mut other = other.zip([1, 2, 2]).filter_map(|(decoded, width)| {
                    let (at, excerpt) = excerpt(&decoded, text.find(&decoded)?.range());
                    Some(Found::Decoded(at * width, excerpt))
                });
                other.next()
            }),
            Kinds::Text(text, _) | Kinds::Regex(text, _) => {
                let decoded = utf16(bytes, u16::from_be_bytes);
                let (at, excerpt) = excerpt(&decoded, text.find(&decoded)?.range());
                Some(Found::Decoded(at, excerpt))
            }
        }
    }

    /// Returns the content around a match in a `byte[]`.
    fn excerpt_of_bytes(&self, array: &ArrayView<'_>, found: Range<usize>) -> String {
        let bytes = array.bytes();
        if let Kinds::Bytes(_) = self.kind {
            let shown = &bytes[found.start..bytes.len().min(found.start + BYTES)];
            return shown.iter().map(|byte| format!("{byte:02x}")).collect();
        }
        // A character takes at most two bytes in UTF-16. The excerpt begins an even number of bytes before the match,
        // so that its UTF-16 units are aligned with those of the match.
        let before = found.start.min(2 * BEFORE) / 2 * 2;
        let end = bytes.len().min(found.start + 2 * AFTER);
        let shown = &bytes[found.start - before..end];
        let (Kinds::Text(text, _) | Kinds::Regex(text, _)) = &self.kind else {
            return String::new();
        };
        let decoded = decodings(shown).find_map(|decoded| {
            let found = text.find(&decoded)?.range();
            Some(excerpt(&decoded, found).1)
        });
        let decoded = decoded.unwrap_or_else(|| String::from_utf8_lossy(shown).into_owned());
        // The excerpt may begin or end in the middle of a character.
        decoded.trim_matches(char::REPLACEMENT_CHARACTER).to_owned()
    }
}

/// Decodes bytes as UTF-8, as Latin-1, and as UTF-16 in both byte orders.
fn decodings(bytes: &[u8]) -> impl Iterator<Item = String> {
    let decode: [fn(&[u8]) -> String; 4] = [
        |bytes| String::from_utf8_lossy(bytes).into_owned(),
        |bytes| bytes.iter().map(|&byte| char::from(byte)).collect(),
        |bytes| utf16(bytes, u16::from_le_bytes),
        |bytes| utf16(bytes, u16::from_be_bytes),
    ];
    decode.into_iter().map(|decode| decode(bytes))
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    let chars = char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER));
    chars.collect()
}

/// Returns the number of characters before a match, and the text around it.
fn excerpt(text: &str, found: Range<usize>) -> (u64, String) {
    let before = &text[..found.start];
    let skipped = before.char_indices().rev().nth(BEFORE - 1);
    let start = skipped.map_or(0, |(at, _)| at);
    let mut rest = text[found.start..].char_indices();
    let end = rest
        .nth(AFTER)
        .map_or(text.len(), |(at, _)| found.start + at);
    let mut excerpt = String::new();
    if start > 0 {
        excerpt.push('…');
    }
    excerpt += &text[start..end];
    if end < text.len() {
        excerpt.push('…');
    }
    (before.chars().count() as u64, excerpt)
}

/// Returns, for each object, the field that holds it: the last field of an application class on the shortest path. If
/// the path has no such field, returns its last field. `None` for unreachable objects and for objects that GC roots
/// hold directly.
///
/// # Errors
/// Returns an error if memory runs out.
pub fn holding_fields(
    snapshot: &Snapshot,
    objects: &[ObjectIndex],
    progress: &dyn Progress,
) -> hprof::Result<Vec<Option<String>>> {
    let paths = snapshot.paths(objects, &PathOptions::default(), progress)?;
    let is_own = |class: ClassIndex| is_application_class_name(&snapshot.classes()[class].name);
    let fields = paths.last_fields(objects, is_own).into_iter();
    Ok(fields
        .map(|field| field.map(|via| snapshot.via_name(via)))
        .collect())
}

#[cfg(test)]
mod tests {
    use hprof::{Options, Silent, Source};
    use testdata::writer::{Elements, HeapBuilder, Options as Written, Root, Value};

    use super::*;

    #[test]
    fn all_strings_of_a_shared_array_are_found() {
        let mut heap = HeapBuilder::new(Written::default());
        let string = heap.boot().string;
        let value = heap.add_primitive_array(Elements::Byte(b"secret".to_vec()));
        for _ in 0..3000 {
            let string = heap.add_instance(string, &[value.into(), Value::Byte(0)]);
            heap.add_root(Root::JniGlobal { global_ref: 1 }, string);
        }
        let source = Source::from_bytes(heap.build());
        let snapshot = Snapshot::of(source, &Options::default(), &Silent).unwrap();
        let own = AgentObjects::find(&snapshot);
        for pattern in ["secret", "/sec/", "hex:736563"] {
            let pattern = pattern.parse().unwrap();
            let found = find_contents(&snapshot, &own, &pattern, &Silent);
            assert_eq!(found.len(), 3000, "{pattern:?}");
        }
    }

    #[test]
    fn patterns_are_checked() {
        let parsed = |text: &str| text.parse::<ContentPattern>().map(|p| p.written);
        for good in ["a", "/a+/", "hex:ca fe", "/", "//", "hex", "größe"] {
            assert_eq!(parsed(good).as_deref(), Ok(good));
        }
        for bad in ["", "hex:", "hex:abc", "hex:zz", "/(/"] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn excerpts_are_cut_at_characters() {
        let long = "ä".repeat(100);
        let (offset, text) = excerpt(&format!("{long}x{long}"), 200..201);
        assert_eq!(offset, 100);
        assert_eq!(text.chars().count(), 1 + BEFORE + AFTER + 1);
        assert_eq!(excerpt("axb", 1..2), (1, "axb".to_owned()));
    }

    #[test]
    fn a_text_has_each_encoding_once() {
        assert_eq!(encodings("a"), [vec![b'a'], vec![b'a', 0], vec![0, b'a']]);
        let sharp = encodings("ß");
        assert_eq!(sharp[..2], [vec![0xc3, 0x9f], vec![0xdf]]);
        assert_eq!(encodings("漢").len(), 3);
    }
}
