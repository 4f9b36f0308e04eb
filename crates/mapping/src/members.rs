//! The fields and methods of one class, which can be looked up by their names in the dump.

use std::borrow::Cow;
use std::collections::HashMap;

use proguard::{ProguardMapping, ProguardRecord};

/// Maximum number of original method names to show for a frame, if its method is ambiguous.
const ALTERNATIVES: usize = 3;
/// Maximum number of original frames that replace one frame of the dump.
const INLINED: usize = 256;

/// The fields and methods of a class, by their names in the dump.
#[derive(Debug, Default)]
pub(crate) struct Members {
    fields: HashMap<Box<str>, Vec<Field>>,
    methods: HashMap<Box<str>, Vec<Method>>,
}

#[derive(Debug)]
struct Field {
    /// The type of the field: a primitive type, or `Object` for all references.
    kind: Box<str>,
    original: Box<str>,
}

/// A line of the mapping that describes a method, or a range of line numbers in a method.
#[derive(Debug)]
struct Method {
    /// The range of line numbers in the dump to which this line of the mapping applies. `None` if the mapping has no
    /// line numbers for the method.
    lines: Option<(usize, usize)>,
    /// The range of line numbers in the original source to which the mapping translates `lines`.
    original_lines: Option<(usize, Option<usize>)>,
    /// The original class of the method. `None` if the mapping names no class for the method: the method is then in the
    /// original class of the frame.
    class: Option<Box<str>>,
    original: Box<str>,
}

/// A method in the source, and a line in the method.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place<'a> {
    /// The original class of the method. `None` if it is the original class of the frame, or if the method is
    /// ambiguous.
    pub(crate) class: Option<&'a str>,
    pub(crate) method: Cow<'a, str>,
    pub(crate) line: Option<usize>,
}

const PRIMITIVES: [&str; 8] = [
    "boolean", "byte", "char", "short", "int", "long", "float", "double",
];

impl Members {
    /// Parses the lines of a mapping that describe the members (fields and methods) of a class.
    pub(crate) fn parse(lines: &[u8]) -> Self {
        let mut this = Self::default();
        for record in ProguardMapping::new(lines).iter().filter_map(Result::ok) {
            match record {
                ProguardRecord::Field {
                    ty,
                    original,
                    obfuscated,
                } => {
                    let kind = PRIMITIVES.iter().find(|&&p| p == ty).unwrap_or(&"Object");
                    let fields = this.fields.entry(obfuscated.into()).or_default();
                    fields.push(Field {
                        kind: (*kind).into(),
                        // If the shrinker moved a field here from another class, the mapping puts the name of that
                        // class before the name of the field.
                        original: original.rsplit('.').next().unwrap_or(original).into(),
                    });
                }
                ProguardRecord::Method {
                    original,
                    obfuscated,
                    original_class,
                    line_mapping,
                    ..
                } => {
                    let methods = this.methods.entry(obfuscated.into()).or_default();
                    let lines = line_mapping.and_then(|l| Some((l.startline?, l.endline?)));
                    let original_lines = line_mapping
                        .and_then(|l| Some((l.original_startline?, l.original_endline)))
                        .filter(|&(start, _)| start > 0);
                    methods.push(Method {
                        lines: lines
                            .map(|(a, b)| (a.min(b), a.max(b)))
                            .filter(|&(_, end)| end > 0),
                        original_lines,
                        class: original_class.map(Into::into),
                        original: original.into(),
                    });
                }
                _ => {}
            }
        }
        this
    }

    pub(crate) fn field(&self, field: &str, kind: &str) -> Option<&str> {
        let fields = self.fields.get(field)?;
        let same = fields.iter().find(|f| *f.kind == *kind);
        Some(&same.or(fields.first())?.original)
    }

    /// Returns the original frames for a frame of this method, the innermost first. Returns an empty list if the
    /// mapping does not contain the method.
    pub(crate) fn frames(&self, method: &str, line: Option<usize>) -> Vec<Place<'_>> {
        let Some(all) = self.methods.get(method) else {
            return Vec::new();
        };
        if let Some(line) = line {
            let here = all.iter().filter(|m| m.has(line)).take(INLINED);
            let found: Vec<_> = here.map(|m| m.place(Some(m.original_line(line)))).collect();
            if !found.is_empty() {
                return found;
            }
        }
        let bare: Vec<&Method> = all.iter().filter(|m| m.lines.is_none()).collect();
        // Consecutive entries with the same range of line numbers are methods that were inlined into each other. The
        // last entry is the outermost method, whose new name is in the dump.
        let outermost = || {
            let next = all.iter().skip(1).map(Some).chain([None]);
            let pairs = all.iter().zip(next);
            let ends = pairs.filter(|(m, next)| next.is_none_or(|next| next.lines != m.lines));
            ends.map(|(m, _)| m).collect()
        };
        let may_be = if bare.is_empty() { outermost() } else { bare };
        let mut names: Vec<(Option<&str>, &str)> = Vec::new();
        for name in may_be.iter().map(|m| (m.class.as_deref(), &*m.original)) {
            if !names.contains(&name) {
                names.push(name);
                if names.len() > ALTERNATIVES {
                    break;
                }
            }
        }
        let [(class, one)] = names[..] else {
            let mut method: Vec<&str> = names.iter().map(|n| n.1).collect();
            method.dedup();
            if method.len() > ALTERNATIVES {
                method[ALTERNATIVES] = "…";
            }
            let method = Cow::Owned(method.join("|"));
            return vec![Place {
                class: None,
                method,
                line: None,
            }];
        };
        let line = match may_be[..] {
            // If the mapping has no line numbers for a method, it either gives one original line, or the line numbers
            // did not change.
            [one] if one.lines.is_none() => one.original_lines.map(|l| l.0).or(line),
            _ => None,
        };
        vec![Place {
            class,
            method: Cow::Borrowed(one),
            line,
        }]
    }
}

impl Method {
    fn has(&self, line: usize) -> bool {
        self.lines
            .is_some_and(|(start, end)| (start..=end).contains(&line))
    }

    /// Returns the line number in the source for a line number in the dump.
    fn original_line(&self, line: usize) -> usize {
        match (self.lines, self.original_lines) {
            (Some((start, _)), Some((from, Some(to)))) if to > from => {
                from.saturating_add(line.saturating_sub(start)).min(to)
            }
            (_, Some((from, _))) => from,
            (_, None) => line,
        }
    }

    fn place(&self, line: Option<usize>) -> Place<'_> {
        Place {
            class: self.class.as_deref(),
            method: Cow::Borrowed(&self.original),
            line,
        }
    }
}
