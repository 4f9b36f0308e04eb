//! Converts suspects to findings, the form in which code checkers such as linters report problems. A finding has a
//! rule, a level, a message, and (if known) a source file and line.

use heapdiff_diff::is_application_frame;
use heapdiff_diff::{FrameParts, SnapshotInfo, Stack, Suspect, Through, Verdict};
use heapdiff_units::{Size, grouped};

use crate::printable::printable;
use crate::view::{DiffReport, DumpReport};
use crate::{series, size};

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// A leak.
    Error,
    /// Growth.
    Warning,
    /// The growth comes from a cache or a warm-up. In the report of one dump: a field retains a large part of the heap.
    Note,
}

/// A kind of finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    /// The verdict, or the verdict and the known leak pattern: `leak/thread-local`.
    pub(crate) id: String,
    /// The description of the rule.
    pub(crate) about: String,
}

/// A suspect, converted to the form in which code checkers report problems.
#[derive(Clone, Debug)]
pub(crate) struct Finding<'a> {
    pub(crate) rule: Rule,
    pub(crate) level: Level,
    pub(crate) holder: &'a str,
    pub(crate) class: &'a str,
    pub(crate) root: &'a str,
    pub(crate) path: &'a [String],
    /// The figures of the suspect in one sentence.
    pub(crate) figures: String,
    pub(crate) reasons: &'a [String],
    pub(crate) stacks: &'a [Stack],
    through: Option<&'a Through>,
    /// The sentence about the stacks from a flight recording.
    joined: Option<&'a str>,
}

/// The findings of a report, with the warnings of the report.
pub(crate) struct Findings<'a> {
    /// The suspects.
    pub(crate) found: Vec<Finding<'a>>,
    /// Suspects whose growth matches a user's rule for known growth, each with the rule that matches it.
    pub(crate) known: Vec<(Finding<'a>, &'a str)>,
    pub(crate) warnings: &'a [String],
    /// The reason why the gates (the conditions under which the run fails) were not checked; `None` if they were
    /// checked.
    pub(crate) undecided: Option<&'a str>,
    /// The reasons why the run fails: one for each gate whose condition is met.
    pub(crate) tripped: Vec<&'a str>,
    pub(crate) snapshots: &'a [SnapshotInfo],
    /// Folder in the repository that contains the sources.
    pub(crate) source_root: Option<&'a str>,
}

impl<'a> From<&'a DiffReport> for Findings<'a> {
    fn from(report: &'a DiffReport) -> Self {
        let (data, more) = (&report.data, &report.more);
        let known = more.known.iter();
        let tripped = more.outcomes.iter().filter_map(|g| g.tripped.as_deref());
        Self {
            found: data.suspects.iter().map(|s| Finding::new(s, 0)).collect(),
            known: known
                .map(|(s, rule)| (Finding::new(s, 0), &**rule))
                .collect(),
            warnings: &data.warnings,
            undecided: report.unchecked_gates_reason(),
            tripped: tripped.collect(),
            snapshots: &data.snapshots,
            source_root: report.view.source_root.as_deref(),
        }
    }
}

impl<'a> From<&'a DumpReport> for Findings<'a> {
    fn from(report: &'a DumpReport) -> Self {
        let heap = &report.data;
        let reachable = heap.snapshot.reachable_bytes;
        let found = heap.suspects.iter();
        Self {
            found: found.map(|s| Finding::new(s, reachable)).collect(),
            known: Vec::new(),
            warnings: &heap.warnings,
            undecided: None,
            tripped: Vec::new(),
            snapshots: std::slice::from_ref(&heap.snapshot),
            source_root: report.view.source_root.as_deref(),
        }
    }
}

impl<'a> Finding<'a> {
    /// Returns the finding of a suspect. In the report of one dump, `reachable` is the number of reachable bytes. In a
    /// comparison, `reachable` is not used.
    pub(crate) fn new(suspect: &'a Suspect, reachable: u64) -> Self {
        let (class, holder) = (&*suspect.class, &*suspect.holder);
        let (level, about) = match suspect.verdict {
            _ if suspect.is_from_single_dump() => (
                Level::Note,
                "A field retains a large part of the heap, which can be intended",
            ),
            Verdict::Leak => (
                Level::Error,
                "The content of a field grew, and evidence shows that the growth continues",
            ),
            Verdict::Growth => (Level::Warning, "The content of a field grew"),
            Verdict::Cache => (
                Level::Note,
                "The content of a field grew like a cache that is being filled",
            ),
            Verdict::Warmup => (
                Level::Note,
                "The content of a field grew once, as is normal when a program starts",
            ),
        };
        let objects = series(&suspect.objects, " -> ", grouped);
        let retained = series(&suspect.retained_bytes, " -> ", size);
        let figures = if suspect.is_from_single_dump() {
            let part = crate::kept::part(suspect.retained(), reachable);
            format!("{holder} retains {retained}, {part} of the heap: {objects} objects of {class}")
        } else {
            let grown = Size(suspect.growth.retained_bytes.max(0).unsigned_abs());
            format!("{holder} grew by {grown}: {objects} objects of {class}, retained {retained}")
        };
        Self {
            rule: rule(crate::verdict(suspect), about, suspect.detector.as_deref()),
            level,
            holder,
            class,
            root: &suspect.root,
            path: &suspect.path,
            figures,
            reasons: &suspect.reasons,
            stacks: &suspect.stacks,
            through: suspect.allocated_through.as_ref(),
            joined: suspect.joined.as_deref(),
        }
    }

    /// Returns the application frame to report: the frame through which most objects of the suspect were allocated, or
    /// else the first application frame of its stacks.
    pub(crate) fn frame(&self) -> Option<&'a str> {
        let own = |stack: &'a Stack| {
            let mut frames = stack.frames.iter().map(|frame| &**frame);
            frames.find(|frame| is_application_frame(frame))
        };
        let through = self.through.map(|through| &*through.frame);
        // Stacks that differ only in the line of one method have a common frame without a line. A finding needs a line
        // in a source file, so such a frame is not used.
        let through =
            through.filter(|frame| Place::from_frame(frame).is_some_and(|p| p.line.is_some()));
        through.or_else(|| self.stacks.iter().find_map(own))
    }

    /// Returns the message of the finding, with one fact about the suspect per line, such as its figures, its path
    /// and its allocating code.
    pub(crate) fn message(&self) -> String {
        let mut lines = vec![self.figures.clone()];
        lines.extend(self.reasons.iter().cloned());
        let path: Vec<&str> = self.path.iter().map(|step| &**step).collect();
        lines.push(format!("{}: {}", self.root, path.join(", ")));
        match self.joined {
            Some(joined) => lines.push(joined.to_owned()),
            None => lines.extend(self.frame().map(|frame| format!("allocated at {frame}"))),
        }
        let lines: Vec<_> = lines.iter().map(|line| printable(line)).collect();
        lines.join("\n")
    }
}

fn rule(verdict: &str, about: &str, detector: Option<&str>) -> Rule {
    match detector {
        Some(detector) => Rule {
            id: format!("{verdict}/{detector}"),
            about: format!("{about}; known leak pattern: {detector}"),
        },
        None => Rule {
            id: verdict.to_owned(),
            about: about.to_owned(),
        },
    }
}

/// A file of the source code, with a line if it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The path of the file, relative to the folder with the sources. The parts of the path are separated by slashes.
    pub(crate) file: String,
    pub(crate) line: Option<u32>,
}

impl Place {
    /// Returns the source file and line of a stack frame; `None` if the frame does not name a file. For example, the
    /// class `a.b.C` and the file `C.java` give `a/b/C.java`.
    pub(crate) fn from_frame(frame: &str) -> Option<Self> {
        let parts = FrameParts::parse(frame);
        let file = parts.file.filter(|file| is_file(file))?;
        let function = parts.function.split(" (").next().unwrap_or_default();
        let class = function.rsplit_once('.').map_or("", |(class, _)| class);
        let folders: Vec<&str> = if file.ends_with(".java") {
            class.rsplit_once('.').map_or("", |(package, _)| package)
        } else {
            class
        }
        .split('.')
        .filter(|part| !part.is_empty())
        .collect();
        // Kotlin and Scala separate names of nested classes by dots, and functions may have no class. So in these
        // languages the package ends before the first part that begins with a capital letter.
        let is_package = |part: &&&str| !part.starts_with(char::is_uppercase);
        let packages = if file.ends_with(".java") {
            folders.len()
        } else {
            folders.iter().take_while(is_package).count()
        };
        let path = folders.iter().take(packages).copied().chain([file]);
        Some(Self {
            file: path.collect::<Vec<_>>().join("/"),
            line: parts.line.filter(|&line| line > 0),
        })
    }
}

impl Place {
    /// Returns the same file and line, with `root` in front of the file's path. `root` is the folder in the repository
    /// that contains the sources.
    pub(crate) fn with_root(self, root: Option<&str>) -> Self {
        let root = root.map(|root| root.trim_end_matches('/'));
        match root.filter(|root| !root.is_empty()) {
            Some(root) => Self {
                file: format!("{root}/{}", self.file),
                ..self
            },
            None => self,
        }
    }
}

/// True if a name has the form of a file name with an extension, without a path.
fn is_file(name: &str) -> bool {
    let has_end = name.rsplit_once('.').is_some_and(|(stem, end)| {
        !stem.is_empty() && !end.is_empty() && end.bytes().all(|b| b.is_ascii_alphanumeric())
    });
    has_end && !name.contains(['/', '\\', ' ', ':'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::{heap, suspect};

    #[test]
    fn rules_and_figures_have_descriptions() {
        let of = |verdict, detector: Option<&'static str>| {
            let mut suspect = suspect(1, "a.B.c", verdict, 4096);
            suspect.detector = detector.map(Into::into);
            let finding = Finding::new(&suspect, 0);
            (finding.rule.about.clone(), finding.figures)
        };
        let goes_on = "The content of a field grew, and evidence shows that the growth continues";
        let all = [
            (Verdict::Leak, goes_on),
            (Verdict::Growth, "The content of a field grew"),
            (
                Verdict::Cache,
                "The content of a field grew like a cache that is being filled",
            ),
            (
                Verdict::Warmup,
                "The content of a field grew once, as is normal when a program starts",
            ),
        ];
        for (verdict, about) in all {
            for (other, _) in all {
                assert_eq!(of(other, None).0 == about, other == verdict, "{about}");
            }
        }
        let known = "known leak pattern: timer";
        assert_eq!(
            of(Verdict::Leak, Some("timer")).0,
            format!("{goes_on}; {known}")
        );
        assert!(!of(Verdict::Leak, None).0.contains(known));
        let heap = heap(1);
        let held = Finding::new(&heap.suspects[0], heap.snapshot.reachable_bytes);
        let much = "A field retains a large part of the heap, which can be intended";
        assert_eq!(held.rule.about, much);
        assert_ne!(of(Verdict::Growth, None).0, much);
        let grew = "a.B.c grew by 4.0 KiB: 10 -> 522 objects of com.acme.Entry, retained 100 B";
        let retains = " retains 2.0 MiB, 50.0 % of the heap: 1,000 objects of com.acme.Entry";
        let growth = of(Verdict::Growth, None).1;
        assert!(growth.starts_with(grew) && !growth.contains(retains));
        assert!(held.figures.ends_with(retains) && !held.figures.contains(" grew by "));
    }

    #[test]
    fn frames_have_places_in_the_source() {
        let place = |frame| Place::from_frame(frame).map(|p| (p.file, p.line));
        let at = |file: &str, line| Some((file.to_owned(), line));
        for (frame, expected) in [
            (
                "com.acme.Foo.add(Foo.java:42)",
                at("com/acme/Foo.java", Some(42)),
            ),
            (
                "com.acme.Foo$Bar.<init>(Foo.java)",
                at("com/acme/Foo.java", None),
            ),
            ("Foo.add(Foo.java:1)", at("Foo.java", Some(1))),
            ("a.b.c(b.java:1)", at("a/b.java", Some(1))),
            (
                "com.acme.Foo.add (lambda)(Foo.java:2)",
                at("com/acme/Foo.java", Some(2)),
            ),
            (
                "com.acme.book(Orders.kt:12)",
                at("com/acme/Orders.kt", Some(12)),
            ),
            (
                "com.acme.Shop.Companion.open(Orders.kt:17)",
                at("com/acme/Orders.kt", Some(17)),
            ),
            ("com.acme.Foo.add(line 3)", None),
            ("com.acme.Foo.add(Native Method)", None),
            ("com.acme.Foo.add(../../x.java:3)", None),
            ("com.acme.Foo.add(SourceFile:3)", None),
            ("com.acme.Foo.add", None),
        ] {
            assert_eq!(place(frame), expected, "{frame}");
        }
    }
}
