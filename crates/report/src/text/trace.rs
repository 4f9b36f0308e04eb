//! Prints a trace: its runs, and possible leaks.

mod counted;
mod info;
mod lines;

use heapdiff_model::diff::HistorySlope;
use heapdiff_model::trace::{CandidateRow, RunInfo, TraceTopReport};
use heapdiff_units::{Size, counted, grouped, percent, signed, signed_size};

pub(crate) use self::info::info;
use super::stacks::interval;
use crate::coverage;
use crate::document::{Document, Tone, dim, yellow};
use crate::outlook::heap_end;
use crate::times::{span, utc};
use crate::view::{TraceTopView, Viewed};

/// Maximum number of frames shown for each stack, unless the user requests all.
const FRAMES: usize = 8;
/// Maximum number of stacks shown for a possible leak, unless the user requests all.
const PATHS: usize = 3;
/// Maximum number of callers shown for each stack.
const CALLERS: usize = 4;

pub(crate) fn top(report: &Viewed<TraceTopReport, TraceTopView>, doc: &mut Document) {
    let window = &report.window;
    let figures = format!(
        "{} UTC, {}",
        utc(window.from_ms),
        span(window.to_uptime_ms.saturating_sub(window.from_uptime_ms)),
    );
    doc.subject(&report.trace.path, &figures);
    run(&report.run, doc);
    if report.by != "line" {
        grown(report, doc);
    }
    lines::add(report, doc);
}

/// Adds the totals of live objects, and of the objects that grow.
fn grown(report: &Viewed<TraceTopReport, TraceTopView>, doc: &mut Document) {
    let totals = &report.totals;
    let is_known = report.alive_at != "unknown";
    let is_most = !is_known || report.alive_at == "major" && report.alive_of_uptime_ms.is_none();
    let mut text = format!(
        "{}{} alive in {}; {} allocated",
        if is_most { "at most " } else { "" },
        interval(totals.live_bytes, totals.ci95),
        counted(totals.live_samples, "sample"),
        Size(totals.allocated_bytes),
    );
    if report.basis != "survivors" {
        text += &format!(", {} collected", Size(totals.collected_bytes));
    }
    doc.one_line(text);
    let all = report.collections.all;
    let text = match report.basis {
        "major" => format!(
            "compared: live bytes after each of {} full GCs",
            report.collections.major
        ),
        "collections" => format!(
            "compared: minimum of live bytes between GCs ({}, {} of them full)",
            counted(all, "GC"),
            grouped(report.collections.major)
        ),
        "survivors" if totals.live_samples == 0 => {
            "the recording has data about allocations, but not about live objects".to_owned()
        }
        "survivors" => {
            "compared: live objects at the end, by allocation time; in this view, a cache can look like growth".to_owned()
        }
        _ if !is_known => "compared: minimum of the live bytes in each period; unreachable objects may be included".to_owned(),
        _ => "there was no GC, so objects that count as alive may be unreachable".to_owned(),
    };
    doc.note(text);
    if let Some(text) = outlook(report) {
        doc.one_line(text);
    }
    let at = match (report.alive_at, report.alive_at_uptime_ms) {
        ("major", Some(ms)) if let Some(of) = report.alive_of_uptime_ms => Some(format!(
            "alive: objects allocated in the first {} that survived the full GC at {}; unknown for newer objects",
            span(of),
            span(ms)
        )),
        ("major", Some(ms)) => Some(format!(
            "alive: objects that survived the full GC at {}, and newer objects, which may be unreachable",
            span(ms)
        )),
        ("unknown", _) => Some(
            "live bytes are unknown until a full GC, because young GCs of ZGC free no sampled object"
                .to_owned(),
        ),
        _ => None,
    };
    if let Some(text) = at {
        doc.one_line(dim(text));
    }
    if let Some(focus) = &report.focus {
        let text = format!("only stacks with a frame that matches {focus}");
        doc.one_line(dim(text));
    }
    if totals.lost_samples > 0 {
        let lost = counted(totals.lost_samples, "sample");
        let text = format!(
            "lost: {lost} ({}), so figures are too low by this amount",
            Size(totals.lost_bytes)
        );
        doc.line(yellow(text));
    }
    let shown = report
        .candidates
        .iter()
        .filter(|c| report.view.verbose || grows(c));
    let mut count = 0;
    for candidate in shown {
        count += 1;
        doc.gap();
        self::candidate(candidate, report, doc);
    }
    doc.gap();
    let of = match report.by {
        "frame" => "allocating frame",
        "site" => "allocation site",
        _ => "class",
    };
    let of = |number: u64, which: &str| counted(number, &format!("{which}{of}"));
    let rest = totals.growing.saturating_sub(count);
    let steady = totals.candidates - totals.growing;
    let text = match (count, rest) {
        (0, 0) if report.basis == "survivors" => {
            format!("no growth visible in {}", of(totals.candidates, ""))
        }
        (0, 0) => format!("no growth in {}", of(totals.candidates, "")),
        _ if report.view.verbose => format!("{} in total", of(totals.candidates, "")),
        (_, 0) => format!("{} did not grow (shown with -v)", of(steady, "other ")),
        _ => format!(
            "{} more grew (--top N shows more), {} did not",
            grouped(rest),
            of(steady, "")
        ),
    };
    doc.note(text);
    counted::add(report, doc);
}

/// Returns the sentence about the used heap after full GCs; `None` if there were too few full GCs.
fn outlook(report: &TraceTopReport) -> Option<String> {
    let trend = &report.heap_after_full_gcs;
    let rate = signed_size(trend.bytes_per_hour?);
    let is_container = trend.limit == Some("container");
    let end = heap_end(trend.outlook, report.oom, trend.limit_bytes, is_container);
    Some(format!("heap after full GCs: {rate}/h, {end}"))
}

fn grows(candidate: &CandidateRow) -> bool {
    matches!(candidate.verdict, "leak" | "growth" | "unclear")
}

fn candidate(
    candidate: &CandidateRow,
    report: &Viewed<TraceTopReport, TraceTopView>,
    doc: &mut Document,
) {
    let tone = match candidate.verdict {
        "leak" => Tone::Red,
        _ => Tone::Yellow,
    };
    let verdict = Some((candidate.verdict, tone));
    let slope = hourly(&candidate.slope);
    doc.ranked(candidate.rank, verdict, &candidate.class, &slope);
    let alive = format!(
        "{} in {}, {}",
        interval(candidate.live_bytes, candidate.ci95),
        counted(candidate.live_objects, "object"),
        counted(candidate.live_samples, "sample")
    );
    doc.pair("alive", alive);
    let mut grew = format!(
        "{}, {} objects, trend: {}",
        signed_size(candidate.growth.bytes),
        signed(candidate.growth.objects),
        candidate.trend,
    );
    if let Some(permille) = candidate.survival_permille {
        let (whole, tenth) = (permille / 10, permille % 10);
        grew += &format!("; {whole}.{tenth} % of the allocated bytes are still alive");
    }
    doc.pair("grew", grew);
    if let Some(permille) = candidate.heap_growth_permille {
        let share = format!("{}.{} %", permille / 10, permille % 10);
        doc.pair(
            "share",
            format!("{share} of the growth of the heap after full GCs"),
        );
    }
    if report.by == "class" {
        doc.pair("created", counted::class_allocations(candidate));
    }
    if let Some(by_work) = &candidate.per_work {
        let slope = with_interval(
            by_work.bytes_per_gib,
            by_work.ci95,
            " for each GiB allocated",
        );
        doc.pair("per GiB", format!("{slope}, trend: {}", by_work.trend));
        if by_work.only_clock_is_over && grows(candidate) {
            let text = "growth per hour has ended, but not growth per allocated GiB: the program may be less busy now";
            doc.pair("", text);
        }
    }
    if candidate.grew_across_major == Some(false) && grows(candidate) {
        doc.pair(
            "",
            "live bytes did not grow between the first and the last full GC",
        );
    }
    if let (Some(ms), Some(uptime), Some(within)) = (
        candidate.began_ms,
        candidate.began_uptime_ms,
        candidate.began_within,
    ) {
        doc.pair("since", since(ms, uptime, within));
    }
    doc.pair("history", sparkline(&candidate.series.live_bytes));
    if let Some(labels) = &candidate.labels {
        doc.reason("labels", coverage::labels(labels));
    }
    frames(candidate, report.view.verbose, doc);
}

/// Returns the time when growth began. If `within` is false, growth may have begun before the first data point.
pub(super) fn since(ms: u64, uptime: u64, within: bool) -> String {
    if within {
        format!("{} UTC, {} into the run", utc(ms), span(uptime))
    } else {
        "the first data point, perhaps earlier".to_owned()
    }
}

fn frames(candidate: &CandidateRow, verbose: bool, doc: &mut Document) {
    if candidate.paths.is_empty() {
        return doc.frames("from", &candidate.frames, verbose, FRAMES);
    }
    let stacks = counted(candidate.stacks, "stack");
    let stacks = format!("{stacks}; the stacks with the most live bytes:");
    match &candidate.frame {
        Some(frame) => {
            doc.pair("at", frame);
            doc.pair("", format!("on {stacks}"));
        }
        None => doc.pair("from", stacks),
    }
    let shown = if verbose { usize::MAX } else { PATHS };
    for path in candidate.paths.iter().take(shown) {
        // The frame that is in all stacks is printed on its own line above them, so each stack shows only the callers
        // of this frame.
        let at = candidate.frame.as_ref();
        let at = at.and_then(|at| path.frames.iter().position(|f| f == at));
        let callers = at.map_or(&path.frames[..], |at| &path.frames[at + 1..]);
        let share = percent(path.live_bytes, candidate.live_bytes);
        doc.frames(&share, callers, verbose, CALLERS);
    }
}

/// Formats growth per hour with its interval: `+1.2 GiB/h (1.1 GiB to 1.3 GiB)`.
pub(super) fn hourly(slope: &HistorySlope) -> String {
    with_interval(slope.bytes_per_hour, slope.ci95, "/h")
}

fn with_interval(bytes: i64, ci95: Option<[i64; 2]>, per: &str) -> String {
    let size = |bytes: i64| signed_size(bytes);
    let interval = match ci95 {
        Some([low, high]) if low == high => String::new(),
        Some([low, high]) => format!(" ({} to {})", size(low), size(high)),
        None => " (too few GCs for a confidence interval)".to_owned(),
    };
    format!("{}{per}{interval}", size(bytes))
}

/// Returns a line of block characters, whose heights represent the figures.
pub(super) fn sparkline(figures: &[u64]) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = figures.iter().copied().max().unwrap_or(0).max(1);
    let block = |&figure: &u64| {
        let at = u128::from(figure) * 7 / u128::from(most);
        BLOCKS[usize::try_from(at).unwrap_or(7).min(7)]
    };
    figures.iter().map(block).collect()
}

pub(super) fn run(run: &RunInfo, doc: &mut Document) {
    let service = run
        .service
        .as_ref()
        .map_or_else(String::new, |s| format!("{s}, "));
    // Recordings do not contain the name of the host.
    let host = match &*run.host {
        "" => String::new(),
        host => format!(" on {host}"),
    };
    let text = format!(
        "run {}: {service}process {}{host}, {}",
        run.number, run.pid, run.jvm
    );
    doc.one_line(dim(text));
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::style::Style;
    use crate::text::tests::printed;

    #[test]
    fn a_sparkline_is_scaled_to_its_maximum() {
        assert_eq!(sparkline(&[0, 1, 4, 7]), "▁▂▅█");
        assert_eq!(sparkline(&[0, 0]), "▁▁");
        assert_eq!(sparkline(&[]), "");
        assert_eq!(sparkline(&[u64::MAX, 0]), "█▁");
    }

    use heapdiff_model::diff::HistorySeries;
    use heapdiff_model::trace::{
        Collections, HeapTrendRow, Oom, PathRow, PerWorkRow, TraceFile, TraceTotals, WindowRow,
    };

    pub(in crate::text) fn run_info(strategy: &str, interval_bytes: u64) -> RunInfo {
        RunInfo {
            number: 1,
            uid: "1-2".to_owned(),
            pid: 1,
            jvm: "OpenJDK 25".to_owned(),
            interval_bytes,
            strategy: strategy.to_owned(),
            ..RunInfo::default()
        }
    }

    pub(in crate::text) fn trace_file() -> TraceFile {
        TraceFile {
            path: "t.db".to_owned(),
            bytes: 1024,
            warnings: Vec::new(),
        }
    }

    const FRAME: &str = "com.acme.Cache.put(Cache.java:31)";

    /// Returns a class whose live bytes grow. All its objects are allocated at the frame `FRAME`, on `stacks` different
    /// stacks.
    pub(in crate::text) fn growing(stacks: usize) -> CandidateRow {
        let stack = |i: usize| vec![FRAME.to_owned(), format!("com.acme.Web.get{i}(Web.java:7)")];
        CandidateRow {
            rank: 1,
            verdict: "leak",
            trend: "steady",
            class: "byte[]".to_owned(),
            sites: stacks as u64,
            frame: Some(FRAME.to_owned()),
            frames: stack(0),
            stacks: stacks as u64,
            paths: match stacks {
                1 => Vec::new(),
                _ => (0..stacks)
                    .map(|i| PathRow {
                        frames: stack(i),
                        live_bytes: 1000,
                        live_samples: 5,
                    })
                    .collect(),
            },
            live_bytes: 1000 * stacks as u64,
            ci95: [1000 * stacks as u64; 2],
            live_objects: 10,
            live_samples: 10,
            growth: heapdiff_diff::HistoryGrowth::default(),
            slope: HistorySlope {
                ci95: Some([1, 3]),
                ..HistorySlope::default()
            },
            series: HistorySeries::default(),
            ..CandidateRow::default()
        }
    }

    pub(in crate::text) fn top_of(
        candidates: Vec<CandidateRow>,
    ) -> Viewed<TraceTopReport, TraceTopView> {
        TraceTopReport {
            schema: TraceTopReport::SCHEMA,
            trace: trace_file(),
            run: run_info("bytes", 1024),
            window: WindowRow {
                to_ms: 60_000,
                to_uptime_ms: 60_000,
                ticks: 60,
                ..WindowRow::default()
            },
            by: "frame",
            basis: "major",
            points: 12,
            alive_at: "end",
            collections: Collections { major: 12, all: 60 },
            totals: TraceTotals {
                candidates: 9,
                growing: candidates.len() as u64,
                live_bytes: 4096,
                ci95: [4096; 2],
                live_objects: 10,
                live_samples: 10,
                allocated_bytes: 8192,
                collected_bytes: 4096,
                ..TraceTotals::default()
            },
            candidates,
            ..TraceTopReport::default()
        }
        .into()
    }

    pub(in crate::text) fn rendered(report: &Viewed<TraceTopReport, TraceTopView>) -> String {
        printed(Style::plain(), |doc| top(report, doc))
    }

    /// Asserts that `change` makes the report contain `sentence`, and that the report lacks it without the change.
    fn assert_adds_sentence(
        sentence: &str,
        change: impl Fn(&mut Viewed<TraceTopReport, TraceTopView>),
    ) {
        let mut report = top_of(vec![growing(1)]);
        let before = rendered(&report);
        assert!(!before.contains(sentence), "{before}");
        change(&mut report);
        let after = rendered(&report);
        assert!(after.contains(sentence), "{sentence}: {after}");
    }

    #[test]
    fn several_stacks_of_one_frame_are_listed() {
        let text = rendered(&top_of(vec![growing(5)]));
        for part in [
            "    at       com.acme.Cache.put(Cache.java:31)\n",
            "on 5 stacks; the stacks with the most live bytes:\n",
            "    20.0%    com.acme.Web.get0(Web.java:7)\n",
            "    20.0%    com.acme.Web.get2(Web.java:7)\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        // Three stacks are shown. The frame that they have in common is shown once, above them.
        assert!(!text.contains("get3") && text.matches("Cache.put").count() == 1);
        let mut all = top_of(vec![growing(5)]);
        all.view.verbose = true;
        assert!(rendered(&all).contains("get4"));
        let one = rendered(&top_of(vec![growing(1)]));
        assert!(
            one.contains("    from     com.acme.Cache.put(Cache.java:31)\n"),
            "{one}"
        );
        assert!(!one.contains("the stacks with the most live bytes") && !one.contains(" at  "));
        // A class may be allocated in several frames, so a candidate that is a class has no frame.
        let mut class = growing(5);
        class.frame = None;
        let text = rendered(&top_of(vec![class]));
        assert!(
            text.contains("from     5 stacks; the stacks with the most live bytes:"),
            "{text}"
        );
        assert!(!text.contains("on 5 stacks"));
    }

    #[test]
    fn the_compared_figure_is_stated() {
        assert_adds_sentence(
            "compared: minimum of live bytes between GCs (60 GCs, 12 of them full)",
            |r| r.basis = "collections",
        );
        assert_adds_sentence(
            "there was no GC, so objects that count as alive may be unreachable",
            |r| r.basis = "ticks",
        );
        assert_adds_sentence(
            "compared: live objects at the end, by allocation time; in this view, a cache can look like growth",
            |r| r.basis = "survivors",
        );
        assert_adds_sentence(
            "alive: objects that survived the full GC at 10s, and newer objects, which may be unreachable",
            |r| (r.alive_at, r.alive_at_uptime_ms) = ("major", Some(10_000)),
        );
        let tried = |r: &mut Viewed<TraceTopReport, TraceTopView>| {
            (r.alive_at, r.alive_at_uptime_ms, r.alive_of_uptime_ms) =
                ("major", Some(10_000), Some(9000));
        };
        assert_adds_sentence(
            "alive: objects allocated in the first 9s that survived the full GC at 10s; unknown for newer objects",
            tried,
        );
        // The live bytes are only an upper bound if it is not known which objects the full GC examined.
        let mut report = top_of(Vec::new());
        tried(&mut report);
        assert!(!rendered(&report).contains("at most "));
        report.alive_of_uptime_ms = None;
        assert!(rendered(&report).contains("at most "));
        assert_adds_sentence("at most ", |r| r.alive_at = "unknown");
        assert_adds_sentence(
            "compared: minimum of the live bytes in each period; unreachable objects may be included",
            |r| (r.basis, r.alive_at) = ("ticks", "unknown"),
        );
        assert_adds_sentence("live bytes are unknown until a full GC", |r| {
            r.alive_at = "unknown"
        });
        assert_adds_sentence(
            "the recording has data about allocations, but not about live objects",
            |r| {
                r.basis = "survivors";
                r.totals.live_samples = 0;
            },
        );
        let major = "compared: live bytes after each of 12 full GCs";
        let mut report = top_of(Vec::new());
        assert!(rendered(&report).contains(major));
        report.basis = "ticks";
        assert!(!rendered(&report).contains(major));
    }

    #[test]
    fn the_end_of_the_heap_is_reported_as_far_as_it_is_known() {
        let trend = |r: &mut Viewed<TraceTopReport, TraceTopView>, outlook, limit| {
            r.heap_after_full_gcs = HeapTrendRow {
                outlook,
                bytes_per_hour: Some(3 << 20),
                limit_bytes: Some(1 << 30),
                limit: Some(limit),
                ..HeapTrendRow::default()
            };
            r.oom = (outlook == "ends").then_some(Oom {
                at_ms: 20_000,
                from_ms: 10_000,
                to_ms: 40_000,
            });
        };
        for (outlook, limit, sentence) in [
            (
                "ends",
                "heap",
                "+3.0 MiB/h, OutOfMemoryError at 1.0 GiB in 20s (10s to 40s)",
            ),
            (
                "ends",
                "container",
                "+3.0 MiB/h, reaches the container's limit of 1.0 GiB in 20s (10s to 40s)",
            ),
            (
                "no-end",
                "heap",
                "+3.0 MiB/h, the heap may have stopped growing, so no time to OutOfMemoryError is estimated",
            ),
            (
                "irregular",
                "heap",
                "+3.0 MiB/h, too irregular to estimate the time to OutOfMemoryError",
            ),
            (
                "no-limit",
                "heap",
                "+3.0 MiB/h, give the maximum heap (--heap-limit) for the time to OutOfMemoryError",
            ),
        ] {
            assert_adds_sentence(&format!("heap after full GCs: {sentence}"), |r| {
                trend(r, outlook, limit);
            });
        }
        assert!(!rendered(&top_of(vec![growing(1)])).contains("heap after full GCs"));
        assert_adds_sentence(
            "share    94.6 % of the growth of the heap after full GCs",
            |r| {
                r.candidates[0].heap_growth_permille = Some(946);
            },
        );
    }

    #[test]
    fn the_focus_losses_and_omissions_are_reported() {
        assert_adds_sentence("only stacks with a frame that matches Cache", |r| {
            r.focus = Some("Cache".to_owned())
        });
        assert_adds_sentence(
            "lost: 3 samples (2.0 KiB), so figures are too low by this amount",
            |r| {
                (r.totals.lost_samples, r.totals.lost_bytes) = (3, 2048);
            },
        );
        assert_adds_sentence(
            "2 more grew (--top N shows more), 6 allocating frames did not",
            |r| r.totals.growing = 3,
        );
        assert_adds_sentence("no growth in 9 allocating frames", |r| {
            r.candidates.clear();
            r.totals.growing = 0;
        });
        assert_adds_sentence("no growth visible in 9 allocating frames", |r| {
            r.candidates.clear();
            r.totals.growing = 0;
            r.basis = "survivors";
        });
        let rest = "8 other allocating frames did not grow (shown with -v)";
        let mut report = top_of(vec![growing(1)]);
        assert!(rendered(&report).contains(rest));
        report.view.verbose = true;
        assert!(!rendered(&report).contains(rest));
    }

    #[test]
    fn facts_about_a_candidate_are_reported() {
        let assert_of = |sentence: &str, change: &dyn Fn(&mut CandidateRow)| {
            assert_adds_sentence(sentence, |r| change(&mut r.candidates[0]));
        };
        assert_of("; 79.5 % of the allocated bytes are still alive", &|c| {
            c.survival_permille = Some(795)
        });
        assert_of(
            "live bytes did not grow between the first and the last full GC",
            &|c| c.grew_across_major = Some(false),
        );
        let by_work = |c: &mut CandidateRow, only_clock_is_over| {
            c.per_work = Some(PerWorkRow {
                trend: "steady",
                bytes_per_gib: 3 << 20,
                ci95: Some([2 << 20, 4 << 20]),
                only_clock_is_over,
            });
        };
        assert_of(
            "+3.0 MiB for each GiB allocated (+2.0 MiB to +4.0 MiB), trend: steady",
            &|c| by_work(c, false),
        );
        let clock = "growth per hour has ended, but not growth per allocated GiB: the program may be less busy now";
        assert_of(clock, &|c| by_work(c, true));
        let mut report = top_of(vec![growing(1)]);
        by_work(&mut report.candidates[0], false);
        assert!(!rendered(&report).contains(clock));
        assert_of("(too few GCs for a confidence interval)", &|c| {
            c.slope.ci95 = None
        });
        assert_of("(no Java frame)", &|c| c.frames.clear());
        // Consecutive JDK frames are folded into one line, except the JDK frame that the application calls.
        let called = "java.util.Arrays.copyOf(Arrays.java:3)".to_owned();
        let above = |n: usize| vec![called.clone(); n];
        assert_of("… 1 JDK frame", &|c| {
            c.frames.splice(0..0, above(2));
        });
        assert_of("… 2 JDK frames", &|c| {
            c.frames.splice(0..0, above(3));
        });
        assert_of("… and 3 more (-v shows all)", &|c| {
            c.frames = (0..11)
                .map(|i| format!("com.acme.A.m{i}(A.java:{i})"))
                .collect();
        });
        let began = |c: &mut CandidateRow, within| {
            (c.began_ms, c.began_uptime_ms, c.began_within) =
                (Some(20_000), Some(20_000), Some(within));
        };
        assert_of("20s into the run", &|c| began(c, true));
        assert_of("the first data point, perhaps earlier", &|c| {
            began(c, false)
        });
    }
}
