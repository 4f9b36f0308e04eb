//! Selectors: the words by which users name objects, and the objects that they name.

use std::borrow::Cow;
use std::str::FromStr;

use rayon::prelude::*;
use regex::Regex;

use crate::answers::objects::named::{similar, simple_name};
use crate::answers::objects::select_error::SelectError;
use crate::ids::{ClassIndex, ObjectId, ObjectIndex};
use crate::records::outline::Segment;
use crate::records::record::Kind;
use crate::records::walk::{self, Object, Visitor};
use crate::sizes::shape::Shape;
use crate::snapshot::Snapshot;

/// The class of class objects.
const CLASS: &str = "java.lang.Class";
/// Maximum number of similar names that an error lists.
pub(super) const SUGGESTIONS: usize = 5;
/// Maximum number of subclasses that an error lists.
const SUBCLASSES: usize = 3;
/// Number of objects that one task scans.
const CHUNK: usize = 1 << 16;
/// Number of neighbouring objects that are checked together if at most [`FEW`] classes are wanted. The check shows if
/// these objects can include an instance of the classes.
const STRETCH: usize = 1 << 9;
const FEW: usize = 3;

/// A selector, which names objects of a dump.
#[derive(Clone, Debug)]
pub enum Selector {
    /// `0x7f0012345678`: the object with this id.
    Address(ObjectId),
    /// `com.acme.Foo`: all instances of the class. `com.acme.Foo.field`: the value of a static field, or the values of
    /// the field in all instances. `com.acme.Foo[*]`: the elements of all arrays. `com.acme.Foo.run(Foo.java:42)` or
    /// `local variable of com.acme.Foo.run`: the objects in local variables of these frames. Otherwise the name of a
    /// thread.
    Name(String),
    /// `class com.acme.Foo` or `static com.acme.Foo`: the class object.
    ClassObject(String),
    /// `/regex/`: all instances of the classes whose names match.
    Pattern(Regex),
}

/// An error in the text of a selector, found without reading a dump.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseSelectorError {
    /// The selector is empty.
    #[error("the selector is empty: give an address, a class, a field or a /regex/")]
    Empty,
    /// The selector begins like an address but is not one.
    #[error("{0} is not an address: 0x must be followed by at most 16 hexadecimal digits")]
    Address(String),
    /// The regular expression cannot be used.
    #[error("{pattern}: {reason}")]
    Pattern {
        /// The regular expression.
        pattern: String,
        /// The reason why the regular expression cannot be used.
        reason: String,
    },
}

impl FromStr for Selector {
    type Err = ParseSelectorError;

    fn from_str(text: &str) -> Result<Self, ParseSelectorError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(ParseSelectorError::Empty);
        }
        if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            return u64::from_str_radix(digits, 16)
                .map(|id| Self::Address(ObjectId(id)))
                .map_err(|_| ParseSelectorError::Address(text.to_owned()));
        }
        if let Some(inner) = text.strip_prefix('/').and_then(|t| t.strip_suffix('/')) {
            return match Regex::new(inner) {
                _ if inner.is_empty() => Err(ParseSelectorError::Empty),
                Ok(regex) => Ok(Self::Pattern(regex)),
                Err(e) => Err(ParseSelectorError::Pattern {
                    pattern: text.to_owned(),
                    reason: reason(&e),
                }),
            };
        }
        let class = text
            .strip_prefix("class ")
            .or_else(|| text.strip_prefix("static "));
        Ok(match class {
            Some(name) => Self::ClassObject(name.trim_start().to_owned()),
            None => Self::Name(text.to_owned()),
        })
    }
}

/// Returns the last line of an error message of the regex crate. The last line has the reason. The lines before it show
/// the position in the expression.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

impl std::fmt::Display for Selector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Address(id) => id.fmt(f),
            Self::Name(name) => f.write_str(name),
            Self::ClassObject(name) => write!(f, "class {name}"),
            Self::Pattern(regex) => write!(f, "/{regex}/"),
        }
    }
}

/// The objects that a selector names in a dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selected {
    /// One object.
    Object(ObjectIndex),
    /// The values of a field of instances, the elements of arrays, or local variables: a sorted list of at least one
    /// object, without duplicates.
    Values(Vec<ObjectIndex>),
    /// All instances of these classes, sorted.
    Classes(Vec<ClassIndex>),
}

impl Snapshot {
    /// Returns the objects that a selector names, sorted and without duplicates. The result has at least one object.
    ///
    /// Cost: as [`Snapshot::resolve`]. For classes, also one look-up of the class of every object.
    ///
    /// # Errors
    /// If the selector names no object.
    pub fn select(&self, selector: &Selector) -> Result<Vec<ObjectIndex>, SelectError> {
        self.selected(selector, self.resolve(selector)?)
    }

    /// Returns the objects of a resolved selector, sorted and without duplicates. The result has at least one object.
    ///
    /// # Errors
    /// If the classes have no instances.
    pub fn selected(
        &self,
        selector: &Selector,
        selected: Selected,
    ) -> Result<Vec<ObjectIndex>, SelectError> {
        match selected {
            Selected::Object(object) => Ok(vec![object]),
            Selected::Values(objects) => Ok(objects),
            Selected::Classes(classes) => {
                let objects = self.instances(&classes);
                if objects.is_empty() {
                    return Err(self.no_instances(selector, &classes));
                }
                Ok(objects)
            }
        }
    }

    /// Resolves a selector without listing the instances of classes.
    ///
    /// Cost: if the selector is an address without an object, a pass over the file finds the nearest objects. For a
    /// field of instances, the class of every object is looked up, and the pieces of the file (about a megabyte each)
    /// that contain the instances are read.
    ///
    /// # Errors
    /// If the selector names no object and no class.
    pub fn resolve(&self, selector: &Selector) -> Result<Selected, SelectError> {
        self.resolve_printed(selector, &|name| Cow::Borrowed(name))
    }

    /// Resolves a selector that may use printed class names. `printed` returns the printed name for a name in the dump.
    /// For example, reports print `Foo$$Lambda` for `Foo$$Lambda/0x00007f12`. See [`Snapshot::resolve`].
    ///
    /// # Errors
    /// If the selector names no object and no class.
    pub fn resolve_printed(
        &self,
        selector: &Selector,
        printed: &dyn Fn(&str) -> Cow<'_, str>,
    ) -> Result<Selected, SelectError> {
        match selector {
            Selector::Address(id) => match self.find(*id) {
                Some(object) => Ok(Selected::Object(object)),
                None => Err(self.no_object(*id)),
            },
            Selector::Name(name) => self.named(name, printed),
            Selector::ClassObject(name) => self.class_objects(name, printed),
            Selector::Pattern(regex) => {
                let classes = self.classes().iter();
                let matching: Vec<ClassIndex> = classes
                    .filter(|(_, c)| regex.is_match(&c.name))
                    .map(|(i, _)| i)
                    .collect();
                if matching.is_empty() {
                    return Err(self.no_match(regex));
                }
                Ok(Selected::Classes(matching))
            }
        }
    }

    fn no_match(&self, regex: &Regex) -> SelectError {
        let names = || self.classes().iter().map(|(_, c)| &*c.name);
        let caseless = regex::RegexBuilder::new(regex.as_str())
            .case_insensitive(true)
            .build();
        let mut found: Vec<String> = match caseless {
            Ok(caseless) => names()
                .filter(|name| caseless.is_match(name))
                .map(str::to_owned)
                .collect(),
            Err(_) => Vec::new(),
        };
        found.sort_unstable();
        found.dedup();
        found.truncate(SUGGESTIONS);
        if found.is_empty() {
            let literal = regex.as_str().trim_start_matches('^');
            let literal = literal.trim_end_matches('$').replace('\\', "");
            found = similar(&literal, names(), simple_name);
        }
        SelectError::NoMatch {
            pattern: regex.to_string(),
            similar: found,
        }
    }

    fn no_instances(&self, selector: &Selector, wanted: &[ClassIndex]) -> SelectError {
        let classes = self.classes();
        if let Selector::Pattern(regex) = selector {
            let mut names: Vec<String> = wanted
                .iter()
                .map(|&c| classes[c].name.to_string())
                .collect();
            names.sort_unstable();
            names.dedup();
            let count = names.len() as u64;
            names.truncate(SUGGESTIONS);
            return SelectError::NoneMatching {
                pattern: regex.to_string(),
                count,
                names,
            };
        }
        let below = |c: &ClassIndex| wanted.iter().any(|&w| classes.is_subclass(*c, w));
        let below: Vec<ClassIndex> = classes.iter().map(|(i, _)| i).filter(below).collect();
        let mut counts: std::collections::BTreeMap<&str, u64> = std::collections::BTreeMap::new();
        for object in self.instances(&below) {
            if let Some(class) = self.class_of(object) {
                *counts.entry(&*classes[class].name).or_default() += 1;
            }
        }
        let mut counts: Vec<(String, u64)> = counts
            .into_iter()
            .map(|(name, count)| (name.to_owned(), count))
            .collect();
        counts.sort_by_key(|c| std::cmp::Reverse(c.1));
        counts.truncate(SUBCLASSES);
        SelectError::NoInstances {
            class: selector.to_string(),
            subclasses: counts,
        }
    }

    pub(super) fn no_object(&self, id: ObjectId) -> SelectError {
        let near = |ids: &mut dyn Iterator<Item = u64>| {
            let mut near = NeighbourIds::new(id.0);
            ids.for_each(|other| near.see(other));
            near
        };
        let classes = self.classes().iter().take(self.classes().dumped());
        let classes = near(&mut classes.map(|(_, c)| c.id.0));
        let objects = self.pieces.par_iter().map(|piece| {
            let mut near = NeighbourIds::new(id.0);
            let Segment { start, end } = piece.segment;
            // Errors of the walk are ignored, because this damage was already reported when the dump was opened.
            let _ = walk::walk(self.source(), start, end, self.header().id_size, &mut near);
            near
        });
        let all = objects
            .reduce(|| NeighbourIds::new(id.0), NeighbourIds::merge)
            .merge(classes);
        SelectError::NoObject {
            id,
            before: all.before.map(ObjectId),
            after: all.after.map(ObjectId),
        }
    }

    /// Returns all instances of these classes, sorted. For `java.lang.Class`, this includes the class objects.
    ///
    /// Cost: one look-up of the class of every object, in parallel.
    #[must_use]
    pub fn instances(&self, classes: &[ClassIndex]) -> Vec<ObjectIndex> {
        let mut wanted = vec![false; self.classes().len()];
        for class in classes {
            wanted[class.index()] = true;
        }
        let is_wanted = |shape: u32| match self.shapes.decode(shape) {
            Shape::Instance(class)
            | Shape::Flattened(class)
            | Shape::Array(class, _)
            | Shape::ValueArray(class, _) => wanted[class.index()],
            Shape::ClassObject(_) => false,
        };
        let ranges = match classes.len() {
            0..=FEW => self.shapes.ranges_of(classes),
            _ => Vec::new(),
        };
        // If at most [`FEW`] classes are wanted, most groups of [`STRETCH`] neighbouring objects contain no instance of
        // these classes. Checking a whole group first is faster than checking each object.
        let may_have = |shapes: &[u32]| {
            let has = |range: &std::ops::Range<u32>| {
                let len = range.end - range.start;
                let within = |&shape: &u32| shape.wrapping_sub(range.start) < len;
                shapes.iter().fold(false, |any, shape| any | within(shape))
            };
            ranges.is_empty() || ranges.iter().any(has)
        };
        let in_run = |shapes: &[u32], first: u32| -> Vec<ObjectIndex> {
            let chunks = shapes.par_chunks(CHUNK).enumerate();
            let chunks = chunks.map(|(chunk, shapes)| -> Vec<ObjectIndex> {
                let numbers = first + (chunk * CHUNK) as u32..;
                let stretches = shapes.chunks(STRETCH).zip(numbers.step_by(STRETCH));
                let stretches = stretches.filter(|(shapes, _)| may_have(shapes));
                let hits = stretches.flat_map(|(shapes, first)| {
                    let hits = shapes.iter().zip(first..).filter(|s| is_wanted(*s.0));
                    hits.map(|(_, number)| ObjectIndex(number))
                });
                hits.collect()
            });
            chunks.flatten_iter().collect()
        };
        let mut all: Vec<ObjectIndex> = Vec::new();
        let class_objects = classes.iter().any(|&c| {
            let class = &self.classes()[c];
            class.loader.is_null() && &*class.name == CLASS
        });
        if class_objects {
            all.extend((0..self.split.classes).map(ObjectIndex));
        }
        all.append(&mut in_run(&self.inner_shapes, self.split.classes));
        all.append(&mut in_run(&self.leaf_shapes, self.split.inner));
        all
    }
}

/// The nearest ids before and after an id.
struct NeighbourIds {
    id: u64,
    before: Option<u64>,
    after: Option<u64>,
}

impl NeighbourIds {
    const fn new(id: u64) -> Self {
        Self {
            id,
            before: None,
            after: None,
        }
    }

    #[inline(always)]
    fn see(&mut self, other: u64) {
        if other < self.id {
            self.before = self.before.max(Some(other));
        } else {
            self.after = Some(self.after.map_or(other, |a| a.min(other)));
        }
    }

    fn merge(mut self, other: Self) -> Self {
        other
            .before
            .into_iter()
            .chain(other.after)
            .for_each(|id| self.see(id));
        self
    }
}

impl Visitor for NeighbourIds {
    #[inline(always)]
    fn instance(&mut self, object: Object, _: u64, _: &[u8]) {
        self.see(object.id);
    }
    #[inline(always)]
    fn object_array(&mut self, object: Object, _: u64, _: &[u8]) {
        self.see(object.id);
    }
    #[inline(always)]
    fn primitive_array(&mut self, object: Object, _: Kind, _: u32, _: &[u8]) {
        self.see(object.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_recognized_by_their_form() {
        let parse = |s: &str| s.parse::<Selector>();
        assert!(matches!(
            parse("0x7f00"),
            Ok(Selector::Address(ObjectId(0x7f00)))
        ));
        assert!(matches!(parse("com.acme.Foo"), Ok(Selector::Name(n)) if n == "com.acme.Foo"));
        assert!(matches!(parse("class a.B"), Ok(Selector::ClassObject(n)) if n == "a.B"));
        assert!(matches!(parse("/Foo$/"), Ok(Selector::Pattern(_))));
        assert_eq!(parse(" ").unwrap_err(), ParseSelectorError::Empty);
        assert_eq!(parse("//").unwrap_err(), ParseSelectorError::Empty);
        assert!(
            parse("0xzz")
                .unwrap_err()
                .to_string()
                .contains("hexadecimal")
        );
        let text = parse("/(/").unwrap_err().to_string();
        assert_eq!(text, "/(/: unclosed group");
    }
}
