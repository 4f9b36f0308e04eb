//! ProGuard and R8 mappings, which restore the original names of classes, fields and methods.
//!
//! A mapping is read and checked completely at once. But the members of a class are parsed only when they are first
//! needed.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod members;
mod read;

use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

pub use read::MappingError;

use hprof::NameMapping;
use hprof::answers::{Frame, Line};

use members::Members;

/// The original names of a program, from the mappings that ProGuard and R8 write.
#[derive(Debug, Default)]
pub struct Mapping {
    text: Vec<u8>,
    classes: HashMap<Box<str>, Class>,
    /// Maps the original name of a class to its source file. Contains only classes for which the mapping has a source
    /// file.
    files: HashMap<Box<str>, Box<str>>,
    hash: u64,
    fits: AtomicBool,
}

/// A class in the mapping.
#[derive(Debug)]
struct Class {
    original: Box<str>,
    /// The byte range in [`Mapping::text`] with the lines of the class's members.
    lines: std::ops::Range<usize>,
    members: OnceLock<Members>,
}

/// The beginnings of suffixes that a compiler or the JVM appends to class names, as in `a.b$$Lambda` and `a.b/0x1`.
const SPUN: [&str; 2] = ["$$", "/"];

impl NameMapping for Mapping {
    fn class(&self, name: &str) -> Option<String> {
        let element = name.trim_end_matches("[]");
        let (host, rest) = if self.classes.contains_key(element) {
            (element, "")
        } else {
            element.split_at(SPUN.iter().filter_map(|mark| element.find(mark)).min()?)
        };
        let original = &self.classes.get(host)?.original;
        self.set_used();
        Some(format!("{original}{rest}{}", &name[element.len()..]))
    }

    fn field(&self, class: &str, field: &str, kind: &str) -> Option<&str> {
        self.members(class)?.field(field, kind)
    }

    fn frames(&self, frame: &Frame) -> Option<Vec<Frame>> {
        let original = self.class(&frame.class)?;
        let line = match frame.line {
            Line::Number(line) => Some(line as usize),
            _ => None,
        };
        let found = match self.members(&frame.class) {
            Some(members) => members.frames(&frame.method, line),
            None => Vec::new(),
        };
        if found.is_empty() {
            return Some(vec![Frame {
                file: self.file(&original, &original, frame),
                method: frame.method.clone(),
                line: frame.line,
                class: original,
            }]);
        }
        let frames = found.into_iter().map(|place| {
            let class = place.class.unwrap_or(&original).to_owned();
            Frame {
                file: self.file(&class, &original, frame),
                method: place.method.into_owned(),
                line: match place.line.map(u32::try_from) {
                    Some(Ok(line)) => Line::Number(line),
                    _ if line.is_some() => Line::Unknown,
                    _ => frame.line,
                },
                class,
            }
        });
        Some(frames.collect())
    }

    fn hash(&self) -> u64 {
        self.hash
    }

    fn fits(&self) -> bool {
        self.fits.load(Ordering::Relaxed)
    }

    fn set_used(&self) {
        self.fits.store(true, Ordering::Relaxed);
    }
}

impl Mapping {
    fn members(&self, class: &str) -> Option<&Members> {
        let class = self.classes.get(class)?;
        let lines = self.text.get(class.lines.clone())?;
        Some(class.members.get_or_init(|| Members::parse(lines)))
    }

    /// Returns the source file of an original method. `frame` is the frame in the dump, and `own` is the original name
    /// of its class. `class` is the original name of the class that declares the method. The two classes may differ,
    /// for example if the shrinker inlined the method.
    fn file(&self, class: &str, own: &str, frame: &Frame) -> Option<String> {
        if let Some(file) = self.files.get(class) {
            return Some(file.to_string());
        }
        let known = frame.file.as_deref();
        // If the frame has neither a file name nor a line number, the dump has no debug information. Then return no
        // file name, not even one that is derived from the class.
        known.or(matches!(frame.line, Line::Number(_)).then_some(""))?;
        let ends = [".java", ".kt", ".kts", ".scala", ".groovy", ".clj"];
        let end = known.and_then(|file| ends.into_iter().find(|end| file.ends_with(end)));
        let simple = |class: &str| {
            let last = class.rsplit('.').next().unwrap_or(class);
            last.split('$').next().unwrap_or(last).to_owned()
        };
        // A file name with a known extension is the original file name, because names that a shrinker invents have no
        // such extension.
        if let (Some(file), Some(_)) = (known, end)
            && simple(class) == simple(own)
        {
            return Some(file.to_owned());
        }
        let name = simple(class);
        Some(match name.strip_suffix("Kt") {
            Some(stem) if !stem.is_empty() => format!("{stem}.kt"),
            _ => name + end.unwrap_or(".java"),
        })
    }
}

#[cfg(test)]
mod tests;
