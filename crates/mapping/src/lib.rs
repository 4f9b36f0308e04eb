//! ProGuard and R8 mappings: the names that classes, fields and methods had before they were shortened.
//!
//! A mapping is read and checked whole; the members of a class are looked at when they are first asked for.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod frames;
mod members;
mod read;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

pub use frames::Frame;
pub use read::MappingError;

use members::Members;

/// The names of a program before they were shortened, from the mappings that ProGuard and R8 write.
#[derive(Debug, Default)]
pub struct Mapping {
    text: Vec<u8>,
    classes: HashMap<Box<str>, Class>,
    /// Source files by the original names of classes, where the mapping tells them.
    files: HashMap<Box<str>, Box<str>>,
    hash: u64,
    fits: AtomicBool,
}

/// A class as the mapping has it.
#[derive(Debug)]
struct Class {
    original: Box<str>,
    /// The lines of its members, in [`Mapping::text`].
    lines: std::ops::Range<usize>,
    members: OnceLock<Members>,
}

/// What lies between a class's name and what a compiler or the JVM puts behind it.
const SPUN: [&str; 2] = ["$$", "/"];

impl Mapping {
    /// A number that tells this mapping from others.
    #[must_use]
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// Whether any name that was asked for is in the mapping.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.fits.load(Ordering::Relaxed)
    }

    /// Has [`Mapping::fits`] say that a name was found.
    pub fn set_fits(&self) {
        self.fits.store(true, Ordering::Relaxed);
    }

    /// The original name of a class, an array class or a class that was spun from one (`a.b[]`, `a.b$$Lambda/0x1`), as in
    /// Java source. `None` where the mapping does not have it.
    #[must_use]
    pub fn class(&self, name: &str) -> Option<String> {
        let element = name.trim_end_matches("[]");
        let (host, rest) = if self.classes.contains_key(element) {
            (element, "")
        } else {
            element.split_at(SPUN.iter().filter_map(|mark| element.find(mark)).min()?)
        };
        let original = &self.classes.get(host)?.original;
        self.set_fits();
        Some(format!("{original}{rest}{}", &name[element.len()..]))
    }

    /// The original name of a field of the class with this name in the dump. `kind` is the field's type as in Java
    /// source, `Object` for all references: fields of several types may have one name.
    #[must_use]
    pub fn field(&self, class: &str, field: &str, kind: &str) -> Option<&str> {
        self.members(class)?.field(field, kind)
    }

    fn members(&self, class: &str) -> Option<&Members> {
        let class = self.classes.get(class)?;
        let lines = self.text.get(class.lines.clone())?;
        Some(class.members.get_or_init(|| Members::of(lines)))
    }

    /// The frames that a frame stands for, the innermost first: more than one where methods were inlined. `None` where
    /// the mapping does not have the class.
    ///
    /// Where the frame has no line, or one that the mapping does not have, and several methods have its name, the frame
    /// has the names of all: `add|remove`.
    #[must_use]
    pub fn frames(&self, frame: &Frame<'_>) -> Option<Vec<Frame<'static>>> {
        let original = self.class(&frame.class)?;
        let found = match self.members(&frame.class) {
            Some(members) => members.frames(&frame.method, frame.line),
            None => Vec::new(),
        };
        let file = |class: &str| self.file(class, &original, frame);
        if found.is_empty() {
            return Some(vec![Frame {
                file: file(&original),
                method: Cow::Owned(frame.method.clone().into_owned()),
                line: frame.line,
                class: Cow::Owned(original.clone()),
            }]);
        }
        let frames = found.into_iter().map(|place| {
            let class = place.class.unwrap_or(&original).to_owned();
            Frame {
                file: file(&class),
                method: Cow::Owned(place.method.into_owned()),
                line: place.line,
                class: Cow::Owned(class),
            }
        });
        Some(frames.collect())
    }

    /// The source file of a class, in the place of a frame of the class `own`.
    fn file(&self, class: &str, own: &str, frame: &Frame<'_>) -> Option<Cow<'static, str>> {
        if let Some(file) = self.files.get(class) {
            return Some(Cow::Owned(file.to_string()));
        }
        let known = frame.file.as_deref();
        // Without lines and files nothing is known of files at all.
        known.or(frame.line.map(|_| ""))?;
        let ends = [".java", ".kt", ".kts", ".scala", ".groovy", ".clj"];
        let end = known.and_then(|file| ends.into_iter().find(|end| file.ends_with(end)));
        let simple = |class: &str| {
            let last = class.rsplit('.').next().unwrap_or(class);
            last.split('$').next().unwrap_or(last).to_owned()
        };
        // The file's name was left as it was; any other is what the mapping's maker put in its place.
        if let (Some(file), Some(_)) = (known, end)
            && simple(class) == simple(own)
        {
            return Some(Cow::Owned(file.to_owned()));
        }
        let name = simple(class);
        Some(Cow::Owned(match name.strip_suffix("Kt") {
            Some(stem) if !stem.is_empty() => format!("{stem}.kt"),
            _ => name + end.unwrap_or(".java"),
        }))
    }
}

#[cfg(test)]
mod tests;
