//! `heapdiff trace flame`: shows for each stack the bytes that it allocated in a part of a run, or its live bytes at
//! the end of that part.

use std::collections::HashMap;
use std::path::PathBuf;

use clap::Args;
use heapdiff_diff::{Allocated, AllocatedLine};
use heapdiff_model::trace::FlameReport;
use heapdiff_report::svg::Measured;
use heapdiff_report::{FlameView, Format, Report, View, Viewed, age, span, utc};
use heapdiff_trace::read::Amount;
use heapdiff_trace::{AGE_GROUPS, Ages, Candidate, survived_shares};

use super::ages::{check_has_ages, part};
use super::by_site::BySite;
use super::read::{MOMENT_HELP, RunArgs, WindowArgs, file, frames, open_named};
use crate::failure::{Failure, Result};
use crate::fits;
use crate::job::{Formats, Setup, Task};

const HELP: &str = "\
Examples:
  heapdiff trace flame app.db -o flame.html        # all allocated bytes, by stack
  heapdiff trace flame app.db --live -o flame.svg  # bytes that are live at the end, by stack
  heapdiff trace flame app.db --ages -o ages.html  # allocated bytes, by stack and age

The extension of the file selects the format: a web page (.html), an SVG (.svg), or collapsed stacks
(.collapsed) for other tools. Widths are bytes, estimated from samples as in `heapdiff trace top`.";

/// Hint for a format that shows no stacks.
pub(crate) const FLAME_HINT: &str = "add -o flame.html, -o flame.svg or -o flame.collapsed";

#[derive(Debug, Args)]
#[command(after_help = HELP.to_owned() + MOMENT_HELP)]
pub(crate) struct Flame {
    /// Trace that the agent wrote (agent option trace=FILE)
    trace: PathBuf,
    #[command(flatten)]
    run: RunArgs,
    /// Show the bytes that are live at the end, not all allocated bytes
    #[arg(long)]
    live: bool,
    /// Split each class by the number of GCs that its objects survived
    #[arg(long, conflicts_with = "live")]
    ages: bool,
    /// Invert the graph: from each class to its allocating frames, then to their callers
    #[arg(long)]
    reverse: bool,
    #[command(flatten)]
    window: WindowArgs,
}

impl Task for Flame {
    fn formats() -> Formats {
        Format::is_flame
    }

    fn check(&self, _: &Setup, format: Format) -> Result<()> {
        if self.ages && (self.window.since.is_some() || self.window.window.is_some()) {
            let message = "--ages shows all objects since the start of the run: it works with --until, but not with --since and --window";
            return Err(Failure::usage(message));
        }
        if format.is_flame() {
            return Ok(());
        }
        let message = "this command writes a web page, an SVG or collapsed stacks";
        Err(Failure::usage(message).with_hint(FLAME_HINT))
    }

    fn run(&self, setup: &Setup) -> Result<Vec<Report>> {
        let trace = open_named(setup.analysis.mapping.as_ref(), &self.trace)?;
        let focus = self.window.focus.as_ref();
        let sites = BySite::read(&trace, &self.run, &self.window)?;
        let (run, number) = (&sites.run, sites.number);
        let (from_ms, from_uptime) = sites.from();
        let (to_ms, to_uptime) = sites.to();
        let mut file = file(&trace);
        if self.ages {
            check_has_ages(&self.trace, run)?;
        }
        let ages = self.ages.then(|| Ages::new(&trace, run));
        let ages = ages.transpose().map_err(|e| Failure::trace(&e))?;
        let allocated = all(&sites, |candidate| match &ages {
            Some(ages) => by_age(candidate, ages),
            None if self.live => vec![(candidate.class.to_string(), candidate.live.amount)],
            None => vec![(candidate.class.to_string(), candidate.allocated)],
        });
        file.warnings
            .extend(focus.and_then(|focus| fits::frames(focus, &allocated)));
        let title = format!(
            "{}, run {number} (process {}), {} UTC, {}",
            file.path,
            run.pid,
            utc(from_ms),
            span(to_uptime.saturating_sub(from_uptime)),
        );
        let measured = match (self.live, &*run.strategy) {
            (false, _) => Measured::Allocated,
            // In a JFR recording, only the objects that the JVM tracked are known to be live. The figures are the bytes
            // of these objects. They are not scaled up to an estimate for all live objects.
            (true, "recording") => Measured::Followed,
            (true, _) => Measured::Estimated,
        };
        let report = Viewed {
            data: FlameReport {
                path: file.path,
                from_ms,
                to_ms,
                warnings: file.warnings,
            },
            view: View {
                focus: focus.cloned(),
                allocated: Some(allocated),
                reverse: self.reverse,
                ..View::default()
            },
            more: FlameView { title, measured },
        };
        Ok(vec![Report::Flame(Box::new(report))])
    }
}

/// Divides a site's objects into parts by age. Returns the name and the amount of each part. Only samples record at
/// which age objects were freed, so all freed objects are divided in the same proportions as the freed samples.
fn by_age(candidate: &Candidate, ages: &Ages) -> Vec<(String, Amount)> {
    let freed = ages.at(candidate.sites.iter().map(|site| site.id)).freed;
    let class = &candidate.class;
    let mut parts = vec![(format!("{class} (alive)"), candidate.live.amount)];
    let all = candidate.collected;
    if freed.is_empty() {
        parts.push((format!("{class} (freed)"), all));
        return parts;
    }
    let groups = AGE_GROUPS.into_iter().zip(survived_shares(&freed));
    parts.extend(groups.map(|((from, to), share)| {
        let amount = Amount {
            samples: part(all.samples, share),
            objects: part(all.objects, share),
            bytes: part(all.bytes, share),
        };
        let freed = if from == 0 { "freed " } else { "" };
        (format!("{class} ({freed}{})", age(from, to)), amount)
    }));
    parts
}

/// Returns the stacks of all sites. `parts` divides the objects of a site into parts, for example by age, and returns
/// the name and the amount of each part.
fn all(sites: &BySite, parts: impl Fn(&Candidate) -> Vec<(String, Amount)>) -> Allocated {
    let mut all = Allocated {
        interval_bytes: sites.run.interval_bytes,
        ..Allocated::default()
    };
    let mut numbers: HashMap<String, u32> = HashMap::new();
    let mut classes: HashMap<String, u32> = HashMap::new();
    let number = |texts: &mut Vec<String>, numbers: &mut HashMap<String, u32>, text: &str| {
        if let Some(&number) = numbers.get(text) {
            return number;
        }
        let number = u32::try_from(texts.len()).unwrap_or(u32::MAX);
        texts.push(text.to_owned());
        numbers.insert(text.to_owned(), number);
        number
    };
    for candidate in &sites.ranking.candidates {
        let stack = candidate.sites.first().and_then(|site| site.stack);
        let texts = stack.map_or_else(Vec::new, |stack| frames(&sites.stacks, stack));
        let parts = parts(candidate).into_iter();
        for (class, amount) in parts.filter(|(_, amount)| amount.bytes > 0) {
            let texts = texts.iter();
            all.lines.push(AllocatedLine {
                frames: texts
                    .map(|t| number(&mut all.frames, &mut numbers, t))
                    .collect(),
                class: number(&mut all.classes, &mut classes, &class),
                samples: vec![amount.samples],
                objects: vec![amount.objects],
                bytes: vec![amount.bytes],
            });
        }
    }
    all
}
