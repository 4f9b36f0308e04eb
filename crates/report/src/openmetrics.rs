//! Writes gauges of a heap and its suspects in the text format of OpenMetrics. Prometheus can parse this format, too.
//!
//! Metrics have no timestamp, because programs that collect such files reject timestamps. The time of the dump is a
//! gauge.
//!
//! Several suspects may have the same holder and class, but no two metrics may have the same labels. So the labels of a
//! suspect include its rank.

use std::fmt::Write as _;
use std::io::{self, Write};

use heapdiff_diff::{HeapReport, Report, SnapshotInfo, Suspect};

use crate::printable::printable;

/// Maximum number of characters of a label's value. Class names of frameworks may be longer than servers accept.
const LONGEST: usize = 1024;

/// Labels that every metric has.
pub type Labels = [(String, String)];

/// Writes the metrics of a comparison: the last dump, and the growth.
pub(crate) fn growth(report: &Report, labels: &Labels, out: &mut dyn Write) -> io::Result<()> {
    let mut families = Families::new(labels);
    if let (Some(first), Some(last)) = (report.snapshots.first(), report.snapshots.last()) {
        families.snapshot(last);
        let help = "Time from the first dump to the last.";
        let span = last.taken_ms.saturating_sub(first.taken_ms);
        families.one("span_seconds", help, seconds(span));
    }
    let help = "1 if the dumps can be compared, else 0. If it is 0, differences are not growth.";
    families.one("comparable", help, u8::from(report.comparable));
    let delta = &report.delta;
    let help = "Growth of the number of reachable objects from the first dump to the last.";
    families.one("heap_growth_objects", help, delta.objects);
    let help = "Growth of the reachable shallow bytes from the first dump to the last.";
    families.one("heap_growth_bytes", help, delta.shallow_bytes);
    if let Some(oom) = &report.oom {
        let help = "Estimated time from the last dump until the reachable heap reaches its limit.";
        families.one("heap_oom_seconds", help, seconds(oom.at_ms));
        let help = "Start of the 95 % interval of heap_oom_seconds.";
        families.one("heap_oom_earliest_seconds", help, seconds(oom.from_ms));
        let help = "End of the 95 % interval of heap_oom_seconds.";
        families.one("heap_oom_latest_seconds", help, seconds(oom.to_ms));
    }
    let help = "Bytes of the growth that the suspects explain.";
    families.one("heap_growth_explained_bytes", help, report.explained_bytes);
    families.suspects(&report.suspects);
    families.end(out)
}

/// Writes the metrics of one dump.
pub(crate) fn heap(report: &HeapReport, labels: &Labels, out: &mut dyn Write) -> io::Result<()> {
    let mut families = Families::new(labels);
    families.snapshot(&report.snapshot);
    let help = "Reachable bytes that the suspects retain.";
    families.one("heap_explained_bytes", help, report.explained_bytes);
    families.suspects(&report.suspects);
    families.end(out)
}

/// Figures of a run of a JVM, from a trace.
#[derive(Debug, Default)]
pub struct TraceMetrics {
    /// Labels of the run.
    pub labels: Vec<(&'static str, String)>,
    /// End of the run's last tick, in milliseconds since 1970.
    pub last_tick_ms: u64,
    /// Used heap at the end of the run's last tick, in bytes.
    pub heap_used: Option<u64>,
    /// Maximum size of the heap, in bytes.
    pub heap_limit: Option<u64>,
    /// Number of full GCs.
    pub full_gcs: u64,
    /// Growth of the used heap after full GCs, in bytes per hour.
    pub bytes_per_hour: Option<i64>,
    /// Time until the heap is full, and its 95 % interval, in milliseconds.
    pub oom_ms: Option<[u64; 3]>,
    /// The allocation sites with the worst verdicts.
    pub sites: Vec<TraceSite>,
}

/// An allocation site in a trace.
#[derive(Debug, Default)]
pub struct TraceSite {
    /// Rank of the site.
    pub rank: u64,
    /// Verdict on the site.
    pub verdict: &'static str,
    /// The allocated class.
    pub class: String,
    /// The allocating frame.
    pub place: Option<String>,
    /// Estimated live bytes, if known.
    pub live_bytes: Option<u64>,
    /// Growth of the live bytes, per hour.
    pub bytes_per_hour: i64,
}

impl TraceMetrics {
    /// Returns the labels of a run.
    #[must_use]
    pub fn labels(pid: u64, host: &str, service: Option<&str>) -> Vec<(&'static str, String)> {
        let service = service.unwrap_or_default();
        let all = [
            ("pid", pid.to_string()),
            ("host", host.to_owned()),
            ("service", service.to_owned()),
        ];
        all.into_iter()
            .filter(|(_, value)| !value.is_empty())
            .collect()
    }
}

/// Returns the metrics of runs. If a figure of a run is not known, the output has no metric for this figure and run.
#[must_use]
pub fn trace_metrics(runs: &[TraceMetrics], labels: &Labels) -> String {
    let mut families = Families::new(labels);
    let help = "Time of the last tick, in seconds since 1970.";
    families.runs(runs, "trace_last_tick_timestamp_seconds", help, |run| {
        Some(seconds(run.last_tick_ms))
    });
    families.runs(
        runs,
        "trace_heap_used_bytes",
        "Used heap at the last tick.",
        |run| run.heap_used,
    );
    let help = "Maximum heap, or the memory limit of the container if it is smaller.";
    families.runs(runs, "trace_heap_limit_bytes", help, |run| run.heap_limit);
    let help = "Number of full GCs after which the used heap is known.";
    families.runs(runs, "trace_full_gcs", help, |run| Some(run.full_gcs));
    let help = "Growth of the used heap after full GCs, in bytes per hour.";
    families.runs(runs, "trace_heap_growth_bytes_per_hour", help, |run| {
        run.bytes_per_hour
    });
    for (at, name, help) in [
        (
            0,
            "trace_oom_seconds",
            "Estimated time from the last tick until the heap is full.",
        ),
        (
            1,
            "trace_oom_earliest_seconds",
            "Start of the 95 % interval of trace_oom_seconds.",
        ),
        (
            2,
            "trace_oom_latest_seconds",
            "End of the 95 % interval of trace_oom_seconds.",
        ),
    ] {
        families.runs(runs, name, help, |run| {
            let ms = run.oom_ms.as_ref().and_then(|ms| ms.get(at));
            ms.map(|ms| seconds(*ms))
        });
    }
    let help = "Estimated live bytes of an allocation site.";
    families.sites(runs, "trace_site_live_bytes", help, |site| site.live_bytes);
    let help = "Growth of the live bytes of an allocation site, in bytes per hour.";
    families.sites(runs, "trace_site_growth_bytes_per_hour", help, |site| {
        Some(site.bytes_per_hour)
    });
    families.text + "# EOF\n"
}

/// Metric families in their order of output.
struct Families {
    text: String,
    /// The labels that every metric has, formatted.
    common: Vec<String>,
}

impl Families {
    fn new(labels: &Labels) -> Self {
        let common = labels.iter();
        Self {
            text: String::new(),
            common: common.map(|(name, value)| label(name, value)).collect(),
        }
    }

    /// Adds the metrics of a dump.
    fn snapshot(&mut self, snapshot: &SnapshotInfo) {
        let help = "Time of the last dump, in seconds since 1970.";
        let taken = seconds(snapshot.taken_ms);
        self.one("snapshot_timestamp_seconds", help, taken);
        let help =
            "1 if damage or missing GC roots make the figures of the last dump incomplete, else 0.";
        self.one("snapshot_damaged", help, u8::from(snapshot.partial));
        let help = "Objects reachable from GC roots.";
        self.one("heap_objects", help, snapshot.reachable_objects);
        let help = "Shallow bytes of all objects reachable from GC roots.";
        self.one("heap_reachable_bytes", help, snapshot.reachable_bytes);
        let help = "Bytes of unreachable objects in the dump.";
        self.one("heap_unreachable_bytes", help, snapshot.unreachable_bytes);
    }

    /// Adds the metrics of the suspects.
    fn suspects(&mut self, suspects: &[Suspect]) {
        let last = |figures: &[u64]| figures.last().copied().unwrap_or(0);
        let help = "Number of objects of this class that the holder holds.";
        let metrics = suspects.iter().map(|s| (of(s), last(&s.objects)));
        self.each("suspect_objects", help, metrics);
        let help = "Bytes that these objects retain.";
        let metrics = suspects.iter().map(|s| (of(s), s.retained()));
        self.each("suspect_retained_bytes", help, metrics);
        let help = "Growth of the retained size from the first dump to the last.";
        let grown = suspects.iter().filter(|s| !s.is_from_single_dump());
        let metrics = grown.map(|s| (of(s), s.growth.retained_bytes));
        self.each("suspect_growth_bytes", help, metrics);
    }

    /// Adds a metric family that has one metric for each run.
    fn runs<V: std::fmt::Display>(
        &mut self,
        runs: &[TraceMetrics],
        name: &str,
        help: &str,
        value: impl Fn(&TraceMetrics) -> Option<V>,
    ) {
        let metrics = runs
            .iter()
            .filter_map(|run| Some((run.labels.clone(), value(run)?)));
        self.each(name, help, metrics);
    }

    /// Adds a metric family that has one metric for each allocation site of each run.
    fn sites<V: std::fmt::Display>(
        &mut self,
        runs: &[TraceMetrics],
        name: &str,
        help: &str,
        value: impl Fn(&TraceSite) -> Option<V>,
    ) {
        let all = runs
            .iter()
            .flat_map(|run| run.sites.iter().map(move |site| (run, site)));
        let metrics = all.filter_map(|(run, site)| {
            let mut labels = run.labels.clone();
            labels.push(("rank", site.rank.to_string()));
            labels.push(("verdict", site.verdict.to_owned()));
            labels.push(("class", site.class.clone()));
            labels.extend(site.place.clone().map(|place| ("place", place)));
            Some((labels, value(site)?))
        });
        self.each(name, help, metrics);
    }

    /// Adds a metric family that has one metric.
    fn one(&mut self, name: &str, help: &str, value: impl std::fmt::Display) {
        self.each(name, help, std::iter::once((Vec::new(), value)));
    }

    /// Adds a metric family with the given metrics. Adds nothing if there are no metrics.
    fn each<V: std::fmt::Display>(
        &mut self,
        name: &str,
        help: &str,
        metrics: impl Iterator<Item = (Vec<(&'static str, String)>, V)>,
    ) {
        let mut metrics = metrics.peekable();
        if metrics.peek().is_none() {
            return;
        }
        let text = &mut self.text;
        let described = |what: &str, told: &str| format!("# {what} heapdiff_{name} {told}\n");
        text.push_str(&described("TYPE", "gauge"));
        let units = ["bytes", "seconds"];
        if let Some(unit) = units.iter().find(|unit| name.ends_with(*unit)) {
            text.push_str(&described("UNIT", unit));
        }
        text.push_str(&described("HELP", help));
        for (own, value) in metrics {
            let own = own.iter().map(|(name, value)| label(name, value));
            let labels: Vec<String> = self.common.iter().cloned().chain(own).collect();
            // Writing to a string cannot fail.
            let _ = if labels.is_empty() {
                writeln!(text, "heapdiff_{name} {value}")
            } else {
                writeln!(text, "heapdiff_{name}{{{}}} {value}", labels.join(","))
            };
        }
    }

    fn end(mut self, out: &mut dyn Write) -> io::Result<()> {
        self.text.push_str("# EOF\n");
        out.write_all(self.text.as_bytes())
    }
}

/// Returns the labels of a suspect.
fn of(suspect: &Suspect) -> Vec<(&'static str, String)> {
    let mut labels = vec![
        ("rank", suspect.rank.to_string()),
        ("holder", suspect.holder.clone()),
        ("class", suspect.class.clone()),
    ];
    if !suspect.is_from_single_dump() {
        labels.insert(1, ("verdict", crate::verdict(suspect).to_owned()));
    }
    labels
}

/// Formats a label. Its value is untrusted.
fn label(name: &str, value: &str) -> String {
    let mut text = format!("{name}=\"");
    for c in printable(value).chars().take(LONGEST) {
        match c {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            c => text.push(c),
        }
    }
    text.push('"');
    text
}

/// Formats milliseconds as seconds, exactly.
fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

#[cfg(test)]
mod tests {
    use heapdiff_diff::Verdict;

    use super::*;
    use crate::synthetic::{self, HOSTILE, report, suspect};

    fn text(report: &Report, labels: &Labels) -> String {
        let mut out = Vec::new();
        growth(report, labels, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn of_one(report: &HeapReport) -> String {
        let mut out = Vec::new();
        heap(report, &[], &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_time_to_oom_is_in_the_metrics_if_it_is_known() {
        let mut report = report(Vec::new(), 1);
        assert!(!text(&report, &[]).contains("_oom_"));
        report.oom = Some(heapdiff_model::diff::Oom {
            at_ms: 2000,
            from_ms: 1500,
            to_ms: 3000,
        });
        let metrics = parsed(&text(&report, &[]));
        let values = metrics.iter().filter(|m| m.0.contains("_oom_"));
        let values: Vec<&str> = values.map(|m| &*m.2).collect();
        assert_eq!(values, ["2.000", "1.500", "3.000"]);
    }

    #[test]
    fn each_run_of_a_trace_has_its_metrics() {
        let run = |pid: u64, oom_ms| TraceMetrics {
            labels: TraceMetrics::labels(pid, "", Some(HOSTILE)),
            last_tick_ms: 1500,
            heap_used: Some(7),
            bytes_per_hour: Some(-3),
            oom_ms,
            sites: vec![TraceSite {
                rank: 1,
                verdict: "leak",
                class: "A".to_owned(),
                place: Some(HOSTILE.to_owned()),
                live_bytes: None,
                bytes_per_hour: 5,
            }],
            ..TraceMetrics::default()
        };
        let text = trace_metrics(&[run(1, None), run(2, Some([2000, 1000, 3500]))], &[]);
        let metrics = parsed(&text);
        let values = |name: &str| -> Vec<&str> {
            let name = format!("heapdiff_{name}");
            let named = metrics.iter().filter(|m| m.0 == name);
            named.map(|m| &*m.2).collect()
        };
        assert_eq!(
            values("trace_last_tick_timestamp_seconds"),
            ["1.500", "1.500"]
        );
        assert_eq!(values("trace_heap_growth_bytes_per_hour"), ["-3", "-3"]);
        assert_eq!(values("trace_oom_seconds"), ["2.000"]);
        assert_eq!(values("trace_oom_latest_seconds"), ["3.500"]);
        assert_eq!(values("trace_site_growth_bytes_per_hour"), ["5", "5"]);
        assert!(values("trace_site_live_bytes").is_empty());
        assert!(values("trace_heap_limit_bytes").is_empty());
    }

    /// Name, labels and value of a metric.
    type Metric = (String, Vec<(String, String)>, String);

    /// Parses metrics, and asserts these rules of OpenMetrics: A family is described once, before its metrics. Families
    /// are not interleaved. Names end with the unit. No two metrics have the same labels. The last line is EOF.
    fn parsed(text: &str) -> Vec<Metric> {
        let body = text.strip_suffix("# EOF\n").expect("EOF");
        let (mut families, mut metrics): (Vec<String>, Vec<_>) = (Vec::new(), Vec::new());
        for line in body.lines() {
            if let Some(told) = line.strip_prefix("# ") {
                let [what, name, rest] = told.splitn(3, ' ').collect::<Vec<_>>()[..] else {
                    panic!("{line}");
                };
                match what {
                    "TYPE" => {
                        assert!(!families.iter().any(|f| f == name), "{name} twice");
                        families.push(name.to_owned());
                        assert_eq!(rest, "gauge");
                    }
                    "UNIT" => assert!(name.ends_with(&format!("_{rest}")), "{line}"),
                    "HELP" => assert!(rest.ends_with('.'), "{line}"),
                    other => panic!("{other}"),
                }
                assert_eq!(families.last().map(String::as_str), Some(name));
                continue;
            }
            let (name, labels, value) = match line.split_once('{') {
                None => {
                    let (name, value) = line.split_once(' ').expect("a value");
                    (name, Vec::new(), value)
                }
                Some((name, rest)) => {
                    let (labels, rest) = labels(rest);
                    (name, labels, rest.strip_prefix(' ').expect("a value"))
                }
            };
            assert_eq!(families.last().map(String::as_str), Some(name));
            value.parse::<f64>().expect("a number");
            let is_twice = metrics.iter().any(|(n, l, _)| (n, l) == (&name, &labels));
            assert!(!is_twice, "{line}");
            metrics.push((name, labels, value));
        }
        let owned = metrics.into_iter();
        owned
            .map(|(name, labels, value)| (name.to_owned(), labels, value.to_owned()))
            .collect()
    }

    /// Splits a metric at the closing brace into its labels and the text after the brace.
    fn labels(mut rest: &str) -> (Vec<(String, String)>, &str) {
        let mut labels = Vec::new();
        loop {
            let (name, after) = rest.split_once("=\"").expect("a label");
            let mut value = String::new();
            let mut chars = after.char_indices();
            let end = loop {
                match chars.next().expect("an end") {
                    (at, '"') => break at,
                    (_, '\\') => value.push(chars.next().expect("what is escaped").1),
                    (_, c) => value.push(c),
                }
            };
            labels.push((name.to_owned(), value));
            rest = &after[end + 1..];
            match rest.strip_prefix(',') {
                Some(more) => rest = more,
                None => return (labels, rest.strip_prefix('}').expect("a brace")),
            }
        }
    }

    #[test]
    fn metrics_equal_the_figures_of_the_report() {
        let verdicts = [Verdict::Leak, Verdict::Warmup, Verdict::Leak];
        let suspects = (1..).zip(verdicts);
        let suspects = suspects.map(|(rank, v)| suspect(rank, "a.B.c", v, 4096));
        let all = report(suspects.collect(), 3);
        let own = [("service".to_owned(), "a \"b\" \\ c".to_owned())];
        let metrics = parsed(&text(&all, &own));
        let of = |name: &str| -> Vec<&str> {
            let all = metrics.iter().filter(|(n, _, _)| n == name);
            all.map(|(_, _, value)| &**value).collect()
        };
        let last = &all.snapshots[1];
        assert_eq!(
            of("heapdiff_heap_reachable_bytes"),
            [last.reachable_bytes.to_string()]
        );
        assert_eq!(of("heapdiff_heap_growth_bytes"), ["8388608"]);
        assert_eq!(of("heapdiff_heap_growth_objects"), ["1000"]);
        assert_eq!(of("heapdiff_comparable"), ["1"]);
        assert_eq!(of("heapdiff_suspect_growth_bytes"), ["4096"; 3]);
        assert_eq!(of("heapdiff_suspect_retained_bytes"), ["4196"; 3]);
        assert_eq!(of("heapdiff_suspect_objects"), ["522"; 3]);
        let labels: Vec<&str> = metrics
            .last()
            .unwrap()
            .1
            .iter()
            .map(|(name, value)| {
                let expected = match &**name {
                    "service" => "a \"b\" \\ c",
                    "rank" => "3",
                    "verdict" => "leak",
                    "holder" => "a.B.c",
                    _ => "com.acme.Entry",
                };
                assert_eq!(value, expected);
                &**name
            })
            .collect();
        assert_eq!(labels, ["service", "rank", "verdict", "holder", "class"]);
    }

    #[test]
    fn each_report_has_its_own_metrics() {
        let found = suspect(1, "a.B.c", Verdict::Leak, 4096);
        let both = text(&report(vec![found], 0), &[]);
        let one = of_one(&synthetic::heap(2));
        parsed(&one);
        for help in [
            "Time from the first dump to the last.",
            "1 if the dumps can be compared, else 0. If it is 0, differences are not growth.",
            "Growth of the number of reachable objects from the first dump to the last.",
            "Growth of the reachable shallow bytes from the first dump to the last.",
            "Bytes of the growth that the suspects explain.",
            "Growth of the retained size from the first dump to the last.",
        ] {
            assert!(both.contains(help) && !one.contains(help), "{help}");
        }
        let help = "Reachable bytes that the suspects retain.";
        assert!(one.contains(help) && !both.contains(help));
        assert!(one.contains("heapdiff_heap_explained_bytes 2097152\n"));
        // If a comparison has no dumps, it has no metrics about a dump.
        let mut nothing = report(Vec::new(), 0);
        nothing.snapshots.clear();
        let nothing = text(&nothing, &[]);
        for help in [
            "Time of the last dump, in seconds since 1970.",
            "1 if damage or missing GC roots make the figures of the last dump incomplete, else 0.",
            "Objects reachable from GC roots.",
            "Shallow bytes of all objects reachable from GC roots.",
            "Bytes of unreachable objects in the dump.",
        ] {
            assert!(one.contains(help) && both.contains(help), "{help}");
            assert!(!nothing.contains(help), "{help}");
        }
    }

    #[test]
    fn names_are_escaped() {
        let mut hostile = suspect(1, &format!("{HOSTILE}\n# EOF\\"), Verdict::Leak, 4096);
        hostile.class = "\"} 1\nheapdiff_heap_objects 0\u{202e}".repeat(100);
        let metrics = parsed(&text(&report(vec![hostile], 0), &[]));
        let (_, labels, _) = metrics.last().unwrap();
        let class = &labels.iter().find(|(name, _)| name == "class").unwrap().1;
        assert!(class.starts_with("\"} 1\u{fffd}heapdiff"), "{class}");
        assert_eq!(class.chars().count(), LONGEST);
    }

    #[test]
    fn seconds_are_exact() {
        assert_eq!(seconds(1_760_000_120_009), "1760000120.009");
        assert_eq!(seconds(0), "0.000");
    }

    #[test]
    fn metrics_of_suspects_are_absent_without_suspects() {
        let found = suspect(1, "a.B.c", Verdict::Leak, 4096);
        let with = [
            of_one(&synthetic::heap(2)),
            text(&report(vec![found], 0), &[]),
        ];
        let without = [
            of_one(&synthetic::heap(0)),
            text(&report(Vec::new(), 0), &[]),
        ];
        for help in [
            "Number of objects of this class that the holder holds.",
            "Bytes that these objects retain.",
        ] {
            assert!(with.iter().all(|text| text.contains(help)), "{help}");
            assert!(!without.iter().any(|text| text.contains(help)), "{help}");
        }
        for text in with.iter().chain(&without) {
            parsed(text);
        }
        assert!(!without.concat().contains("suspect_"));
    }
}
