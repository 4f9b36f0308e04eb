//! Compares the results of the benchmark with the goals: ratios to other tools, and bytes of memory per object.

use std::fmt::Write;

use super::Outcome;
use super::dumps::Heap;
use super::measure::Measurement;
use super::plan::Group;
use super::report;

const HEAD: &str = "\
# Ratios

The ratios are heapdiff's wall time divided by the wall time of the other tool. The last two columns are bytes of anonymous memory per object. The first row has the goals. hprof-slurp
only writes histograms: of one dump for `histo` and `top`, and of two dumps for `diff`.

| heap | histo / slurp | top / slurp | top / analyzer | diff / slurp | diff / analyzer | top, bytes/object | diff, bytes/object |
|---|---|---|---|---|---|---|---|
| goal | 0.25 | 2 | 0.04 | 2 | 0.05 | 22 | 22 |
";

/// Returns a Markdown table that compares the results with the goals, with one row for each heap.
pub(super) fn of(heaps: &[(Heap, Vec<Outcome>)]) -> String {
    let mut text = HEAD.to_owned();
    for (heap, outcomes) in heaps {
        let figures = |ours: bool, group: Group, name: &str| {
            let found = outcomes.iter().find(|o| {
                o.job.ours == ours && o.job.group == group && o.job.name.starts_with(name)
            });
            found.and_then(|o| report::median(&o.runs))
        };
        let objects = report::objects(outcomes);
        let histo = figures(true, Group::Histogram, "heapdiff");
        let top = figures(true, Group::Retained, "heapdiff");
        let diff = figures(true, Group::Diff, "heapdiff");
        let _ = writeln!(
            text,
            "| {heap} | {} | {} | {} | {} | {} | {} | {} |",
            ratio(histo, figures(false, Group::Histogram, "hprof-slurp")),
            ratio(top, figures(false, Group::Histogram, "hprof-slurp")),
            ratio(top, figures(false, Group::Retained, "hprof-analyzer")),
            ratio(diff, figures(false, Group::Diff, "hprof-slurp")),
            ratio(diff, figures(false, Group::Diff, "hprof-analyzer")),
            bytes(top, objects),
            bytes(diff, objects),
        );
    }
    text
}

fn ratio(ours: Option<Measurement>, peer: Option<Measurement>) -> String {
    match (ours, peer) {
        (Some(a), Some(b)) if !b.wall.is_zero() => {
            format!("{:.3}", a.wall.as_secs_f64() / b.wall.as_secs_f64())
        }
        _ => "-".to_owned(),
    }
}

fn bytes(ours: Option<Measurement>, objects: Option<u64>) -> String {
    ours.map_or("-".to_owned(), |m| report::per_object(m.anonymous, objects))
}
