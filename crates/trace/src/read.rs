//! Reads traces, including those written by unknown programs.
//!
//! A trace may be damaged or malicious, so reading is defensive. The tables of the trace must be ordinary tables. A
//! query is cancelled if it takes many more steps than a file of this size can need. Long strings are truncated.
//! Invalid numbers are replaced and counted ([`Trace::invalid_number_count`]). If a row refers to a row that does not
//! exist, the row is kept with unknown names.

use std::cell::Cell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use heapdiff_sites::Originals;
use rusqlite::Row;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;

pub use crate::amount::Amount;
use crate::amount::Live;
use crate::guard::not_a_table;
use crate::window::Window;
use crate::{Database, TraceError};

/// Maximum number that is read: 2^53 (8 PiB as bytes). Doubles represent integers up to this number exactly.
const MOST: i64 = 1 << 53;
/// Maximum number of bytes of a string that are read.
const LONGEST: usize = 8192;
/// Maximum number of SQLite steps of a query, per byte of the file.
const STEPS_PER_BYTE: u64 = 64;
const LEAST_STEPS: u64 = 100_000_000;
/// Number of SQLite steps between two checks of a query's limits (steps and deadline).
const STRIDE: i32 = 100_000;
/// Maximum size in bytes of a row that SQLite reads. Longer rows are an error.
const LARGEST_ROW: i32 = 16 << 20;

/// A JVM that wrote to a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Row id of the run.
    pub id: i64,
    /// The id of the run. The agent's objects in the heap contain the same id.
    pub uid: String,
    /// Process id of the JVM.
    pub pid: u64,
    /// Name of the host.
    pub host: String,
    /// The service name that the user gave.
    pub service: Option<String>,
    /// Start of the agent, in milliseconds since 1970.
    pub started_ms: u64,
    /// End of the JVM, in milliseconds since 1970. `None` while it runs, or if it was killed.
    pub ended_ms: Option<u64>,
    /// Name and version of the JVM.
    pub jvm: String,
    /// Main class or jar, with arguments.
    pub command: String,
    /// Arguments of the JVM.
    pub flags: String,
    /// Options of the agent.
    pub options: String,
    /// Mean number of bytes between samples; 0 if every allocation is sampled.
    pub interval_bytes: u64,
    /// The sampling strategy.
    pub strategy: String,
}

/// A tick: one time interval of a run, with the state of the JVM at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// Row id of the time interval in the table `tick`.
    pub id: i64,
    /// End of the time interval by the machine's clock, in milliseconds since 1970.
    pub time_ms: u64,
    /// End of the time interval, in milliseconds since the run began. This time never goes backwards.
    pub uptime_ms: u64,
    /// Length of the time interval in milliseconds.
    pub span_ms: u64,
    /// Heap bytes in use at the end of the time interval.
    pub heap_used: u64,
    /// Heap bytes committed.
    pub heap_committed: u64,
    /// Metaspace bytes in use.
    pub metaspace_used: u64,
    /// Metaspace bytes committed.
    pub metaspace_committed: u64,
    /// Number of classes loaded at the end of the time interval.
    pub loaded_classes: u64,
    /// Number of samples recorded in the time interval, without the lost samples.
    pub samples: u64,
    /// Number of lost samples: samples that the agent dropped, and samples without room for their site in the trace.
    pub lost_samples: u64,
    /// Estimated bytes that the lost samples represent.
    pub lost_bytes: u64,
    /// Time at which the newest of the samples found dead in this time interval was allocated, in milliseconds since
    /// the run began. `None` if no sample was found dead, or if an old version of the agent did not record the time.
    pub newest_collected_ms: Option<u64>,
}

/// A garbage collection (GC).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collection {
    /// End of the GC, in milliseconds since 1970.
    pub time_ms: u64,
    /// End of the GC, in milliseconds since the run began.
    pub uptime_ms: u64,
    /// The collector's name, as in the JVM's GC MXBeans.
    pub collector: String,
    /// True if the whole heap was collected.
    pub major: bool,
    /// Cause of the GC. Empty if the JVM does not report one.
    pub cause: String,
    /// Pause of the program, in microseconds.
    pub pause_us: u64,
    /// Heap bytes in use before the GC.
    pub before_bytes: u64,
    /// Heap bytes in use after the GC.
    pub after_bytes: u64,
}

/// A heap dump that was taken of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dump {
    /// Time of the dump, in milliseconds since 1970.
    pub time_ms: u64,
    /// Time of the dump, in milliseconds since the run began.
    pub uptime_ms: u64,
    /// Path of the dump. `None` if the agent did not know the path.
    pub path: Option<String>,
}

/// A note: a message for readers of the trace, such as a warning of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Time of the message, in milliseconds since 1970.
    pub time_ms: u64,
    /// Text of the message.
    pub text: String,
}

/// An allocation site: a class, and the stack that allocates its objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Row id of the site.
    pub id: i64,
    /// The allocated class.
    pub class: Arc<str>,
    /// Row id of the site's stack. `None` for allocations outside of Java code.
    pub stack: Option<i64>,
}

/// A frame of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Name of the class, in the form `com.acme.Foo$Bar` or `byte[]`.
    pub class: Arc<str>,
    /// The method.
    pub method: Arc<str>,
    /// The source file.
    pub file: Option<Arc<str>>,
    /// The line; negative for a native method.
    pub line: Option<i64>,
}

/// The amounts that a site allocated in a tick, and its live amount at the end of the tick.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SiteTick {
    /// The row id of the tick.
    pub tick: i64,
    /// Amount allocated in the tick.
    pub allocated: Amount,
    /// Amount of the objects that were found dead in the tick.
    pub collected: Amount,
    /// Live amount at the end of the tick.
    pub live: Amount,
    /// Variance of the live bytes, which are an estimate.
    pub variance: f64,
}

/// A trace opened for reading.
#[derive(Debug)]
pub struct Trace {
    database: Database,
    pub(crate) steps: Arc<AtomicU64>,
    deadline: Arc<Mutex<Option<Instant>>>,
    odd: Cell<u64>,
    pub(crate) names: Option<Arc<dyn Originals>>,
}

impl Trace {
    /// Opens a trace. A JVM may be writing to it at the same time.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, is not a trace, or has an unsupported version.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let mut database = Database::open(path)?;
        let steps = Arc::new(AtomicU64::new(0));
        let bytes = std::fs::metadata(path).map_or(0, |m| m.len());
        let most = (bytes.saturating_mul(STEPS_PER_BYTE)).max(LEAST_STEPS)
            / u64::from(STRIDE.unsigned_abs());
        let deadline = Arc::new(Mutex::new(None));
        let (counter, clock) = (Arc::clone(&steps), Arc::clone(&deadline));
        let ends =
            move || counter.fetch_add(1, Ordering::Relaxed) > most || is_past_deadline(&clock);
        let version = database.version();
        let connection = database.connection_mut();
        let guarded = connection
            .progress_handler(STRIDE, Some(ends))
            .and_then(|()| connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, LARGEST_ROW))
            .and_then(|_| connection.pragma_update(None, "trusted_schema", false))
            .and_then(|()| not_a_table(connection, version));
        let trace = Self {
            database,
            steps,
            deadline,
            odd: Cell::new(0),
            names: None,
        };
        match guarded.map_err(|e| trace.error(e))? {
            None => Ok(trace),
            Some(table) => Err(TraceError::Table {
                path: path.to_owned(),
                table,
            }),
        }
    }

    /// Sets the map from obfuscated names to original ones. Classes and frames that are read from now on have their
    /// original names.
    pub fn set_names(&mut self, names: Arc<dyn Originals>) {
        self.names = Some(names);
    }

    /// Starts a read transaction. Until [`release`](Self::release), all reads see the file as it is now. Meanwhile the
    /// write-ahead log grows if a writer is active.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn hold(&self) -> Result<(), TraceError> {
        let connection = self.database.connection();
        connection.execute_batch("BEGIN").map_err(|e| self.error(e))
    }

    /// Ends the transaction that [`hold`](Self::hold) started.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn release(&self) -> Result<(), TraceError> {
        let connection = self.database.connection();
        connection
            .execute_batch("COMMIT")
            .map_err(|e| self.error(e))
    }

    /// Sets the time at which queries are cancelled with [`TraceError::Late`]. With `None`, a query may take as many
    /// steps as a file of this size can need.
    pub fn set_deadline(&self, deadline: Option<Instant>) {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner) = deadline;
    }

    /// Returns an error if the deadline has passed. If work consists of many short queries, call this function between
    /// them.
    pub(crate) fn check_deadline(&self) -> Result<(), TraceError> {
        if is_past_deadline(&self.deadline) {
            Err(TraceError::Late {
                path: self.path().to_owned(),
            })
        } else {
            Ok(())
        }
    }

    /// Returns the path that the trace was opened with.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.database.path()
    }

    /// Returns the database, for any query.
    #[must_use]
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Returns how many invalid numbers were read so far. A negative number or a value of another type was read as 0,
    /// and a number above 2^53 as 2^53.
    #[must_use]
    pub fn invalid_number_count(&self) -> u64 {
        self.odd.get()
    }

    /// Returns the runs in the order in which they were added.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn runs(&self) -> Result<Vec<Run>, TraceError> {
        self.runs_where("ORDER BY id", ())
    }

    /// Returns the run with this row id.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn run(&self, id: i64) -> Result<Option<Run>, TraceError> {
        Ok(self.runs_where("WHERE id = ?1", [id])?.pop())
    }

    fn runs_where(
        &self,
        which: &str,
        values: impl rusqlite::Params,
    ) -> Result<Vec<Run>, TraceError> {
        let sql = format!(
            "SELECT id, uid, pid, host, service, started_ms, ended_ms, jvm, command, flags, options,
                interval_bytes, strategy FROM run {which}"
        );
        self.list(&sql, values, |row| Run {
            id: self.id(row, 0).unwrap_or(0),
            uid: text(row, 1),
            pid: self.figure(row, 2),
            host: text(row, 3),
            service: optional_text(row, 4),
            started_ms: self.figure(row, 5),
            ended_ms: self.id(row, 6).and_then(|t| u64::try_from(t).ok()),
            jvm: text(row, 7),
            command: text(row, 8),
            flags: text(row, 9),
            options: text(row, 10),
            interval_bytes: self.figure(row, 11),
            strategy: text(row, 12),
        })
    }

    /// Returns the ticks of a run, oldest first.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn ticks(&self, run: i64) -> Result<Vec<Tick>, TraceError> {
        self.ticks_of(run, Window::ALL)
    }

    /// Returns those ticks of a run that end in a window, oldest first.
    pub(crate) fn ticks_of(&self, run: i64, window: Window) -> Result<Vec<Tick>, TraceError> {
        let mut ticks = self.ticks_where(window.condition(), window.values(run))?;
        ticks.sort_by_key(|t| (t.uptime_ms, t.id));
        Ok(ticks)
    }

    /// Returns the first and the last tick of a run, or `None` if the run has no ticks.
    ///
    /// Cost: two index lookups.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn first_and_last(&self, run: i64) -> Result<Option<(Tick, Tick)>, TraceError> {
        let first = self.ticks_where(" ORDER BY uptime_ms LIMIT 1", [run])?;
        let last = self.ticks_where(" ORDER BY uptime_ms DESC LIMIT 1", [run])?;
        Ok(first.first().copied().zip(last.first().copied()))
    }

    /// Returns those ticks of a run that meet an additional SQL condition.
    fn ticks_where(
        &self,
        condition: &str,
        values: impl rusqlite::Params,
    ) -> Result<Vec<Tick>, TraceError> {
        let newest = match self.database.version() {
            ..3 => "NULL",
            _ => "newest_collected_ms",
        };
        let sql = format!(
            "SELECT id, time_ms, uptime_ms, span_ms, heap_used, heap_committed, metaspace_used,
                metaspace_committed, loaded_classes, samples, lost_samples, lost_bytes, {newest}
            FROM tick WHERE run = ?1{condition}"
        );
        self.list(&sql, values, |row| {
            let figure = |column| self.figure(row, column);
            Tick {
                id: self.id(row, 0).unwrap_or(0),
                time_ms: figure(1),
                uptime_ms: figure(2),
                span_ms: figure(3),
                heap_used: figure(4),
                heap_committed: figure(5),
                metaspace_used: figure(6),
                metaspace_committed: figure(7),
                loaded_classes: figure(8),
                samples: figure(9),
                lost_samples: figure(10),
                lost_bytes: figure(11),
                newest_collected_ms: match row.get_ref(12) {
                    Ok(ValueRef::Null) | Err(_) => None,
                    Ok(_) => Some(figure(12)),
                },
            }
        })
    }

    /// Returns, for each tick from `first` to `last`, its row id, and the samples and bytes that all sites together
    /// allocated in it. Ticks without activity are left out. `first` and `last` are row ids of ticks, which may belong
    /// to any run.
    pub(crate) fn allocated(
        &self,
        first: i64,
        last: i64,
    ) -> Result<Vec<(i64, u64, u64)>, TraceError> {
        let sql = "SELECT tick, total(allocated_samples), total(allocated_bytes) FROM site_tick
            WHERE tick BETWEEN ?1 AND ?2 GROUP BY tick";
        self.list(sql, [first, last], |row| {
            // A cast with `as` saturates: it never overflows.
            let sum = |column| row.get(column).map_or(0, |sum: f64| sum as u64);
            (self.id(row, 0).unwrap_or(0), sum(1), sum(2))
        })
    }

    /// Returns the latest allocation time of the samples of a run that were found dead before `before_ms`.
    pub(crate) fn newest_collected(
        &self,
        run: i64,
        before_ms: u64,
    ) -> Result<Option<u64>, TraceError> {
        if self.database.version() < 3 {
            return Ok(None);
        }
        let sql = "SELECT max(newest_collected_ms) FROM tick WHERE run = ?1 AND uptime_ms < ?2
            HAVING max(newest_collected_ms) IS NOT NULL";
        let before = i64::try_from(before_ms).unwrap_or(i64::MAX);
        let found = self.list(sql, [run, before], |row| self.figure(row, 0))?;
        Ok(found.first().copied())
    }

    /// Returns the row id of the last tick of a run, among the ticks that ended by `uptime_ms`. Returns `None` if no
    /// tick of the run had ended by then.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn tick_at(&self, run: i64, uptime_ms: u64) -> Result<Option<i64>, TraceError> {
        let sql = "SELECT id FROM tick WHERE run = ?1 AND uptime_ms <= ?2 ORDER BY uptime_ms DESC LIMIT 1";
        let uptime = i64::try_from(uptime_ms).unwrap_or(i64::MAX);
        let found = self.list(sql, [run, uptime], |row| self.id(row, 0))?;
        Ok(found.into_iter().flatten().next())
    }

    /// Returns the live amount of a site in a run at the end of a tick (a row id). Runs in one file use the same sites.
    ///
    /// Cost: one index lookup. Rows of the site from other runs are read, too, if they are newer than the row that is
    /// found.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn live_at(&self, run: i64, site: i64, tick: i64) -> Result<Live, TraceError> {
        let sql = "SELECT s.live_samples, s.live_objects, s.live_bytes, s.live_bytes_variance FROM site_tick AS s
            WHERE s.site = ?2 AND s.tick <= ?3
                AND EXISTS (SELECT 1 FROM tick AS t WHERE t.id = s.tick AND t.run = ?1)
            ORDER BY s.tick DESC LIMIT 1";
        let found = self.list(sql, [run, site, tick], |row| Live {
            amount: Amount {
                samples: self.figure(row, 0),
                objects: self.figure(row, 1),
                bytes: self.figure(row, 2),
            },
            variance: self.variance(row, 3),
        })?;
        Ok(found.first().copied().unwrap_or_default())
    }

    /// Returns the garbage collections of a run, oldest first.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn collections(&self, run: i64) -> Result<Vec<Collection>, TraceError> {
        self.collections_of(run, Window::ALL)
    }

    /// Returns the garbage collections of a run, oldest first. Includes only the GCs that ended in `window`.
    pub(crate) fn collections_of(
        &self,
        run: i64,
        window: Window,
    ) -> Result<Vec<Collection>, TraceError> {
        let sql = format!(
            "SELECT time_ms, uptime_ms, collector, major, cause, pause_us, before_bytes, after_bytes
            FROM collection WHERE run = ?1{} ORDER BY id",
            window.condition()
        );
        let mut collections = self.list(&sql, window.values(run), |row| Collection {
            time_ms: self.figure(row, 0),
            uptime_ms: self.figure(row, 1),
            collector: text(row, 2),
            major: self.figure(row, 3) != 0,
            cause: text(row, 4),
            pause_us: self.figure(row, 5),
            before_bytes: self.figure(row, 6),
            after_bytes: self.figure(row, 7),
        })?;
        collections.sort_by_key(|c| c.uptime_ms);
        Ok(collections)
    }

    /// Returns the heap dumps that were taken of a run.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn dumps(&self, run: i64) -> Result<Vec<Dump>, TraceError> {
        let sql = "SELECT time_ms, uptime_ms, path FROM dump WHERE run = ?1 ORDER BY id";
        self.list(sql, [run], |row| Dump {
            time_ms: self.figure(row, 0),
            uptime_ms: self.figure(row, 1),
            path: optional_text(row, 2),
        })
    }

    /// Returns the notes on a run.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn notes(&self, run: i64) -> Result<Vec<Note>, TraceError> {
        let sql = "SELECT time_ms, text FROM note WHERE run = ?1 ORDER BY id";
        self.list(sql, [run], |row| Note {
            time_ms: self.figure(row, 0),
            text: text(row, 1),
        })
    }

    /// Returns a run's latest note whose text begins with `start`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn last_note(&self, run: i64, start: &str) -> Result<Option<Note>, TraceError> {
        let sql =
            "SELECT time_ms, text FROM note WHERE run = ?1 AND substr(text, 1, length(?2)) = ?2
            ORDER BY id DESC LIMIT 1";
        let found = self.list(sql, rusqlite::params![run, start], |row| Note {
            time_ms: self.figure(row, 0),
            text: text(row, 1),
        })?;
        Ok(found.into_iter().next())
    }

    /// Returns all sites of all runs.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn sites(&self) -> Result<Vec<Site>, TraceError> {
        let classes = self.classes()?;
        let unknown: Arc<str> = "(unknown class)".into();
        self.list("SELECT id, class, stack FROM site ORDER BY id", (), |row| {
            let class = self.id(row, 1).and_then(|id| classes.get(&id));
            Site {
                id: self.id(row, 0).unwrap_or(0),
                class: Arc::clone(class.unwrap_or(&unknown)),
                stack: self.id(row, 2),
            }
        })
    }

    pub(crate) fn classes(&self) -> Result<HashMap<i64, Arc<str>>, TraceError> {
        let mut classes = self.recorded_classes()?;
        if let Some(names) = &self.names {
            for class in classes.values_mut() {
                if let Some(original) = names.class(class) {
                    *class = original.into();
                }
            }
        }
        Ok(classes)
    }

    /// Returns the classes with their names as stored in the trace, without the map to original names.
    pub(crate) fn recorded_classes(&self) -> Result<HashMap<i64, Arc<str>>, TraceError> {
        let rows = self.list("SELECT id, name FROM class", (), |row| {
            (self.id(row, 0).unwrap_or(0), Arc::from(text(row, 1)))
        })?;
        Ok(rows.into_iter().collect())
    }

    /// Returns a number that changes whenever another process writes to the file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn version(&self) -> Result<i64, TraceError> {
        let connection = self.database.connection();
        let version = connection.pragma_query_value(None, "data_version", |row| row.get(0));
        version.map_err(|e| self.error(e))
    }

    /// Returns the amounts of a site in the ticks from `first` to `last`. Both are row ids of ticks, which may belong
    /// to any run.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn site_ticks(
        &self,
        site: i64,
        first: i64,
        last: i64,
    ) -> Result<Vec<SiteTick>, TraceError> {
        let sql = "SELECT tick, allocated_samples, allocated_objects, allocated_bytes, collected_samples,
                collected_objects, collected_bytes, live_samples, live_objects, live_bytes, live_bytes_variance
            FROM site_tick WHERE site = ?1 AND tick BETWEEN ?2 AND ?3";
        self.list(sql, [site, first, last], |row| self.site_tick(row))
    }

    /// Returns the amounts in a tick: one item for each site with activity in the tick. Unlike in
    /// [`site_ticks`](Self::site_ticks), the field `tick` of an item contains the row id of the site.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn tick_sites(&self, tick: i64) -> Result<Vec<SiteTick>, TraceError> {
        let sql = "SELECT site, allocated_samples, allocated_objects, allocated_bytes, collected_samples,
                collected_objects, collected_bytes, live_samples, live_objects, live_bytes, live_bytes_variance
            FROM site_tick WHERE tick = ?1";
        self.list(sql, [tick], |row| self.site_tick(row))
    }

    fn site_tick(&self, row: &Row<'_>) -> SiteTick {
        let amount = |column| Amount {
            samples: self.figure(row, column),
            objects: self.figure(row, column + 1),
            bytes: self.figure(row, column + 2),
        };
        SiteTick {
            tick: self.id(row, 0).unwrap_or(0),
            allocated: amount(1),
            collected: amount(4),
            live: amount(7),
            variance: self.variance(row, 10),
        }
    }

    /// Returns the rows of a query as a list.
    pub(crate) fn list<T>(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
        mut read: impl FnMut(&Row<'_>) -> T,
    ) -> Result<Vec<T>, TraceError> {
        let mut list = Vec::new();
        self.each(sql, values, |row| list.push(read(row)))?;
        Ok(list)
    }

    /// Passes the rows of a query to `take`, one at a time.
    pub(crate) fn each(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
        mut take: impl FnMut(&Row<'_>),
    ) -> Result<(), TraceError> {
        self.steps.store(0, Ordering::Relaxed);
        let run = || {
            let mut query = self.database.connection().prepare_cached(sql)?;
            let mut rows = query.query(values)?;
            while let Some(row) = rows.next()? {
                take(row);
            }
            Ok(())
        };
        run().map_err(|e| self.error(e))
    }

    pub(crate) fn error(&self, source: rusqlite::Error) -> TraceError {
        let path = self.database.path().to_owned();
        match source.sqlite_error_code() {
            Some(rusqlite::ErrorCode::OperationInterrupted) if is_past_deadline(&self.deadline) => {
                TraceError::Late { path }
            }
            Some(rusqlite::ErrorCode::OperationInterrupted) => TraceError::Endless { path },
            _ => TraceError::Sqlite { path, source },
        }
    }

    fn count_invalid_number(&self) {
        self.odd.set(self.odd.get().saturating_add(1));
    }

    /// Reads a row id or a time. Returns `None` for NULL; a value of another type is counted as invalid.
    pub(crate) fn id(&self, row: &Row<'_>, column: usize) -> Option<i64> {
        match row.get_ref(column) {
            Ok(ValueRef::Integer(id)) => Some(id),
            Ok(ValueRef::Null) => None,
            _ => {
                self.count_invalid_number();
                None
            }
        }
    }

    /// Reads a non-negative number. An invalid value is counted as invalid. It is read as 0, or as [`MOST`] if it is
    /// too large.
    pub(crate) fn figure(&self, row: &Row<'_>, column: usize) -> u64 {
        if let Ok(ValueRef::Integer(figure)) = row.get_ref(column) {
            if (0..=MOST).contains(&figure) {
                return figure.unsigned_abs();
            }
            self.count_invalid_number();
            return if figure > MOST {
                MOST.unsigned_abs()
            } else {
                0
            };
        }
        self.count_invalid_number();
        0
    }

    fn variance(&self, row: &Row<'_>, column: usize) -> f64 {
        let variance = match row.get_ref(column) {
            Ok(ValueRef::Real(variance)) => variance,
            Ok(ValueRef::Integer(variance)) => variance as f64,
            _ => -1.0,
        };
        if (0.0..1e40).contains(&variance) {
            return variance;
        }
        self.count_invalid_number();
        0.0
    }
}

fn is_past_deadline(deadline: &Mutex<Option<Instant>>) -> bool {
    let deadline = *deadline.lock().unwrap_or_else(PoisonError::into_inner);
    deadline.is_some_and(|d| Instant::now() > d)
}

pub(crate) fn optional_text(row: &Row<'_>, column: usize) -> Option<String> {
    match row.get_ref(column) {
        Ok(ValueRef::Text(bytes)) => {
            let cut = bytes.get(..LONGEST).unwrap_or(bytes);
            Some(String::from_utf8_lossy(cut).into_owned())
        }
        _ => None,
    }
}

pub(crate) fn text(row: &Row<'_>, column: usize) -> String {
    optional_text(row, column).unwrap_or_default()
}
