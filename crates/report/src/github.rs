//! Annotations of a GitHub Actions run, as workflow commands on standard output.
//!
//! GitHub shows ten annotations of each level per step. So only the first ten are written, in the order of the
//! suspects. No name can end a command, because line ends are escaped. Colons and commas in properties are escaped,
//! too.

use std::io::{self, Write};

use heapdiff_units::counted;

use crate::findings::{Finding, Findings, Level, Place};
use crate::printable::printable;

/// Maximum number of annotations of each level that GitHub shows for one step.
const SHOWN: usize = 10;

/// Writes annotations for tripped gates, for warnings and for suspects.
///
/// # Errors
/// Returns an error if the stream fails.
pub(crate) fn render(findings: &Findings<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut annotations = Annotations::default();
    if let Some(why) = findings.undecided {
        annotations.plain(Level::Error, "gates were not checked", why);
    }
    for why in &findings.tripped {
        annotations.plain(Level::Error, "gate tripped", why);
    }
    // In a report of one dump, the warnings are stored with the dump.
    let damage = match findings.snapshots {
        [only] => &only.warnings[..],
        _ => &[],
    };
    for warning in findings.warnings.iter().chain(damage) {
        annotations.plain(Level::Warning, "heapdiff", warning);
    }
    for finding in &findings.found {
        annotations.finding(finding, findings.source_root);
    }
    annotations.write(out)
}

#[derive(Default)]
struct Annotations {
    lines: Vec<String>,
    /// Number of annotations of each level so far, including annotations over the limit [`SHOWN`].
    counts: [usize; 3],
}

impl Annotations {
    fn add(&mut self, level: Level, place: Option<Place>, title: &str, message: &str) {
        let (name, count) = match level {
            Level::Error => ("error", &mut self.counts[0]),
            Level::Warning => ("warning", &mut self.counts[1]),
            Level::Note => ("notice", &mut self.counts[2]),
        };
        *count += 1;
        if *count > SHOWN {
            return;
        }
        let mut properties = format!("title={}", property(&printable(title)));
        if let Some(place) = place {
            properties += &format!(",file={}", property(&printable(&place.file)));
            if let Some(line) = place.line {
                properties += &format!(",line={line}");
            }
        }
        self.lines
            .push(format!("::{name} {properties}::{}", data(message)));
    }

    fn plain(&mut self, level: Level, title: &str, message: &str) {
        self.add(level, None, title, &printable(message));
    }

    fn finding(&mut self, finding: &Finding<'_>, root: Option<&str>) {
        let place = finding.frame().and_then(Place::from_frame);
        let place = place.map(|place| place.with_root(root));
        let title = format!("{}: {}", finding.rule.id, finding.holder);
        self.add(finding.level, place, &title, &finding.message());
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        for line in &self.lines {
            writeln!(out, "{line}")?;
        }
        let more: usize = self.counts.iter().map(|n| n.saturating_sub(SHOWN)).sum();
        if more > 0 {
            let more = counted(more as u64, "annotation");
            writeln!(
                out,
                "{more} left out: GitHub shows at most ten of each level"
            )?;
        }
        Ok(())
    }
}

/// Escapes the text of a message.
fn data(text: &str) -> String {
    let text = text.replace('%', "%25");
    text.replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes the text of a property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use heapdiff_diff::Verdict;

    use super::*;
    use crate::junit::Gate;
    use crate::synthetic::{HOSTILE, heap, report, suspect};
    use crate::tests::{diff_report, heap_report};
    use crate::view::DiffReport;

    fn rendered(report: &DiffReport) -> String {
        let mut out = Vec::new();
        render(&report.into(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_suspect_is_an_annotation_of_its_level() {
        let suspects = [
            Verdict::Leak,
            Verdict::Growth,
            Verdict::Cache,
            Verdict::Warmup,
        ];
        let suspects = suspects.map(|verdict| suspect(1, "com.acme.Web.open", verdict, 4096));
        let mut report = diff_report(report(suspects.to_vec(), 0));
        report.view.source_root = Some("app/src/main/java".to_owned());
        let text = rendered(&report);
        let heads: Vec<&str> = text
            .lines()
            .map(|l| l.split("::").nth(1).unwrap())
            .collect();
        let place = "file=app/src/main/java/com/acme/Web.java,line=42";
        assert_eq!(
            heads,
            [
                format!("error title=leak%3A com.acme.Web.open,{place}"),
                format!("warning title=growth%3A com.acme.Web.open,{place}"),
                format!("notice title=cache%3A com.acme.Web.open,{place}"),
                format!("notice title=warm-up%3A com.acme.Web.open,{place}"),
            ]
        );
        assert!(!text.contains("GitHub shows at most ten"), "{text}");
        for part in [
            "com.acme.Web.open grew by 4.0 KiB: 10 -> 522 objects of com.acme.Entry, retained 100 B -> 4.1 KiB%0A",
            "allocated at com.acme.Web.put(Web.java:42)",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        report.data.suspects[0].stacks.clear();
        report.data.suspects.truncate(1);
        let text = rendered(&report);
        assert!(
            !text.contains("file=") && !text.contains("allocated at"),
            "{text}"
        );
    }

    #[test]
    fn gates_and_warnings_come_first() {
        let mut report = diff_report(report(Vec::new(), 0));
        assert_eq!(rendered(&report), "");
        report.more.outcomes = vec![Gate {
            name: "--fail-on-growth 1MiB".to_owned(),
            tripped: Some("50 % more".to_owned()),
        }];
        report.data.warnings.push("a\nb".to_owned());
        let text = rendered(&report);
        assert!(
            text.starts_with(
                "::error title=gate tripped::50 %25 more\n::warning title=heapdiff::a"
            ),
            "{text}"
        );
        assert_eq!(text.lines().count(), 2);
    }

    #[test]
    fn names_cannot_end_a_command_and_output_is_limited() {
        let hostile = format!("a\n::error::{HOSTILE}\r%,:");
        let many = (1..=12).map(|i| suspect(i, &hostile, Verdict::Leak, 4096));
        let text = rendered(&diff_report(report(many.collect(), 0)));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), SHOWN + 1);
        assert!(
            lines[..SHOWN]
                .iter()
                .all(|l| l.starts_with("::error title=leak%3A a"))
        );
        let title = lines[0].split("::").nth(1).unwrap();
        assert_eq!(title.matches(',').count(), 2, "{title}");
        assert_eq!(
            lines[SHOWN],
            "2 annotations left out: GitHub shows at most ten of each level"
        );
    }

    #[test]
    fn the_largest_holder_is_a_notice() {
        let mut out = Vec::new();
        render(&(&heap_report(heap(2))).into(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains(
            "::notice title=large%3A com.acme.Registry.all,file=com/acme/Web.java,line=42::"
        ));
        assert!(
            text.contains("com.acme.Registry.all retains 2.0 MiB, 50.0 %25 of the heap"),
            "{text}"
        );
        assert!(text.starts_with("::warning title=heapdiff::--include a"));
    }
}
