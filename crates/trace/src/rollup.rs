//! Merges and deletes old ticks (the data of one period each) to keep a trace small.
//!
//! Ticks older than an hour are merged to ticks of one minute, and ticks older than a day to ticks of one hour:
//!
//! ```text
//! older than a day: 1 h per tick | older than an hour: 1 min per tick | last hour: unchanged
//! ```
//!
//! Merging adds up activity, such as allocated bytes. For a state, such as live bytes, it keeps the last value. Data
//! older than `retain` is deleted. If the file is too large, more is deleted, oldest first. Each of these steps is a
//! short transaction after a tick is written.
//!
//! The live amount of a site at any time is in the site's last row up to that time. So when old ticks are deleted, the
//! last one of these ticks is kept: it stores the last live amount of each site.

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use crate::counted::join_until;
use crate::database::{Database, TraceError, int, is_busy, note_once};
use crate::room::is_disk_full_at;
use crate::write::Writer;
use crate::write_names::{ALIVE, SILENT, drop_names};

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// The rules by which old ticks are merged. Each rule has the minimum age of the ticks to merge, and the length of the
/// resulting ticks, in milliseconds.
const STEPS: [(i64, i64); 2] = [(HOUR, MINUTE), (DAY, HOUR)];
/// Minimum time between two passes that merge and delete old data, in milliseconds. If the file is too large, a pass
/// may begin earlier.
const PERIOD: i64 = 10_000;
/// Maximum number of periods merged at a time. A trace that had no writer for a long time is processed in small steps.
const AT_A_TIME: usize = 8;
/// Maximum number of pages returned to the file system at a time.
const VACUUM_PAGES: i64 = 2000;
/// SQL columns that select the live amounts from the newest row of a group. In a query with `max`, SQLite takes the
/// other columns from the row that has the maximum.
const NEWEST: &str = "max(tick), live_samples, live_objects, live_bytes, live_bytes_variance";
/// If a file is too large with at most this many ticks, it is full of the names of sites or of samples. So deleting
/// ticks would not help.
const FEW: i64 = 64;
const NO_SAMPLES: &str = "the names of allocation sites take almost all of trace_max: individual samples are no longer stored";
/// If the file is too large, the oldest 1/`PART` of all ticks is deleted.
const PART: i64 = 8;

impl Writer {
    /// Merges and deletes old data if the last pass began at least [`PERIOD`] before this uptime. If the file is too
    /// large, does this at each call, unless the last pass found that names of sites fill the file.
    pub(crate) fn merge_and_prune(&mut self, uptime_ms: i64, time_ms: i64) -> rusqlite::Result<()> {
        if uptime_ms - self.tended_ms < PERIOD && (self.full || !self.is_large()?) {
            return Ok(());
        }
        self.tended_ms = uptime_ms;
        match self.merge_old_ticks(uptime_ms, time_ms) {
            // Ignore a locked file or a full disk here, because the last tick is in the file already. If a later tick
            // does not fit, writing it reports the error.
            Err(error) if is_busy(&error) || is_disk_full_at(self.database.path(), &error) => {
                Ok(())
            }
            other => other,
        }
    }

    fn merge_old_ticks(&mut self, uptime_ms: i64, time_ms: i64) -> rusqlite::Result<()> {
        let (run, large) = (self.run, self.is_large()?);
        let retain = i64::try_from(self.limits.retain.as_millis()).unwrap_or(i64::MAX);
        let connection = self.database.connection_mut();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let others = runs(&transaction)?;
        for (age, span) in STEPS {
            // Measure the age of this run's data by uptime. For other runs, use the machine's clock, because their
            // current uptimes are unknown here.
            merge_old_ticks(&transaction, Runs::This(run), uptime_ms - age, span)?;
            if others.len() > 1 {
                merge_old_ticks(&transaction, Runs::Others(run), time_ms - age, span)?;
            }
        }
        // Delete only when the data exceeds `retain` by 5 %, because each deletion rewrites the states of all sites.
        let past = retain.saturating_add(retain / 20);
        for other in others {
            let (clock, now) = if other == run {
                ("uptime_ms", uptime_ms)
            } else {
                ("time_ms", time_ms)
            };
            let old = format!(
                "SELECT min({clock}), max(time_ms) FILTER (WHERE {clock} < ?2) FROM tick WHERE run = ?1"
            );
            let keep = now.saturating_sub(retain);
            let (first, cut): (Option<i64>, Option<i64>) = transaction
                .prepare_cached(&old)?
                .query_row(params![other, keep], |row| Ok((row.get(0)?, row.get(1)?)))?;
            if let (Some(first), Some(cut)) = (first, cut)
                && first < now.saturating_sub(past)
            {
                prune_run(&transaction, other, cut, time_ms)?;
            }
        }
        if large {
            // Delete the oldest ticks of all runs. If few ticks are left and the file is still too large, unused names
            // and samples are deleted. If the file is then still too large, new names are not stored.
            let sql = "SELECT count(*) / ?1 FROM tick";
            let some: i64 = transaction.query_row(sql, [PART], |row| row.get(0))?;
            let sql = "SELECT time_ms FROM tick ORDER BY time_ms LIMIT 1 OFFSET ?1";
            let cut: Option<i64> = transaction
                .query_row(sql, [some.max(1)], |row| row.get(0))
                .optional()?;
            if let Some(cut) = cut {
                prune(&transaction, cut, time_ms)?;
            }
        }
        transaction.commit()?;
        vacuum(self.database.connection())?;
        let connection = self.database.connection();
        let ticks: i64 = connection.query_row("SELECT count(*) FROM tick", [], |row| row.get(0))?;
        let mut full = ticks <= FEW && self.is_large()?;
        if full {
            full = self.drop_names(time_ms)?;
        }
        if full && drop_samples(self.database.connection(), run, time_ms)? {
            // Before new sites are refused, delete individual samples. Write no more samples, because they would fill
            // the file again.
            self.rows.stop();
            full = self.drop_names(time_ms)?;
        }
        let connection = self.database.connection();
        if self.rows.is_stopped() {
            note_once(connection, run, time_ms, NO_SAMPLES)?;
        }
        if full {
            let text = "the names of allocation sites alone take trace_max bytes: new sites are not recorded";
            note_once(connection, run, time_ms, text)?;
        }
        self.rows.recount(connection)?;
        self.full = full;
        Ok(())
    }

    /// Deletes unused names. Returns true if the file is still too large.
    fn drop_names(&mut self, time_ms: i64) -> rusqlite::Result<bool> {
        drop_names(self.database.connection(), self.run, time_ms)?;
        self.clear_cached_ids();
        vacuum(self.database.connection())?;
        self.is_large()
    }

    /// Returns true if the file is close to its limit. Free pages do not count, because they are returned to the file
    /// system.
    pub(crate) fn is_large(&self) -> rusqlite::Result<bool> {
        let used = self.database.used_bytes()?;
        // Reserve the last 10 % of the limit for new data, and for the write-ahead log until it is moved into the
        // database.
        Ok(used > int(self.limits.max_bytes) / 10 * 9)
    }
}

impl Database {
    /// Deletes the data that all runs recorded before a point in time (in milliseconds since 1970). If a run's JVM is
    /// still running, the last state of each of its sites is kept, so that its live amounts stay known. Names are kept.
    /// The file shrinks.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written, or if another process has locked it.
    pub fn prune(&mut self, before_ms: i64) -> Result<(), TraceError> {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = i64::try_from(now.unwrap_or_default().as_millis()).unwrap_or(i64::MAX);
        let done = self.prune_before(before_ms, now);
        done.map_err(|source| self.error(source))
    }

    /// Returns the bytes of all pages in use.
    pub(crate) fn used_bytes(&self) -> rusqlite::Result<i64> {
        let connection = self.connection();
        let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let pages = number("page_count")? - number("freelist_count")?;
        Ok(pages * number("page_size")?)
    }

    fn prune_before(&mut self, before_ms: i64, now_ms: i64) -> rusqlite::Result<()> {
        let connection = self.connection_mut();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        prune(&transaction, before_ms, now_ms)?;
        transaction.commit()?;
        while vacuum(connection)? {}
        Ok(())
    }
}

/// Gives free pages back to the file system, at most [`VACUUM_PAGES`] at a time. Returns true if there may be more free
/// pages.
fn vacuum(connection: &Connection) -> rusqlite::Result<bool> {
    let free = |connection: &Connection| {
        connection.pragma_query_value(None, "freelist_count", |row| row.get::<_, i64>(0))
    };
    let before = free(connection)?;
    if before == 0 {
        return Ok(false);
    }
    // Read all rows of the pragma: it returns a row for each page, and frees the page only when the row is read.
    let mut statement =
        connection.prepare(&format!("PRAGMA incremental_vacuum({VACUUM_PAGES})"))?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    drop(rows);
    let after = free(connection)?;
    Ok(after > 0 && after < before)
}

fn runs(connection: &Connection) -> rusqlite::Result<Vec<i64>> {
    let mut statement = connection.prepare_cached("SELECT id FROM run")?;
    let runs = statement.query_map([], |row| row.get(0))?;
    runs.collect()
}

#[derive(Clone, Copy)]
enum Runs {
    This(i64),
    Others(i64),
}

/// Merges the ticks of each period of length `span` into one tick. Merges only periods that end at `until` or earlier,
/// and at most [`AT_A_TIME`] periods.
fn merge_old_ticks(
    connection: &Connection,
    runs: Runs,
    until: i64,
    span: i64,
) -> rusqlite::Result<()> {
    let (run, clock, is) = match runs {
        Runs::This(run) => (run, "uptime_ms", "="),
        Runs::Others(run) => (run, "time_ms", "<>"),
    };
    // Find periods that are completely in the past and have more than one tick. Ticks at least as long as `span` are
    // already merged. A tick that overlaps two periods belongs to the period in which the tick ends.
    let sql = format!(
        "SELECT run, uptime_ms / ?3, max(id) FROM tick
         WHERE run {is} ?1 AND {clock} <= ?2 AND span_ms < ?3
         GROUP BY run, uptime_ms / ?3
         HAVING count(*) > 1 LIMIT {AT_A_TIME}"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let found = statement.query_map(params![run, until - span, span], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    })?;
    let found: Vec<(i64, i64, i64)> = found.collect::<rusqlite::Result<_>>()?;
    for (run, period, last) in found {
        merge(connection, run, (period * span, (period + 1) * span), last)?;
    }
    Ok(())
}

/// Merges those ticks of a run that ended in a period. The row of the last tick remains and contains the result.
fn merge(
    connection: &Connection,
    run: i64,
    (from, to): (i64, i64),
    last: i64,
) -> rusqlite::Result<()> {
    let some =
        "SELECT id FROM tick WHERE run = ?1 AND uptime_ms >= ?2 AND uptime_ms < ?3 AND id <= ?4";
    let all = params![run, from, to, last];
    let sites = format!(
        "INSERT OR REPLACE INTO site_tick
         SELECT site, ?4, a1, a2, a3, c1, c2, c3,
                live_samples, live_objects, live_bytes, live_bytes_variance
         FROM (SELECT site, {NEWEST},
                      sum(allocated_samples) AS a1, sum(allocated_objects) AS a2,
                      sum(allocated_bytes) AS a3, sum(collected_samples) AS c1,
                      sum(collected_objects) AS c2, sum(collected_bytes) AS c3
               FROM site_tick WHERE tick IN ({some}) GROUP BY site)"
    );
    connection.prepare_cached(&sites)?.execute(all)?;
    let classes = format!(
        "INSERT OR REPLACE INTO class_tick
         SELECT ?4, class, sum(loaded), sum(unloaded) FROM class_tick WHERE tick IN ({some})
         GROUP BY class"
    );
    connection.prepare_cached(&classes)?.execute(all)?;
    let sums = format!(
        "UPDATE tick SET (span_ms, samples, lost_samples, lost_bytes, newest_collected_ms) =
             (SELECT sum(span_ms), sum(samples), sum(lost_samples), sum(lost_bytes), max(newest_collected_ms)
              FROM tick WHERE id IN ({some}))
         WHERE id = ?4"
    );
    connection.prepare_cached(&sums)?.execute(all)?;
    for (table, column) in [
        ("site_tick", "tick"),
        ("class_tick", "tick"),
        ("tick", "id"),
    ] {
        let delete = format!("DELETE FROM {table} WHERE {column} IN ({some}) AND {column} <> ?4");
        connection.prepare_cached(&delete)?.execute(all)?;
    }
    Ok(())
}

/// Deletes the data that all runs recorded before `before_ms` (milliseconds since 1970).
fn prune(connection: &Connection, before_ms: i64, now_ms: i64) -> rusqlite::Result<()> {
    for run in runs(connection)? {
        prune_run(connection, run, before_ms, now_ms)?;
    }
    Ok(())
}

/// Deletes a run if it has ended and has no newer data than `before_ms`. Returns true if it was deleted.
fn drop_run(
    connection: &Connection,
    run: i64,
    before_ms: i64,
    now_ms: i64,
) -> rusqlite::Result<bool> {
    let over = "SELECT 1 FROM run WHERE id = ?1
                AND (ended_ms < ?2 OR (ended_ms IS NULL AND started_ms < ?3))
                AND NOT EXISTS (SELECT 1 FROM tick WHERE run = ?1 AND time_ms >= ?2)
                AND (ended_ms IS NOT NULL
                     OR NOT EXISTS (SELECT 1 FROM tick WHERE run = ?1 AND time_ms + span_ms >= ?3))";
    let silent = before_ms.min(now_ms - SILENT);
    if !connection
        .prepare_cached(over)?
        .exists(params![run, before_ms, silent])?
    {
        return Ok(false);
    }
    for table in ["site_tick", "class_tick"] {
        let delete =
            format!("DELETE FROM {table} WHERE tick IN (SELECT id FROM tick WHERE run = ?1)");
        connection.prepare_cached(&delete)?.execute([run])?;
    }
    for table in ["tick", "collection", "dump", "note", "sample"] {
        let delete = format!("DELETE FROM {table} WHERE run = ?1");
        connection.prepare_cached(&delete)?.execute([run])?;
    }
    connection
        .prepare_cached("DELETE FROM run WHERE id = ?1")?
        .execute([run])?;
    Ok(true)
}

/// Deletes the individual samples of all runs. Keeps the samples of other JVMs that may still be writing, because the
/// writers in those JVMs rely on the rows. Returns true if any samples were deleted.
fn drop_samples(connection: &Connection, own: i64, now_ms: i64) -> rusqlite::Result<bool> {
    let delete = format!("DELETE FROM sample WHERE run NOT IN ({ALIVE})");
    let dropped = connection.execute(&delete, [now_ms - SILENT, own])?;
    Ok(dropped > 0)
}

/// Deletes the data that a run recorded before `before_ms` (milliseconds since 1970). Keeps the last live amounts of
/// the run's sites, and its live samples. If the run has ended and has no newer data, deletes the whole run.
fn prune_run(
    connection: &Connection,
    run: i64,
    before_ms: i64,
    now_ms: i64,
) -> rusqlite::Result<()> {
    if drop_run(connection, run, before_ms, now_ms)? {
        return Ok(());
    }
    // Compare ticks by id, not by time, because the machine's clock may have been set back between two ticks.
    let base = "SELECT max(id) FROM tick WHERE run = ?1 AND time_ms < ?2";
    let base: Option<i64> = connection
        .prepare_cached(base)?
        .query_row(params![run, before_ms], |row| row.get(0))?;
    let Some(base) = base else {
        return Ok(());
    };
    let older = "SELECT 1 FROM tick WHERE run = ?1 AND id < ?2";
    if !connection
        .prepare_cached(older)?
        .exists(params![run, base])?
    {
        return Ok(());
    }
    let ticks = "SELECT id FROM tick WHERE run = ?1 AND id <= ?2";
    let states = format!(
        "INSERT OR REPLACE INTO site_tick
         SELECT site, ?2, 0, 0, 0, 0, 0, 0,
                live_samples, live_objects, live_bytes, live_bytes_variance
         FROM (SELECT site, {NEWEST} FROM site_tick WHERE tick IN ({ticks}) GROUP BY site)"
    );
    connection
        .prepare_cached(&states)?
        .execute(params![run, base])?;
    let dead = "DELETE FROM site_tick WHERE tick = ?1 AND live_samples = 0";
    connection.prepare_cached(dead)?.execute([base])?;
    for (table, column) in [
        ("site_tick", "tick"),
        ("class_tick", "tick"),
        ("tick", "id"),
    ] {
        let delete = format!("DELETE FROM {table} WHERE {column} IN ({ticks}) AND {column} <> ?2");
        connection
            .prepare_cached(&delete)?
            .execute(params![run, base])?;
    }
    let sums = "UPDATE tick SET samples = 0, lost_samples = 0, lost_bytes = 0 WHERE id = ?1";
    connection.prepare_cached(sums)?.execute([base])?;
    let classes = "DELETE FROM class_tick WHERE tick = ?1";
    connection.prepare_cached(classes)?.execute([base])?;
    let uptime = "SELECT uptime_ms FROM tick WHERE id = ?1";
    let uptime = connection
        .prepare_cached(uptime)?
        .query_row([base], |row| row.get(0))?;
    join_until(connection, run, uptime)?;
    // `collected_ms` is `NULL` for a live sample.
    let samples = "DELETE FROM sample WHERE run = ?1
                   AND collected_ms <= (SELECT uptime_ms FROM tick WHERE id = ?2)";
    connection
        .prepare_cached(samples)?
        .execute(params![run, base])?;
    for table in ["collection", "dump", "note"] {
        let delete = format!("DELETE FROM {table} WHERE run = ?1 AND time_ms < ?2");
        connection
            .prepare_cached(&delete)?
            .execute(params![run, before_ms])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::path::Path;
    use std::time::Duration;

    use crate::{Activity, Database, EstimatedAmount, Limits, NewRun, NewTick, Writer, Written};

    use super::{DAY, HOUR, MINUTE};
    use crate::synthetic::Numbered;

    const START: i64 = 1_700_000_000_000;

    fn run(uid: &str) -> NewRun {
        NewRun {
            uid: uid.to_owned(),
            ..NewRun::default()
        }
    }

    fn amount(n: u32) -> EstimatedAmount {
        EstimatedAmount {
            samples: n.into(),
            objects: n.into(),
            bytes: f64::from(n) * 24.0,
        }
    }

    /// Returns the activity of a site in one tick, with `live` live objects at the end of the tick. One object was
    /// allocated in the tick, and none was collected.
    fn activity(site: u32, live: u32) -> Activity {
        Activity {
            class: site,
            stack: site,
            allocated: amount(1),
            collected: EstimatedAmount::default(),
            live: amount(live),
            live_variance: 0.0,
        }
    }

    fn tick(writer: &mut Writer, uptime_ms: i64, time_ms: i64, span_ms: i64, sites: Vec<Activity>) {
        let tick = NewTick {
            time_ms,
            uptime_ms,
            span_ms,
            samples: sites.len() as u64,
            sites,
            newest_collected_ms: Some(uptime_ms - 20),
            ..NewTick::default()
        };
        assert_eq!(
            writer.tick(&Numbered, &(), |_| tick).unwrap(),
            Written::Done
        );
    }

    fn number(path: &Path, sql: &str) -> i64 {
        let database = Database::open(path).unwrap();
        database
            .connection()
            .query_row(sql, [], |row| row.get(0))
            .unwrap()
    }

    fn live(path: &Path) -> i64 {
        number(
            path,
            "SELECT sum(live_objects) FROM
             (SELECT max(tick), live_objects FROM site_tick GROUP BY site)",
        )
    }

    #[test]
    fn old_ticks_are_merged_to_minutes_and_hours_without_loss() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let mut writer = Writer::create(&path, &run("1-1"), Limits::default()).unwrap();
        let ticks = 26 * 60 * 4;
        for n in 1..=ticks {
            let uptime = i64::from(n) * 15_000;
            // Site 1 gains one object in each tick, and site 2 in every hundredth tick.
            let mut sites = vec![activity(1, n)];
            if n % 100 == 0 {
                sites.push(activity(2, n / 100));
            }
            tick(&mut writer, uptime, START + uptime, 15_000, sites);
        }
        assert_eq!(
            number(&path, "SELECT sum(allocated_objects) FROM site_tick"),
            i64::from(ticks + ticks / 100)
        );
        assert_eq!(live(&path), i64::from(ticks + ticks / 100));
        assert_eq!(
            number(&path, "SELECT sum(span_ms) FROM tick"),
            i64::from(ticks) * 15_000
        );
        assert_eq!(
            number(&path, "SELECT sum(samples) FROM tick"),
            i64::from(ticks + ticks / 100)
        );
        // The last hour has 240 ticks of 15 s. The 23 hours before it have 1380 ticks of one minute, and the first two
        // hours have 2 ticks of one hour.
        let left = number(&path, "SELECT count(*) FROM tick");
        assert!((1600..1700).contains(&left), "{left}");
        assert!((1..=3).contains(&number(
            &path,
            "SELECT count(*) FROM tick WHERE span_ms > 3000000"
        )));
        let newest = "SELECT count(*) FROM tick WHERE newest_collected_ms <> uptime_ms - 20";
        assert_eq!(number(&path, newest), 0);
        // A merged tick must have the live amounts of the last tick that was merged into it.
        let wrong = "SELECT count(*) FROM site_tick st JOIN tick t ON t.id = st.tick
             JOIN site s ON s.id = st.site JOIN class c ON c.id = s.class
             WHERE c.name = 'com.acme.C1' AND live_objects <> uptime_ms / 15000";
        assert_eq!(number(&path, wrong), 0);
    }

    #[test]
    fn pruning_keeps_live_objects() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let mut writer = Writer::create(&path, &run("1-1"), Limits::default()).unwrap();
        // Site 1 is still active. Site 2 was active only once. All objects of site 3 have been collected.
        tick(
            &mut writer,
            1000,
            START + 1000,
            1000,
            vec![
                activity(2, 7),
                Activity {
                    live: EstimatedAmount::default(),
                    ..activity(3, 0)
                },
            ],
        );
        for n in 2..=20 {
            let uptime = i64::from(n) * 1000;
            tick(
                &mut writer,
                uptime,
                START + uptime,
                1000,
                vec![activity(1, n)],
            );
        }
        let mut database = Database::create(&path).unwrap();
        let now = START + 21_000;
        database.prune_before(START + 10_500, now).unwrap();
        database.prune_before(START + 10_500, now).unwrap();
        assert_eq!(number(&path, "SELECT count(*) FROM tick"), 11);
        assert_eq!(live(&path), 27);
        assert_eq!(
            number(&path, "SELECT sum(allocated_objects) FROM site_tick"),
            10
        );
        let base =
            "SELECT sum(live_objects) FROM site_tick WHERE tick = (SELECT min(id) FROM tick)";
        assert_eq!(number(&path, base), 17);
        // The writer continues after pruning.
        tick(
            &mut writer,
            21_000,
            START + 21_000,
            1000,
            vec![activity(2, 8)],
        );
        assert_eq!(live(&path), 28);
        database.prune_before(START + DAY, now).unwrap();
        assert_eq!(live(&path), 28);
        assert_eq!(number(&path, "SELECT count(*) FROM tick"), 1);
        // A run that has ended is deleted completely.
        database.prune_before(START + DAY, now + DAY).unwrap();
        assert_eq!(number(&path, "SELECT count(*) FROM site_tick"), 0);
        assert_eq!(number(&path, "SELECT count(*) FROM run"), 0);
        super::drop_names(database.connection(), 0, now + DAY).unwrap();
        for table in ["class", "frame", "stack", "site"] {
            let left = format!("SELECT count(*) FROM {table}");
            assert_eq!(number(&path, &left), 0, "{table}");
        }
    }

    /// After a week of ticks with much activity, the file is still within the size limit, also by its size on disk. The
    /// file contains the last tick.
    #[test]
    fn a_week_stays_under_the_cap() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let cap = 1 << 20;
        let limits = Limits {
            retain: Duration::from_secs(3 * 24 * 3600),
            max_bytes: cap,
        };
        let mut writer = Writer::create(&path, &run("1-1"), limits).unwrap();
        let span = 3 * MINUTE;
        let ticks = u32::try_from(7 * DAY / span).unwrap();
        for n in 1..=ticks {
            let uptime = i64::from(n) * span;
            let sites = (0..20).map(|i| activity((n * 7 + i * 13) % 300, n % 50));
            tick(&mut writer, uptime, START + uptime, span, sites.collect());
            if n % 60 == 0 {
                let file = std::fs::metadata(&path).unwrap().len();
                assert!(file <= cap, "{file} bytes after {n} ticks");
                let log = std::fs::metadata(path.with_extension("db-wal")).unwrap();
                assert!(log.len() <= 16 << 20, "{} bytes of log", log.len());
            }
        }
        assert_eq!(
            number(&path, "SELECT count(DISTINCT site) FROM site_tick"),
            300
        );
        let newest = number(&path, "SELECT max(uptime_ms) FROM tick");
        assert_eq!(newest, 7 * DAY);
        let oldest = number(&path, "SELECT min(uptime_ms) FROM tick");
        assert!(oldest >= 4 * DAY - 5 * HOUR, "{oldest}");
        drop(writer);
        let whole: String = Database::open(&path)
            .unwrap()
            .connection()
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(whole, "ok");
        assert!(std::fs::metadata(&path).unwrap().len() <= cap);
    }

    /// If names alone fill the file, new names are refused and counted.
    #[test]
    fn the_number_of_names_is_limited() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let limits = Limits {
            max_bytes: 1 << 20,
            ..Limits::default()
        };
        let mut writer = Writer::create(&path, &run("1-1"), limits).unwrap();
        for n in 1..=300_u32 {
            let uptime = i64::from(n) * 1000;
            let sites = (0..200).map(|i| activity(n * 200 + i, 1));
            tick(&mut writer, uptime, START + uptime, 1000, sites.collect());
        }
        assert!(std::fs::metadata(&path).unwrap().len() <= 2 << 20);
        assert!(number(&path, "SELECT sum(lost_samples) FROM tick") > 0);
        let twice = "SELECT count(*) FROM tick WHERE samples + lost_samples > 200 * span_ms / 1000";
        assert_eq!(number(&path, twice), 0);
        assert_eq!(number(&path, "SELECT count(*) FROM note"), 1);
        // When no row refers to the old names any more, they are deleted, so there is room for new names.
        let lost = number(&path, "SELECT sum(lost_samples) FROM tick");
        let sites = number(&path, "SELECT count(*) FROM site");
        writer.end(START + 301_000).unwrap();
        let mut database = Database::create(&path).unwrap();
        database.prune_before(START + DAY, START + DAY).unwrap();
        let later = NewRun {
            started_ms: START + DAY,
            ..run("2-2")
        };
        let mut writer = Writer::create(&path, &later, limits).unwrap();
        for n in 1..=10_u32 {
            let uptime = i64::from(n) * 1000;
            let new = vec![activity(1_000_000 + n, 1)];
            tick(&mut writer, uptime, START + DAY + uptime, 1000, new);
        }
        assert!(lost > 0 && number(&path, "SELECT sum(lost_samples) FROM tick") == 0);
        assert!(sites > 10 && number(&path, "SELECT count(*) FROM site") == 10);
    }

    #[test]
    fn two_runs_share_names_and_keep_apart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let mut a = Writer::create(&path, &run("1-1"), Limits::default()).unwrap();
        let mut b = Writer::create(&path, &run("2-1"), Limits::default()).unwrap();
        for n in 1..=50 {
            let uptime = i64::from(n) * 1000;
            tick(&mut a, uptime, START + uptime, 1000, vec![activity(1, n)]);
            tick(
                &mut b,
                uptime,
                START + uptime,
                1000,
                vec![activity(1, 2 * n), activity(2, 1)],
            );
        }
        a.end(START + 60_000).unwrap();
        drop(b);
        assert_eq!(number(&path, "SELECT count(*) FROM site"), 2);
        assert_eq!(
            number(&path, "SELECT count(*) FROM class WHERE name = '...'"),
            1
        );
        // Stack 1 has three frames: main, run (line 1) and the frame that replaces the frames that were cut off. Stack
        // 2 has two frames that stack 1 does not have.
        assert_eq!(number(&path, "SELECT count(*) FROM stack"), 5);
        assert_eq!(
            number(&path, "SELECT count(*) FROM run WHERE ended_ms IS NULL"),
            1
        );
        let sql = "SELECT sum(live_objects) FROM site_tick st JOIN tick t ON t.id = st.tick
                   WHERE t.run = 2 AND t.uptime_ms = 50000";
        assert_eq!(number(&path, sql), 101);
        // A third run begins two days later. Its writer also merges the old ticks of the first two runs.
        let mut c = Writer::create(&path, &run("3-1"), Limits::default()).unwrap();
        for n in 1..=3 {
            tick(
                &mut c,
                n * 20_000,
                START + 2 * DAY + n * 20_000,
                20_000,
                vec![],
            );
        }
        assert!(number(&path, "SELECT count(*) FROM tick WHERE run = 2") <= 2);
        assert_eq!(
            number(&path, "SELECT sum(allocated_objects) FROM site_tick"),
            150
        );
    }

    /// Ticks are ordered by id and uptime, never by the machine's clock.
    #[test]
    fn a_clock_that_goes_back_does_not_reorder_ticks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let mut writer = Writer::create(&path, &run("1-1"), Limits::default()).unwrap();
        for n in 1..=20_u32 {
            let back = if n > 10 { 5000 } else { 0 };
            let uptime = i64::from(n) * 1000;
            tick(
                &mut writer,
                uptime,
                START + uptime - back,
                1000,
                vec![activity(1, n)],
            );
        }
        let wrong = "SELECT count(*) FROM tick a JOIN tick b ON b.id = a.id + 1
                     WHERE b.uptime_ms <= a.uptime_ms";
        assert_eq!(number(&path, wrong), 0);
        assert_eq!(number(&path, "SELECT count(*) FROM note"), 1);
        let mut database = Database::create(&path).unwrap();
        database.prune_before(START + 8500, START + 20_000).unwrap();
        assert_eq!(live(&path), 20);
    }

    #[test]
    fn the_writer_waits_for_a_locked_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let mut writer = Writer::create(&path, &run("1-1"), Limits::default()).unwrap();
        let holder = rusqlite::Connection::open(&path).unwrap();
        holder.execute_batch("BEGIN IMMEDIATE").unwrap();
        let busy = writer
            .tick(&Numbered, &(), |_| -> NewTick {
                panic!("the file is not ours")
            })
            .unwrap();
        assert_eq!(busy, Written::Busy);
        holder.execute_batch("ROLLBACK").unwrap();
        tick(&mut writer, 1000, START, 1000, vec![activity(1, 1)]);
        assert_eq!(live(&path), 1);
    }
}
