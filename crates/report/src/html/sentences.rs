//! Sentences about suspects on web pages. They are the same as in text reports.

use std::fmt::Write as _;

use heapdiff_diff::sentence::Samples;
use heapdiff_diff::{Report, Stack, Suspect};
use heapdiff_units::counted;
use serde::Serialize;

use super::text;
use crate::coverage;
use crate::text::{HolderPath, began, grown_bytes, interval, known_leak, rate, thread_phrase};
use crate::view::DiffView;

/// Sentences about the report, which the script shows.
#[derive(Serialize)]
pub(super) struct Sentences {
    /// The sentence that replaces the list of suspects if there are none.
    none: Option<String>,
    no_stack: String,
    /// Number of classes that changed, listed or not.
    all_classes: usize,
    /// The sentences of each suspect, in the order of the report.
    suspects: Vec<SuspectSentences>,
}

#[derive(Serialize)]
struct SuspectSentences {
    /// The GC root and the steps of the path.
    path: Vec<String>,
    /// The index of the holder in `path`.
    holder: Option<usize>,
    grown: String,
    /// The growth per hour from a trace, and when the growth began.
    rate: Option<String>,
    began: Option<String>,
    through: Option<String>,
    known: Option<String>,
    /// The figures of each stack of the suspect.
    stacks: Vec<String>,
    /// Sentences about the stacks, each with its label.
    evidence: Vec<(&'static str, String)>,
}

impl SuspectSentences {
    /// Returns the sentences of a suspect. `listed` is the same suspect with only the stacks that the page lists.
    fn new(suspect: &Suspect, listed: &Suspect) -> Self {
        let (path, holder) = path_of(suspect);
        let (history, through) = (&suspect.history, &suspect.allocated_through);
        let figures = listed.stacks.iter().map(figures);
        let allocated = suspect.allocated_at.iter().map(coverage::allocated_at);
        Self {
            path,
            holder,
            grown: grown_bytes(suspect),
            rate: history.as_ref().map(rate),
            began: history.as_ref().and_then(began),
            through: through
                .as_ref()
                .map(|through| crate::share(through, suspect.stacks.len())),
            known: suspect.known.as_ref().map(known_leak),
            stacks: figures.chain(allocated).collect(),
            evidence: evidence(suspect, listed.stacks.len()),
        }
    }
}

/// Returns the sentences about the stacks of a suspect, each with its label. `listed` is the number of stacks that the
/// page lists.
pub(super) fn evidence(suspect: &Suspect, listed: usize) -> Vec<(&'static str, String)> {
    let mut all = coverage::evidence(suspect);
    let more = suspect.stacks.len().saturating_sub(listed) as u64;
    if more > 0
        && let Some((_, sentence)) = all.last_mut()
    {
        let _ = write!(sentence, "; {} in JSON", counted(more, "more stack"));
    }
    for (_, sentence) in &mut all {
        *sentence = text(&*sentence);
    }
    all
}

impl Sentences {
    /// Returns the sentences of a report. `listed` is the part of the report that is on the page.
    pub(super) fn new(report: &Report, listed: &Report, more: &DiffView) -> Self {
        let is_empty = report.suspects.is_empty() && more.more_suspects.is_empty();
        let none = || crate::explained::no_suspects_sentence(report);
        let none = is_empty.then(|| none().unwrap_or_else(|| "no suspect".to_owned()));
        let suspects = report.suspects.iter().zip(&listed.suspects);
        Self {
            none: none.as_deref().map(crate::capitalized),
            no_stack: Samples::NoStack.to_string(),
            all_classes: report.classes.len() + more.more_classes,
            suspects: suspects
                .map(|(suspect, listed)| SuspectSentences::new(suspect, listed))
                .collect(),
        }
    }
}

/// The reference by which a thread holds the value of a `ThreadLocal`.
const THREAD_LOCAL: &str = "java.lang.ThreadLocal$ThreadLocalMap$Entry.value";

/// Returns the GC root and the path of a suspect, and the index of the holder in the path. If a known field refers to
/// the `ThreadLocal` of the suspect, the step from the thread to the value shows this field.
pub(super) fn path_of(suspect: &Suspect) -> (Vec<String>, Option<usize>) {
    let holder = &*suspect.holder;
    let path = HolderPath {
        root: &suspect.root,
        steps: &suspect.path,
        holder,
    };
    let mut steps = path.rooted();
    let value = steps.iter_mut().rfind(|step| *step == THREAD_LOCAL);
    if let Some((value, field)) = value.zip(suspect.thread_local.as_ref()) {
        *value = format!("ThreadLocal {field}");
    }
    let is_holder = |step: &String| {
        let names = ["static ", "ThreadLocal "].map(|kind| step.strip_prefix(kind));
        step == holder || names.contains(&Some(holder))
    };
    let at = steps.iter().position(is_holder);
    (steps, at)
}

/// Returns the figures and threads of a stack as a sentence.
pub(super) fn figures(stack: &Stack) -> String {
    let mut text = coverage::probability(stack).unwrap_or_else(|| {
        let bytes = interval(stack.estimated_bytes, stack.ci95);
        format!("{bytes}, {}", coverage::stack(stack))
    });
    let threads: Vec<String> = stack.threads.iter().map(self::text).collect();
    if let Some((first, others)) = threads.split_first() {
        let _ = write!(text, ", {}", thread_phrase(first, others));
    }
    text
}

#[cfg(test)]
mod tests {
    use heapdiff_diff::Verdict;

    use super::super::tests::{embedded, rendered};
    use super::*;
    use crate::html::render;
    use crate::synthetic::report;
    use crate::tests::{diff_report, suspect};
    use crate::text::taken;

    #[test]
    fn the_holder_of_a_path_has_its_name() {
        let mut one = suspect(1, "a.Ctx.CURRENT", Verdict::Leak, 4096);
        one.root = "static a.Ctx".to_owned();
        one.path = vec!["a.Ctx.CURRENT".to_owned(), "java.lang.Object[*]".to_owned()];
        let (path, holder) = path_of(&one);
        assert_eq!(path, ["static a.Ctx.CURRENT", "java.lang.Object[*]"]);
        assert_eq!(holder, Some(0));
        one.root = "thread java.lang.Thread".to_owned();
        one.path = vec![THREAD_LOCAL.to_owned(), "java.lang.Object[*]".to_owned()];
        // The field of the ThreadLocal must come from `thread_local`. A suggested fix may contain the name of another
        // field, so its text must not be used.
        one.likely_fix = Some("call remove() of a.Ctx.CURRENT".to_owned());
        assert_eq!(path_of(&one).1, None);
        one.thread_local = Some("a.Ctx.CURRENT".to_owned());
        let (path, holder) = path_of(&one);
        assert_eq!(path[1], "ThreadLocal a.Ctx.CURRENT");
        assert_eq!(holder, Some(1));
    }

    /// Returns the text report. Each sequence of spaces and line ends in it is replaced by one space.
    fn in_text(report: &Report) -> String {
        let report = crate::Report::Diff(Box::new(diff_report(report.clone())));
        let mut out = Vec::new();
        crate::text::render(&report, crate::style::Style::plain(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Returns the sentences about the first suspect that the page shows.
    fn about_first(report: &Report) -> serde_json::Value {
        let page = rendered(report, None);
        let sentences: serde_json::Value =
            serde_json::from_str(embedded(&page, "sentences")).unwrap();
        sentences["suspects"][0].clone()
    }

    #[test]
    fn sentences_are_those_of_the_text_report() {
        let plain = || suspect(1, "a.B.c", Verdict::Leak, 4096);
        let mut joined = plain();
        joined.joined = Some("allocated in a.B.add, probability 0.9: 9 of 10 samples".to_owned());
        let mut unknown = joined.clone();
        unknown.joined = Some("allocating code unknown: no matching sample".to_owned());
        unknown.stacks.clear();
        let mut untracked = plain();
        untracked.stacks.clear();
        untracked.allocated_at = vec![heapdiff_model::diff::AllocatedAt {
            frames: vec!["a.B.add(B.java:7)".to_owned()],
            samples: 3,
            estimated_bytes: 5000,
        }];
        let mut outside = plain();
        outside.off_heap_bytes = vec![0, 3 << 20];
        let mut steady = plain();
        steady.history = Some(heapdiff_diff::History {
            trend: "steady".into(),
            slope: heapdiff_diff::HistorySlope {
                bytes_per_hour: 1_288_490,
                ci95: Some([1_181_116, 1_395_865]),
                ..Default::default()
            },
            began_ms: Some(1_760_000_010_999),
            began_uptime_ms: Some(90_000),
            began_within: Some(true),
            ..Default::default()
        });
        let mut short = steady.clone();
        let history = short.history.as_mut().unwrap();
        history.slope.ci95 = None;
        history.began_within = Some(false);
        let since = "2025-10-09 08:53:30 UTC, 1m30s into the run";
        for (case, key, label, sentence) in [
            (&plain(), "grown", "", "+4.0 KiB"),
            (
                &plain(),
                "evidence",
                "sampled",
                "4.0 KiB of 4.0 KiB growth, in 10 samples",
            ),
            (
                &joined,
                "evidence",
                "code",
                "allocated in a.B.add, probability 0.9: 9 of 10 samples",
            ),
            (
                &unknown,
                "evidence",
                "code",
                "allocating code unknown: no matching sample",
            ),
            (&untracked, "stacks", "", "4.9 KiB allocated, 3 samples"),
            (
                &outside,
                "grown",
                "",
                "+3.0 MiB off heap, +4.0 KiB in the heap",
            ),
            (
                &steady,
                "rate",
                "",
                "+1.2 MiB/h (+1.1 MiB to +1.3 MiB), steady",
            ),
            (&steady, "began", "since", since),
            (&short, "rate", "", "too few GCs for a rate"),
            (
                &short,
                "began",
                "since",
                "the first data point, perhaps earlier",
            ),
        ] {
            let report = report(vec![case.clone()], 3);
            let said = about_first(&report);
            let said = match key {
                "evidence" => said[key].clone(),
                "stacks" => said[key][0].clone(),
                _ => said[key].clone(),
            };
            let expected = match key {
                "evidence" => serde_json::json!([[label, sentence]]),
                _ => sentence.into(),
            };
            assert_eq!(said, expected, "{key}");
            let line = format!("{label} {sentence}");
            let text = in_text(&report);
            assert!(text.contains(line.trim()), "{line}: {text}");
        }
        let evidence = about_first(&report(vec![untracked.clone()], 3))["evidence"].clone();
        let not_tracked = Samples::NotTracked.to_string();
        assert_eq!(evidence, serde_json::json!([["sampled", not_tracked]]));
        untracked.allocated_at.clear();
        assert_eq!(evidence_of_none(untracked), serde_json::json!([]));
    }

    fn evidence_of_none(suspect: Suspect) -> serde_json::Value {
        about_first(&report(vec![suspect], 3))["evidence"].clone()
    }

    #[test]
    fn figures_of_a_cut_suspect_are_those_of_the_report() {
        let mut one = suspect(1, "a.B.c", Verdict::Leak, 4096);
        one.stacks = vec![one.stacks[0].clone(); 4];
        one.allocated_through = Some(heapdiff_diff::Through {
            frame: "a.B.add(B.java:7)".to_owned(),
            permille: 800,
            stacks: 3,
            ..Default::default()
        });
        let mut listed = one.clone();
        listed.stacks.truncate(1);
        let said = SuspectSentences::new(&one, &listed);
        let through = crate::share(one.allocated_through.as_ref().unwrap(), 4);
        assert_eq!(said.through, Some(through));
        assert_eq!(said.stacks.len(), 1);
        assert!(said.evidence[0].1.ends_with("; 3 more stacks in JSON"));
        let whole = SuspectSentences::new(&one, &one);
        assert!(!whole.evidence[0].1.contains("more stack"));
    }

    #[test]
    fn the_summary_is_that_of_the_text_report() {
        let mut report = report(Vec::new(), 3);
        report.explained_bytes = 0;
        let none = |report: &Report| {
            let page = rendered(report, None);
            let said: serde_json::Value =
                serde_json::from_str(embedded(&page, "sentences")).unwrap();
            said["none"].as_str().map(str::to_lowercase)
        };
        // The heap grew, but no suspect explains it.
        assert_eq!(none(&report).as_deref(), Some("no suspect."));
        assert!(in_text(&report).contains("no suspect "));
        let page = rendered(&report, None);
        let taken = taken(&report.snapshots, 0);
        assert!(page.contains(&format!("<td>{taken}</td>")) && in_text(&report).contains(&taken));
        let same = "ize of the reachable heap did not change";
        assert!(!page.contains(same) && !in_text(&report).contains(same));
        report.delta = heapdiff_diff::Delta::default();
        let (page, text) = (rendered(&report, None), in_text(&report));
        assert!(page.contains(same) && text.contains(same), "{text}");
        assert!(!page.contains(" of reachable heap,</span>") && !page.contains("0 objects"));
        // A report without stacks contains a hint how to get stacks.
        let mut one = suspect(1, "a.B.c", Verdict::Leak, 4096);
        let hint = "for stacks next time";
        assert!(!rendered(&self::report(vec![one.clone()], 3), None).contains(hint));
        one.stacks.clear();
        assert!(rendered(&self::report(vec![one], 3), None).contains(hint));
    }

    #[test]
    fn classes_that_are_not_listed_are_counted() {
        let told = |more: usize| {
            let mut report = diff_report(report(Vec::new(), 3));
            report.more.more_classes = more;
            let mut out = Vec::new();
            render(&report, &mut out).unwrap();
            let page = String::from_utf8(out).unwrap();
            let said: serde_json::Value =
                serde_json::from_str(embedded(&page, "sentences")).unwrap();
            let note = page.contains("that changed (--top N shows more)</p>");
            (said["all_classes"].as_u64(), note)
        };
        assert_eq!(told(0), (Some(3), false));
        assert_eq!(told(7), (Some(10), true));
    }
}
