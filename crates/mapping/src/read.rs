//! Reads mappings. Checks each line, but parses only the lines of classes. The lines of fields and methods are parsed
//! later.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::OnceLock;

use proguard::ProguardRecord;
use twox_hash::XxHash3_64;

use crate::{Class, Mapping};

/// Maximum line number in a mapping. Line numbers in class files have 16 bits, but shrinkers write larger ones, too.
const LAST_LINE: usize = 1 << 30;
/// The UTF-8 byte order mark, which some editors write at the start of a file.
const MARK: &[u8] = b"\xef\xbb\xbf";
/// Maximum number of characters of an invalid line that an error message shows.
const SHOWN: usize = 80;

/// The reason why a file is not a mapping.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MappingError {
    /// A line is neither a class, nor a field or method, nor a comment.
    #[error("line {number} is not a class, a member or a comment: {line}")]
    Line {
        /// The line's number, from 1.
        number: usize,
        /// The line, truncated if it is long.
        line: String,
    },
    /// A field or method comes before any class.
    #[error("line {number} is a member, but no class comes before it: {line}")]
    NoClass {
        /// The line's number, from 1.
        number: usize,
        /// The line.
        line: String,
    },
    /// A line number is too large.
    #[error("line {number} of the file contains an invalid source line number: {line}")]
    TooManyLines {
        /// The line's number, from 1.
        number: usize,
        /// The line.
        line: String,
    },
    /// The file contains no class.
    #[error("it contains no class; a mapping has lines such as `com.acme.Foo -> a.b:`")]
    Empty,
}

impl Mapping {
    /// Reads the mappings of a program: one for the whole program, or one for each part. If two mappings contain the
    /// same class, the first one is used.
    ///
    /// Memory: the text, about 100 bytes for each class, and the parsed members of classes that were requested.
    ///
    /// # Errors
    /// Returns an error if one of `texts` is not a mapping. The error contains its index.
    pub fn new(texts: impl IntoIterator<Item = Vec<u8>>) -> Result<Self, (usize, MappingError)> {
        let mut this = Self::default();
        let mut hashes: Vec<u8> = Vec::new();
        for (number, text) in texts.into_iter().enumerate() {
            hashes.extend(XxHash3_64::oneshot(&text).to_le_bytes());
            this.add(text).map_err(|error| (number, error))?;
        }
        this.hash = XxHash3_64::oneshot(&hashes);
        Ok(this)
    }

    fn add(&mut self, text: Vec<u8>) -> Result<(), MappingError> {
        let base = self.text.len();
        let mut open: Option<(Box<str>, Class)> = None;
        let mut at = if text.starts_with(MARK) {
            MARK.len()
        } else {
            0
        };
        let mut any = false;
        // True until the first field or method of a class. A comment before that is about the class.
        let mut of_class = false;
        for (number, whole) in (1..).zip(text[at..].split_inclusive(|&b| b == b'\n')) {
            let start = base + at;
            at += whole.len();
            let line = whole.trim_ascii_end();
            let shown = || shown(line);
            if line.is_empty() {
                continue;
            }
            if line.trim_ascii_start().starts_with(b"#") {
                if let Some((_, class)) = open.as_mut().filter(|_| of_class)
                    && let Some(file) = source_file(line)
                {
                    let class = class.original.clone();
                    self.files.entry(class).or_insert_with(|| file.into());
                }
                continue;
            }
            let record = ProguardRecord::try_parse(line).map_err(|_| MappingError::Line {
                number,
                line: shown(),
            })?;
            match record {
                ProguardRecord::Class {
                    original,
                    obfuscated,
                } => {
                    close(&mut self.classes, open.take(), start);
                    let class = Class {
                        original: original.into(),
                        lines: base + at..base + at,
                        members: OnceLock::new(),
                    };
                    open = Some((obfuscated.into(), class));
                    (any, of_class) = (true, true);
                }
                _ if open.is_none() => {
                    let line = shown();
                    return Err(MappingError::NoClass { number, line });
                }
                ProguardRecord::Method { line_mapping, .. } => {
                    of_class = false;
                    let all = line_mapping.map_or([None; 4], |l| {
                        [
                            l.startline,
                            l.endline,
                            l.original_startline,
                            l.original_endline,
                        ]
                    });
                    if all.iter().flatten().any(|&n| n > LAST_LINE) {
                        let line = shown();
                        return Err(MappingError::TooManyLines { number, line });
                    }
                }
                _ => of_class = false,
            }
        }
        close(&mut self.classes, open, base + at);
        if self.text.is_empty() {
            self.text = text
        } else {
            self.text.extend_from_slice(&text)
        }
        if any {
            Ok(())
        } else {
            Err(MappingError::Empty)
        }
    }
}

/// Adds the class `open` to `classes`, unless the map already has a class with this name. `end` is the end of the
/// class's lines in the text of the mapping.
fn close(classes: &mut HashMap<Box<str>, Class>, open: Option<(Box<str>, Class)>, end: usize) {
    if let Some((name, mut class)) = open {
        class.lines.end = end;
        if let Entry::Vacant(place) = classes.entry(name) {
            place.insert(class);
        }
    }
}

/// Returns the file name in a comment such as `# {"id":"sourceFile","fileName":"Foo.kt"}`.
fn source_file(comment: &[u8]) -> Option<&str> {
    let json = str::from_utf8(comment).ok()?;
    json.contains("\"sourceFile\"").then_some(())?;
    let (_, value) = json.split_once("\"fileName\"")?;
    let value = value.trim_start().strip_prefix(':')?.trim_start();
    let (file, _) = value.strip_prefix('"')?.split_once('"')?;
    // For classes that R8 created itself, R8 writes a placeholder instead of a file name.
    (!file.is_empty() && !file.contains(['\\', '$'])).then_some(file)
}

fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let mut shown: String = text
        .chars()
        .take(SHOWN)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}
