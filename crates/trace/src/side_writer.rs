//! Adds rows to a trace while an agent writes to it: notes on the progress of `heapdiff hunt`, and the paths of dumps.
//!
//! This writer and the agent do not wait long for each other. Adding a row is one short transaction, which is cancelled
//! if the file stays locked for 50 ms. Slow work, such as moving the log into the database, is left to the agent. The
//! file may be malicious, so triggers are disabled and slow statements are cancelled.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use crate::database::{Database, TraceError, is_busy};
use crate::guard::secure_connection;
use crate::tick::Written;

/// Maximum time to wait for the lock on the file. The agent needs less time to write the data of one period.
const BUSY: Duration = Duration::from_millis(50);
/// Adds rows to a trace that a JVM is writing.
#[derive(Debug)]
pub struct SideWriter {
    database: Database,
    run: i64,
    /// The time since 1970 minus the uptime, in milliseconds.
    clock: i64,
}

/// A heap dump that was taken.
#[derive(Clone, Copy, Debug)]
pub struct DumpTaken<'a> {
    /// Time of the request, in milliseconds since 1970.
    pub asked_ms: i64,
    /// End of the dump, in milliseconds since 1970.
    pub done_ms: i64,
    /// Path of the dump.
    pub path: &'a str,
}

impl SideWriter {
    /// Opens an existing trace. Returns `None` if no JVM with this process id is writing to it.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened for writing, is not a trace, or has an unsupported version.
    pub fn open(path: &Path, pid: u32) -> Result<Option<Self>, TraceError> {
        let mut database = Database::open_to_add(path, BUSY)?;
        let version = database.version();
        let guarded = secure_connection(database.connection_mut(), version);
        let table = guarded.map_err(|e| database.error(e))?;
        if let Some(table) = table {
            let path = path.to_owned();
            return Err(TraceError::Table { path, table });
        }
        let run = "SELECT id, started_ms FROM run WHERE pid = ?1 AND ended_ms IS NULL ORDER BY id DESC LIMIT 1";
        let found = database
            .connection()
            .query_row(run, [pid], |row| Ok((row.get(0)?, row.get(1)?)));
        let found: Option<(i64, i64)> = found.optional().map_err(|e| database.error(e))?;
        let Some((run, started)) = found else {
            return Ok(None);
        };
        // The method `dump` converts a time since 1970 to an uptime. For this, use the difference between the two at
        // the end of the last recorded period. The difference at the start of the run may be outdated, because the
        // machine's clock may have been changed.
        let tick =
            "SELECT time_ms - uptime_ms FROM tick WHERE run = ?1 ORDER BY uptime_ms DESC LIMIT 1";
        let clock = database
            .connection()
            .query_row(tick, [run], |row| row.get(0))
            .optional()
            .map_err(|e| database.error(e))?;
        Ok(Some(Self {
            database,
            run,
            clock: clock.unwrap_or(started),
        }))
    }

    /// Adds a note on the run.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn note(&mut self, time_ms: i64, text: &str) -> Result<Written, TraceError> {
        let run = self.run;
        self.add(|connection| {
            let sql = "INSERT INTO note (run, time_ms, text) VALUES (?1, ?2, ?3)";
            connection.execute(sql, params![run, time_ms, text])
        })
    }

    /// Stores the path of a dump. The agent records dumps that are preceded by a GC. If the agent has already recorded
    /// this dump, this adds the path to the agent's row. Otherwise this adds a row, which the agent finds when it
    /// records the dump.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn dump(&mut self, dump: &DumpTaken<'_>) -> Result<Written, TraceError> {
        let (run, clock) = (self.run, self.clock);
        self.add(|connection| {
            let known = "UPDATE dump SET path = ?4 WHERE id = (SELECT id FROM dump WHERE run = ?1 AND path IS NULL
                AND time_ms BETWEEN ?2 AND ?3 ORDER BY id DESC LIMIT 1)";
            let (from, to) = (dump.asked_ms.saturating_sub(1000), dump.done_ms.saturating_add(1000));
            let changed = connection.execute(known, params![run, from, to, dump.path])?;
            if changed > 0 {
                return Ok(changed);
            }
            let new = "INSERT INTO dump (run, time_ms, uptime_ms, path) VALUES (?1, ?2, ?3, ?4)";
            let uptime = dump.asked_ms.saturating_sub(clock).max(0);
            connection.execute(new, params![run, dump.asked_ms, uptime, dump.path])
        })
    }

    fn add(
        &mut self,
        row: impl FnOnce(&Connection) -> rusqlite::Result<usize>,
    ) -> Result<Written, TraceError> {
        let connection = self.database.connection_mut();
        let done = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .and_then(|t| {
                row(&t)?;
                t.commit()
            });
        match done {
            Ok(()) => Ok(Written::Done),
            Err(error) if is_busy(&error) => Ok(Written::Busy),
            Err(error) => Err(self.database.error(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{DumpTaken, SideWriter};
    use crate::synthetic::{STARTED_MS, Scene, write};
    use crate::{
        Database, Limits, NewCollection, NewRun, NewTick, Trace, TraceError, Writer, Written,
    };

    const START: i64 = 1_700_000_000_000;

    fn run() -> NewRun {
        NewRun {
            uid: "7-1".into(),
            pid: 7,
            started_ms: START,
            ..NewRun::default()
        }
    }

    /// Returns the data of a period that ends at `uptime_ms`. If a dump was taken in the period, `dumped` describes the
    /// GC before the dump: the uptime of its end, and its duration, in milliseconds.
    fn tick(uptime_ms: i64, dumped: Option<(i64, i64)>) -> NewTick {
        let collections = dumped.map(|(ms, took)| NewCollection {
            time_ms: START + ms,
            uptime_ms: ms,
            pause_us: took.unsigned_abs() * 1000,
            ..NewCollection::default()
        });
        NewTick {
            time_ms: START + uptime_ms,
            uptime_ms,
            collections: collections.into_iter().collect(),
            dumps: dumped
                .map(|(ms, _)| (START + ms, ms, None))
                .into_iter()
                .collect(),
            ..NewTick::default()
        }
    }

    fn dumps(trace: &Trace) -> Vec<(u64, Option<String>)> {
        let run = trace.runs().unwrap().pop().unwrap();
        let dumps = trace.dumps(run.id).unwrap();
        dumps.into_iter().map(|d| (d.uptime_ms, d.path)).collect()
    }

    #[test]
    fn a_dump_that_is_reported_twice_has_one_row() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let mut writer = Writer::create(&path, &run(), Limits::default()).unwrap();
        let trace = Trace::open(&path).unwrap();
        let mut side = SideWriter::open(&path, 7).unwrap().unwrap();
        let mut wrote = |tick| assert_eq!(writer.tick(&(), &(), |_| tick).unwrap(), Written::Done);
        let mut told = |asked: i64, done: i64, path| {
            let (asked_ms, done_ms) = (START + asked, START + done);
            let dump = DumpTaken {
                asked_ms,
                done_ms,
                path,
            };
            assert_eq!(side.dump(&dump).unwrap(), Written::Done);
        };
        // The agent records this dump first, with the data of one period. The `SideWriter` records the dump when it is
        // complete, which is after the end of the period.
        wrote(tick(1000, Some((900, 40))));
        told(850, 2100, "/d/one");
        // The `SideWriter` records this dump first. The agent records it afterwards, with the data of the next period.
        // The GC before the dump took nine seconds.
        told(3000, 14_000, "/d/two");
        wrote(tick(15_000, Some((13_500, 9000))));
        // Two more dumps: the first was not preceded by a GC, and the path of the second is unknown.
        told(30_000, 31_000, "/d/all");
        wrote(tick(50_000, Some((45_000, 40))));
        // Each dump has one row, whichever of the two writers recorded the dump first. Only the last dump has no path.
        let some = |path: &str| Some(path.to_owned());
        assert_eq!(
            dumps(&trace),
            [
                (900, some("/d/one")),
                (3000, some("/d/two")),
                (30_000, some("/d/all")),
                (45_000, None)
            ]
        );
    }

    #[test]
    fn a_note_is_not_written_to_a_locked_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        assert!(SideWriter::open(&path, 7).is_err());
        assert!(!path.exists(), "nothing is made");
        let mut writer = Writer::create(&path, &run(), Limits::default()).unwrap();
        let written = writer.tick(&(), &(), |_| tick(1000, None));
        assert_eq!(written.unwrap(), Written::Done);
        assert!(SideWriter::open(&path, 8).unwrap().is_none(), "another JVM");
        let holder = Database::create(&path).unwrap();
        holder
            .connection()
            .execute_batch("BEGIN IMMEDIATE")
            .unwrap();
        let begun = Instant::now();
        let mut side = SideWriter::open(&path, 7).unwrap().unwrap();
        assert_eq!(side.note(START, "hunt: x").unwrap(), Written::Busy);
        assert!(begun.elapsed() < Duration::from_secs(1));
        holder.connection().execute_batch("ROLLBACK").unwrap();
        let mut side = SideWriter::open(&path, 7).unwrap().unwrap();
        assert_eq!(side.note(START + 5, "hunt: y").unwrap(), Written::Done);
        let trace = Trace::open(&path).unwrap();
        let last = trace.last_note(1, "hunt: ").unwrap().unwrap();
        assert_eq!(last.text, "hunt: y");
        assert!(trace.last_note(1, "Hunt").unwrap().is_none());
        writer.end(START + 2000).unwrap();
        assert!(
            SideWriter::open(&path, 7).unwrap().is_none(),
            "it has ended"
        );
    }

    #[test]
    fn triggers_in_a_file_do_not_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let scene = Scene {
            running: true,
            ..Scene::default()
        };
        write(&path, &scene).unwrap();
        let database = Database::create(&path).unwrap();
        let trap = "CREATE TRIGGER trap AFTER INSERT ON note BEGIN DELETE FROM tick; END";
        database.connection().execute_batch(trap).unwrap();
        let mut side = SideWriter::open(&path, 4711).unwrap().unwrap();
        assert_eq!(side.note(STARTED_MS, "hunt: z").unwrap(), Written::Done);
        let ticks = "SELECT count(*) FROM tick";
        let ticks: i64 = database
            .connection()
            .query_row(ticks, [], |r| r.get(0))
            .unwrap();
        assert_eq!(ticks, 120);
        let fake = "DROP TABLE note; CREATE VIEW note AS SELECT 1 AS run, 2 AS time_ms, 3 AS text";
        database.connection().execute_batch(fake).unwrap();
        let refused = SideWriter::open(&path, 4711);
        assert!(matches!(
            refused,
            Err(TraceError::Table { table: "note", .. })
        ));
    }
}
