//! What a user writes to name objects, and the objects that it names.

use std::str::FromStr;

use rayon::prelude::*;
use regex::Regex;

use crate::answers::objects::object::Value;
use crate::ids::{ClassIndex, ObjectId, ObjectIndex};
use crate::records::outline::Segment;
use crate::records::record::Kind;
use crate::records::walk::{self, Object, Visitor};
use crate::sizes::shape::Shape;
use crate::snapshot::Snapshot;

/// The class of class objects.
const CLASS: &str = "java.lang.Class";
/// How many similar names an error lists.
const SUGGESTIONS: usize = 5;
/// How many subclasses it lists.
const SUBCLASSES: usize = 3;
/// Objects scanned by one task.
const CHUNK: usize = 1 << 16;
/// Objects that are looked at together, and classes that are few.
const STRETCH: usize = 1 << 9;
const FEW: usize = 3;

/// Names objects of a dump.
#[derive(Clone, Debug)]
pub enum Selector {
    /// `0x7f0012345678`: the object with this id.
    Address(ObjectId),
    /// `com.acme.Foo`: all instances of the class; `com.acme.Foo.field`: what a static field holds.
    Name(String),
    /// `class com.acme.Foo`: the class object.
    ClassObject(String),
    /// `/regex/`: all instances of the classes whose names match.
    Pattern(Regex),
}

/// A selector that means nothing in any dump.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseSelectorError {
    /// There is nothing in it.
    #[error("the selector is empty: give an address, a class, a static field or a /regex/")]
    Empty,
    /// It begins like an address but is none.
    #[error("{0} is not an address: up to 16 hexadecimal digits follow 0x")]
    Address(String),
    /// The regular expression cannot be used.
    #[error("{pattern}: {reason}")]
    Pattern {
        /// The regular expression.
        pattern: String,
        /// The fault.
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
        Ok(match text.strip_prefix("class ") {
            Some(name) => Self::ClassObject(name.trim_start().to_owned()),
            None => Self::Name(text.to_owned()),
        })
    }
}

/// The last line of what the regex crate says, which is the reason without the drawing.
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

/// Why a selector names nothing in a dump.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectError {
    /// No object is at the address.
    #[error("no object at {id} in this dump{}", nearest(.before, .after))]
    NoObject {
        /// The address.
        id: ObjectId,
        /// The nearest object before it.
        before: Option<ObjectId>,
        /// The nearest object after it.
        after: Option<ObjectId>,
    },
    /// No class has the name.
    #[error("no class {name} in this dump{}", alternatives(.similar))]
    NoClass {
        /// The name.
        name: String,
        /// Classes with similar names, the most similar first.
        similar: Vec<String>,
    },
    /// No class matches the regular expression.
    #[error("no class in this dump matches /{pattern}/{}", alternatives(.similar))]
    NoMatch {
        /// The regular expression.
        pattern: String,
        /// Classes that match when case is ignored, or whose names are similar.
        similar: Vec<String>,
    },
    /// The class is there but has no instances.
    #[error("{class} has no instances in this dump{}", those_below(.subclasses))]
    NoInstances {
        /// The class.
        class: String,
        /// Its subclasses with most instances, with their number.
        subclasses: Vec<(String, u64)>,
    },
    /// Classes match the regular expression, but have no instances.
    #[error("no instances in this dump of what /{pattern}/ matches: {}", first_of(.names, *.count))]
    NoneMatching {
        /// The regular expression.
        pattern: String,
        /// How many classes match.
        count: u64,
        /// The first of them.
        names: Vec<String>,
    },
    /// The class has no such static field.
    #[error("{class} has no static field {field}{}", alternatives(.similar))]
    NoField {
        /// The class.
        class: String,
        /// The field.
        field: String,
        /// Its static fields with similar names.
        similar: Vec<String>,
    },
    /// The field belongs to the instances.
    #[error("{class}.{field} is a field of each instance; only static fields can be selected")]
    InstanceField {
        /// The class.
        class: String,
        /// The field.
        field: String,
    },
    /// The field holds no reference.
    #[error("{class}.{field} does not hold an object: it is of type {kind}")]
    Primitive {
        /// The class.
        class: String,
        /// The field.
        field: String,
        /// Its type.
        kind: &'static str,
    },
    /// The field is null.
    #[error("{class}.{field} is null")]
    Null {
        /// The class.
        class: String,
        /// The field.
        field: String,
    },
    /// The field's value leads to no object of the dump.
    #[error("{class}.{field} refers to {id}, where this dump has no object")]
    Dangling {
        /// The class.
        class: String,
        /// The field.
        field: String,
        /// Its value.
        id: ObjectId,
    },
}

fn nearest(before: &Option<ObjectId>, after: &Option<ObjectId>) -> String {
    match (before, after) {
        (Some(b), Some(a)) => format!("; the nearest are at {b} and {a}"),
        (Some(one), None) | (None, Some(one)) => format!("; the nearest is at {one}"),
        (None, None) => String::new(),
    }
}

fn alternatives(similar: &[String]) -> String {
    match similar {
        [] => String::new(),
        names => format!("; did you mean {}?", names.join(" or ")),
    }
}

fn those_below(list: &[(String, u64)]) -> String {
    let one = |(name, count): &(String, u64)| match count {
        1 => format!("{name} has 1"),
        _ => format!("{name} has {count}"),
    };
    match list {
        [] => String::new(),
        list => {
            let list: Vec<String> = list.iter().map(one).collect();
            format!("; of its subclasses {}", list.join(", "))
        }
    }
}

fn first_of(names: &[String], count: u64) -> String {
    let more = if count > names.len() as u64 {
        ", …"
    } else {
        ""
    };
    format!("{}{more}", names.join(", "))
}

/// The objects that a selector names in a dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selected {
    /// One object.
    Object(ObjectIndex),
    /// All instances of these classes, sorted.
    Classes(Vec<ClassIndex>),
}

impl Snapshot {
    /// The objects that a selector names, sorted, each once; never none.
    ///
    /// Cost: one look at each object's class for selectors that name classes. An address where no
    /// object is costs a pass over the file to name its neighbours.
    ///
    /// # Errors
    /// When it names no objects.
    pub fn select(&self, selector: &Selector) -> Result<Vec<ObjectIndex>, SelectError> {
        match self.resolve(selector)? {
            Selected::Object(object) => Ok(vec![object]),
            Selected::Classes(classes) => {
                let objects = self.instances(&classes);
                if objects.is_empty() {
                    return Err(self.no_instances(selector, &classes));
                }
                Ok(objects)
            }
        }
    }

    /// Resolves a selector without looking for instances.
    ///
    /// # Errors
    /// When it names no object and no class.
    pub fn resolve(&self, selector: &Selector) -> Result<Selected, SelectError> {
        match selector {
            Selector::Address(id) => match self.find(*id) {
                Some(object) => Ok(Selected::Object(object)),
                None => Err(self.no_object(*id)),
            },
            Selector::Name(name) => self.named(name),
            Selector::ClassObject(name) => {
                let class = self.classes().by_name(name).iter().copied();
                class
                    .map(|c| ObjectIndex(c.0))
                    .find(|&o| self.represents(o).is_some())
                    .map(Selected::Object)
                    .ok_or_else(|| self.no_class(name))
            }
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

    /// A class, or a class and a static field.
    fn named(&self, name: &str) -> Result<Selected, SelectError> {
        let classes = self.classes();
        let named = classes.by_name(name);
        if !named.is_empty() {
            return Ok(Selected::Classes(named.to_vec()));
        }
        match name.rsplit_once('.') {
            Some((class, field)) if !classes.by_name(class).is_empty() => {
                let mut found = self.static_object(class, field);
                // A field by its name in the dump.
                if let (Err(SelectError::NoField { .. }), Some(mapping)) = (&found, self.mapping())
                    && let Some(original) = mapping.field(class, field, "Object")
                {
                    found = self.static_object(class, original);
                }
                found.map(Selected::Object)
            }
            _ => Err(self.no_class(name)),
        }
    }

    /// What a static field holds; of several classes of the name, in the first that has the field
    /// set.
    fn static_object(&self, name: &str, field: &str) -> Result<ObjectIndex, SelectError> {
        let classes = self.classes();
        let mut error = None;
        for &class in classes.by_name(name) {
            // Subclasses see the static fields of their superclasses.
            let found = classes
                .chain(class)
                .find_map(|c| self.static_value(c, field));
            let (class, field) = (name.to_owned(), field.to_owned());
            let failure = match found {
                Some(Value::Object(_, Some(object))) => return Ok(object),
                Some(Value::Object(ObjectId::NULL, None)) => SelectError::Null { class, field },
                Some(Value::Object(id, None)) => SelectError::Dangling { class, field, id },
                Some(value) => SelectError::Primitive {
                    class,
                    field,
                    kind: value.kind().java_name(),
                },
                None => continue,
            };
            error.get_or_insert(failure);
        }
        Err(error.unwrap_or_else(|| self.no_field(name, field)))
    }

    fn no_field(&self, name: &str, field: &str) -> SelectError {
        let classes = self.classes();
        let chain = || classes.by_name(name).iter().flat_map(|&c| classes.chain(c));
        let (class, field) = (name.to_owned(), field.to_owned());
        if chain().any(|c| classes[c].fields.iter().any(|f| *f.name == *field)) {
            return SelectError::InstanceField { class, field };
        }
        let statics = chain().flat_map(|c| &classes[c].statics);
        let names = statics.filter(|s| s.kind == Kind::Object).map(|s| &*s.name);
        let similar = similar(&field, names, |name| name);
        SelectError::NoField {
            class,
            field,
            similar,
        }
    }

    fn no_class(&self, name: &str) -> SelectError {
        // `com.acme.Foo.field` with a wrong class: the class is what to look for, too.
        let names = || self.classes().iter().map(|(_, c)| &*c.name);
        let mut similar = similar(name, names(), simple_name);
        if similar.is_empty()
            && let Some((class, _)) = name.rsplit_once('.')
        {
            similar = self::similar(class, names(), simple_name);
        }
        SelectError::NoClass {
            name: name.to_owned(),
            similar,
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

    fn no_object(&self, id: ObjectId) -> SelectError {
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
            // Damage was reported when the dump was opened.
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

    /// All instances of these classes, sorted; with `java.lang.Class`, the class objects too.
    ///
    /// Cost: one look at each object's class, in parallel.
    #[must_use]
    pub fn instances(&self, classes: &[ClassIndex]) -> Vec<ObjectIndex> {
        let mut wanted = vec![false; self.classes().len()];
        for class in classes {
            wanted[class.index()] = true;
        }
        let is_wanted = |shape: u32| match self.shapes.decode(shape) {
            Shape::Instance(class) | Shape::Array(class, _) => wanted[class.index()],
            Shape::ClassObject(_) => false,
        };
        let ranges = match classes.len() {
            0..=FEW => self.shapes.ranges_of(classes),
            _ => Vec::new(),
        };
        // Most stretches have none of a few classes, which is told faster than what each object is.
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

/// The ids on either side of one.
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

/// The name without its package.
fn simple_name(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(_, simple)| simple)
}

/// The names that someone who wrote `wanted` may have meant: those that differ in a few letters,
/// and those whose simple name is the same, whatever the case.
fn similar<'a>(
    wanted: &str,
    names: impl Iterator<Item = &'a str>,
    simple: impl Fn(&str) -> &str,
) -> Vec<String> {
    let most = (wanted.chars().count() / 4).clamp(1, 4);
    let lower = wanted.to_lowercase();
    let (lower_simple, package) = (simple(&lower).to_owned(), lower.contains('.'));
    let mut found: Vec<(usize, &str)> = names
        .filter_map(|name| {
            // Hidden classes are nothing that one types.
            let close_length = name.len().abs_diff(wanted.len()) <= most;
            let candidate = name.to_lowercase();
            let distance = if close_length {
                strsim::levenshtein(&lower, &candidate)
            } else {
                usize::MAX
            };
            let same = simple(&candidate) == lower_simple;
            let rank = match (distance <= most, same) {
                (true, _) => distance,
                (false, true) => most + 1,
                (false, false) if !package => {
                    let near = strsim::levenshtein(&lower_simple, simple(&candidate));
                    (near <= most).then_some(most + 1 + near)?
                }
                _ => return None,
            };
            Some((rank, name))
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    let best = found.into_iter().take(SUGGESTIONS);
    best.map(|(_, name)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_told_apart_by_their_form() {
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

    #[test]
    fn similar_names_are_offered() {
        let names = [
            "com.acme.Entry",
            "com.acme.Order",
            "org.other.entry",
            "java.lang.Object",
        ];
        let similar = |wanted| similar(wanted, names.into_iter(), simple_name);
        assert_eq!(similar("com.acme.Entri"), ["com.acme.Entry"]);
        assert_eq!(similar("Entry"), ["com.acme.Entry", "org.other.entry"]);
        assert_eq!(similar("Oder"), ["com.acme.Order"]);
        assert!(similar("com.acme.Unrelated").is_empty());
    }
}
