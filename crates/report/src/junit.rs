//! JUnit XML, which continuous integration servers show: a test case for each gate and each suspect.
//!
//! A test case fails only if its gate or suspect makes the run end with exit code 1. If gates cannot be checked (exit
//! code 3), the test case is reported as an error. Test cases of known growth, and of suspects that no gate checks, are
//! skipped: servers show skipped test cases, but the run does not fail. Test cases of caches and warm-up pass.

use std::collections::HashMap;
use std::io::{self, Write};

use heapdiff_diff::Suspect;
use heapdiff_diff::sentence::{self, Samples};
use heapdiff_units::{Size, counted, grouped, signed_size};
use quick_junit::{NonSuccessKind, Property, TestCase, TestCaseStatus, TestSuite};

use crate::printable::printable;
use crate::view::DiffReport;
use crate::{series, size, verdict};

/// A condition under which the run fails (a gate). The user sets it with an option such as `--fail-on-growth`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// The option on the command line: `--fail-on-growth 10MiB`.
    pub name: String,
    /// The reason why the run fails: the report meets the condition. `None` if the report does not meet the condition.
    pub tripped: Option<String>,
}

/// Writes test results. They have no timestamps, so that equal reports give equal files.
///
/// # Errors
/// Returns an error if the stream fails.
pub(crate) fn render(report: &DiffReport, out: &mut dyn Write) -> io::Result<()> {
    let (undecided, more) = (report.unchecked_gates_reason(), &report.more);
    let mut results = quick_junit::Report::new("heapdiff");
    let mut suite = TestSuite::new("heapdiff");
    for (i, snapshot) in report.snapshots.iter().enumerate() {
        let path = printable(&snapshot.path);
        suite.add_property(Property::new(format!("dump.{}", i + 1), &*path));
    }
    for (i, warning) in report.warnings.iter().enumerate() {
        let text = printable(warning);
        suite.add_property(Property::new(format!("warning.{}", i + 1), &*text));
    }
    if !report.comparable {
        suite.add_test_case(inputs(report));
    }
    for gate in &more.outcomes {
        let status = match (undecided, &gate.tripped) {
            (Some(why), _) => error(&format!("not checked: {}", printable(why))),
            (None, None) => TestCaseStatus::success(),
            (None, Some(why)) => failure("gate", &printable(why), ""),
        };
        let mut case = TestCase::new(gate.name.clone(), status);
        case.set_classname("heapdiff.gates");
        suite.add_test_case(case);
    }
    for suspect in &report.suspects {
        suite.add_test_case(suspect_case(suspect, report));
    }
    for (suspect, rule) in &more.known {
        let mut status = TestCaseStatus::skipped();
        let grown = signed_size(suspect.growth.retained_bytes);
        status.set_message(&*printable(&format!("{grown}, known growth: {rule}")));
        suite.add_test_case(case(suspect, status));
    }
    number_equals(&mut suite.test_cases);
    if suite.test_cases.is_empty() {
        // Servers treat a file without test cases as a broken run.
        let name = match report.unexplained_bytes() {
            0 => sentence::Verdict::NoGrowth.to_string(),
            _ => "no suspect".to_owned(),
        };
        let mut case = TestCase::new(name, TestCaseStatus::success());
        case.set_classname("heapdiff");
        suite.add_test_case(case);
    }
    results.add_test_suite(suite);
    results.serialize(out).map_err(io::Error::other)
}

fn failure(kind: &str, message: &str, body: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    status.set_type(kind).set_message(message);
    if !body.is_empty() {
        status.set_description(body);
    }
    status
}

/// Returns the test case for dumps that cannot be compared. The test case contains the reason. If gates need the
/// comparison, the test case is reported as an error; otherwise it is skipped.
fn inputs(report: &DiffReport) -> TestCase {
    let why = printable(report.warnings.first().map_or("", |w| w)).into_owned();
    let status = match report.unchecked_gates_reason() {
        Some(_) => error(&why),
        None => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(why);
            status
        }
    };
    let mut case = TestCase::new("the dumps can be compared", status);
    case.set_classname("heapdiff.inputs");
    let all: Vec<_> = report.warnings.iter().map(|w| printable(w)).collect();
    case.set_system_out(all.join("\n"));
    case
}

fn error(message: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
    status.set_type("input").set_message(message);
    status
}

fn suspect_case(suspect: &Suspect, report: &DiffReport) -> TestCase {
    let message = format!(
        "{} grew by {}",
        printable(&suspect.holder),
        Size(suspect.growth.retained_bytes.max(0).unsigned_abs())
    );
    let body = described(suspect);
    if report.unchecked_gates_reason().is_none() && report.more.gates.fails_gate(suspect) {
        return case(suspect, failure(verdict(suspect), &message, &body));
    }
    let mut case = if suspect.verdict.is_leak_or_growth() {
        let mut status = TestCaseStatus::skipped();
        status.set_message(format!("{message}; no gate checks it"));
        case(suspect, status)
    } else {
        case(suspect, TestCaseStatus::success())
    };
    case.set_system_out(body);
    case
}

/// Returns a test case. Servers recognise it in the next run by its name, which consists of the holder and the class of
/// the held objects.
fn case(suspect: &Suspect, status: TestCaseStatus) -> TestCase {
    let (holder, class) = (printable(&suspect.holder), printable(&suspect.class));
    let mut case = TestCase::new(format!("{holder} keeps {class}"), status);
    case.set_classname("heapdiff.suspects");
    case
}

/// Adds a number to each repeated name of a test case. Servers would treat test cases with the same name as one.
fn number_equals(cases: &mut [TestCase]) {
    let mut seen: HashMap<String, u32> = HashMap::new();
    for case in cases {
        let name = case.name.as_str().to_owned();
        let count = seen.entry(name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            case.name = format!("{name} ({count})").into();
        }
    }
}

/// Maximum number of stacks per suspect.
const STACKS: usize = 3;

/// Describes a suspect in lines of text.
fn described(suspect: &Suspect) -> String {
    let mut lines = vec![
        format!("verdict   {}", verdict(suspect)),
        format!("holder    {}", suspect.holder),
        format!("class     {}", suspect.class),
        format!("objects   {}", series(&suspect.objects, " -> ", grouped)),
        format!(
            "retained  {}",
            series(&suspect.retained_bytes, " -> ", size)
        ),
        format!("root      {}", suspect.root),
    ];
    lines.extend(suspect.path.iter().map(|step| format!("path      {step}")));
    lines.extend(suspect.reasons.iter().map(|why| format!("why       {why}")));
    if let Some(through) = &suspect.allocated_through {
        let share = crate::share(through, suspect.stacks.len());
        lines.push(format!("through   {}: {share}", through.frame));
    }
    lines.extend(
        suspect
            .joined
            .iter()
            .map(|joined| format!("stacks    {joined}")),
    );
    for stack in suspect.stacks.iter().take(STACKS) {
        let bytes = Size(stack.estimated_bytes);
        let is_exact = stack.ci95 == [stack.estimated_bytes; 2];
        let basis = if is_exact { "" } else { " (estimated)" };
        lines.push(match crate::coverage::probability(stack) {
            Some(probability) => format!("allocated {} with {probability}", stack.class),
            None => format!("allocated {bytes} of {}{basis}", stack.class),
        });
        lines.extend(stack.frames.iter().map(|frame| format!("    at {frame}")));
    }
    if suspect.stacks.is_empty() {
        if !suspect.allocated_at.is_empty() {
            lines.push(Samples::NotTracked.to_string());
        }
        for at in suspect.allocated_at.iter().take(STACKS) {
            let (bytes, class) = (Size(at.estimated_bytes), &suspect.class);
            let samples = counted(at.samples, "sample");
            lines.push(format!("allocated {bytes} of {class} ({samples})"));
            lines.extend(at.frames.iter().map(|frame| format!("    at {frame}")));
        }
    }
    let lines: Vec<_> = lines.iter().map(|line| printable(line)).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use heapdiff_diff::Verdict;

    use super::*;
    use crate::synthetic::{HOSTILE, report};
    use crate::tests::{diff_report, suspect};

    fn rendered(report: &DiffReport) -> String {
        let mut out = Vec::new();
        render(report, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn cases_have_the_result_of_the_run() {
        let verdicts = [Verdict::Leak, Verdict::Cache, Verdict::Growth];
        let suspects = (1..)
            .zip(verdicts)
            .map(|(i, v)| suspect(i, "a.B.c", v, 4096));
        let mut report = diff_report(report(suspects.collect(), 0));
        let none = rendered(&report);
        report.more.known = vec![(suspect(9, "k.K.k", Verdict::Leak, 8), "rule".to_owned())];
        report.more.outcomes = vec![Gate {
            name: "--fail-on-suspect".to_owned(),
            tripped: Some("a.B.c".to_owned()),
        }];
        report.more.gates.suspect = true;
        let xml = rendered(&report);
        assert_eq!(xml.matches("<failure").count(), 3, "{xml}");
        assert_eq!(xml.matches("<skipped").count(), 1, "{xml}");
        for name in ["keeps com.acme.Entry\"", "keeps com.acme.Entry (3)\""] {
            assert!(xml.contains(name), "{name}: {xml}");
        }
        assert_eq!(none.matches("<skipped").count(), 2);
        let mut report = diff_report(crate::synthetic::report(Vec::new(), 0));
        report.explained_bytes = 0;
        let unexplained = rendered(&report);
        assert!(unexplained.contains("\"no suspect\""), "{unexplained}");
        report.delta.shallow_bytes = 1000;
        let empty = rendered(&report);
        assert!(empty.contains("no significant growth found"), "{empty}");
    }

    #[test]
    fn unchecked_suspects_and_incomparable_dumps_are_reported() {
        let told = |verdict: Verdict, fails: bool, doubt: bool, stacks: bool| {
            let mut suspect = suspect(1, "a.B.c", verdict, 4096);
            if stacks {
                suspect.stacks[0].ci95[0] -= 1
            } else {
                suspect.stacks[0].ci95 = [suspect.stacks[0].estimated_bytes; 2]
            }
            let mut report = diff_report(report(vec![suspect], 0));
            if doubt {
                report.comparable = false;
                report.warnings.push("of two programs".to_owned());
            }
            report.more.gates.suspect = fails;
            rendered(&report)
        };
        let plain = told(Verdict::Growth, false, false, true);
        let gated = told(Verdict::Growth, true, false, true);
        let cache = told(Verdict::Cache, false, false, true);
        for (sentence, with, without) in [
            ("grew by 4.0 KiB; no gate checks it", &plain, &gated),
            ("; no gate checks it", &plain, &cache),
            (
                "the dumps can be compared",
                &told(Verdict::Growth, false, true, true),
                &plain,
            ),
            (
                "allocated 4.0 KiB of com.acme.Entry (estimated)",
                &plain,
                &told(Verdict::Growth, false, false, false),
            ),
        ] {
            assert!(with.contains(sentence), "{sentence}: {with}");
            assert!(!without.contains(sentence), "{sentence}: {without}");
        }
    }

    #[test]
    fn names_are_escaped() {
        let mut hostile = suspect(1, HOSTILE, Verdict::Leak, 4096);
        hostile.stacks[0]
            .frames
            .push(format!("{HOSTILE}\u{1}\u{ffff}\x1b[31m"));
        let mut report = diff_report(report(vec![hostile], 0));
        report.more.gates.suspect = true;
        let xml = rendered(&report);
        assert!(!xml.contains("<script") && !xml.contains("<b>"), "{xml}");
        assert!(!xml.contains(['\u{1}', '\u{ffff}', '\u{1b}', '\u{202e}']));
    }
}
