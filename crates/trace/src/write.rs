//! Writes a run of a JVM to a trace, one tick (the data of one period) at a time.

use std::borrow::Borrow;
use std::path::Path;

use rusqlite::{OptionalExtension, Transaction, TransactionBehavior, named_params, params};

use crate::class_totals::ClassRows;
use crate::counted::CountedRows;
use crate::database::{Database, TraceError, int, is_busy, note_once};
use crate::outlook::write_limits;
use crate::room::is_disk_full_at;
use crate::tick::{APART_MS, ClassChange, Limits, NewRun, NewTick, Written};
use crate::write_names::{Ids, Names, SILENT, drop_names};
use crate::write_samples::{Rows, Samples, Target};

/// Size of the page cache, in KiB.
const CACHE_KIB: i64 = 2048;
/// Size to which the write-ahead log is truncated after a checkpoint.
const LOG_BYTES: i64 = 4 << 20;
/// Maximum size of the write-ahead log in bytes. The log grows while a reader prevents checkpoints. While the log is
/// longer than this, no data is written to the trace.
const MOST_LOG_BYTES: u64 = 64 << 20;

/// From the end of one recorded period to the end of the next, the machine's clock and the monotonic clock may advance
/// by different times. If the difference is at least this many milliseconds, the machine's clock is considered changed.
const CLOCK_SLACK_MS: i64 = 2000;

const PUT_BACK: &str = "another process deleted the run from the trace: earlier data is lost, except the data of live objects";
const NO_ROOM: &str = "trace_max is too small for all samples: allocation sites count all of them, but the table `sample` lists only some";
const NO_ROWS: &str = "trace_max is too small for all classes: the table `class_total` counts the other classes together";
const NO_LINES: &str = "trace_max is too small for all lines of code: the table `counted_site` counts the other lines together";

/// Writes one run to a trace.
#[derive(Debug)]
pub struct Writer {
    pub(crate) database: Database,
    pub(crate) run: i64,
    /// The content of the run's row, which is inserted again if another process deletes the row.
    row: NewRun,
    pub(crate) limits: Limits,
    pub(crate) full: bool,
    ids: Ids,
    pub(crate) rows: Rows,
    class_rows: ClassRows,
    pub(crate) counted: CountedRows,
    /// Uptime when old data was last merged or deleted, in milliseconds.
    pub(crate) tended_ms: i64,
    /// Uptime and time of day at the end of the last period that was written.
    last: Option<(i64, i64)>,
}

impl Writer {
    /// Opens or creates the trace, and begins a run in it.
    ///
    /// # Errors
    /// Returns an error if the file cannot be created or written, is not a trace, or has an unsupported version.
    pub fn create(path: &Path, run: &NewRun, limits: Limits) -> Result<Self, TraceError> {
        let mut database = Database::create(path)?;
        if database
            .used_bytes()
            .is_ok_and(|used| used > int(limits.max_bytes) / 2)
        {
            // Deletes unused names, to make room for the names of this run.
            let dropped = drop_names(database.connection(), 0, run.started_ms);
            dropped.map_err(|source| database.error(source))?;
        }
        let mut rows = Rows::default();
        let id = begin(&mut database, run)
            .and_then(|id| rows.recount(database.connection()).map(|()| id))
            .map_err(|source| database.error(source))?;
        Ok(Self {
            database,
            run: id,
            row: run.clone(),
            limits,
            full: false,
            ids: Ids::default(),
            rows,
            class_rows: ClassRows::default(),
            counted: CountedRows::default(),
            tended_ms: 0,
            last: None,
        })
    }

    /// Writes a tick and the changes of `samples` in one transaction, so readers see all of this data or nothing. After
    /// the file is locked for writing, `make` creates the tick. After the transaction, old data is merged or deleted.
    ///
    /// If nothing was written for a long time, another process may have considered the run ended and deleted it. Then
    /// the run is inserted again, and `make` is called with true. In this case, it must return the complete state: the
    /// state of every site, and class totals since the run began.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written. The file then contains nothing of the tick. After most errors,
    /// the writer must not be used again. But if there was [no space](TraceError::is_disk_full), it can be used when
    /// there is space again.
    pub fn tick<T: Borrow<NewTick>>(
        &mut self,
        names: &impl Names,
        samples: &impl Samples,
        make: impl FnOnce(bool) -> T,
    ) -> Result<Written, TraceError> {
        if self.log_bytes() > MOST_LOG_BYTES
            && let Err(error) = self.checkpoint()
        {
            if is_disk_full_at(self.database.path(), &error) {
                return Err(self.database.error(error));
            }
            return Ok(Written::Busy);
        }
        let done = self.write(names, samples, make);
        if done.is_err() {
            self.invalidate();
        }
        match done.map_err(|source| self.database.error(source))? {
            None => Ok(Written::Busy),
            Some((uptime, time)) => {
                let tended = self.merge_and_prune(uptime, time);
                tended.map_err(|source| self.database.error(source))?;
                Ok(Written::Done)
            }
        }
    }

    /// Writes a tick. Returns the uptime and the time of day at the end of the tick, or `None` if another process is
    /// writing.
    fn write<T: Borrow<NewTick>>(
        &mut self,
        names: &impl Names,
        samples: &impl Samples,
        make: impl FnOnce(bool) -> T,
    ) -> rusqlite::Result<Option<(i64, i64)>> {
        let connection = self.database.connection_mut();
        let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let transaction = match begun {
            Ok(transaction) => transaction,
            Err(error) if is_busy(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let (run, is_back) = present(&transaction, self.run, &self.row)?;
        let made = make(is_back);
        let tick: &NewTick = made.borrow();
        let times = (tick.uptime_ms, tick.time_ms);
        let was_silent =
            |(uptime, time): (i64, i64)| (times.0 - uptime).max(times.1 - time) >= SILENT;
        if is_back || self.last.is_some_and(was_silent) {
            // Another process may have deleted names and samples that seemed to be unused.
            self.ids = Ids::default();
            self.rows.invalidate();
        }
        if is_back {
            self.class_rows = ClassRows::default();
            self.counted = CountedRows::default();
            note_once(&transaction, run, times.1, PUT_BACK)?;
        }
        let mut inserting = Inserting {
            transaction: &transaction,
            run,
            ids: &mut self.ids,
            names,
            full: self.full,
        };
        inserting.tick(tick)?;
        let last = self.last.unwrap_or(times);
        let set = (times.1 - times.0) - (last.1 - last.0);
        if set.abs() >= CLOCK_SLACK_MS {
            let way = if set < 0 { "back" } else { "forward" };
            let seconds = set.unsigned_abs().div_ceil(1000);
            let note = format!(
                "the clock of the machine had just been set {way} by {seconds} s; uptimes are not affected"
            );
            inserting.note(tick.time_ms, &note)?;
        }
        let room = self.full
            || self.rows.write(&mut Target {
                connection: &transaction,
                run,
                ids: &mut self.ids,
                names,
                samples,
                max_bytes: self.limits.max_bytes,
            })?;
        if !room {
            note_once(&transaction, run, times.1, NO_ROOM)?;
        }
        let limits = (self.full, self.limits.max_bytes);
        let of = (run, names);
        if !self
            .class_rows
            .add(&transaction, of, &tick.class_totals, limits)?
        {
            note_once(&transaction, run, times.1, NO_ROWS)?;
        }
        if let Some(counting) = &tick.counting
            && !self.counted.add(&transaction, run, counting, limits)?
        {
            note_once(&transaction, run, times.1, NO_LINES)?;
        }
        transaction.commit()?;
        (self.run, self.last) = (run, Some(times));
        Ok(Some(times))
    }

    /// Ends the run.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn end(self, time_ms: i64) -> Result<(), TraceError> {
        let connection = self.database.connection();
        connection
            .execute(
                "UPDATE run SET ended_ms = ?2 WHERE id = ?1 AND uid = ?3",
                params![self.run, time_ms, self.row.uid],
            )
            .map_err(|source| self.database.error(source))?;
        // Ignore an error of the checkpoint. If another process is reading, the last process that closes the file makes
        // the checkpoint.
        let _ = self.checkpoint();
        Ok(())
    }

    /// Clears the caches, because a transaction may have been rolled back, or the cached state may be outdated.
    fn invalidate(&mut self) {
        self.clear_cached_ids();
        self.rows.invalidate();
        self.counted.invalidate();
    }

    /// Clears the cached ids, because names may have been deleted from the file.
    pub(crate) fn clear_cached_ids(&mut self) {
        self.ids = Ids::default();
    }

    fn log_bytes(&self) -> u64 {
        let mut name = self.database.path().as_os_str().to_owned();
        name.push("-wal");
        std::fs::metadata(name).map_or(0, |data| data.len())
    }

    /// Moves the content of SQLite's write-ahead log to the database file. Returns an error if a reader prevents it.
    fn checkpoint(&self) -> rusqlite::Result<()> {
        let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
        let connection = self.database.connection();
        let busy: i64 = connection.query_row(sql, [], |row| row.get(0))?;
        if busy == 0 {
            Ok(())
        } else {
            Err(rusqlite::Error::ExecuteReturnedResults)
        }
    }
}

fn begin(database: &mut Database, run: &NewRun) -> rusqlite::Result<i64> {
    let connection = database.connection_mut();
    // Limit SQLite's memory, and keep SQLite from mapping the database itself into memory. If the disk had no space for
    // a mapped page, the process would crash. Only the log index is mapped.
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.pragma_update(None, "mmap_size", 0)?;
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES)?;
    connection.set_prepared_statement_cache_capacity(64);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let id = insert(&transaction, None, run)?;
    transaction.commit()?;
    Ok(id)
}

/// Returns the row id of a run, and true if the run had to be inserted again because another process deleted it.
fn present(transaction: &Transaction<'_>, id: i64, run: &NewRun) -> rusqlite::Result<(i64, bool)> {
    // Another run may have taken the row id, so the uid is compared.
    let mut find = transaction.prepare_cached("SELECT uid FROM run WHERE id = ?1")?;
    let uid: Option<String> = find.query_row([id], |row| row.get(0)).optional()?;
    Ok(match uid {
        Some(uid) if uid == run.uid => (id, false),
        Some(_) => (insert(transaction, None, run)?, true),
        None => (insert(transaction, Some(id), run)?, true),
    })
}

/// Inserts a run, with this row id or the next free one.
fn insert(transaction: &Transaction<'_>, id: Option<i64>, run: &NewRun) -> rusqlite::Result<i64> {
    transaction.execute(
        "INSERT INTO run (id, uid, pid, host, service, started_ms, jvm, command, flags, options,
                          interval_bytes, strategy)
         VALUES (:id, :uid, :pid, :host, :service, :started, :jvm, :command, :flags, :options,
                 :interval, :strategy)",
        named_params! {
            ":id": id, ":uid": run.uid, ":pid": run.pid, ":host": run.host, ":service": run.service,
            ":started": run.started_ms, ":jvm": run.jvm, ":command": run.command,
            ":flags": run.flags, ":options": run.options, ":interval": int(run.interval_bytes),
            ":strategy": run.strategy,
        },
    )?;
    let id = transaction.last_insert_rowid();
    write_limits(transaction, id, run)?;
    Ok(id)
}

/// Rounds an estimate to a whole number.
fn round_to_i64(value: f64) -> i64 {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the cast saturates, as intended"
    )]
    let value = value.round() as i64;
    value.max(0)
}

struct Inserting<'a, N> {
    transaction: &'a Transaction<'a>,
    run: i64,
    ids: &'a mut Ids,
    names: &'a N,
    full: bool,
}

impl<N: Names> Inserting<'_, N> {
    fn tick(&mut self, tick: &NewTick) -> rusqlite::Result<()> {
        let run = self.run;
        let (mut samples, mut lost_samples) = (tick.samples, tick.lost_samples);
        let mut lost_bytes = tick.lost_bytes;
        let mut sites = Vec::with_capacity(tick.sites.len());
        for activity in &tick.sites {
            let key = (activity.class, activity.stack);
            match self
                .ids
                .site(self.transaction, self.names, key, self.full)?
            {
                Some(site) => sites.push((site, *activity)),
                None => {
                    // There is no room for the names of the site, so its samples are counted as lost.
                    samples = samples.saturating_sub(activity.allocated.samples);
                    lost_samples += activity.allocated.samples;
                    lost_bytes += round_to_i64(activity.allocated.bytes).unsigned_abs();
                }
            }
        }
        let mut insert = self.transaction.prepare_cached(
            "INSERT INTO tick (run, time_ms, uptime_ms, span_ms, heap_used, heap_committed,
                               metaspace_used, metaspace_committed, loaded_classes, samples,
                               lost_samples, lost_bytes, newest_collected_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        )?;
        insert.execute(params![
            run,
            tick.time_ms,
            tick.uptime_ms,
            tick.span_ms,
            int(tick.heap_used),
            int(tick.heap_committed),
            int(tick.metaspace_used),
            int(tick.metaspace_committed),
            int(tick.loaded_classes),
            int(samples),
            int(lost_samples),
            int(lost_bytes),
            tick.newest_collected_ms,
        ])?;
        let id = self.transaction.last_insert_rowid();
        // Two sites of the agent may have the same names. These sites share one row of `site_tick` per tick.
        let mut insert = self.transaction.prepare_cached(
            "INSERT INTO site_tick VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
             ON CONFLICT (site, tick) DO UPDATE SET
                 allocated_samples = allocated_samples + excluded.allocated_samples,
                 allocated_objects = allocated_objects + excluded.allocated_objects,
                 allocated_bytes = allocated_bytes + excluded.allocated_bytes,
                 collected_samples = collected_samples + excluded.collected_samples,
                 collected_objects = collected_objects + excluded.collected_objects,
                 collected_bytes = collected_bytes + excluded.collected_bytes,
                 live_samples = live_samples + excluded.live_samples,
                 live_objects = live_objects + excluded.live_objects,
                 live_bytes = live_bytes + excluded.live_bytes,
                 live_bytes_variance = live_bytes_variance + excluded.live_bytes_variance",
        )?;
        for (site, a) in sites {
            insert.execute(params![
                site,
                id,
                int(a.allocated.samples),
                round_to_i64(a.allocated.objects),
                round_to_i64(a.allocated.bytes),
                int(a.collected.samples),
                round_to_i64(a.collected.objects),
                round_to_i64(a.collected.bytes),
                int(a.live.samples),
                round_to_i64(a.live.objects),
                round_to_i64(a.live.bytes),
                a.live_variance.max(0.0),
            ])?;
        }
        self.classes(id, &tick.classes)?;
        self.rest(tick)
    }

    fn classes(&mut self, tick: i64, changes: &[ClassChange]) -> rusqlite::Result<()> {
        let mut insert = self.transaction.prepare_cached(
            "INSERT INTO class_tick VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (tick, class) DO UPDATE SET
                 loaded = loaded + excluded.loaded, unloaded = unloaded + excluded.unloaded",
        )?;
        for change in changes {
            let class = self
                .ids
                .class(self.transaction, self.names, change.class, self.full)?;
            if let Some(class) = class {
                let (loaded, unloaded) = (int(change.loaded), int(change.unloaded));
                insert.execute(params![tick, class, loaded, unloaded])?;
            }
        }
        Ok(())
    }

    fn rest(&mut self, tick: &NewTick) -> rusqlite::Result<()> {
        let mut insert = self.transaction.prepare_cached(
            "INSERT INTO collection (run, time_ms, uptime_ms, collector, major, cause, pause_us,
                                     before_bytes, after_bytes)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?;
        for c in &tick.collections {
            insert.execute(params![
                self.run,
                c.time_ms,
                c.uptime_ms,
                c.collector,
                c.major,
                c.cause,
                int(c.pause_us),
                int(c.before_bytes),
                int(c.after_bytes),
            ])?;
        }
        // The process that requested the dump may have added a row with the dump's path already; see `side_writer`. In
        // this case, do not add a second row.
        let mut insert = self.transaction.prepare_cached(
            "INSERT INTO dump (run, time_ms, uptime_ms, path) SELECT ?1, ?2, ?3, ?4
             WHERE NOT EXISTS (SELECT 1 FROM dump WHERE run = ?1 AND path IS NOT NULL
                               AND time_ms BETWEEN ?5 AND ?2)",
        )?;
        for (time, uptime, path) in &tick.dumps {
            let collection = tick.collections.iter().find(|c| c.uptime_ms == *uptime);
            let pause = collection.map_or(0, |c| int(c.pause_us) / 1000);
            let earliest = time.saturating_sub(pause).saturating_sub(APART_MS);
            insert.execute(params![self.run, time, uptime, path, earliest])?;
        }
        for text in &tick.notes {
            self.note(tick.time_ms, text)?;
        }
        Ok(())
    }

    fn note(&self, time_ms: i64, text: &str) -> rusqlite::Result<()> {
        self.transaction
            .prepare_cached("INSERT INTO note (run, time_ms, text) VALUES (?1, ?2, ?3)")?
            .execute(params![self.run, time_ms, text])?;
        Ok(())
    }
}
