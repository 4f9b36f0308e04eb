//! Matches the patterns on the command line. Prints a warning for each pattern that matches nothing. Without the
//! warning, a user who misspelt a name could believe that nothing grew.

use std::cell::Cell;

use clap::Args;
use heapdiff_diff::{Allocated, Suspect, pattern};
use regex::Regex;

/// Options that select the classes and suspects of a comparison.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Diff")]
pub(crate) struct ClassFilter {
    /// Report only matching classes, and suspects made up of them or held by their fields; may be
    /// repeated
    #[arg(long, value_name = "RE", value_parser = pattern)]
    pub(crate) include: Vec<Regex>,
    /// Leave out matching classes, and suspects made up of them or held by their fields; may be
    /// repeated
    #[arg(long, value_name = "RE", value_parser = pattern)]
    pub(crate) exclude: Vec<Regex>,
}

/// A pattern that records whether it has matched anything.
struct Pattern<'a> {
    regex: &'a Regex,
    fits: Cell<bool>,
}

impl<'a> Pattern<'a> {
    fn all(list: &'a [Regex]) -> Vec<Self> {
        let pattern = |regex| Self {
            regex,
            fits: Cell::new(false),
        };
        list.iter().map(pattern).collect()
    }

    fn matches(&self, names: &[&str]) -> bool {
        let matches = names.iter().any(|name| self.regex.is_match(name));
        self.fits.set(self.fits.get() || matches);
        matches
    }
}

/// Patterns that select the reported classes.
pub(crate) struct Classes<'a> {
    include: Vec<Pattern<'a>>,
    exclude: Vec<Pattern<'a>>,
}

impl<'a> Classes<'a> {
    pub(crate) fn new(filter: &'a ClassFilter) -> Self {
        Self {
            include: Pattern::all(&filter.include),
            exclude: Pattern::all(&filter.exclude),
        }
    }

    /// True if an object or suspect with these class names is reported. If there are `--include` patterns, at least one
    /// of them must match a name. No `--exclude` pattern may match a name.
    pub(crate) fn admits(&self, names: &[&str]) -> bool {
        // All patterns are tested, even after a match, so that every matching pattern is recorded as used.
        let any = |list: &[Pattern<'_>]| list.iter().filter(|p| p.matches(names)).count() > 0;
        let (included, excluded) = (any(&self.include), any(&self.exclude));
        (self.include.is_empty() || included) && !excluded
    }

    /// Returns a warning for each pattern that has matched nothing so far and matches none of the names in `more`.
    pub(crate) fn unused(&self, more: &[&str]) -> Vec<String> {
        let named = |option, list: &[Pattern<'_>]| -> Vec<String> {
            list.iter()
                .filter(|p| !p.fits.get() && !p.matches(more))
                .map(|p| format!("{option} {}: no class in the dumps matches", p.regex))
                .collect()
        };
        [
            named("--include", &self.include),
            named("--exclude", &self.exclude),
        ]
        .concat()
    }
}

/// Returns a warning if the suspects and `allocated` have no stacks, or if the focus pattern matches none of their
/// frames.
pub(crate) fn focus<'a>(
    focus: &Regex,
    suspects: impl IntoIterator<Item = &'a Suspect>,
    allocated: Option<&Allocated>,
) -> Option<String> {
    let mut frames = suspects
        .into_iter()
        .flat_map(|s| &s.stacks)
        .flat_map(|stack| &stack.frames)
        .chain(allocated.into_iter().flat_map(|a| &a.frames))
        .peekable();
    if frames.peek().is_none() {
        return Some(format!(
            "--focus {focus}: the dumps have no stacks; load the agent before you take dumps (heapdiff attach PID)"
        ));
    }
    (!frames.any(|f| focus.is_match(f))).then(|| format!("--focus {focus}: no stack frame matches"))
}

/// Returns the warning that a focus pattern matches nothing in a table of stacks or classes.
pub(crate) fn no_match_warning(focus: &Regex) -> String {
    format!("--focus {focus}: no class and no stack frame matches")
}

/// Returns a warning if the focus pattern matches no frame in a flame graph or a profile.
pub(crate) fn frames(focus: &Regex, all: &Allocated) -> Option<String> {
    let mut frames = all.lines.iter().flat_map(|line| &line.frames);
    let fits = frames.any(|&frame| {
        let text = all.frames.get(frame as usize);
        text.is_some_and(|text| focus.is_match(text))
    });
    (!fits).then(|| {
        format!("--focus {focus}: no stack frame matches (in flame graphs and profiles, --focus is not compared with classes)")
    })
}

#[cfg(test)]
mod tests {
    use heapdiff_diff::AllocatedLine;

    use super::*;

    fn filter(include: &[&str], exclude: &[&str]) -> ClassFilter {
        let all = |list: &[&str]| list.iter().map(|p| Regex::new(p).unwrap()).collect();
        ClassFilter {
            include: all(include),
            exclude: all(exclude),
        }
    }

    #[test]
    fn patterns_without_a_match_are_reported() {
        let filter = filter(&["^a", "Order", "gone"], &["b$", "away"]);
        let classes = Classes::new(&filter);
        assert!(classes.admits(&["a.Order"]));
        assert!(!classes.admits(&["c.Other"]));
        assert!(
            !classes.admits(&["a.b"]),
            "what is excluded is not included"
        );
        let said = classes.unused(&["some.class.that.went.away"]);
        assert_eq!(said, ["--include gone: no class in the dumps matches"]);
        assert!(Classes::new(&ClassFilter::default()).unused(&[]).is_empty());
    }

    #[test]
    fn a_focus_without_a_matching_line_is_reported() {
        let all = Allocated {
            frames: vec!["a.Main.main".to_owned(), "a.Unused.f".to_owned()],
            classes: vec!["a.Shop".to_owned()],
            lines: vec![AllocatedLine {
                frames: vec![0],
                class: 0,
                samples: vec![1],
                objects: vec![1],
                bytes: vec![16],
            }],
            ..Allocated::default()
        };
        let said = |focus: &str| frames(&Regex::new(focus).unwrap(), &all);
        let none = "no stack frame matches (in flame graphs and profiles, --focus is not compared with classes)";
        for focus in ["Shop", "Unused"] {
            assert_eq!(said(focus).unwrap(), format!("--focus {focus}: {none}"));
        }
        assert_eq!(said("Main"), None);
    }

    #[test]
    fn a_focus_without_a_match_is_reported() {
        let shop = Regex::new("Shop").unwrap();
        let mut all = Allocated::default();
        assert!(
            focus(&shop, [], Some(&all))
                .unwrap()
                .contains("the dumps have no stacks")
        );
        all.frames = vec!["a.Main.main".to_owned()];
        assert!(
            focus(&shop, [], Some(&all))
                .unwrap()
                .contains("no stack frame matches")
        );
        all.frames.push("a.Shop.sell".to_owned());
        assert_eq!(focus(&shop, [], Some(&all)), None);
    }
}
