//! Exact allocation rates by line of code in a window, if the agent counts (`count=on`).

use std::cmp::Reverse;

use heapdiff_trace::{CountedLine, SampledLine, TopLines, Trace};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::amount::signed;
use crate::rankings::Cached;
use crate::text::cut;
use crate::traces::{Traces, Unanswered};
use crate::view::{Life, MOST_LINES, Question};

/// Maximum number of lines of code that are taken from each run before the lines of all runs are merged. Names are read
/// for these lines only.
const MOST_NAMED: usize = 400;

/// Cached lines, by run and maximum number of lines.
pub(crate) type Counts = Cached<(i64, usize), Option<Lines>>;

/// The counts by line of code, and the samples at the same lines of code. The samples are `None` if counts and samples
/// cannot be compared.
pub(crate) type Lines = (TopLines, Option<Vec<SampledLine>>);

/// The answer to a `counted` request.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Counted {
    /// The number of runs with counts.
    runs: usize,
    /// Start and end of the part of the window for which counts exist.
    from_ms: i64,
    to_ms: i64,
    /// True if JDK classes are counted in every run that has counts.
    jdk: bool,
    objects_per_second: i64,
    bytes_per_second: i64,
    rows: Vec<Row>,
    /// The number of all lines, listed or not.
    all_rows: usize,
    /// The number of lines whose bytes are unknown.
    without_bytes: u64,
    /// The number of sites, methods and classes that have no counters, added up.
    missed: u64,
}

/// A line of code.
#[derive(Debug, Serialize)]
struct Row {
    class: String,
    place: String,
    objects: i64,
    /// `null` if unknown.
    bytes: Option<i64>,
    objects_per_second: i64,
    bytes_per_second: Option<i64>,
    /// Objects per second, estimated from samples. `null` if the estimate differs from the count only by random
    /// variation, or if samples and counts cannot be compared.
    sampled_per_second: Option<i64>,
}

impl Row {
    fn merge(&mut self, other: Self) {
        self.objects = self.objects.saturating_add(other.objects);
        self.objects_per_second = self
            .objects_per_second
            .saturating_add(other.objects_per_second);
        let sum = |a: Option<i64>, b: Option<i64>| Some(a?.saturating_add(b?));
        self.bytes = sum(self.bytes, other.bytes);
        self.bytes_per_second = sum(self.bytes_per_second, other.bytes_per_second);
        self.sampled_per_second = sum(self.sampled_per_second, other.sampled_per_second);
    }
}

/// Answers a `counted` request.
pub(crate) fn counted(traces: &Traces, question: &Question) -> Result<Counted, Unanswered> {
    let lives = Life::read_all(traces, &question.runs);
    let (Some(first), Some(last)) = (
        lives.iter().map(|l| l.first).min(),
        lives.iter().map(|l| l.last).max(),
    ) else {
        return Ok(Counted::default());
    };
    let to = question.to.unwrap_or(last).min(last);
    let from = question.from.unwrap_or(first).max(first).min(to);
    let top = question.top.min(MOST_LINES);
    let most = if lives.len() == 1 { top } else { MOST_NAMED };
    let mut counted = Counted {
        from_ms: to,
        to_ms: from,
        jdk: true,
        ..Counted::default()
    };
    let mut rows: FxHashMap<(String, String), Row> = FxHashMap::default();
    for life in &lives {
        let Some(trace) = traces.get(life.key.trace) else {
            continue;
        };
        let window = life.window(question.from.map(|_| from), to);
        let found = trace.ask(|open| {
            let mut counts = open.counts.borrow_mut();
            let of = (life.key.run, most);
            let read = || read(&open.trace, life, window, most);
            Ok(counts.of(of, window, read)?)
        })?;
        if let Some(found) = &*found {
            counted.add(life, found, &mut rows);
        }
    }
    counted.all_rows = counted.all_rows.max(rows.len());
    counted.rows = rows.into_values().collect();
    counted.rows.sort_by(|a, b| {
        let order = |row: &Row| Reverse((row.bytes_per_second, row.bytes, row.objects));
        let names = || (&a.place, &a.class).cmp(&(&b.place, &b.class));
        order(a).cmp(&order(b)).then_with(names)
    });
    counted.rows.truncate(top);
    Ok(counted)
}

fn read(
    trace: &Trace,
    life: &Life,
    window: heapdiff_trace::Window,
    most: usize,
) -> Result<Option<Lines>, heapdiff_trace::TraceError> {
    let all = |_: &CountedLine| true;
    let Some(lines) = trace.top_lines(life.key.run, window, (most, all))? else {
        return Ok(None);
    };
    let sampled = trace.sampled_lines(&life.run, lines.part, &lines.rows)?;
    Ok(Some((lines, sampled)))
}

impl Counted {
    /// Adds the lines of a run.
    fn add(
        &mut self,
        life: &Life,
        (lines, sampled): &Lines,
        rows: &mut FxHashMap<(String, String), Row>,
    ) {
        let TopLines { run, part, .. } = lines;
        self.runs += 1;
        self.from_ms = self.from_ms.min(life.at(part.from_ms));
        self.to_ms = self.to_ms.max(life.at(part.to_ms));
        self.jdk &= run.jdk;
        let rate = |amount| signed(part.per_second(amount));
        self.objects_per_second = self.objects_per_second.saturating_add(rate(lines.objects));
        self.bytes_per_second = self.bytes_per_second.saturating_add(rate(lines.bytes));
        let all = usize::try_from(lines.lines).unwrap_or(usize::MAX);
        self.all_rows = self.all_rows.max(all);
        self.without_bytes = self.without_bytes.saturating_add(lines.lines_without_bytes);
        for missed in [run.missed_sites, run.missed_methods, run.missed_classes] {
            self.missed = self.missed.saturating_add(missed);
        }
        for (at, line) in lines.rows.iter().enumerate() {
            let sampled = sampled.as_ref().and_then(|all| all.get(at));
            let differs = sampled.filter(|sampled| sampled.beyond_chance);
            let mut place = format!("{}.{}", cut(&line.class), cut(&line.method));
            if let Some(line) = line.line {
                place += &format!(":{line}");
            }
            let row = Row {
                class: cut(&line.allocated).to_owned(),
                place,
                objects: signed(line.objects),
                bytes: line.bytes.map(signed),
                objects_per_second: rate(line.objects),
                bytes_per_second: line.bytes.map(rate),
                sampled_per_second: differs.map(|sampled| rate(sampled.allocated.objects)),
            };
            match rows.entry((row.class.clone(), row.place.clone())) {
                std::collections::hash_map::Entry::Occupied(mut e) => e.get_mut().merge(row),
                std::collections::hash_map::Entry::Vacant(e) => {
                    e.insert(row);
                }
            }
        }
    }
}
