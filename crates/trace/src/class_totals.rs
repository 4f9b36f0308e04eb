//! Writes and reads exact allocation counts by class, if the agent collects them.

use std::sync::atomic::Ordering;

use rusqlite::{Connection, params};
use rustc_hash::FxHashSet;

use crate::TraceError;
use crate::database::int;
use crate::guard::is_table;
use crate::read::{Trace, text};
use crate::tick::ClassTotal;
use crate::write_names::Names;

const TABLE: &str = include_str!("class_total.sql");
const NAME: &str = "class_total";
/// Bytes of the file's size limit (`trace_max`) per row. A run has at most `trace_max / BYTES_PER_ROW` rows.
const BYTES_PER_ROW: u64 = 4096;
/// Name of the row that sums all classes without their own row.
const OTHERS: &str = "(other classes)";

/// Name of the row that counts objects whose class is unknown.
pub const UNKNOWN_CLASS: &str = "(unknown class)";

/// All allocations of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedClass {
    /// Name of the class, in the form `com.acme.Foo$Bar` or `byte[]`.
    pub class: String,
    /// Number of objects.
    pub objects: u64,
    /// Bytes of these objects.
    pub bytes: u64,
}

/// A cache of the rows that the writer's run has in the table `class_total` (allocation counts by class).
#[derive(Debug, Default)]
pub(crate) struct ClassRows {
    /// The classes that have their own row. The caller gives each class a number; the set contains these numbers.
    own: FxHashSet<u32>,
    /// The numbers of the classes whose counts are summed in one row. These classes never get their own row later,
    /// because a new row would not contain their earlier counts.
    others: FxHashSet<u32>,
}

impl ClassRows {
    /// Adds the counts since the agent's previous write to the trace. Returns true if every class has its own row.
    pub(crate) fn add(
        &mut self,
        connection: &Connection,
        (run, names): (i64, &impl Names),
        counts: &[ClassTotal],
        (full, max_bytes): (bool, u64),
    ) -> rusqlite::Result<bool> {
        if counts.is_empty() {
            return Ok(true);
        }
        // At each write to the trace, create the table if it is missing. The transaction that created the table may
        // have been rolled back.
        connection.execute_batch(TABLE)?;
        let most = max_bytes / BYTES_PER_ROW;
        // The caller identifies classes by numbers. Two classes with different numbers may have the same name. Such
        // classes share one row, which gets the sum of both counts.
        let mut add = connection.prepare_cached(
            "INSERT INTO class_total (run, class, objects, bytes) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (run, class) DO UPDATE SET
                 objects = objects + excluded.objects, bytes = bytes + excluded.bytes",
        )?;
        for count in counts {
            let has_room = !full && (self.own.len() as u64) < most;
            let is_own =
                self.own.contains(&count.class) || has_room && !self.others.contains(&count.class);
            let (objects, bytes) = (int(count.objects), int(count.bytes));
            if is_own {
                self.own.insert(count.class);
                let name = names.class(count.class);
                let name = name.as_deref().unwrap_or(UNKNOWN_CLASS);
                add.execute(params![run, name, objects, bytes])?;
            } else {
                self.others.insert(count.class);
                add.execute(params![run, OTHERS, objects, bytes])?;
            }
        }
        Ok(self.others.is_empty())
    }
}

impl Trace {
    /// Passes the counts of each class of a run to `take`, in unspecified order. The counts include all allocations
    /// since the run began. If the agent did not count classes, `take` is not called.
    ///
    /// Cost: reads the run's rows once.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or if a view or another object has the name of the table.
    pub fn each_counted_class(
        &self,
        run: i64,
        mut take: impl FnMut(CountedClass),
    ) -> Result<(), TraceError> {
        self.steps.store(0, Ordering::Relaxed);
        let is_there = is_table(self.database().connection(), NAME);
        match is_there.map_err(|e| self.error(e))? {
            None => return Ok(()),
            Some(true) => {}
            Some(false) => {
                return Err(TraceError::Table {
                    path: self.path().to_owned(),
                    table: NAME,
                });
            }
        }
        let sql = "SELECT class, objects, bytes FROM class_total WHERE run = ?1";
        self.each(sql, [run], |row| {
            let name = text(row, 0);
            let original = self.names.as_ref().and_then(|names| names.class(&name));
            take(CountedClass {
                class: if name.is_empty() {
                    UNKNOWN_CLASS.to_owned()
                } else {
                    original.unwrap_or(name)
                },
                objects: self.figure(row, 1),
                bytes: self.figure(row, 2),
            });
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::*;
    use crate::synthetic::Numbered;
    use crate::{Database, Limits, NewRun, NewTick, Writer, Written};

    fn writer(path: &Path, uid: &str, max_bytes: u64) -> Writer {
        let run = NewRun {
            uid: uid.to_owned(),
            strategy: "class".to_owned(),
            ..NewRun::default()
        };
        let limits = Limits {
            max_bytes,
            ..Limits::default()
        };
        Writer::create(path, &run, limits).unwrap()
    }

    fn count(class: u32, objects: u64) -> ClassTotal {
        ClassTotal {
            class,
            objects,
            bytes: objects * 24,
        }
    }

    fn tick(writer: &mut Writer, uptime_ms: i64, class_totals: Vec<ClassTotal>) {
        let tick = NewTick {
            time_ms: uptime_ms,
            uptime_ms,
            span_ms: 1000,
            class_totals,
            ..NewTick::default()
        };
        assert_eq!(
            writer.tick(&Numbered, &(), |_| tick).unwrap(),
            Written::Done
        );
    }

    fn counted(path: &Path, run: i64) -> BTreeMap<String, u64> {
        let trace = Trace::open(path).unwrap();
        let mut found = BTreeMap::new();
        let take = |c: CountedClass| {
            assert_eq!(c.bytes, c.objects * 24);
            assert!(found.insert(c.class, c.objects).is_none());
        };
        trace.each_counted_class(run, take).unwrap();
        assert_eq!(trace.invalid_number_count(), 0);
        found
    }

    fn of<const N: usize>(counts: [(&str, u64); N]) -> BTreeMap<String, u64> {
        counts.map(|(class, n)| (class.to_owned(), n)).into()
    }

    #[test]
    fn counts_add_up_and_each_run_has_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let mut first = writer(&path, "1-1", 1 << 20);
        tick(&mut first, 1000, Vec::new());
        assert_eq!(counted(&path, 1), of([]));
        // The trace has the table `class_total` only if allocations were counted.
        let tables = |path: &Path| Trace::open(path).unwrap().tables().unwrap();
        assert!(tables(&path).iter().all(|t| t.name != NAME));
        tick(&mut first, 2000, vec![count(1, 5), count(2, 1 << 40)]);
        tick(&mut first, 3000, vec![count(2, 3)]);
        let mut second = writer(&path, "2-1", 1 << 20);
        tick(&mut second, 1000, vec![count(1, 7)]);
        let expected = of([("com.acme.C1", 5), ("com.acme.C2", (1 << 40) + 3)]);
        assert_eq!(counted(&path, 1), expected);
        assert_eq!(counted(&path, 2), of([("com.acme.C1", 7)]));
        assert_eq!(counted(&path, 3), of([]));
        assert!(tables(&path).iter().any(|t| t.name == NAME));
    }

    #[test]
    fn classes_without_a_name_are_counted_as_such() {
        struct Nameless;
        impl Names for Nameless {
            fn class(&self, _: u32) -> Option<std::sync::Arc<str>> {
                None
            }

            fn stack(&self, _: u32) -> (Vec<crate::FrameName>, bool) {
                (Vec::new(), false)
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let mut writer = writer(&path, "1-1", 1 << 20);
        let tick = NewTick {
            class_totals: vec![count(0, 2), count(9, 3)],
            ..NewTick::default()
        };
        assert_eq!(
            writer.tick(&Nameless, &(), |_| tick).unwrap(),
            Written::Done
        );
        assert_eq!(counted(&path, 1), of([(UNKNOWN_CLASS, 5)]));
    }

    #[test]
    fn classes_beyond_the_limit_are_counted_together() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let notes = || Trace::open(&path).unwrap().notes(1).unwrap().len();
        let rows = 256;
        let mut writer = writer(&path, "1-1", u64::from(rows) * BYTES_PER_ROW);
        tick(&mut writer, 1000, (0..rows).map(|i| count(i, 1)).collect());
        assert_eq!((counted(&path, 1).len(), notes()), (256, 0));
        let more = (0..rows + 100).map(|i| count(i, 1));
        tick(&mut writer, 2000, more.collect());
        tick(&mut writer, 3000, vec![count(0, 1), count(rows, 1)]);
        let all = counted(&path, 1);
        assert_eq!((all.len(), all[OTHERS], all["com.acme.C0"]), (257, 101, 3));
        assert_eq!(all.values().sum::<u64>(), 256 + 356 + 2);
        assert_eq!(notes(), 1, "it is told once");
    }

    /// If a run is deleted, its counts are deleted too, even by a program that does not know the table.
    #[test]
    fn counts_are_deleted_with_their_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        for uid in ["1-1", "2-1"] {
            let mut writer = writer(&path, uid, 1 << 20);
            tick(&mut writer, 1000, vec![count(1, 5)]);
            writer.end(2000).unwrap();
        }
        let older = Database::open_to_add(&path, std::time::Duration::from_secs(2)).unwrap();
        let drop_first = "DELETE FROM tick WHERE run = 1; DELETE FROM run WHERE id = 1";
        older.connection().execute_batch(drop_first).unwrap();
        assert_eq!((counted(&path, 1).len(), counted(&path, 2).len()), (0, 1));
        // The name of a class that no site uses may be deleted. Then the row of another class may get the same id.
        let names = "INSERT INTO class (name) VALUES ('com.acme.Other')";
        older.connection().execute_batch(names).unwrap();
        assert_eq!(counted(&path, 2), of([("com.acme.C1", 5)]));
        let mut database = Database::create(&path).unwrap();
        database.prune(i64::MAX / 2).unwrap();
        assert_eq!(counted(&path, 2).len(), 0);
    }
}
