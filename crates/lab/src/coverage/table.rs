//! Writes tables of coverage and bias: by JDK, collector and interval, by number of samples, and by stack. The worst
//! rows come first.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::measure::{Asked, Measured, Stack};

/// Sums and counts over the estimates of one row of a table.
#[derive(Debug, Default, Clone)]
struct Tally {
    /// Number of stacks that the report names.
    named: u32,
    /// Number of stacks whose true value is inside the interval.
    covered: u32,
    /// Number of stacks whose true value is below the interval, and number of stacks whose true value is above it.
    outside: [u32; 2],
    /// Number of stacks that the report does not name.
    unnamed: u32,
    /// Number of stacks for which the report does not state the percentage of the objects that are alive.
    unknown: u32,
    /// Sum of the relative errors of all stacks. A relative error is estimate / truth - 1.
    error: f64,
    /// Half-width of each interval, divided by the true value.
    widths: Vec<f64>,
    /// Sum of the estimates and sum of the true values, over the stacks that the report names.
    sums: [f64; 2],
}

impl Tally {
    fn add(&mut self, one: &Measured) {
        let Some(stack) = &one.found else {
            self.unnamed += 1;
            return;
        };
        self.named += 1;
        self.unknown += u32::from(!stack.has_survival());
        let [low, high] = stack.ci95;
        match one.truth {
            truth if truth < low => self.outside[0] += 1,
            truth if truth > high => self.outside[1] += 1,
            _ => self.covered += 1,
        }
        let truth = float(one.truth.max(1));
        self.error += float(stack.estimated_bytes) / truth - 1.0;
        self.widths.push(float(high - low) / 2.0 / truth);
        self.sums[0] += float(stack.estimated_bytes);
        self.sums[1] += truth;
    }

    /// Returns `sum` divided by the number of stacks that the report names, in percent.
    fn percent(&self, sum: f64) -> f64 {
        100.0 * sum / f64::from(self.named.max(1))
    }

    /// Returns the median half-width of the intervals, in percent of the true value.
    fn width(&self) -> f64 {
        let mut widths = self.widths.clone();
        widths.sort_by(f64::total_cmp);
        100.0 * widths.get(widths.len() / 2).copied().unwrap_or(0.0)
    }

    fn line(&self, name: &str, text: &mut String) {
        let [below, above] = self.outside;
        let _ = writeln!(
            text,
            "| {name} | {} of {} | {:.1} | {:+.1} | {:+.1} | {:.1} | {above} | {below} | {} | {} |",
            self.covered,
            self.named,
            self.percent(f64::from(self.covered)),
            self.percent(self.error),
            100.0 * (self.sums[0] / self.sums[1].max(1.0) - 1.0),
            self.width(),
            self.unnamed,
            self.unknown,
        );
    }
}

#[allow(clippy::cast_precision_loss, reason = "a ratio")]
fn float(bytes: u64) -> f64 {
    bytes as f64
}

/// Returns three tables for each quantity in [`Asked`]: by setting, by number of samples, and by stack. If allocations
/// were counted, also returns a comparison with samples alone.
pub(super) fn of(found: &[Measured], repeats: u32) -> String {
    let mut text = String::new();
    for asked in Asked::ALL {
        let of_this: Vec<&Measured> = found.iter().filter(|m| m.asked == asked).collect();
        let mut all = Tally::default();
        of_this.iter().for_each(|one| all.add(one));
        let _ = writeln!(text, "## {}, {repeats} runs of each\n", title(asked));
        by(
            &of_this,
            "JDK, collector, interval",
            &all,
            |m| m.setting.clone(),
            &mut text,
        );
        by(&of_this, "samples", &all, group, &mut text);
        by(&of_this, "stack", &all, place, &mut text);
    }
    if found.iter().any(|m| m.counted) {
        append_comparison(found, &mut text);
    }
    text
}

/// Appends a table that compares confidence intervals from samples and counts with those from samples alone: coverage,
/// bias and half-width for each estimated quantity ([`Asked`]).
fn append_comparison(found: &[Measured], text: &mut String) {
    let _ = writeln!(
        text,
        "## The same dumps, with and without allocation counts\n\n\
         | question | JDK, collector, interval | covered %, without counts | covered %, with counts | bias %, without counts | bias %, with counts | half-width %, without counts | half-width %, with counts | how many times narrower with counts |\n\
         |---|---|---:|---:|---:|---:|---:|---:|---:|"
    );
    for asked in Asked::ALL {
        let mut settings: BTreeMap<&str, [Tally; 2]> = BTreeMap::new();
        for one in found.iter().filter(|m| m.asked == asked) {
            let without = Measured {
                found: one.found.as_ref().map(Stack::without_counts),
                ..one.clone()
            };
            for name in [&*one.setting, "all"] {
                let both = settings.entry(name).or_default();
                both[0].add(&without);
                both[1].add(one);
            }
        }
        for (name, both) in &settings {
            let covered = both.each_ref().map(|t| t.percent(f64::from(t.covered)));
            let bias = both.each_ref().map(|t| t.percent(t.error));
            let width = both.each_ref().map(Tally::width);
            let _ = writeln!(
                text,
                "| {} | {name} | {:.0} | {:.0} | {:+.1} | {:+.1} | {:.1} | {:.1} | {:.2} |",
                title(asked),
                covered[0],
                covered[1],
                bias[0],
                bias[1],
                width[0],
                width[1],
                width[0] / width[1].max(f64::MIN_POSITIVE),
            );
        }
    }
    text.push('\n');
}

/// Returns the name of a group of measurements, such as `64k, 3 to 9`: the sampling interval and the range of the
/// number of samples.
fn group(one: &Measured) -> String {
    let interval = one.setting.rsplit(", ").find(|part| part.ends_with('k'));
    let interval = interval.unwrap_or_default();
    let samples = one.found.as_ref().map_or(0, |stack| stack.samples);
    let group = match samples {
        0 => "none",
        1..=2 => "1 or 2",
        3..=9 => "3 to 9",
        _ => "10 or more",
    };
    format!("{interval}, {group}")
}

/// Returns the name of the row for a stack. All small stacks share one row.
fn place(one: &Measured) -> String {
    if one.stack.starts_with("rare") {
        "rare".to_owned()
    } else {
        one.stack.clone()
    }
}

const fn title(asked: Asked) -> &'static str {
    match asked {
        Asked::Sites => "One dump, agent loaded at start",
        Asked::Diff => "Growth between two dumps, agent loaded at start",
        Asked::AttachedDiff => "Growth between two dumps, agent attached before the first dump",
        Asked::AttachedSites => "One dump, agent attached before the dump",
        Asked::Allocated => "Allocated bytes, agent loaded at start",
        Asked::AttachedAllocated => "Allocated bytes, agent attached before the first dump",
    }
}

fn by(
    found: &[&Measured],
    head: &str,
    all: &Tally,
    key: impl Fn(&Measured) -> String,
    text: &mut String,
) {
    let mut lines: BTreeMap<String, Tally> = BTreeMap::new();
    for one in found {
        lines.entry(key(one)).or_default().add(one);
    }
    let mut lines: Vec<(String, Tally)> = lines.into_iter().collect();
    lines.sort_by(|a, b| {
        let part = |t: &Tally| t.percent(f64::from(t.covered));
        part(&a.1)
            .total_cmp(&part(&b.1))
            .then_with(|| a.0.cmp(&b.0))
    });
    let _ = writeln!(
        text,
        "| {head} | intervals that contain the truth | % | bias % | error of the sum % | median half-width of an interval % | truth above the interval | truth below the interval | stacks not in the report | stacks with unknown live bytes |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    );
    for (name, tally) in &lines {
        tally.line(name, text);
    }
    all.line("all", text);
    text.push('\n');
}
