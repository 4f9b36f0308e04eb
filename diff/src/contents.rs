//! Finds strings and arrays by their content.

use std::collections::BTreeMap;
use std::ops::Range;
use std::str::FromStr;

use hprof::answers::{ArrayView, Content, PathOptions, Step, Via};
use hprof::records::Kind;
use hprof::{ClassIndex, ObjectIndex, Progress, Snapshot};
use rayon::prelude::*;
use regex::{Regex, bytes};

use crate::ignore::pattern;
use crate::names::is_application_class_name;
use crate::samples::AgentObjects;

/// Number of objects that are read at a time.
const CHUNK: usize = 1 << 12;
/// Maximum number of strings that are checked for one array. Strings seldom share an array.
const SHARING: usize = 64;
/// Number of characters before a match in an excerpt.
const BEFORE: usize = 20;
/// Number of characters of an excerpt from the start of the match on.
const AFTER: usize = 60;
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

/// A string or an array that matches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContentMatch {
    /// The object.
    pub object: ObjectIndex,
    /// Index of the first match: in characters for strings and `char[]`, in bytes for `byte[]`.
    pub offset: u64,
    /// The content around the first match: text, or bytes in hexadecimal for a pattern of bytes.
    pub excerpt: String,
}

/// Finds the strings that contain the pattern, and the `byte[]` and `char[]` that contain it and belong to no string. The
/// strings come first, in the order of the dump. The agent's objects are left out. A pattern of bytes matches only
/// `byte[]`, and the strings to which they belong.
///
/// Cost: reads all arrays of these types, and the strings and other referrers of those that match.
#[must_use]
pub fn find_contents(
    snapshot: &Snapshot,
    agent_objects: &AgentObjects,
    pattern: &ContentPattern,
    progress: &dyn Progress,
) -> Vec<ContentMatch> {
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
    let found: Vec<ContentMatch> = arrays
        .par_chunks(CHUNK)
        .flat_map_iter(|chunk| {
            let records = snapshot.read_all(chunk).into_iter().flatten();
            let matches = records.filter_map(|record| match record.content {
                Content::Array(array) => {
                    let (offset, excerpt) = pattern.find_in(&array)?;
                    Some(ContentMatch {
                        object: record.object,
                        offset,
                        excerpt,
                    })
                }
                _ => None,
            });
            matches.collect::<Vec<_>>()
        })
        .collect();
    let mut matches = with_strings(snapshot, pattern, found);
    matches.retain(|found| !agent_objects.contains(found.object));
    matches.sort_by_key(|found| found.object);
    matches
}

/// Replaces arrays that belong to strings by the strings, if these match.
fn with_strings(
    snapshot: &Snapshot,
    pattern: &ContentPattern,
    arrays: Vec<ContentMatch>,
) -> Vec<ContentMatch> {
    let objects: Vec<ObjectIndex> = arrays.iter().map(|found| found.object).collect();
    let referrers = snapshot.referrers(&objects, SHARING, &[]);
    let is_value = |via: Via| snapshot.via_name(via) == "java.lang.String.value";
    let (mut matches, mut strings) = (Vec::new(), Vec::new());
    for (array, referrers) in arrays.into_iter().zip(referrers) {
        let own = referrers.list.iter().filter(|r| is_value(r.via));
        let before = strings.len();
        strings.extend(own.map(|r| (r.from, array.clone())));
        if strings.len() == before {
            matches.push(array);
        }
    }
    let text = match &pattern.kind {
        Kinds::Text(text, _) | Kinds::Regex(text, _) => text,
        Kinds::Bytes(_) => {
            // The array matches, whatever its string means.
            let named = strings.into_iter();
            matches.extend(named.map(|(object, array)| ContentMatch { object, ..array }));
            return matches;
        }
    };
    let checked = strings.par_chunks(CHUNK).flat_map_iter(|chunk| {
        let objects: Vec<ObjectIndex> = chunk.iter().map(|(string, _)| *string).collect();
        let texts = snapshot.strings(&objects, usize::MAX);
        let found = objects
            .into_iter()
            .zip(texts)
            .filter_map(|(object, string)| {
                let string = string?;
                let (offset, excerpt) = excerpt(&string, text.find(&string)?.range());
                Some(ContentMatch {
                    object,
                    offset,
                    excerpt,
                })
            });
        found.collect::<Vec<_>>()
    });
    matches.par_extend(checked);
    matches
}

impl ContentPattern {
    /// Returns the place of the first match, and an excerpt.
    fn find_in(&self, array: &ArrayView<'_>) -> Option<(u64, String)> {
        let bytes = array.bytes();
        match &self.kind {
            Kinds::Bytes(raw) => {
                let at = raw.find(bytes)?.start();
                let shown = &bytes[at..bytes.len().min(at + BYTES)];
                let hex = shown.iter().map(|byte| format!("{byte:02x}")).collect();
                Some((at as u64, hex))
            }
            Kinds::Text(text, raw) if array.kind == Kind::Byte => {
                let at = raw.find(bytes)?.start();
                // The match may be in any encoding. The excerpt is in the one that shows it.
                let decoded = decodings(bytes).find_map(|decoded| {
                    let (_, excerpt) = excerpt(&decoded, text.find(&decoded)?.range());
                    Some(excerpt)
                });
                Some((at as u64, decoded?))
            }
            Kinds::Regex(text, raw) if array.kind == Kind::Byte => {
                if let Some(found) = raw.find(bytes) {
                    let shown = window(bytes, found.range());
                    let excerpt = String::from_utf8_lossy(shown).into_owned();
                    return Some((found.start() as u64, excerpt));
                }
                let other = decodings(bytes).skip(1).enumerate();
                let mut other = other.filter_map(|(encoding, decoded)| {
                    let (at, excerpt) = excerpt(&decoded, text.find(&decoded)?.range());
                    let width = if encoding == 0 { 1 } else { 2 };
                    Some((at * width, excerpt))
                });
                other.next()
            }
            Kinds::Text(text, _) | Kinds::Regex(text, _) => {
                let decoded = utf16(bytes, u16::from_be_bytes);
                Some(excerpt(&decoded, text.find(&decoded)?.range()))
            }
        }
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

fn window(bytes: &[u8], found: Range<usize>) -> &[u8] {
    let start = found.start.saturating_sub(BEFORE);
    &bytes[start..bytes.len().min(found.start + AFTER)]
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

/// Returns the field that holds each object: the last field of an application class on the shortest path. If the path
/// has no such field, its last field. `None` for unreachable objects and those that GC roots hold.
///
/// # Errors
/// If there is not enough memory.
pub fn holding_fields(
    snapshot: &Snapshot,
    objects: &[ObjectIndex],
    progress: &dyn Progress,
) -> hprof::Result<Vec<Option<String>>> {
    let paths = snapshot.paths(objects, &PathOptions::default(), progress)?;
    let mut names: BTreeMap<(ClassIndex, bool, u16), String> = BTreeMap::new();
    let field = |step: &Step| match step.via? {
        Via::Field(class, place) => Some((class, false, place)),
        Via::Static(class, place) => Some((class, true, place)),
        _ => None,
    };
    let mut name = |via: (ClassIndex, bool, u16)| {
        let (class, is_static, place) = via;
        let new = || {
            snapshot.via_name(if is_static {
                Via::Static(class, place)
            } else {
                Via::Field(class, place)
            })
        };
        names.entry(via).or_insert_with(new).clone()
    };
    let holder = |object: &ObjectIndex| {
        let path = paths.path(snapshot, *object)?;
        let fields: Vec<_> = path.steps[path.begin..].iter().filter_map(field).collect();
        let is_own = |via: &&(ClassIndex, bool, u16)| {
            is_application_class_name(&snapshot.classes()[via.0].name)
        };
        let own = fields.iter().rev().find(is_own).or(fields.last());
        own.map(|via| name(*via))
    };
    Ok(objects.iter().map(holder).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

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
