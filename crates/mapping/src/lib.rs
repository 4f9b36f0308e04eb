//! ProGuard and R8 mappings, which restore the original names of classes, fields and methods.
//!
//! A mapping is read and checked as a whole. The members of a class are parsed when they are first needed.
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

/// The original names of a program, from the mappings that ProGuard and R8 write.
#[derive(Debug, Default)]
pub struct Mapping {
    text: Vec<u8>,
    classes: HashMap<Box<str>, Class>,
    /// Source files by the original names of classes, if the mapping contains them.
    files: HashMap<Box<str>, Box<str>>,
    hash: u64,
    fits: AtomicBool,
}

/// A class in the mapping.
#[derive(Debug)]
struct Class {
    original: Box<str>,
    /// The range of its member lines in [`Mapping::text`].
    lines: std::ops::Range<usize>,
    members: OnceLock<Members>,
}

/// Marks after which a compiler or the JVM appends to a class name, as in `a.b$$Lambda` and `a.b/0x1`.
const SPUN: [&str; 2] = ["$$", "/"];

impl Mapping {
    /// Returns a hash of the mapping's content.
    #[must_use]
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns true if any requested name was found in the mapping.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.fits.load(Ordering::Relaxed)
    }

    /// Makes [`Mapping::fits`] return true.
    pub fn set_fits(&self) {
        self.fits.store(true, Ordering::Relaxed);
    }

    /// Returns the original name of a class, as in Java source. The class may be an array or be derived from another
    /// class (`a.b[]`, `a.b$$Lambda/0x1`). Returns `None` if the mapping does not contain it.
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

    /// Returns the original name of a field of the class with this name in the dump. `kind` is the field's type as in
    /// Java source, or `Object` for all references. It is needed because fields of several types may share one name.
    #[must_use]
    pub fn field(&self, class: &str, field: &str, kind: &str) -> Option<&str> {
        self.members(class)?.field(field, kind)
    }

    fn members(&self, class: &str) -> Option<&Members> {
        let class = self.classes.get(class)?;
        let lines = self.text.get(class.lines.clone())?;
        Some(class.members.get_or_init(|| Members::of(lines)))
    }

    /// Returns the original frames of a frame, the innermost first. There are several if methods were inlined. Returns
    /// `None` if the mapping does not contain the class.
    ///
    /// If the frame has no line, or a line that the mapping does not contain, several methods may match its name. The
    /// frame then gets all of their names: `add|remove`.
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

    /// Returns the source file of `class` for a frame whose class has the original name `own`.
    fn file(&self, class: &str, own: &str, frame: &Frame<'_>) -> Option<Cow<'static, str>> {
        if let Some(file) = self.files.get(class) {
            return Some(Cow::Owned(file.to_string()));
        }
        let known = frame.file.as_deref();
        // The frame has neither file nor line, so the dump has no debug information. Do not add a file.
        known.or(frame.line.map(|_| ""))?;
        let ends = [".java", ".kt", ".kts", ".scala", ".groovy", ".clj"];
        let end = known.and_then(|file| ends.into_iter().find(|end| file.ends_with(end)));
        let simple = |class: &str| {
            let last = class.rsplit('.').next().unwrap_or(class);
            last.split('$').next().unwrap_or(last).to_owned()
        };
        // The shrinker kept the file name. It inserts only names without such an extension.
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
