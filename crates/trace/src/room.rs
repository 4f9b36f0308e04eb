//! Detects whether a file could not be written because its disk is full.

use std::io::{ErrorKind, Write};
use std::path::Path;

use rusqlite::ErrorCode;

/// Number of bytes that are written to test for free space: the size of a few pages of the database.
const SOME: usize = 64 << 10;

/// Returns true if a database could not be written because the disk is full.
///
/// SQLite has an error code for a full disk. But it reports an exhausted quota as an I/O error, and a disk without room
/// for another file as a failure to open a file. In these two cases this function tries to write a small file.
pub(crate) fn is_disk_full_at(path: &Path, error: &rusqlite::Error) -> bool {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => true,
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => {
            let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
            is_folder_full(folder.unwrap_or_else(|| Path::new(".")))
        }
        _ => false,
    }
}

/// Returns true if there is no room for a small file in the folder. The test file has no name, so it leaves nothing
/// behind.
fn is_folder_full(folder: &Path) -> bool {
    let tried = tempfile::tempfile_in(folder).and_then(|mut file| file.write_all(&[1; SOME]));
    tried.is_err_and(|error| is_disk_full(&error))
}

/// Returns true for a full disk or an exhausted quota.
fn is_disk_full(error: &std::io::Error) -> bool {
    let kind = error.kind();
    matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::cell::RefCell;
    use std::sync::Arc;

    use super::*;
    use crate::synthetic::Numbered;
    use crate::{
        Activity, ClassTotal, Collected, EstimatedAmount, Limits, NewRun, NewTick, Sample, Samples,
        Trace, Which, Writer, Written,
    };

    /// A source of samples for tests. It has the uids of the live samples by slot (0 for an empty slot), and the uid of
    /// one collected sample.
    struct Heap(RefCell<Vec<u64>>, u64);

    fn sample(uid: u64) -> Sample {
        Sample {
            uid,
            class: 1,
            stack: 1,
            ..Sample::default()
        }
    }

    impl Samples for Heap {
        fn places(&self) -> u32 {
            u32::try_from(self.0.borrow().len()).unwrap()
        }

        fn uid(&self, place: u32) -> u64 {
            self.0.borrow()[place as usize]
        }

        fn live(&self, place: u32) -> Option<Sample> {
            let uid = self.uid(place);
            (uid != 0).then(|| sample(uid))
        }

        fn thread(&self, _: u32) -> Option<Arc<str>> {
            None
        }

        /// Returns the collected samples only if `anew` is true. The writer passes true after a write that failed.
        fn collected(&self, anew: bool) -> Option<Vec<Collected>> {
            anew.then(|| {
                vec![Collected {
                    sample: sample(self.1),
                    recent: true,
                    ..Collected::default()
                }]
            })
        }
    }

    /// Returns the data of one period: activity at the sites in a range, and counts of one class.
    fn tick(uptime_ms: i64, sites: std::ops::Range<u32>) -> NewTick {
        let amount = EstimatedAmount {
            samples: 1,
            objects: 1.0,
            bytes: 24.0,
        };
        let activity = |site| Activity {
            class: site,
            stack: site,
            allocated: amount,
            live: amount,
            ..Activity::default()
        };
        NewTick {
            time_ms: uptime_ms,
            uptime_ms,
            span_ms: 1000,
            sites: sites.map(activity).collect(),
            class_totals: vec![ClassTotal {
                class: 1,
                objects: 5,
                bytes: 120,
            }],
            ..NewTick::default()
        }
    }

    /// If there is no room for the data of a period, nothing of this data remains in the file or in the writer's
    /// caches. The writer can continue when there is room again.
    #[test]
    fn a_writer_continues_when_there_is_space() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let mut writer = Writer::create(&path, &NewRun::default(), Limits::default()).unwrap();
        let heap = Heap(RefCell::new(vec![1, 2, 3]), 4);
        let mut counted = tick(1000, 0..3);
        counted.class_totals.clear();
        assert_eq!(
            writer.tick(&Numbered, &heap, |_| counted).unwrap(),
            Written::Done
        );
        let number = |sql: &str| -> i64 {
            let trace = Trace::open(&path).unwrap();
            let connection = trace.database().connection();
            connection.query_row(sql, [], |row| row.get(0)).unwrap()
        };
        let pages = number("PRAGMA page_count");
        let limit = |writer: &Writer, pages: i64| {
            let connection = writer.database.connection();
            let set =
                connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |row| {
                    row.get(0)
                });
            assert_eq!(set, Ok(pages));
        };
        limit(&writer, pages);
        // The data of a period with many new names. Samples 2 and 3 have died, sample 5 is new, and the machine's clock
        // was changed.
        *heap.0.borrow_mut() = vec![1, 5, 0];
        let mut more = tick(2000, 0..2000);
        more.time_ms += 60_000;
        for _ in 0..2 {
            let failed = writer.tick(&Numbered, &heap, |_| &more).unwrap_err();
            assert!(failed.is_disk_full(), "{failed}");
            assert_eq!(number("SELECT count(*) FROM site"), 3);
            assert_eq!(number("SELECT count(*) FROM tick"), 1);
        }
        limit(&writer, 1 << 20);
        assert_eq!(
            writer.tick(&Numbered, &heap, |_| &more).unwrap(),
            Written::Done
        );
        let last = tick(3000, 1990..2010);
        assert_eq!(
            writer.tick(&Numbered, &heap, |_| last).unwrap(),
            Written::Done
        );
        writer.end(4000).unwrap();
        for (sql, expected) in [
            (
                "SELECT sum(allocated_samples) FROM site_tick",
                3 + 2000 + 20,
            ),
            ("SELECT count(*) FROM site", 2010),
            ("SELECT objects FROM class_total", 10),
            (
                "SELECT count(*) FROM note WHERE text LIKE '%clock of the machine had just been set forward%'",
                1,
            ),
            ("SELECT count(*) FROM pragma_foreign_key_check", 0),
        ] {
            assert_eq!(number(sql), expected, "{sql}");
        }
        let trace = Trace::open(&path).unwrap();
        for (which, expected) in [(Which::Live, vec![1, 5]), (Which::Recent, vec![4])] {
            let mut uids = Vec::new();
            trace.each_sample(1, which, |s| uids.push(s.uid)).unwrap();
            assert_eq!(uids, expected, "{which:?}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn an_exhausted_quota_counts_as_a_full_disk() {
        use rustix::io::Errno;
        let is_of_room = |errno: Errno| is_disk_full(&errno.into());
        assert!(is_of_room(Errno::NOSPC) && is_of_room(Errno::DQUOT));
        for other in [Errno::IO, Errno::ROFS, Errno::ACCESS, Errno::FBIG] {
            assert!(!is_of_room(other), "{other}");
        }
    }

    #[test]
    fn other_errors_do_not_count_as_a_full_disk() {
        let folder = tempfile::tempdir().unwrap();
        let error = |code| rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
        for path in [
            folder.path().join("t.db"),
            "/proc/none/t.db".into(),
            "t.db".into(),
        ] {
            for (code, lacks) in [
                (rusqlite::ffi::SQLITE_FULL, true),
                (rusqlite::ffi::SQLITE_IOERR_WRITE, false),
                (rusqlite::ffi::SQLITE_CANTOPEN, false),
                (rusqlite::ffi::SQLITE_BUSY, false),
            ] {
                assert_eq!(is_disk_full_at(&path, &error(code)), lacks, "{code}");
            }
        }
    }
}
