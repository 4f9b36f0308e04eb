//! Filters on classes, sizes and ids, applied before rows are created.
//!
//! A filter must never drop a row that matches. It may pass rows that do not match, because SQLite checks every row
//! again.

use hprof::{ClassIndex, ObjectIndex};
use regex::{Regex, RegexBuilder};

use crate::heap::Heap;
use crate::value::Scalar;

/// A comparison operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Op {
    Eq,
    /// Equal to one of several values.
    In,
    Gt,
    Ge,
    Lt,
    Le,
    Like,
    Glob,
    Regexp,
}

impl Op {
    /// All operators. Each has a character that represents it in the text of a query plan.
    const ALL: [(Self, char); 9] = [
        (Self::Eq, '='),
        (Self::In, 'i'),
        (Self::Gt, '>'),
        (Self::Ge, 'g'),
        (Self::Lt, '<'),
        (Self::Le, 'l'),
        (Self::Like, '%'),
        (Self::Glob, '*'),
        (Self::Regexp, 'r'),
    ];

    pub(crate) fn code(self) -> char {
        let mut all = Self::ALL.into_iter();
        all.find(|(op, _)| *op == self)
            .map_or('?', |(_, code)| code)
    }

    pub(crate) fn from_code(code: char) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|(_, c)| *c == code).map(|(op, _)| op)
    }

    /// Returns true for operators that a filter on sizes supports.
    pub(crate) const fn is_for_sizes(self) -> bool {
        matches!(self, Self::Eq | Self::Gt | Self::Ge | Self::Lt | Self::Le)
    }

    /// Returns true for operators that a filter on class names supports.
    pub(crate) const fn is_for_names(self) -> bool {
        matches!(
            self,
            Self::Eq | Self::In | Self::Like | Self::Glob | Self::Regexp
        )
    }

    /// Returns true for operators that a filter on ids supports.
    pub(crate) const fn is_for_ids(self) -> bool {
        matches!(self, Self::Eq | Self::In)
    }
}

/// A comparison of a column, given by its index, with a value.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Constraint {
    pub(crate) column: usize,
    pub(crate) op: Op,
    pub(crate) value: Scalar,
}

/// A range of sizes; both ends are included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span(u64, u64);

impl Span {
    pub(crate) const ALL: Self = Self(0, u64::MAX);

    /// Narrows the range by a comparison.
    pub(crate) fn narrow(&mut self, op: Op, value: &Scalar) {
        let Scalar::Int(value) = *value else {
            return;
        };
        let (low, high) = match op {
            Op::Eq => (Some(value), Some(value)),
            Op::Gt => (value.checked_add(1).or(Some(value)), None),
            Op::Ge => (Some(value), None),
            Op::Lt => (None, value.checked_sub(1).or(Some(value))),
            Op::Le => (None, Some(value)),
            _ => (None, None),
        };
        if let Some(low) = low {
            self.0 = self.0.max(u64::try_from(low).unwrap_or(0));
        }
        if let Some(high) = high {
            match u64::try_from(high) {
                Ok(high) => self.1 = self.1.min(high),
                // Sizes are never negative.
                Err(_) => *self = Self(1, 0),
            }
        }
    }

    pub(crate) const fn has(self, size: u64) -> bool {
        self.0 <= size && size <= self.1
    }
}

/// A set of classes, as one flag per class.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ClassSet(Vec<bool>);

impl ClassSet {
    /// Returns the classes whose names satisfy a comparison. Returns `None` if only SQLite can evaluate the comparison.
    pub(crate) fn from_names(heap: &Heap, op: Op, value: &Scalar) -> Option<Self> {
        let text = match value {
            Scalar::Text(text) => text,
            Scalar::List(list) => {
                return Self::union_of(heap, list, |v| Self::from_names(heap, Op::Eq, v));
            }
            _ => return None,
        };
        let classes = heap.snapshot().classes();
        let matches: Box<dyn Fn(&str) -> bool> = match op {
            Op::Eq => Box::new(move |name| name == text),
            _ => {
                let regex = pattern(op, text)?;
                Box::new(move |name| regex.is_match(name))
            }
        };
        Some(Self(
            classes.iter().map(|(_, c)| matches(&c.name)).collect(),
        ))
    }

    /// Returns the classes whose ids equal the value, or are in the list of values.
    pub(crate) fn from_id(heap: &Heap, value: &Scalar) -> Option<Self> {
        let id = match *value {
            Scalar::Int(id) => id,
            Scalar::List(ref list) => {
                return Self::union_of(heap, list, |v| Self::from_id(heap, v));
            }
            _ => return None,
        };
        let classes = heap.snapshot().classes();
        let id = id.cast_unsigned();
        Some(Self(classes.iter().map(|(_, c)| c.id.0 == id).collect()))
    }

    /// Returns the union of the class sets of all values in `list`. Nulls are ignored. Returns `None` if `set` returns
    /// `None` for a value.
    fn union_of(
        heap: &Heap,
        list: &[Scalar],
        set: impl Fn(&Scalar) -> Option<Self>,
    ) -> Option<Self> {
        let mut any = Self(vec![false; heap.snapshot().classes().len()]);
        for value in list.iter().filter(|v| **v != Scalar::Null) {
            for (own, other) in any.0.iter_mut().zip(set(value)?.0) {
                *own |= other;
            }
        }
        Some(any)
    }

    pub(crate) fn intersect(into: &mut Option<Self>, other: Option<Self>) {
        match (into.as_mut(), other) {
            (Some(own), Some(other)) => {
                for (own, other) in own.0.iter_mut().zip(other.0) {
                    *own &= other;
                }
            }
            (None, Some(other)) => *into = Some(other),
            (_, None) => {}
        }
    }

    /// Returns true if the set contains the object's class.
    pub(crate) fn has_object(&self, heap: &Heap, object: ObjectIndex) -> bool {
        let snapshot = heap.snapshot();
        match snapshot.class_of(object).or_else(|| snapshot.class_class()) {
            Some(class) => self.has(class),
            // The object is a class object, and the dump lacks the class `java.lang.Class`. The filter accepts the
            // object, and SQLite compares its class name later.
            None => true,
        }
    }

    pub(crate) fn has(&self, class: ClassIndex) -> bool {
        self.0.get(class.index()).is_some_and(|&has| has)
    }

    /// Returns the number of instances of the classes.
    pub(crate) fn instances(&self, heap: &Heap) -> u64 {
        let counts = heap.counts().iter().zip(&self.0);
        counts.filter(|c| *c.1).map(|c| c.0.all.objects).sum()
    }
}

/// Returns a regex for the pattern `text` of the operator `LIKE`, `GLOB` or `REGEXP`. The regex matches every string
/// that the pattern matches, and perhaps more strings.
fn pattern(op: Op, text: &str) -> Option<Regex> {
    let mut regex = String::new();
    let mut chars = text.chars();
    for c in chars.by_ref() {
        match (op, c) {
            (Op::Regexp, c) => regex.push(c),
            (Op::Like, '%') | (Op::Glob, '*') => regex.push_str(".*"),
            (Op::Like, '_') | (Op::Glob, '?') => regex.push('.'),
            // A set of characters, such as `[a-z]`, is not translated: the regex ends before the set, and accepts any
            // characters after that.
            (Op::Glob, '[') => {
                regex.push_str(".*");
                break;
            }
            (_, c) => regex.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
        }
    }
    if op == Op::Regexp {
        return Regex::new(&regex).ok();
    }
    let end = if chars.as_str().is_empty() { "$" } else { "" };
    RegexBuilder::new(&format!("^{regex}{end}"))
        .case_insensitive(op == Op::Like)
        .dot_matches_new_line(true)
        .build()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_narrow_a_span() {
        let narrowed = |list: &[(Op, i64)]| {
            let mut span = Span::ALL;
            for &(op, value) in list {
                span.narrow(op, &Scalar::Int(value));
            }
            (0..20).filter(|&n| span.has(n)).collect::<Vec<u64>>()
        };
        assert_eq!(narrowed(&[(Op::Gt, 3), (Op::Le, 6)]), [4, 5, 6]);
        assert_eq!(narrowed(&[(Op::Eq, 7), (Op::Lt, 9)]), [7]);
        assert_eq!(narrowed(&[(Op::Ge, 18), (Op::Gt, -4)]), [18, 19]);
        assert_eq!(narrowed(&[(Op::Lt, 0)]), [] as [u64; 0]);
        assert_eq!(narrowed(&[(Op::Eq, -1)]), [] as [u64; 0]);
        let mut span = Span::ALL;
        span.narrow(Op::Gt, &Scalar::Other);
        assert_eq!(span, Span::ALL);
        span.narrow(Op::Gt, &Scalar::Int(i64::MAX));
        assert!(!span.has(5));
    }

    #[test]
    fn patterns_match_at_least_all_that_sqlite_matches() {
        let is = |op, text, name| pattern(op, text).unwrap().is_match(name);
        assert!(is(Op::Like, "com.ACME.%", "com.acme.Foo"));
        assert!(!is(Op::Like, "com.acme.%", "comxacme.Foo"));
        assert!(is(Op::Like, "_[]", "b[]") && !is(Op::Like, "_[]", "by[]"));
        assert!(is(Op::Glob, "*Map?Node", "HashMap$Node") && !is(Op::Glob, "*map", "HashMap"));
        assert!(is(Op::Glob, "[ab]yte", "byte") && is(Op::Glob, "a[x]b", "axb"));
        assert!(is(Op::Regexp, "Map$", "HashMap") && !is(Op::Regexp, "^Map", "HashMap"));
        assert!(pattern(Op::Regexp, "(").is_none());
    }
}
