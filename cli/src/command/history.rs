//! Adds the history of suspects, from a trace of the JVM, to a comparison.

use std::collections::{BTreeSet, HashMap};

use heapdiff_diff::sentence::TWO_DUMPS;
use heapdiff_diff::{History, Report, Stack, Suspect, Verdict};
use heapdiff_trace::read::Run;
use heapdiff_trace::{
    self as trace, AgeSummary, Ages, Basis, Points, Steps, Timeline, Trace, Trending, Window,
    trending,
};
use heapdiff_units::{Size, counted};

use super::trace::read::{frames, growth, series, slope};
use crate::failure::{Failure, Result};

/// Returns the heap limit of the JVM in the trace: its maximum heap, or the limit of its container if that is smaller.
/// Returns `None` if the trace has no run of the dumped JVM, or no limit for it.
pub(super) fn heap_limit(trace: &Trace, report: &Report) -> Result<Option<u64>> {
    let failure = |e| Failure::trace(&e);
    let runs = trace.runs().map_err(failure)?;
    let Some(run) = run_of(&runs, report) else {
        return Ok(None);
    };
    let limit = trace.heap_limit(run).map_err(failure)?;
    Ok(limit.map(|limit| limit.bytes))
}

/// Adds the history of each suspect to the report. Returns a warning about the trace, if there is one. The warning
/// describes how the run (the trace's data of one JVM) was matched with the dumps, or why the trace has no history of
/// the suspects.
pub(super) fn add_history(trace: &Trace, report: &mut Report) -> Result<Option<String>> {
    let failure = |e| Failure::trace(&e);
    let path = trace.path().display();
    let runs = trace.runs().map_err(failure)?;
    let Some(run) = run_of(&runs, report).or_else(|| recorded_run(&runs, report)) else {
        return Ok(Some(format!(
            "{path}: no run in this trace belongs to the JVM that wrote the dumps"
        )));
    };
    let mut note = None;
    if run.strategy == trace::RECORDING {
        if report.suspects.iter().all(|s| s.stacks.is_empty()) {
            return Ok(Some(format!(
                "{path}: the dumps have no stacks; add --recording FILE with the imported recording"
            )));
        }
        note = Some(format!(
            "{path}: this run was matched to the dumps by time and JVM version"
        ));
    }
    let timeline = Timeline::of(trace, run, Window::ALL).map_err(failure)?;
    let points = Points::of(&timeline);
    let ages = Ages::new(trace, run).map_err(failure)?;
    let stacks = trace.stacks().map_err(failure)?;
    let mut sites: HashMap<String, Vec<i64>> = HashMap::new();
    for site in trace.sites().map_err(failure)? {
        let frames = site
            .stack
            .map_or_else(Vec::new, |stack| frames(&stacks, stack));
        sites
            .entry(key(&site.class, &frames))
            .or_default()
            .push(site.id);
    }
    for suspect in &mut report.suspects {
        let (known, ids) = sites_of(suspect, &sites);
        if ids.is_empty() {
            continue;
        }
        let ids: Vec<i64> = ids.into_iter().collect();
        let steps = Steps::of(trace, &timeline, &ids).map_err(failure)?;
        let trending = trending(&steps, &timeline, &points);
        let began = if trending.grown_bytes > 0 {
            steps.growth_start(&timeline, &points)
        } else {
            None
        };
        let series = series(&steps, &timeline);
        let is_over = has_growth_ended(suspect.coverage.samples, &series.live_bytes);
        refine_verdict(suspect, &trending, points.len() as u64, is_over);
        let survival = trending
            .survival_permille
            .filter(|_| points.basis != Basis::Survivors);
        suspect.history = Some(History {
            stacks: known,
            trend: trending.trend.name().into(),
            basis: points.basis.name().into(),
            points: points.len() as u64,
            began_ms: began.map(|b| b.time_ms),
            began_uptime_ms: began.map(|b| b.uptime_ms),
            began_within: began.map(|b| b.within),
            growth: growth(&trending),
            slope: slope(&trending),
            survival_permille: survival.unwrap_or(1000),
            survival_known: survival.is_some(),
            surviving_generations: AgeSummary::new(&ages.at(ids).live).map(|ages| ages.generations),
            series,
        });
    }
    Ok(note)
}

/// Minimum number of samples that growth, at its earlier rate, would have added during the level end of a history. The
/// level end consists of the last points, which no longer rise. Growth counts as ended only if this number is reached.
///
/// If fewer samples are expected, a level end is no evidence. Even if growth continues, random variation causes a level
/// end without a sample in more than 5 % of all cases (Poisson: e^-3 = 5 %).
const EXPECTED_SAMPLES: f64 = 3.0;

/// True if the growth has ended. False if the last points are level, but growth would have added fewer than
/// [`EXPECTED_SAMPLES`] samples in that time. Then random variation may be the reason for the level points.
#[allow(
    clippy::cast_precision_loss,
    reason = "the numbers of samples and of data points are small"
)]
fn has_growth_ended(samples: u64, live_bytes: &[u64]) -> bool {
    let last = live_bytes.last().copied().unwrap_or(0);
    // A point counts as level with the last point if it is at most 5 % lower, because some objects may be freed at any
    // time.
    let is_full = |bytes: &u64| *bytes >= last - last / 20;
    let rising = live_bytes.iter().position(is_full);
    let Some(rising) = rising.map(|at| at.max(1)) else {
        return false;
    };
    let level = live_bytes.len().saturating_sub(rising);
    samples as f64 * level as f64 / rising as f64 >= EXPECTED_SAMPLES
}

/// Uses the trace to decide questions that the dumps left open, because the trace has more points in time. Does nothing
/// if samples cover less than half of the growth. `is_over` is true if the growth has ended.
fn refine_verdict(suspect: &mut Suspect, trending: &Trending, moments: u64, is_over: bool) {
    let coverage = &suspect.coverage;
    // A recording shows only probable stacks, so they must not change a verdict.
    if suspect.joined.is_some() {
        return;
    }
    if coverage.sampled_bytes.saturating_mul(2) < coverage.growth_bytes {
        return;
    }
    let moments = counted(moments, "data point");
    let low = trending.bytes.ci95.map_or(0, |[low, _]| low);
    let low = Size(u64::try_from(low).unwrap_or(0));
    let grows = format!(
        "the trace shows that the live bytes allocated by these stacks grow by at least {low} per hour ({moments})"
    );
    let over = |how: &str| {
        format!("the trace shows that the live bytes allocated by these stacks {how} ({moments})")
    };
    let (verdict, reason) = match (suspect.verdict, trending.verdict) {
        (Verdict::Growth, trace::Verdict::Leak) => (Verdict::Leak, grows),
        (Verdict::Warmup, trace::Verdict::Leak) => (Verdict::Growth, grows),
        (Verdict::Growth, trace::Verdict::Plateau | trace::Verdict::Warmup) if !is_over => return,
        (Verdict::Growth, trace::Verdict::Plateau) => {
            (Verdict::Cache, over("grew, then stayed level"))
        }
        (Verdict::Growth, trace::Verdict::Warmup) => (
            Verdict::Warmup,
            over("grew at the start, then stayed level"),
        ),
        _ => return,
    };
    suspect.verdict = verdict;
    // The trace serves as a third dump, so the sentence that there are only two dumps is removed.
    suspect.reasons.retain(|reason| reason != TWO_DUMPS);
    suspect.reasons.push(reason);
}

/// Returns the run of the dumped JVM in the trace. The last dump with data of an agent identifies this run by its
/// process id and its start time.
fn run_of<'a>(runs: &'a [Run], report: &Report) -> Option<&'a Run> {
    let agent = report
        .snapshots
        .iter()
        .rev()
        .find_map(|s| s.agent.as_ref())?;
    let uid = format!("{}-{}", agent.pid, agent.started_ms);
    runs.iter().find(|run| run.uid == uid)
}

/// Returns the only run of an imported recording that fits the dumps: it overlaps with their time, and has the version
/// of their JVM.
fn recorded_run<'a>(runs: &'a [Run], report: &Report) -> Option<&'a Run> {
    let (first, last) = (report.snapshots.first()?, report.snapshots.last()?);
    let version = last.jvm.as_deref()?;
    let mut fitting = runs.iter().filter(|run| {
        run.strategy == trace::RECORDING
            && run.started_ms <= last.taken_ms
            && run.ended_ms.is_none_or(|end| end >= first.taken_ms)
            && run.jvm.split(' ').any(|word| word == version)
    });
    fitting.next().filter(|_| fitting.next().is_none())
}

/// Returns the number of the suspect's stacks that are also in the trace, and the ids of their allocation sites in the
/// trace.
fn sites_of(suspect: &Suspect, sites: &HashMap<String, Vec<i64>>) -> (u64, BTreeSet<i64>) {
    let found = |stack: &Stack| sites.get(&key(&stack.class, &stack.frames));
    let found: Vec<_> = suspect.stacks.iter().filter_map(found).collect();
    (
        found.len() as u64,
        found.into_iter().flatten().copied().collect(),
    )
}

/// Returns the class and stack as a key that is the same for a dump and a trace. The key leaves out two facts: whether
/// a method is native, and whether a stack is truncated. Each of these facts is recorded only in dumps or only in
/// traces.
pub(super) fn key(class: &str, frames: &[String]) -> String {
    let mut key = class.to_owned();
    for frame in frames {
        if frame == "..." {
            break;
        }
        let is_line = |place: &str| {
            let number = place.rsplit_once(':').map(|p| p.1.trim_end_matches(')'));
            number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        };
        let frame = match frame.rfind('(') {
            Some(at) if at > 0 && !frame[..at].ends_with(' ') && !is_line(&frame[at..]) => {
                &frame[..at]
            }
            _ => frame,
        };
        key.push('\n');
        key.push_str(frame);
    }
    key
}

#[cfg(test)]
mod tests {
    use heapdiff_diff::sentence::TWO_DUMPS;
    use heapdiff_diff::{Suspect, Verdict};
    use heapdiff_report::synthetic;
    use heapdiff_trace::{self as trace, HourlySlope, Trend, Trending};

    use super::{has_growth_ended, key, refine_verdict};

    fn suspect(verdict: Verdict, sampled_bytes: u64) -> Suspect {
        let mut suspect = synthetic::suspect(1, "com.acme.Shop.orders", verdict, 1000);
        suspect.reasons = vec![TWO_DUMPS.to_owned()];
        suspect.coverage.sampled_bytes = sampled_bytes;
        suspect
    }

    fn trending(verdict: trace::Verdict) -> Trending {
        Trending {
            verdict,
            trend: Trend::Steady,
            grown_objects: 0,
            grown_bytes: 0,
            bytes: HourlySlope {
                slope: 3 << 20,
                ci95: Some([2 << 20, 4 << 20]),
            },
            objects: HourlySlope::default(),
            per_work: None,
            across_major: None,
            survival_permille: None,
        }
    }

    #[test]
    fn a_trace_decides_a_verdict_that_two_dumps_cannot() {
        let judged = |of, sampled, by| {
            let mut suspect = suspect(of, sampled);
            refine_verdict(&mut suspect, &trending(by), 14, true);
            (suspect.verdict, suspect.reasons.join("; "))
        };
        let (verdict, reasons) = judged(Verdict::Growth, 800, trace::Verdict::Leak);
        assert_eq!(verdict, Verdict::Leak);
        assert!(
            reasons.contains("grow by at least 2.0 MiB per hour (14 data points)"),
            "{reasons}"
        );
        assert!(!reasons.contains("two dumps"), "{reasons}");
        let (verdict, reasons) = judged(Verdict::Growth, 800, trace::Verdict::Plateau);
        assert_eq!(verdict, Verdict::Cache);
        let level = "live bytes allocated by these stacks grew, then stayed level (14 data points)";
        assert!(reasons.contains(level), "{reasons}");
        let (verdict, reasons) = judged(Verdict::Growth, 800, trace::Verdict::Warmup);
        assert_eq!(verdict, Verdict::Warmup);
        assert!(reasons.contains("grew at the start"), "{reasons}");
        // The dumps show a warm-up, but the trace contradicts this. So the verdict is `Growth`.
        assert_eq!(
            judged(Verdict::Warmup, 800, trace::Verdict::Leak).0,
            Verdict::Growth
        );
        // The trace does not show whether a cache has a size limit. A trace with few samples or without a clear result
        // is no evidence, either.
        for (of, sampled, by) in [
            (Verdict::Cache, 800, trace::Verdict::Leak),
            (Verdict::Growth, 400, trace::Verdict::Leak),
            (Verdict::Growth, 800, trace::Verdict::Growth),
        ] {
            let (verdict, reasons) = judged(of, sampled, by);
            assert_eq!(verdict, of);
            assert!(!reasons.contains("live objects of its stacks"), "{reasons}");
        }
    }

    #[test]
    fn a_trace_does_not_change_the_verdict_of_a_joined_suspect() {
        let mut suspect = suspect(Verdict::Growth, 800);
        suspect.joined = Some("probably allocated in a.B.c".to_owned());
        refine_verdict(&mut suspect, &trending(trace::Verdict::Leak), 14, true);
        assert_eq!(suspect.verdict, Verdict::Growth);
    }

    #[test]
    fn a_short_level_end_does_not_show_that_growth_ended() {
        let end = |moments: usize| {
            let mut live = vec![0, 100, 200, 300, 400, 500, 600, 700];
            live.resize(live.len() + moments, 800);
            live
        };
        assert!(!has_growth_ended(2, &end(4)) && !has_growth_ended(2, &end(10)));
        assert!(has_growth_ended(2, &end(12)) && has_growth_ended(20, &end(4)));
        assert!(!has_growth_ended(1, &[]) && !has_growth_ended(1, &[5, 5]));
        for by in [trace::Verdict::Plateau, trace::Verdict::Warmup] {
            let mut suspect = suspect(Verdict::Growth, 800);
            refine_verdict(&mut suspect, &trending(by), 14, false);
            assert_eq!(suspect.verdict, Verdict::Growth);
            assert_eq!(suspect.reasons, [TWO_DUMPS]);
        }
    }

    #[test]
    fn frames_without_a_line_do_not_change_the_key() {
        let of = |frames: &[&str]| {
            let frames: Vec<String> = frames.iter().map(|&f| f.to_owned()).collect();
            key("byte[]", &frames)
        };
        assert_eq!(
            of(&["a.B.c(Native Method)", "a.D.e(D.java:5)"]),
            of(&["a.B.c(B.java)", "a.D.e(D.java:5)", "..."])
        );
        assert_ne!(of(&["a.D.e(D.java:5)"]), of(&["a.D.e(D.java:6)"]));
        assert_eq!(of(&["a.B.c (lambda)"]), "byte[]\na.B.c (lambda)");
        assert_ne!(of(&["a.B.c (lambda)"]), of(&["a.B.c"]));
    }
}
