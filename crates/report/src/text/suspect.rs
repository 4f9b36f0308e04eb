//! Prints a suspect of a comparison or of one dump.

use heapdiff_diff::sentence::holders_unchanged_sentence;
use heapdiff_diff::{HeapReport, History, Stack, Suspect};
use heapdiff_model::diff::{KnownLeak, difference};
use heapdiff_units::{counted, grouped, signed_size};

use super::path::HolderPath;
use super::stacks;
use super::trace::{hourly, since, sparkline};
use crate::document::{Document, INDENT, Tone, WIDTH};
use crate::{coverage, document, kept, series, size};

/// The report that a suspect belongs to.
pub(super) enum About<'a> {
    /// A comparison of dumps. `common` is the reason that is the same for all suspects, if there is one. The report
    /// prints this reason once, so the text of each suspect omits it.
    Growth { common: Option<&'a str> },
    /// The report of one dump.
    Heap(&'a HeapReport),
}

/// Returns the tone (colour) in which the suspect's verdict is shown: red for a grave verdict, yellow otherwise.
pub(super) const fn tone(suspect: &Suspect) -> Tone {
    if suspect.verdict.is_leak_or_growth() {
        Tone::Red
    } else {
        Tone::Yellow
    }
}

/// Separator of the figures of two dumps.
const ARROW: &str = " -> ";
/// Maximum number of stacks shown for the first suspect, unless the user requests all.
const STACKS: usize = 2;
/// Maximum number of stacks shown for each other suspect.
const STACKS_OF_OTHERS: usize = 1;

pub(super) fn suspect(suspect: &Suspect, about: &About<'_>, verbose: bool, doc: &mut Document) {
    // In a comparison, the first suspect is shown with more stacks and commands than the other suspects.
    let is_first = suspect.rank == 1 || matches!(about, About::Heap(_));
    match about {
        About::Growth { .. } => grown(suspect, verbose, doc),
        About::Heap(heap) => {
            doc.ranked(
                suspect.rank,
                None,
                &suspect.holder,
                &kept::figures(suspect, heap),
            );
            doc.pair("class", &suspect.class);
            doc.pair("objects", series(&suspect.objects, ARROW, grouped));
        }
    }
    let path = HolderPath {
        root: &suspect.root,
        steps: &suspect.path,
        holder: &suspect.holder,
    };
    path.add(verbose, doc);
    reasons(suspect, about, verbose, doc);
    if let Some(history) = &suspect.history {
        self::history(history, doc);
    }
    let limit = match is_first {
        _ if verbose => usize::MAX,
        true => STACKS,
        false => STACKS_OF_OTHERS,
    };
    if suspect.stacks.is_empty() {
        for (label, sentence) in coverage::evidence(suspect) {
            doc.reason(label, sentence);
        }
        allocated_at(suspect, limit, verbose, doc);
    } else {
        sampled(suspect, limit, verbose, doc);
    }
    if let Some(work) = &suspect.work {
        doc.reason("work", work);
    }
    if let Some(known) = &suspect.known {
        doc.reason("known", known_leak(known));
        doc.pair("", &known.link);
    }
    if let Some(fix) = &suspect.likely_fix {
        doc.reason("fix", fix);
    }
    let commands = if is_first || verbose { usize::MAX } else { 1 };
    for (i, command) in suspect.next.iter().take(commands).enumerate() {
        doc.pair(if i == 0 { "next" } else { "" }, command);
    }
}

/// Returns a known leak in one sentence, without its link.
pub(crate) fn known_leak(known: &KnownLeak) -> String {
    let version = known.version.as_ref();
    let version = version.map_or_else(|| "version unknown".to_owned(), Clone::clone);
    let fixed = match &known.fixed_in {
        Some(fixed) => format!("fixed in {fixed}"),
        None => "no version fixes it".to_owned(),
    };
    let KnownLeak {
        id, library, cause, ..
    } = known;
    format!("{id} ({library}, {version}): {cause}; {fixed}")
}

/// Returns the growth of a suspect in the heap. If its off-heap memory grew, also returns that growth.
pub(crate) fn grown_bytes(suspect: &Suspect) -> String {
    let grown = signed_size(suspect.growth.retained_bytes);
    match difference(&suspect.off_heap_bytes) {
        ..=0 => grown,
        off_heap => format!("{} off heap, {grown} in the heap", signed_size(off_heap)),
    }
}

/// Adds the growth of a suspect, and its figures in each dump.
fn grown(suspect: &Suspect, verbose: bool, doc: &mut Document) {
    let grown = grown_bytes(suspect);
    let verdict = Some((crate::verdict(suspect), tone(suspect)));
    doc.ranked(suspect.rank, verdict, &suspect.holder, &grown);
    let class = &suspect.class;
    let (objects, retained) = (
        series(&suspect.objects, ARROW, grouped),
        series(&suspect.retained_bytes, ARROW, size),
    );
    let one_line = format!("{objects} of class {class}, which retain {retained}");
    if one_line.chars().count() <= WIDTH - INDENT {
        doc.pair("objects", one_line);
    } else {
        doc.pair("class", class);
        doc.pair("objects", format!("{objects}, which retain {retained}"));
    }
    let is_in_reason = !verbose && suspect.detector.as_deref() == Some("direct-buffer");
    if !suspect.off_heap_bytes.is_empty() && !is_in_reason {
        doc.pair("off heap", series(&suspect.off_heap_bytes, ARROW, size));
    }
}

fn reasons(suspect: &Suspect, about: &About<'_>, verbose: bool, doc: &mut Document) {
    let (mut label, common) = match about {
        About::Growth { common } => ("why", *common),
        About::Heap(_) => ("about", None),
    };
    // If a known leak pattern matches, its figures already show that the holders hold more objects. So the reason with
    // this statement is not printed.
    let more_held = holders_unchanged_sentence();
    let is_obvious = |reason: &str| !verbose && suspect.detector.is_some() && reason == more_held;
    for reason in &suspect.reasons {
        if common != Some(reason) && !is_obvious(reason) {
            doc.reason(label, reason);
            label = "";
        }
    }
}

/// Adds the history of the objects that the suspect's stacks allocated. The history comes from a trace.
fn history(history: &History, doc: &mut Document) {
    doc.pair("history", sparkline(&history.series.live_bytes));
    doc.pair("", rate(history));
    if let Some(began) = began(history) {
        doc.pair("since", began);
    }
}

/// Returns the growth per hour, the trend, and the number of different ages of the live objects.
pub(crate) fn rate(history: &History) -> String {
    let rate = match history.slope.ci95 {
        Some(_) => format!("{}, {}", hourly(&history.slope), history.trend),
        None => "too few GCs for a rate".to_owned(),
    };
    match history.surviving_generations {
        Some(ages) => format!("{rate}, {}", counted(ages, "surviving generation")),
        None => rate,
    }
}

/// Returns the time when the growth began; `None` if there is no growth.
pub(crate) fn began(history: &History) -> Option<String> {
    let (ms, uptime) = (history.began_ms?, history.began_uptime_ms?);
    Some(since(ms, uptime, history.began_within?))
}

/// Returns the first `limit` stacks. Exception: if none of these stacks allocated objects of the suspect's class but a
/// later stack did, the later stack replaces the last of them. Stacks of a recording are never replaced, because they
/// are sorted by probability.
fn first_stacks<'a>(stacks: &'a [Stack], class: &str, limit: usize) -> Vec<&'a Stack> {
    let mut first: Vec<&Stack> = stacks.iter().take(limit).collect();
    let direct = stacks.iter().find(|stack| stack.class == class);
    if let (Some(direct), Some(last)) = (direct, first.last_mut())
        && last.probability_permille.is_none()
        && stacks.iter().take(limit).all(|stack| stack.class != class)
    {
        *last = direct;
    }
    first
}

/// Adds at most `limit` stacks, and the sentence about the bytes that the samples represent.
fn sampled(suspect: &Suspect, limit: usize, verbose: bool, doc: &mut Document) {
    let stacks = &suspect.stacks;
    if let Some(through) = &suspect.allocated_through {
        doc.pair("through", &through.frame);
        doc.pair("", crate::share(through, stacks.len()));
    }
    for stack in first_stacks(stacks, &suspect.class, limit) {
        stacks::stack(stack, None, verbose, doc);
    }
    let more = stacks.len().saturating_sub(limit);
    let mut evidence = coverage::evidence(suspect);
    if more > 0
        && let Some((_, last)) = evidence.last_mut()
    {
        *last += &format!("; {}", more_stacks(more));
    }
    for (label, text) in evidence {
        doc.reason(label, text);
    }
}

/// Adds stacks that allocated objects of the suspect's class. The report has these stacks only if the agent tracks no
/// sample of the suspect's content.
fn allocated_at(suspect: &Suspect, limit: usize, verbose: bool, doc: &mut Document) {
    for at in suspect.allocated_at.iter().take(limit) {
        doc.stack(document::Stack {
            number: None,
            class: suspect.class.clone(),
            figures: coverage::allocated_at(at),
            frames: at.frames.clone(),
            threads: Vec::new(),
            verbose,
        });
    }
    let more = suspect.allocated_at.len().saturating_sub(limit);
    if more > 0 {
        doc.pair("", more_stacks(more));
    }
}

/// Returns the number of stacks that are not shown.
fn more_stacks(more: usize) -> String {
    format!("{} (-v shows all)", counted(more as u64, "more stack"))
}

#[cfg(test)]
mod tests {
    use heapdiff_model::labels::{Label, LabelShare, Labels};

    use super::*;
    use crate::style::Style;
    use crate::text::tests::printed;

    const GROWTH: About<'_> = About::Growth { common: None };

    #[test]
    fn long_names_do_not_make_lines_too_long() {
        use crate::synthetic::{HOSTILE, stack, suspect};

        let long = format!("com.acme.{}.Order\u{6f22}", "deep.".repeat(60));
        let mut one = suspect(
            1,
            &format!("{long}.field"),
            heapdiff_diff::Verdict::Leak,
            4096,
        );
        one.class.clone_from(&long);
        one.root = format!("static {long}");
        one.path = (0..40).map(|i| format!("{long}.f{i}")).collect();
        one.reasons = vec![format!("held by {long} and {HOSTILE}"), "short ".repeat(60)];
        one.stacks = vec![stack(&format!("{long}.call(Order.java:7)"), 9000, 80)];
        for verbose in [false, true] {
            let style = Style::plain().within(WIDTH);
            let text = printed(style, |doc| super::suspect(&one, &GROWTH, verbose, doc));
            let widest = text.lines().max_by_key(|l| l.chars().count()).unwrap();
            assert!(widest.chars().count() <= WIDTH, "{widest}");
            assert!(!text.contains('\u{202e}'), "{text}");
            assert_eq!(text.contains("27 more steps"), !verbose, "{text}");
        }
    }

    fn rendered(one: &Suspect, verbose: bool) -> String {
        let text = printed(Style::plain(), |doc| {
            super::suspect(one, &GROWTH, verbose, doc)
        });
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_history_has_the_number_of_ages() {
        let mut history = History::default();
        assert_eq!(rate(&history), "too few GCs for a rate");
        history.surviving_generations = Some(12);
        assert_eq!(
            rate(&history),
            "too few GCs for a rate, 12 surviving generations"
        );
    }

    #[test]
    fn a_known_leak_and_labels_are_stated_in_each_format() {
        use crate::Format;
        use crate::synthetic::{report, suspect};

        let mut one = suspect(1, "a.Pool.all", heapdiff_diff::Verdict::Growth, 4096);
        one.known = Some(KnownLeak {
            id: "pool-17".to_owned(),
            library: "pool".to_owned(),
            version: Some("1.2".to_owned()),
            cause: "it never shrinks".to_owned(),
            fixed_in: Some("1.3, 2.1".to_owned()),
            link: "https://example.com/17".to_owned(),
        });
        let label = Label {
            key: "tenant".to_owned(),
            value: "acme".to_owned(),
        };
        one.labels = Some(Labels {
            common: Some(LabelShare {
                labels: vec![label],
                permille: 930,
                samples: 28,
                live_permille: 410,
            }),
            samples: 30,
            ..Labels::default()
        });
        let labels = "93.0% of the surviving bytes came from tenant acme (28 of 30 samples; ";
        let sentence = "pool-17 (pool, 1.2): it never shrinks; fixed in 1.3, 2.1";
        let text = rendered(&one, false);
        let expected = format!("known {sentence} https://example.com/17");
        assert!(
            text.contains(&expected) && text.contains(&format!("labels {labels}")),
            "{text}"
        );
        let report = report(vec![one.clone()], 1);
        for (format, expected) in [
            (
                Format::Md,
                format!("Known leak: {sentence}. <https://example.com/17>"),
            ),
            (Format::Html, sentence.to_owned()),
        ] {
            let report = crate::Report::Diff(Box::new(report.clone().into()));
            let mut out = Vec::new();
            crate::render(format, &report, Style::plain(), &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            assert!(text.contains(&expected), "{format:?}: {text}");
            assert!(text.contains(labels), "{format:?}: {text}");
        }
        let known = KnownLeak {
            version: None,
            fixed_in: None,
            ..one.known.unwrap()
        };
        assert_eq!(
            known_leak(&known),
            "pool-17 (pool, version unknown): it never shrinks; no version fixes it"
        );
    }

    #[test]
    fn growth_not_covered_by_samples_is_reported() {
        use crate::synthetic::{stack, suspect};

        let plain = || {
            suspect(
                1,
                "com.acme.Shop.orders",
                heapdiff_diff::Verdict::Leak,
                100_000,
            )
        };
        let sampled = "97.7 KiB of 97.7 KiB growth, in 10 samples";
        let all = [
            "9.8 KiB of the growth is not covered by samples",
            "lost samples represent up to 4.9 KiB",
            "1 more stack (-v shows all)",
        ];
        let text = rendered(&plain(), false);
        assert!(text.ends_with(sampled), "{text}");
        assert!(!all.iter().any(|part| text.contains(part)), "{text}");
        let mut some = plain();
        some.coverage.unsampled_bytes = 10_000;
        assert!(rendered(&some, false).ends_with(&format!("{sampled}; {}", all[0])));
        some.coverage.unsampled_bytes = 900;
        assert!(!rendered(&some, false).contains("not covered by samples"));
        let mut more = plain();
        more.coverage.sampled_bytes = 500_000;
        assert!(rendered(&more, false).contains(
            "488.3 KiB of 97.7 KiB growth, in 10 samples; the estimate from the samples is more than the growth:"
        ));
        more.coverage.sampled_bytes = 100_900;
        assert!(!rendered(&more, false).contains("more than the growth"));
        let mut lost = plain();
        lost.coverage.unseen_bytes = 5000;
        assert!(rendered(&lost, false).ends_with(&format!("{sampled}; {}", all[1])));
        let mut many = plain();
        many.stacks = vec![stack("com.acme.Main.main(Main.java:7)", 9000, 80); 3];
        assert!(rendered(&many, false).ends_with(&format!("{sampled}; {}", all[2])));
        assert!(rendered(&many, true).ends_with(sampled));
        // If there are no stacks, the text does not mention samples.
        let mut none = some;
        none.stacks.clear();
        assert!(!rendered(&none, false).contains("sample"));
    }
}
