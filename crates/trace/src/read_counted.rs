//! Exact counts by line of code, read.

use std::sync::atomic::Ordering;

use rustc_hash::FxHashMap;

use heapdiff_sites::Line;

use crate::TraceError;
use crate::counted::OTHERS;
use crate::database::int;
use crate::guard::is_table;
use crate::read::{Trace, text};
use crate::window::Window;

/// The tables, all of which a run that counts has.
const NAMES: [&str; 4] = ["counting", "counted_site", "counted_span", "counted_amount"];

/// Lines that are kept beyond those that are wanted, until they are sorted.
const SPARE: usize = 4096;

/// How a run counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountedRun {
    /// When it began to count, in milliseconds since the run began.
    pub from_ms: u64,
    /// Up to when all is counted.
    pub to_ms: u64,
    /// In classes of the JDK's, too.
    pub jdk: bool,
    /// Class files that got counters.
    pub classes: u64,
    /// Sites that have no counter.
    pub missed_sites: u64,
    /// Methods that cannot be rewritten.
    pub missed_methods: u64,
    /// Classes that cannot be rewritten, or that the JVM did not take.
    pub missed_classes: u64,
}

/// A part of a run whose counts are known: whole spans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountedPart {
    /// Its begin, in milliseconds since the run began.
    pub from_ms: u64,
    /// Its end.
    pub to_ms: u64,
}

/// All that a line of code allocated in a part of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedLine {
    /// The class whose code it is, as in Java source.
    pub class: String,
    /// The method.
    pub method: String,
    /// The line; `None` if it is not known.
    pub line: Option<u64>,
    /// What is allocated, as in Java source.
    pub allocated: String,
    /// Allocations.
    pub objects: u64,
    /// Their bytes; `None` if those of one are not known.
    pub bytes: Option<u64>,
}

/// The lines of code that allocated most in a part of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopLines {
    /// How the run counted.
    pub run: CountedRun,
    /// The part of it.
    pub part: CountedPart,
    /// Lines that allocated, those that are not listed included.
    pub lines: u64,
    /// Their allocations.
    pub objects: u64,
    /// Their bytes, of the lines of which they are known.
    pub bytes: u64,
    /// Lines whose bytes are not known.
    pub lines_without_bytes: u64,
    /// Those of most bytes, in their order.
    pub rows: Vec<CountedLine>,
}

impl CountedPart {
    /// Its length in milliseconds.
    #[must_use]
    pub const fn span_ms(&self) -> u64 {
        self.to_ms.saturating_sub(self.from_ms)
    }

    /// So much a second, rounded; nothing where no time passed.
    #[must_use]
    pub fn per_second(&self, amount: u64) -> u64 {
        let (thousandfold, ms) = (u128::from(amount) * 1000, u128::from(self.span_ms()));
        let rate = (thousandfold + ms / 2).checked_div(ms).unwrap_or(0);
        u64::try_from(rate).unwrap_or(u64::MAX)
    }
}

impl CountedLine {
    /// Whether it stands for those lines for which there was no room.
    #[must_use]
    pub fn is_rest(&self) -> bool {
        self.class == OTHERS && self.method.is_empty()
    }
}

impl Trace {
    /// How a run counted by line of code; `None` where its agent did not.
    ///
    /// # Errors
    /// The file cannot be read, or has something else in a table's place.
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

    /// Gives what was counted of each line in a window of a run, in no order that means something. Returns the part of
    /// the run that this is of: the spans that end in the window. `None` where there is none, or the agent did not count.
    ///
    /// Cost: the amounts of these spans and the run's lines are read once.
    ///
    /// # Errors
    /// The file cannot be read, or has something else in a table's place.
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
            if array_bytes == 0 && !line.is_rest() && !line.allocated.ends_with("[]") {
                line.bytes = optional(5).map(|size| size.saturating_mul(objects));
            }
            take(line);
        })?;
        Ok(Some(part))
    }

    /// Gives a line the names that it had before they were shortened: the place in the source that was inlined there, if
    /// one was.
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

    /// What the lines allocated that are `wanted`, in a window of a run, with the `most` of most bytes one by one.
    /// `None` where the agent did not count, or not then.
    ///
    /// # Errors
    /// As [`each_counted_line`](Self::each_counted_line).
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

/// Leaves the lines of most bytes, in their order.
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
