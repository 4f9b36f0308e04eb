//! Reads the exact allocation counts by line of code that `counted` writes.

use std::sync::atomic::Ordering;

use rustc_hash::FxHashMap;

use heapdiff_sites::Line;

use crate::TraceError;
use crate::counted::OTHERS;
use crate::database::int;
use crate::guard::is_table;
use crate::read::{Trace, text};
use crate::window::Window;

/// The tables for counts. If the agent counted allocations in a run, the trace has all of these tables.
const NAMES: [&str; 4] = ["counting", "counted_site", "counted_span", "counted_amount"];

/// [`Trace::top_lines`] collects the lines with the most bytes in a list. The list may have this many more lines than
/// were requested. If it becomes longer, it is sorted and cut to the requested length.
const SPARE: usize = 4096;

/// The period in which the agent counted allocations in a run, and how complete the counts are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountedRun {
    /// Start of the counting, in milliseconds since the run began.
    pub from_ms: u64,
    /// The counts include all allocations up to this time, in milliseconds since the run began.
    pub to_ms: u64,
    /// True if JDK classes are counted, too.
    pub jdk: bool,
    /// Number of class files that got counters.
    pub classes: u64,
    /// Number of allocation sites without a counter.
    pub missed_sites: u64,
    /// Number of methods that could not be rewritten.
    pub missed_methods: u64,
    /// Number of classes that cannot be rewritten, or whose new version the JVM rejected.
    pub missed_classes: u64,
}

/// A part of a run for which counts are known. It consists of whole spans, the periods for which counts are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountedPart {
    /// Start of this part of the run, in milliseconds since the run began.
    pub from_ms: u64,
    /// End of this part of the run, in milliseconds since the run began.
    pub to_ms: u64,
}

/// All allocations at a line of code in a part of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedLine {
    /// Name of the class that contains the line, in the form `com.acme.Foo$Bar`.
    pub class: String,
    /// The method.
    pub method: String,
    /// The line; `None` if unknown.
    pub line: Option<u64>,
    /// Name of the allocated class, in the form `com.acme.Foo$Bar` or `byte[]`.
    pub allocated: String,
    /// Number of allocations.
    pub objects: u64,
    /// Bytes of the allocations; `None` if the size of an object is unknown.
    pub bytes: Option<u64>,
}

/// The lines of code that allocated the most in a part of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopLines {
    /// The period in which the agent counted allocations in the run, and how complete the counts are.
    pub run: CountedRun,
    /// The part of the run that the counts cover.
    pub part: CountedPart,
    /// Number of lines that allocated, including those that are not listed.
    pub lines: u64,
    /// Number of allocations at these lines.
    pub objects: u64,
    /// Bytes of all allocations, without lines whose bytes are unknown.
    pub bytes: u64,
    /// Number of lines whose bytes are unknown.
    pub lines_without_bytes: u64,
    /// The lines with the most bytes, in descending order.
    pub rows: Vec<CountedLine>,
}

impl CountedPart {
    /// Returns the length in milliseconds.
    #[must_use]
    pub const fn span_ms(&self) -> u64 {
        self.to_ms.saturating_sub(self.from_ms)
    }

    /// Returns `amount` divided by the length of this part in seconds, rounded. Returns 0 if the part has no length.
    #[must_use]
    pub fn per_second(&self, amount: u64) -> u64 {
        let (thousandfold, ms) = (u128::from(amount) * 1000, u128::from(self.span_ms()));
        let rate = (thousandfold + ms / 2).checked_div(ms).unwrap_or(0);
        u64::try_from(rate).unwrap_or(u64::MAX)
    }
}

impl CountedLine {
    /// Returns true for the row that contains the sum of all lines without their own row.
    #[must_use]
    pub fn is_remainder_row(&self) -> bool {
        self.class == OTHERS && self.method.is_empty()
    }
}

impl Trace {
    /// Returns the period and the completeness of the counts in a run. `None` if the agent did not count by line.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or if a view or another object has the name of one of the tables.
    pub fn counted_run(&self, run: i64) -> Result<Option<CountedRun>, TraceError> {
        self.steps.store(0, Ordering::Relaxed);
        for table in NAMES {
            let is_there = is_table(self.database().connection(), table);
            match is_there.map_err(|e| self.error(e))? {
                None => return Ok(None),
                Some(true) => {}
                Some(false) => {
                    let path = self.path().to_owned();
                    return Err(TraceError::Table { path, table });
                }
            }
        }
        let sql =
            "SELECT from_ms, to_ms, jdk, classes, missed_sites, missed_methods, missed_classes
            FROM counting WHERE run = ?1";
        let mut found = self.list(sql, [run], |row| CountedRun {
            from_ms: self.figure(row, 0),
            to_ms: self.figure(row, 1),
            jdk: self.figure(row, 2) > 0,
            classes: self.figure(row, 3),
            missed_sites: self.figure(row, 4),
            missed_methods: self.figure(row, 5),
            missed_classes: self.figure(row, 6),
        })?;
        Ok(found.pop())
    }

    /// Passes the counts of each line of code to `take`, in unspecified order. The agent writes counts for spans of
    /// time. Only the spans of the run that end in the window are included. Returns the part of the run that these
    /// spans cover. Returns `None` if there are no such spans, or if the agent did not count allocations.
    ///
    /// Cost: reads the amounts of these spans and the run's lines once.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or if a view or another object has the name of one of the tables.
    pub fn each_counted_line(
        &self,
        run: i64,
        window: Window,
        mut take: impl FnMut(CountedLine),
    ) -> Result<Option<CountedPart>, TraceError> {
        if self.counted_run(run)?.is_none() {
            return Ok(None);
        }
        let bounds = [run, int(window.from_ms), int(window.to_ms)];
        let which = "run = ?1 AND uptime_ms >= ?2 AND uptime_ms <= ?3";
        let mut part: Option<CountedPart> = None;
        let spans = format!("SELECT uptime_ms, span_ms FROM counted_span WHERE {which}");
        self.each(&spans, bounds, |row| {
            let end = self.figure(row, 0);
            let begin = end.saturating_sub(self.figure(row, 1));
            let part = part.get_or_insert(CountedPart {
                from_ms: begin,
                to_ms: end,
            });
            (part.from_ms, part.to_ms) = (part.from_ms.min(begin), part.to_ms.max(end));
        })?;
        let Some(part) = part else { return Ok(None) };
        let mut sums: FxHashMap<i64, [u64; 2]> = FxHashMap::default();
        let amounts = format!(
            "SELECT site, objects, array_bytes FROM counted_amount
             WHERE span IN (SELECT id FROM counted_span WHERE {which})"
        );
        self.each(&amounts, bounds, |row| {
            let Some(site) = self.id(row, 0) else { return };
            let sum = sums.entry(site).or_default();
            let more = [self.figure(row, 1), self.figure(row, 2)];
            *sum = [0, 1].map(|i| sum[i].saturating_add(more[i]));
        })?;
        let lines = "SELECT id, class, method, line, allocated, object_bytes FROM counted_site WHERE run = ?1";
        self.each(lines, [run], |row| {
            let sum = self.id(row, 0).and_then(|id| sums.remove(&id));
            let Some([objects, array_bytes]) = sum.filter(|sum| sum[0] > 0) else {
                return;
            };
            let optional = |column| match row.get_ref(column) {
                Ok(rusqlite::types::ValueRef::Null) | Err(_) => None,
                Ok(_) => Some(self.figure(row, column)),
            };
            let mut line = CountedLine {
                class: text(row, 1),
                method: text(row, 2),
                line: optional(3),
                allocated: text(row, 4),
                objects,
                bytes: Some(array_bytes),
            };
            self.rename(&mut line);
            if array_bytes == 0 && !line.is_remainder_row() && !line.allocated.ends_with("[]") {
                line.bytes = optional(5).map(|size| size.saturating_mul(objects));
            }
            take(line);
        })?;
        Ok(Some(part))
    }

    /// Replaces obfuscated names in a counted line by the original ones. If code was inlined at the line, uses the
    /// names of the inlined method.
    pub(crate) fn rename(&self, line: &mut CountedLine) {
        let Some(names) = &self.names else { return };
        let known = line.line.and_then(|line| u32::try_from(line).ok());
        if let Some(original) = names.place(&line.class, &line.method, known) {
            (line.class, line.method) = (original.class, original.method);
            line.line = match original.line {
                Line::At(line) => Some(line.into()),
                Line::Unknown | Line::Native => None,
            };
        }
        if let Some(original) = names.class(&line.allocated) {
            line.allocated = original;
        }
    }

    /// Selects the lines for which `wanted` returns true. Returns their sums in a window of a run, and the `most` lines
    /// with the most bytes. Returns `None` if the agent did not count in the window.
    ///
    /// # Errors
    /// Returns the errors of [`each_counted_line`](Self::each_counted_line).
    pub fn top_lines(
        &self,
        run: i64,
        window: Window,
        (most, wanted): (usize, impl Fn(&CountedLine) -> bool),
    ) -> Result<Option<TopLines>, TraceError> {
        let Some(of_run) = self.counted_run(run)? else {
            return Ok(None);
        };
        let mut top = TopLines {
            run: of_run,
            ..TopLines::default()
        };
        let take = |line: CountedLine| {
            if !wanted(&line) {
                return;
            }
            top.lines += 1;
            top.objects = top.objects.saturating_add(line.objects);
            match line.bytes {
                Some(bytes) => top.bytes = top.bytes.saturating_add(bytes),
                None => top.lines_without_bytes += 1,
            }
            top.rows.push(line);
            if top.rows.len() > most.saturating_add(SPARE) {
                largest(&mut top.rows, most);
            }
        };
        let part = self.each_counted_line(run, window, take)?;
        largest(&mut top.rows, most);
        Ok(part.map(|part| TopLines { part, ..top }))
    }
}

/// Sorts the lines by bytes, descending, and keeps the first `most`.
fn largest(rows: &mut Vec<CountedLine>, most: usize) {
    rows.sort_by(|a, b| {
        let amount = |line: &CountedLine| (line.bytes, line.objects);
        amount(b).cmp(&amount(a)).then_with(|| {
            let names = |line| {
                let CountedLine {
                    class,
                    method,
                    allocated,
                    ..
                }: &CountedLine = line;
                [class.clone(), method.clone(), allocated.clone()]
            };
            (names(a), a.line).cmp(&(names(b), b.line))
        })
    });
    rows.truncate(most);
}
