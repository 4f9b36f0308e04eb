//! Reading a trace that any program may have written.
//!
//! A trace is a file that anybody may have made. Its tables must be ordinary tables, a query that
//! takes many more steps than a file of its size can need is ended, texts are cut, figures that make no
//! sense are taken for 0 and counted ([`Trace::odd`]), and rows that refer to nothing stand alone.

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

/// What no figure is larger than: eight petabytes, which a double still tells apart from one more.
const MOST: i64 = 1 << 53;
/// Bytes of a text that are read.
const LONGEST: usize = 8192;
/// SQLite takes about so many steps for a row of a query here.
const STEPS_PER_BYTE: u64 = 64;
const LEAST_STEPS: u64 = 100_000_000;
/// How often the steps are counted.
const STRIDE: i32 = 100_000;
/// The largest row that SQLite is to handle.
const LARGEST_ROW: i32 = 16 << 20;

/// A JVM that wrote to a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its row.
    pub id: i64,
    /// As in the heap's agent objects.
    pub uid: String,
    /// The process.
    pub pid: u64,
    /// The machine.
    pub host: String,
    /// What the user calls the program.
    pub service: Option<String>,
    /// When the agent began, milliseconds since 1970.
    pub started_ms: u64,
    /// When the JVM ended; none while it runs, or when it was killed.
    pub ended_ms: Option<u64>,
    /// Its name and version.
    pub jvm: String,
    /// Main class or jar, with arguments.
    pub command: String,
    /// Arguments of the JVM.
    pub flags: String,
    /// Options of the agent.
    pub options: String,
    /// Mean bytes between samples; 0: all is counted.
    pub interval_bytes: u64,
    /// How samples are chosen.
    pub strategy: String,
}

/// A period that was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// Its row.
    pub id: i64,
    /// Its end, milliseconds since 1970 by the machine's clock.
    pub time_ms: u64,
    /// Its end, milliseconds since the run began: never goes backwards.
    pub uptime_ms: u64,
    /// Its length.
    pub span_ms: u64,
    /// Bytes of the heap in use at its end.
    pub heap_used: u64,
    /// Bytes that the heap has.
    pub heap_committed: u64,
    /// Bytes of metaspace in use.
    pub metaspace_used: u64,
    /// Bytes that metaspace has.
    pub metaspace_committed: u64,
    /// Classes at its end.
    pub loaded_classes: u64,
    /// Samples taken in it.
    pub samples: u64,
    /// Of these, lost.
    pub lost_samples: u64,
    /// What those stood for.
    pub lost_bytes: u64,
    /// When the newest of the samples was allocated that were found to be collected in it, since the run began; none
    /// where none was, or an agent wrote that did not tell.
    pub newest_collected_ms: Option<u64>,
}

/// A collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collection {
    /// When it ended, milliseconds since 1970.
    pub time_ms: u64,
    /// The same since the run began.
    pub uptime_ms: u64,
    /// As the JVM's beans call it.
    pub collector: String,
    /// Whether it was of the whole heap.
    pub major: bool,
    /// Its cause; empty where the JVM does not say.
    pub cause: String,
    /// How long the program stood still, microseconds.
    pub pause_us: u64,
    /// Bytes of the heap in use before.
    pub before_bytes: u64,
    /// And after.
    pub after_bytes: u64,
}

/// A dump that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dump {
    /// When, milliseconds since 1970.
    pub time_ms: u64,
    /// When, since the run began.
    pub uptime_ms: u64,
    /// Where it is, if the agent was told.
    pub path: Option<String>,
}

/// Something that the reader of a trace should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// When it was written, milliseconds since 1970.
    pub time_ms: u64,
    /// What it says.
    pub text: String,
}

/// An allocation site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Its row.
    pub id: i64,
    /// What it allocates.
    pub class: Arc<str>,
    /// Its stack; none for allocations outside of Java code.
    pub stack: Option<i64>,
}

/// A frame of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The class, as in Java source.
    pub class: Arc<str>,
    /// The method.
    pub method: Arc<str>,
    /// The source file.
    pub file: Option<Arc<str>>,
    /// The line; below 0 for a native method.
    pub line: Option<i64>,
}

/// What happened at a site in a tick.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SiteTick {
    /// Which tick.
    pub tick: i64,
    /// What was allocated in it.
    pub allocated: Amount,
    /// What was found to be collected.
    pub collected: Amount,
    /// What was alive at its end.
    pub live: Amount,
    /// Variance of the estimate of the bytes alive.
    pub variance: f64,
}

/// A trace that is open to be read.
#[derive(Debug)]
pub struct Trace {
    database: Database,
    pub(crate) steps: Arc<AtomicU64>,
    deadline: Arc<Mutex<Option<Instant>>>,
    odd: Cell<u64>,
    pub(crate) names: Option<Arc<dyn Originals>>,
}

impl Trace {
    /// Opens a trace, whether one is writing to it or not.
    ///
    /// # Errors
    /// The file cannot be read, is not a trace, or is one of another version.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let mut database = Database::open(path)?;
        let steps = Arc::new(AtomicU64::new(0));
        let bytes = std::fs::metadata(path).map_or(0, |m| m.len());
        let most = (bytes.saturating_mul(STEPS_PER_BYTE)).max(LEAST_STEPS)
            / u64::from(STRIDE.unsigned_abs());
        let deadline = Arc::new(Mutex::new(None));
        let (counter, clock) = (Arc::clone(&steps), Arc::clone(&deadline));
        let ends = move || counter.fetch_add(1, Ordering::Relaxed) > most || is_over(&clock);
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

    /// From now on classes and frames have the names that they had before a shrinker shortened them.
    pub fn set_names(&mut self, names: Arc<dyn Originals>) {
        self.names = Some(names);
    }

    /// From now on all that is read is of one moment, until [`release`](Self::release). Meanwhile the
    /// file of a writer grows.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn hold(&self) -> Result<(), TraceError> {
        let connection = self.database.connection();
        connection.execute_batch("BEGIN").map_err(|e| self.error(e))
    }

    /// Ends what [`hold`](Self::hold) began.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn release(&self) -> Result<(), TraceError> {
        let connection = self.database.connection();
        connection
            .execute_batch("COMMIT")
            .map_err(|e| self.error(e))
    }

    /// What is asked from now on is given up at this moment, with [`TraceError::Late`]; none: it may take as long as
    /// a file of its size can need.
    pub fn set_deadline(&self, deadline: Option<Instant>) {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner) = deadline;
    }

    /// An error if the deadline has passed: for work between queries that are short each.
    pub(crate) fn check_deadline(&self) -> Result<(), TraceError> {
        if is_over(&self.deadline) {
            Err(TraceError::Late {
                path: self.path().to_owned(),
            })
        } else {
            Ok(())
        }
    }

    /// The path it was opened with.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.database.path()
    }

    /// The database, for queries of any kind.
    #[must_use]
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// How many figures made no sense so far and were taken for 0: negative, of another type, or beyond
    /// eight petabytes (taken for that).
    #[must_use]
    pub fn odd(&self) -> u64 {
        self.odd.get()
    }

    /// The JVMs that wrote, in the order in which they began to.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn runs(&self) -> Result<Vec<Run>, TraceError> {
        self.runs_where("ORDER BY id", ())
    }

    /// The run of a row.
    ///
    /// # Errors
    /// The file cannot be read.
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

    /// The ticks of a run, oldest first.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn ticks(&self, run: i64) -> Result<Vec<Tick>, TraceError> {
        self.ticks_of(run, Window::ALL)
    }

    /// Those of a run that end in a window, oldest first.
    pub(crate) fn ticks_of(&self, run: i64, window: Window) -> Result<Vec<Tick>, TraceError> {
        let mut ticks = self.ticks_where(window.condition(), window.values(run))?;
        ticks.sort_by_key(|t| (t.uptime_ms, t.id));
        Ok(ticks)
    }

    /// The first tick of a run and the last; `None` for a run without ticks.
    ///
    /// Cost: two looks into an index.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn first_and_last(&self, run: i64) -> Result<Option<(Tick, Tick)>, TraceError> {
        let first = self.ticks_where(" ORDER BY uptime_ms LIMIT 1", [run])?;
        let last = self.ticks_where(" ORDER BY uptime_ms DESC LIMIT 1", [run])?;
        Ok(first.first().copied().zip(last.first().copied()))
    }

    /// Ticks of a run on one more condition.
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

    /// What all sites together allocated in the ticks from `first` to `last` (rows of `tick` of any run): rows of ticks
    /// with samples and bytes.
    pub(crate) fn allocated(
        &self,
        first: i64,
        last: i64,
    ) -> Result<Vec<(i64, u64, u64)>, TraceError> {
        let sql = "SELECT tick, total(allocated_samples), total(allocated_bytes) FROM site_tick
            WHERE tick BETWEEN ?1 AND ?2 GROUP BY tick";
        self.list(sql, [first, last], |row| {
            // `as` saturates.
            let sum = |column| row.get(column).map_or(0, |sum: f64| sum as u64);
            (self.id(row, 0).unwrap_or(0), sum(1), sum(2))
        })
    }

    /// When the newest of the samples was allocated that were found to be collected in a run's ticks that ended before.
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

    /// The last tick of a run that ended by then; `None` if no tick did.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn tick_at(&self, run: i64, uptime_ms: u64) -> Result<Option<i64>, TraceError> {
        let sql = "SELECT id FROM tick WHERE run = ?1 AND uptime_ms <= ?2 ORDER BY uptime_ms DESC LIMIT 1";
        let uptime = i64::try_from(uptime_ms).unwrap_or(i64::MAX);
        let found = self.list(sql, [run, uptime], |row| self.id(row, 0))?;
        Ok(found.into_iter().flatten().next())
    }

    /// What was alive at a site at the end of a tick (a row of `tick`) of a run. Runs of one file share
    /// their sites.
    ///
    /// Cost: a look into an index, and the rows of other runs that come before.
    ///
    /// # Errors
    /// The file cannot be read.
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

    /// The collections of a run, oldest first.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn collections(&self, run: i64) -> Result<Vec<Collection>, TraceError> {
        self.collections_of(run, Window::ALL)
    }

    /// Those of a run that ended in a window, oldest first.
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

    /// The dumps that were taken of a run.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn dumps(&self, run: i64) -> Result<Vec<Dump>, TraceError> {
        let sql = "SELECT time_ms, uptime_ms, path FROM dump WHERE run = ?1 ORDER BY id";
        self.list(sql, [run], |row| Dump {
            time_ms: self.figure(row, 0),
            uptime_ms: self.figure(row, 1),
            path: optional_text(row, 2),
        })
    }

    /// The notes on a run.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn notes(&self, run: i64) -> Result<Vec<Note>, TraceError> {
        let sql = "SELECT time_ms, text FROM note WHERE run = ?1 ORDER BY id";
        self.list(sql, [run], |row| Note {
            time_ms: self.figure(row, 0),
            text: text(row, 1),
        })
    }

    /// The latest note on a run that begins so.
    ///
    /// # Errors
    /// The file cannot be read.
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

    /// All sites of all runs.
    ///
    /// # Errors
    /// The file cannot be read.
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

    /// Classes with the names that the trace has for them.
    pub(crate) fn recorded_classes(&self) -> Result<HashMap<i64, Arc<str>>, TraceError> {
        let rows = self.list("SELECT id, name FROM class", (), |row| {
            (self.id(row, 0).unwrap_or(0), Arc::from(text(row, 1)))
        })?;
        Ok(rows.into_iter().collect())
    }

    /// A number that changes whenever another process has written to the file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn version(&self) -> Result<i64, TraceError> {
        let connection = self.database.connection();
        let version = connection.pragma_query_value(None, "data_version", |row| row.get(0));
        version.map_err(|e| self.error(e))
    }

    /// What happened at a site in the ticks from `first` to `last` (rows of `tick` of any run).
    ///
    /// # Errors
    /// The file cannot be read.
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

    /// What happened in a tick at each site where something did: with the site's row in place of the tick's.
    ///
    /// # Errors
    /// The file cannot be read.
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

    /// Rows of a query, in a list.
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

    /// Gives the rows of a query, one after the other.
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
            Some(rusqlite::ErrorCode::OperationInterrupted) if is_over(&self.deadline) => {
                TraceError::Late { path }
            }
            Some(rusqlite::ErrorCode::OperationInterrupted) => TraceError::Endless { path },
            _ => TraceError::Sqlite { path, source },
        }
    }

    fn note_odd(&self) {
        self.odd.set(self.odd.get().saturating_add(1));
    }

    /// A number that says which row or time is meant.
    pub(crate) fn id(&self, row: &Row<'_>, column: usize) -> Option<i64> {
        match row.get_ref(column) {
            Ok(ValueRef::Integer(id)) => Some(id),
            Ok(ValueRef::Null) => None,
            _ => {
                self.note_odd();
                None
            }
        }
    }

    /// How many or how much.
    pub(crate) fn figure(&self, row: &Row<'_>, column: usize) -> u64 {
        if let Ok(ValueRef::Integer(figure)) = row.get_ref(column) {
            if (0..=MOST).contains(&figure) {
                return figure.unsigned_abs();
            }
            self.note_odd();
            return if figure > MOST {
                MOST.unsigned_abs()
            } else {
                0
            };
        }
        self.note_odd();
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
        self.note_odd();
        0.0
    }
}

fn is_over(deadline: &Mutex<Option<Instant>>) -> bool {
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
