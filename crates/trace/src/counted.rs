//! Writes exact allocation counts by line of code, which the agent collects with `count=on`. `read_counted` reads them.
//!
//! Each time the agent writes to the trace (once per tick), the counts since its previous write are stored as one span
//! (a period of time). A run has at most 720 spans. If there are more, two neighbouring spans are merged: the pair with
//! the smallest ratio of total length to age. So recent spans stay short and old spans become long, for example:
//!
//! ```text
//! a day ago: spans of about a quarter of an hour  ...  the last minute: one span per tick
//! ```
//!
//! Merging does not change the sums. A query for a time window returns the sums of whole spans.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::database::int;
use crate::guard::is_table;

const TABLES: &str = include_str!("counted.sql");
/// Maximum number of spans of a run.
const MOST_SPANS: usize = 720;
/// Divisor of the file's size limit (`trace_max`). A run's rows in the table `counted_amount` take at most `trace_max /
/// AMOUNTS_PART` bytes. A row takes about 24 bytes.
const AMOUNTS_PART: u64 = 8;
const AMOUNT_BYTES: u64 = 24;
/// A run has at most `trace_max / BYTES_PER_LINE` lines of code. `trace_max` is the size limit of the file in bytes.
const BYTES_PER_LINE: u64 = 4096;
/// Class name of the row that sums all lines without their own row.
pub(crate) const OTHERS: &str = "(other lines)";

/// The counts by line of code since the agent's previous write to the trace, and the state of the counting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counting {
    /// Start of the counting, in milliseconds since the run began.
    pub from_ms: i64,
    /// Time at which the counters were read, in milliseconds since the run began.
    pub at_ms: i64,
    /// True if JDK classes are counted, too.
    pub jdk: bool,
    /// Number of class files that got counters.
    pub classes: u64,
    /// Number of allocation sites without a counter.
    pub missed_sites: u64,
    /// Number of methods that cannot be rewritten.
    pub missed_methods: u64,
    /// Number of classes that cannot be rewritten, or whose new version the JVM rejected.
    pub missed_classes: u64,
    /// The lines of code that allocated since the agent's previous write to the trace.
    pub lines: Vec<LineCount>,
}

/// Allocations at a line of code since the agent's previous write to the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineCount {
    /// A number with which the caller identifies the line of code. The caller never uses the same number for another
    /// line of code.
    pub number: u32,
    /// Name of the class that contains the line, in the form `com.acme.Foo$Bar`.
    pub class: Arc<str>,
    /// Name of the method that contains the line.
    pub method: Arc<str>,
    /// The line number, if the class file has line numbers.
    pub line: Option<u32>,
    /// Name of the allocated class, in the form `com.acme.Foo$Bar` or `byte[]`.
    pub allocated: Arc<str>,
    /// Bytes of one object. `None` for an array, or if unknown.
    pub object_bytes: Option<u64>,
    /// Number of allocations.
    pub objects: u64,
    /// Total bytes of the allocations, if they cannot be computed from `object_bytes`: for arrays, and for a class name
    /// whose objects have different sizes. Otherwise 0.
    pub array_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    id: i64,
    end: i64,
    length: i64,
    sites: u64,
}

impl Span {
    /// Returns two values that decide which spans are merged: the total length of this span and the next one, and the
    /// time since the end of this span.
    fn joint_length_and_age(self, next: Self, now: i64) -> (u128, u128) {
        let whole = |ms: i64| u128::from(ms.max(0).unsigned_abs());
        let length = whole(self.length) + whole(next.length);
        (length, whole(now.saturating_sub(self.end)).max(1))
    }
}

/// A cache of database rows: the rows in the tables of counts that belong to the run of the writer.
#[derive(Debug, Default)]
pub(crate) struct CountedRows {
    /// True if the tables of counts are known to exist in the file.
    made: bool,
    /// For each line of code: the id of its row, and the object size that the row contains. The key is the number that
    /// the caller uses for the line.
    ids: FxHashMap<u32, (i64, Option<u64>)>,
    /// Number of lines of code that have their own row.
    lines: u64,
    /// The lines of code whose counts are summed in one row, as the numbers with which the caller identifies the lines.
    /// These lines never get their own row later, because a new row would not contain their earlier counts.
    others: FxHashSet<u32>,
    spans: Vec<Span>,
}

impl CountedRows {
    /// Marks the cache of database rows as outdated: a transaction may have been rolled back, or another process may
    /// have changed the file.
    pub(crate) fn invalidate(&mut self) {
        self.made = false;
    }

    /// Adds the counts since the agent's previous write to the trace. Returns true if every line of code has its own
    /// row. Returns false if the counts of some lines are summed in one row, because there is no space for more rows.
    pub(crate) fn add(
        &mut self,
        connection: &Connection,
        run: i64,
        counting: &Counting,
        (full, max_bytes): (bool, u64),
    ) -> rusqlite::Result<bool> {
        if !self.made || self.changed(connection, run)? {
            self.find(connection, run)?;
        }
        store_state(connection, run, counting)?;
        let begin = self.spans.last().map_or(counting.from_ms, |span| span.end);
        let (end, sites) = (counting.at_ms.max(begin), counting.lines.len() as u64);
        let length = end - begin;
        connection
            .prepare_cached(
                "INSERT INTO counted_span (run, uptime_ms, span_ms, sites) VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![run, end, length, int(sites)])?;
        let id = connection.last_insert_rowid();
        self.spans.push(Span {
            id,
            end,
            length,
            sites,
        });
        let most_lines = if full { 0 } else { max_bytes / BYTES_PER_LINE };
        let mut add = connection.prepare_cached(
            "INSERT INTO counted_amount VALUES (?1, ?2, ?3, ?4) ON CONFLICT (span, site) DO UPDATE SET
                 objects = objects + excluded.objects, array_bytes = array_bytes + excluded.array_bytes",
        )?;
        for line in &counting.lines {
            let (site, bytes) = match self.line(connection, run, line, most_lines)? {
                Some(site) => (site, line.array_bytes),
                None => {
                    let others = LineCount::others();
                    let site = row(connection, run, &others)?;
                    let bytes = match line.array_bytes {
                        0 => line.object_bytes.unwrap_or(0).saturating_mul(line.objects),
                        bytes => bytes,
                    };
                    (site, bytes)
                }
            };
            add.execute(params![id, site, int(line.objects), int(bytes)])?;
        }
        self.merge_spans(connection, max_bytes / AMOUNTS_PART / AMOUNT_BYTES)?;
        Ok(self.others.is_empty())
    }

    /// Returns true if the number of spans in the file differs from the cached number. The two numbers differ after the
    /// maintenance of the file has merged old spans.
    fn changed(&self, connection: &Connection, run: i64) -> rusqlite::Result<bool> {
        let mut count =
            connection.prepare_cached("SELECT count(*) FROM counted_span WHERE run = ?1")?;
        let count: i64 = count.query_row([run], |row| row.get(0))?;
        Ok(usize::try_from(count) != Ok(self.spans.len()))
    }

    /// Creates the tables if they are missing, and reads the spans (periods of time with one count per line) of the
    /// run.
    fn find(&mut self, connection: &Connection, run: i64) -> rusqlite::Result<()> {
        connection.execute_batch(TABLES)?;
        self.ids.clear();
        let lines = "SELECT count(*) FROM counted_site WHERE run = ?1 AND class <> ?2";
        let lines: i64 = connection.query_row(lines, params![run, OTHERS], |row| row.get(0))?;
        self.lines = lines.unsigned_abs();
        let spans = "SELECT id, uptime_ms, span_ms, sites FROM counted_span WHERE run = ?1 ORDER BY uptime_ms, id";
        let mut query = connection.prepare(spans)?;
        let spans = query.query_map([run], |row| {
            let sites: i64 = row.get(3)?;
            Ok(Span {
                id: row.get(0)?,
                end: row.get(1)?,
                length: row.get(2)?,
                sites: sites.unsigned_abs(),
            })
        })?;
        self.spans = spans.collect::<rusqlite::Result<_>>()?;
        self.made = true;
        Ok(())
    }

    /// Returns the row id of a line of code, or `None` if the line has no row of its own.
    fn line(
        &mut self,
        connection: &Connection,
        run: i64,
        line: &LineCount,
        most: u64,
    ) -> rusqlite::Result<Option<i64>> {
        if let Some((id, size)) = self.ids.get_mut(&line.number) {
            if *size != line.object_bytes {
                resize(connection, *id, line)?;
                *size = line.object_bytes;
            }
            return Ok(Some(*id));
        }
        if self.others.contains(&line.number) {
            return Ok(None);
        }
        let id = match find_line_id(connection, run, line)? {
            Some(id) => {
                resize(connection, id, line)?;
                id
            }
            None if self.lines < most => {
                self.lines += 1;
                insert(connection, run, line)?
            }
            None => {
                self.others.insert(line.number);
                return Ok(None);
            }
        };
        self.ids.insert(line.number, (id, line.object_bytes));
        Ok(Some(id))
    }

    /// Merges neighbouring time spans until there are at most [`MOST_SPANS`] spans, and at most `most_amounts` amounts
    /// in all spans together. An amount is the count of one line of code in one span.
    fn merge_spans(&mut self, connection: &Connection, most_amounts: u64) -> rusqlite::Result<()> {
        let Some(now) = self.spans.last().map(|span| span.end) else {
            return Ok(());
        };
        loop {
            let amounts = self.spans.iter().map(|span| span.sites).sum::<u64>();
            if self.spans.len() <= MOST_SPANS && amounts <= most_amounts {
                return Ok(());
            }
            let pairs = self.spans.windows(2).enumerate().map(|(at, pair)| {
                let fraction = pair[0].joint_length_and_age(pair[1], now);
                (at, fraction)
            });
            let shortest = pairs.min_by(|(_, (a, of_a)), (_, (b, of_b))| {
                a.saturating_mul(*of_b).cmp(&b.saturating_mul(*of_a))
            });
            let Some((at, _)) = shortest else {
                return Ok(());
            };
            let first = self.spans.remove(at);
            if let Some(span) = self.spans.get_mut(at) {
                merge(connection, first, span)?;
            }
        }
    }
}

impl LineCount {
    /// Returns the line that sums all lines without their own row.
    fn others() -> Self {
        Self {
            number: 0,
            class: OTHERS.into(),
            method: "".into(),
            line: None,
            allocated: "".into(),
            object_bytes: None,
            objects: 0,
            array_bytes: 0,
        }
    }
}

/// Stores the state of the counting.
fn store_state(connection: &Connection, run: i64, counting: &Counting) -> rusqlite::Result<()> {
    let mut tell = connection.prepare_cached(
        "INSERT OR REPLACE INTO counting VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    tell.execute(params![
        run,
        counting.from_ms,
        counting.at_ms,
        counting.jdk,
        int(counting.classes),
        int(counting.missed_sites),
        int(counting.missed_methods),
        int(counting.missed_classes),
    ])?;
    Ok(())
}

fn find_line_id(
    connection: &Connection,
    run: i64,
    line: &LineCount,
) -> rusqlite::Result<Option<i64>> {
    let find =
        "SELECT id FROM counted_site WHERE run = ?1 AND class = ?2 AND method = ?3 AND line IS ?4
                AND allocated = ?5";
    let LineCount {
        class,
        method,
        line,
        allocated,
        ..
    } = line;
    connection
        .prepare_cached(find)?
        .query_row(params![run, class, method, line, allocated], |row| {
            row.get(0)
        })
        .optional()
}

fn insert(connection: &Connection, run: i64, line: &LineCount) -> rusqlite::Result<i64> {
    let add = "INSERT INTO counted_site (run, class, method, line, allocated, object_bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    connection.prepare_cached(add)?.execute(params![
        run,
        line.class,
        line.method,
        line.line,
        line.allocated,
        line.object_bytes.map(int),
    ])?;
    Ok(connection.last_insert_rowid())
}

fn row(connection: &Connection, run: i64, line: &LineCount) -> rusqlite::Result<i64> {
    match find_line_id(connection, run, line)? {
        Some(id) => Ok(id),
        None => insert(connection, run, line),
    }
}

fn resize(connection: &Connection, id: i64, line: &LineCount) -> rusqlite::Result<()> {
    let set = "UPDATE counted_site SET object_bytes = ?2 WHERE id = ?1 AND object_bytes IS NOT ?2";
    connection
        .prepare_cached(set)?
        .execute(params![id, line.object_bytes.map(int)])?;
    Ok(())
}

/// Merges a time span of counts into the next span.
fn merge(connection: &Connection, first: Span, next: &mut Span) -> rusqlite::Result<()> {
    let ids = params![first.id, next.id];
    connection
        .prepare_cached(
            "INSERT INTO counted_amount SELECT ?2, site, objects, array_bytes FROM counted_amount WHERE span = ?1
             ON CONFLICT (span, site) DO UPDATE SET
                 objects = objects + excluded.objects, array_bytes = array_bytes + excluded.array_bytes",
        )?
        .execute(ids)?;
    connection
        .prepare_cached("DELETE FROM counted_amount WHERE span = ?1")?
        .execute([first.id])?;
    connection
        .prepare_cached("DELETE FROM counted_span WHERE id = ?1")?
        .execute([first.id])?;
    let (sites, length): (i64, i64) = connection
        .prepare_cached(
            "UPDATE counted_span SET span_ms = span_ms + ?2,
                 sites = (SELECT count(*) FROM counted_amount WHERE span = ?1)
             WHERE id = ?1 RETURNING sites, span_ms",
        )?
        .query_row(params![next.id, first.length], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    (next.sites, next.length) = (sites.unsigned_abs(), length);
    Ok(())
}

/// Merges those spans of a run that end by `until_ms` into one. The times of the single spans are lost. The sums do not
/// change.
pub(crate) fn join_until(connection: &Connection, run: i64, until_ms: i64) -> rusqlite::Result<()> {
    if is_table(connection, "counted_span")? != Some(true) {
        return Ok(());
    }
    let last = "SELECT id FROM counted_span WHERE run = ?1 AND uptime_ms <= ?2 ORDER BY uptime_ms DESC, id DESC LIMIT 1";
    let last: Option<i64> = connection
        .prepare_cached(last)?
        .query_row([run, until_ms], |row| row.get(0))
        .optional()?;
    let Some(last) = last else { return Ok(()) };
    let some = "SELECT id FROM counted_span WHERE run = ?1 AND uptime_ms <= ?2";
    for sql in [
        format!(
            "INSERT OR REPLACE INTO counted_amount
             SELECT ?3, site, sum(objects), sum(array_bytes) FROM counted_amount WHERE span IN ({some}) GROUP BY site"
        ),
        format!("DELETE FROM counted_amount WHERE span IN ({some}) AND span <> ?3"),
        format!(
            "UPDATE counted_span SET span_ms = (SELECT sum(span_ms) FROM counted_span WHERE id IN ({some})),
                 sites = (SELECT count(*) FROM counted_amount WHERE span = ?3)
             WHERE id = ?3"
        ),
        format!("DELETE FROM counted_span WHERE id IN ({some}) AND id <> ?3"),
    ] {
        connection
            .prepare_cached(&sql)?
            .execute(params![run, until_ms, last])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::synthetic::Numbered;
    use crate::{
        CountedLine, CountedPart, Database, Limits, NewRun, NewTick, Trace, TraceError, Window,
        Writer, Written,
    };

    const ROOM: u64 = 64 << 20;

    fn writer(path: &Path, uid: &str, max_bytes: u64) -> Writer {
        let run = NewRun {
            uid: uid.to_owned(),
            ..NewRun::default()
        };
        let limits = Limits {
            max_bytes,
            ..Limits::default()
        };
        Writer::create(path, &run, limits).unwrap()
    }

    fn line(number: u32, objects: u64) -> LineCount {
        let is_array = number % 2 == 1;
        LineCount {
            number,
            class: format!("com.acme.C{number}").into(),
            method: "make".into(),
            line: (!number.is_multiple_of(3)).then_some(number),
            allocated: if is_array { "byte[]" } else { "com.acme.Foo" }.into(),
            object_bytes: (!is_array).then_some(24),
            objects,
            array_bytes: if is_array { 40 * objects } else { 0 },
        }
    }

    fn counting(at_ms: i64, lines: Vec<LineCount>) -> Counting {
        Counting {
            from_ms: 100,
            at_ms,
            classes: 7,
            lines,
            ..Counting::default()
        }
    }

    fn tick(writer: &mut Writer, uptime_ms: i64, lines: Vec<LineCount>) {
        let tick = NewTick {
            time_ms: uptime_ms,
            uptime_ms,
            span_ms: 1000,
            counting: Some(counting(uptime_ms, lines)),
            ..NewTick::default()
        };
        let written = writer.tick(&Numbered, &(), |_| tick);
        assert_eq!(written.unwrap(), Written::Done);
    }

    fn read(path: &Path, run: i64, window: Window) -> (Option<CountedPart>, Vec<CountedLine>) {
        let trace = Trace::open(path).unwrap();
        let mut lines = Vec::new();
        let part = trace.each_counted_line(run, window, |line| lines.push(line));
        let part = part.unwrap();
        assert_eq!(trace.invalid_number_count(), 0);
        (part, lines)
    }

    /// Returns the number of objects of each allocated class.
    fn objects(path: &Path, run: i64, window: Window) -> BTreeMap<String, u64> {
        let mut found = BTreeMap::new();
        for line in read(path, run, window).1 {
            let bytes = if line.class.ends_with(['1', '3', '5', '7', '9']) {
                40
            } else {
                24
            };
            if !line.is_remainder_row() {
                assert_eq!(line.bytes, Some(bytes * line.objects), "{line:?}");
            }
            *found.entry(line.class).or_default() += line.objects;
        }
        found
    }

    fn of<const N: usize>(counts: [(&str, u64); N]) -> BTreeMap<String, u64> {
        counts.map(|(class, n)| (class.to_owned(), n)).into()
    }

    fn number(path: &Path, sql: &str) -> i64 {
        let database = Database::open(path).unwrap();
        let number = database.connection().query_row(sql, [], |row| row.get(0));
        number.unwrap()
    }

    #[test]
    fn counts_add_up_and_windows_cover_whole_spans() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let mut first = writer(&path, "1-1", ROOM);
        let none = NewTick::default();
        assert_eq!(first.tick(&(), &(), |_| none).unwrap(), Written::Done);
        assert_eq!(read(&path, 1, Window::ALL), (None, Vec::new()));
        let tables = |path: &Path| Trace::open(path).unwrap().tables().unwrap();
        assert!(tables(&path).iter().all(|t| !t.name.starts_with("count")));
        tick(&mut first, 1000, vec![line(1, 5), line(2, 1 << 40)]);
        tick(&mut first, 2000, vec![line(2, 3)]);
        tick(&mut first, 3000, Vec::new());
        let mut second = writer(&path, "2-1", ROOM);
        tick(&mut second, 1000, vec![line(1, 7)]);
        let all = of([("com.acme.C1", 5), ("com.acme.C2", (1 << 40) + 3)]);
        assert_eq!(objects(&path, 1, Window::ALL), all);
        assert_eq!(objects(&path, 2, Window::ALL), of([("com.acme.C1", 7)]));
        let part = |from_ms, to_ms| Some(CountedPart { from_ms, to_ms });
        let window = |from_ms, to_ms| Window { from_ms, to_ms };
        for (asked, expected, counts) in [
            (Window::ALL, part(100, 3000), all),
            (
                window(1001, 2999),
                part(1000, 2000),
                of([("com.acme.C2", 3)]),
            ),
            (window(2500, 9000), part(2000, 3000), of([])),
            (window(3001, 9000), None, of([])),
        ] {
            assert_eq!(read(&path, 1, asked).0, expected, "{asked:?}");
            assert_eq!(objects(&path, 1, asked), counts, "{asked:?}");
        }
        let trace = Trace::open(&path).unwrap();
        let run = trace.counted_run(1).unwrap().unwrap();
        assert_eq!((run.from_ms, run.to_ms, run.classes), (100, 3000, 7));
        assert_eq!(trace.counted_run(3).unwrap(), None);
        assert_eq!(read(&path, 1, Window::ALL).1[0].line, Some(1));
    }

    /// Writes counts more times than a run may have spans (periods of time with their counts). Old spans are then
    /// merged with their neighbours, but the latest spans are not. The sum over all spans stays exact.
    #[test]
    fn old_spans_are_merged_without_loss() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let mut rows = CountedRows::default();
        let database = Database::create(&path).unwrap();
        let connection = database.connection();
        let run = "INSERT INTO run VALUES (1, 'a', 1, 'h', NULL, 0, NULL, '', '', '', '', 0, '')";
        connection.execute_batch(run).unwrap();
        connection.execute_batch("BEGIN").unwrap();
        let ticks = 20_000_u32;
        for n in 1..=ticks {
            let mut lines = vec![line(1, 1)];
            if n % 100 == 0 {
                lines.push(line(n, 2));
            }
            let counting = counting(i64::from(n) * 1000, lines);
            assert!(rows.add(connection, 1, &counting, (false, ROOM)).unwrap());
        }
        connection.execute_batch("COMMIT").unwrap();
        assert_eq!(number(&path, "SELECT count(*) FROM counted_span"), 720);
        let sums = objects(&path, 1, Window::ALL);
        assert_eq!((sums.len(), sums["com.acme.C1"]), (201, ticks.into()));
        assert_eq!(
            sums.values().sum::<u64>(),
            u64::from(ticks + 2 * ticks / 100)
        );
        // Old spans are merged, but not the spans of the last minutes. The length of a span is at most one second plus
        // 1/20 of its age.
        let last = Window {
            from_ms: 19_901_000,
            to_ms: u64::MAX,
        };
        let part = read(&path, 1, last).0.unwrap();
        assert_eq!((part.from_ms, part.to_ms), (19_900_000, 20_000_000));
        assert_eq!(objects(&path, 1, last)["com.acme.C1"], 100);
        let coarse =
            "SELECT count(*) FROM counted_span WHERE span_ms > 1000 + (20000000 - uptime_ms) / 20";
        assert_eq!(number(&path, coarse), 0);
        let holes = "SELECT count(*) FROM counted_span a WHERE a.uptime_ms - a.span_ms NOT IN
            (SELECT uptime_ms FROM counted_span UNION SELECT 100)";
        assert_eq!(number(&path, holes), 0);
        let sites = "SELECT count(*) FROM counted_span WHERE sites <>
            (SELECT count(*) FROM counted_amount WHERE span = id)";
        assert_eq!(number(&path, sites), 0);
    }

    #[test]
    fn amounts_take_at_most_a_part_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let max_bytes = 1 << 20;
        let most = i64::try_from(max_bytes / AMOUNTS_PART / AMOUNT_BYTES).unwrap();
        let mut writer = writer(&path, "1-1", max_bytes);
        for n in 1..=100 {
            let lines = (0..200).map(|i| line(i, 1)).collect();
            tick(&mut writer, n * 1000, lines);
            assert!(number(&path, "SELECT count(*) FROM counted_amount") <= most);
        }
        let sums = objects(&path, 1, Window::ALL);
        assert!(sums.len() == 200 && sums.values().all(|n| *n == 100));
        // A single write to the trace has more counts of lines than the limit allows for all spans together. Then all
        // spans are merged into one span, and the sums of this span are complete.
        let many = (0..200).map(|i| line(i, 1)).collect();
        let mut rows = CountedRows::default();
        let connection = writer.database.connection();
        rows.add(connection, 1, &counting(101_000, many), (false, 1024))
            .unwrap();
        assert_eq!(number(&path, "SELECT count(*) FROM counted_span"), 1);
        let sums = objects(&path, 1, Window::ALL);
        assert!(sums.values().all(|n| *n == 101));
    }

    #[test]
    fn lines_beyond_the_limit_are_counted_together() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let notes = || Trace::open(&path).unwrap().notes(1).unwrap().len();
        let mut writer = writer(&path, "1-1", 256 * BYTES_PER_LINE);
        tick(&mut writer, 1000, (0..256).map(|i| line(i, 1)).collect());
        assert_eq!((objects(&path, 1, Window::ALL).len(), notes()), (256, 0));
        tick(&mut writer, 2000, (0..356).map(|i| line(i, 1)).collect());
        tick(&mut writer, 3000, vec![line(0, 1), line(256, 1)]);
        let all = objects(&path, 1, Window::ALL);
        assert_eq!((all.len(), all[OTHERS], all["com.acme.C0"]), (257, 101, 3));
        assert_eq!(all.values().sum::<u64>(), 256 + 356 + 2);
        let lines = read(&path, 1, Window::ALL).1;
        let rest = lines.iter().find(|line| line.is_remainder_row()).unwrap();
        assert_eq!(rest.bytes, Some(51 * 24 + 50 * 40));
        assert_eq!(notes(), 1, "it is told once");
    }

    /// The object size at a line of code may become known only at a later write to the trace, and may become unknown
    /// again.
    #[test]
    fn bytes_use_the_last_known_object_size() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let mut writer = writer(&path, "1-1", ROOM);
        let sized = |object_bytes| LineCount {
            object_bytes,
            ..line(2, 10)
        };
        for (at, size, expected) in [
            (1000, None, None),
            (2000, Some(24), Some(480)),
            (3000, None, None),
        ] {
            tick(&mut writer, at, vec![sized(size)]);
            assert_eq!(read(&path, 1, Window::ALL).1[0].bytes, expected);
        }
    }

    /// If a run is deleted, even by a program that does not know the tables of counts, its counts are deleted, too. If
    /// spans of time are merged, the sums over all spans stay the same.
    #[test]
    fn counts_are_deleted_with_their_run_and_sums_stay_exact() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let mut first = writer(&path, "1-1", ROOM);
        for n in 1..=9 {
            tick(&mut first, n * 1000, vec![line(1, 1), line(2, 2)]);
        }
        let mut second = writer(&path, "2-1", ROOM);
        tick(&mut second, 1000, vec![line(1, 5)]);
        second.end(2000).unwrap();
        let join = |until| {
            let database = Database::create(&path).unwrap();
            join_until(database.connection(), 1, until).unwrap();
        };
        join(500);
        assert_eq!(number(&path, "SELECT count(*) FROM counted_span"), 10);
        let all = of([("com.acme.C1", 9), ("com.acme.C2", 18)]);
        join(4500);
        join(4500);
        assert_eq!(number(&path, "SELECT count(*) FROM counted_span"), 7);
        assert_eq!(objects(&path, 1, Window::ALL), all);
        let part = read(
            &path,
            1,
            Window {
                from_ms: 0,
                to_ms: 4000,
            },
        )
        .0
        .unwrap();
        assert_eq!((part.from_ms, part.to_ms), (100, 4000));
        // After another process has merged spans, the run's writer continues with the merged spans.
        join(8000);
        tick(&mut first, 10_000, vec![line(1, 1), line(3, 1)]);
        first.end(10_000).unwrap();
        let all = of([("com.acme.C1", 10), ("com.acme.C2", 18), ("com.acme.C3", 1)]);
        assert_eq!(objects(&path, 1, Window::ALL), all);
        let older = Database::open_to_add(&path, Duration::from_secs(2)).unwrap();
        let drop_first = "DELETE FROM tick WHERE run = 1; DELETE FROM run WHERE id = 1";
        older.connection().execute_batch(drop_first).unwrap();
        assert_eq!(objects(&path, 1, Window::ALL), of([]));
        assert_eq!(objects(&path, 2, Window::ALL), of([("com.acme.C1", 5)]));
        assert_eq!(number(&path, "SELECT count(*) FROM counted_amount"), 1);
        let mut database = Database::create(&path).unwrap();
        database.prune(i64::MAX / 2).unwrap();
        for table in ["counting", "counted_site", "counted_span", "counted_amount"] {
            assert_eq!(number(&path, &format!("SELECT count(*) FROM {table}")), 0);
        }
    }

    /// If a write to the trace fails, the next write includes the counts of the failed write. If the run was deleted,
    /// its writer inserts the run again.
    #[test]
    fn a_failed_tick_writes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let mut writer = writer(&path, "1-1", ROOM);
        tick(&mut writer, 1000, vec![line(1, 1)]);
        let pages = number(&path, "PRAGMA page_count");
        let limit = |writer: &Writer, pages: i64| {
            let sql = format!("PRAGMA max_page_count = {pages}");
            let connection = writer.database.connection();
            connection.query_row(&sql, [], |_| Ok(())).unwrap();
        };
        limit(&writer, pages);
        let many = || (0..3000).map(|i| line(i, 1)).collect::<Vec<_>>();
        let more = NewTick {
            time_ms: 2000,
            uptime_ms: 2000,
            counting: Some(counting(2000, many())),
            ..NewTick::default()
        };
        let failed = writer.tick(&Numbered, &(), |_| &more).unwrap_err();
        assert!(failed.is_disk_full(), "{failed}");
        assert_eq!(objects(&path, 1, Window::ALL), of([("com.acme.C1", 1)]));
        limit(&writer, 1 << 20);
        tick(&mut writer, 3000, many());
        let all = objects(&path, 1, Window::ALL);
        assert_eq!((all.len(), all["com.acme.C1"]), (3000, 2));
        let part = read(&path, 1, Window::ALL).0.unwrap();
        assert_eq!((part.from_ms, part.to_ms), (100, 3000));
        let other = Database::create(&path).unwrap();
        let drop = "DELETE FROM tick; DELETE FROM note; DELETE FROM run";
        other.connection().execute_batch(drop).unwrap();
        tick(&mut writer, 4000, vec![line(1, 3)]);
        assert_eq!(objects(&path, 1, Window::ALL), of([("com.acme.C1", 3)]));
    }

    #[test]
    fn a_view_instead_of_a_table_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        tick(&mut writer(&path, "1-1", ROOM), 1000, vec![line(1, 1)]);
        let fake =
            "DROP TABLE counted_amount; CREATE VIEW counted_amount AS SELECT 1 AS span, 1 AS site";
        let database = Database::create(&path).unwrap();
        database.connection().execute_batch(fake).unwrap();
        let trace = Trace::open(&path).unwrap();
        let refused = trace.each_counted_line(1, Window::ALL, |_| ());
        assert!(matches!(
            refused,
            Err(TraceError::Table {
                table: "counted_amount",
                ..
            })
        ));
    }
}
