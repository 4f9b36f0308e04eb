//! Decides what to do after each attempt to write to the trace: how long to tolerate a lock by another process, and
//! when to try again after the disk was full.

use std::path::Path;
use std::time::{Duration, Instant};

use heapdiff_trace::{TraceError, Written};
use heapdiff_units::Span;

/// Maximum time for which another process may lock the file. After that, the agent stops writing the trace.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pause after the first attempt that found the disk full. Each further failed attempt doubles the pause, up to
/// [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(180);

/// Records how the attempts to write to the trace ended so far, and when.
#[derive(Debug)]
pub(crate) struct Tries {
    free_since: Instant,
    /// Time of the first failed attempt since the disk became full.
    full_since: Option<Instant>,
    /// Time of the last attempt that found space after the disk had been full.
    room_since: Option<Instant>,
    pause: Duration,
}

/// The action that follows an attempt to write to the trace.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Next {
    /// Time to wait before the next attempt.
    pub(crate) pause: Duration,
    pub(crate) say: Option<String>,
}

impl Tries {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            free_since: now,
            full_since: None,
            room_since: None,
            pause: FIRST_PAUSE,
        }
    }

    /// True if the disk was full at the last attempt to write to the trace.
    pub(crate) const fn was_disk_full(&self) -> bool {
        self.full_since.is_some()
    }

    /// Returns what to do after an attempt to write to the trace. The attempt has just ended. If the trace must end,
    /// returns an error with the reason.
    pub(crate) fn after_attempt(
        &mut self,
        written: Result<Written, TraceError>,
        path: &Path,
        now: Instant,
    ) -> Result<Next, String> {
        let path = path.display();
        match written {
            Ok(Written::Done) => {
                self.free_since = now;
                let full_since = self.full_since.take();
                let say = full_since.map(|since| {
                    self.room_since = Some(now);
                    let seconds = now.saturating_duration_since(since).as_secs();
                    let span = Span(Duration::from_secs(seconds));
                    format!("{path}: the disk has space again after {span}; the trace continues")
                });
                Ok(Next {
                    say,
                    ..Next::default()
                })
            }
            Ok(Written::Busy) if now.saturating_duration_since(self.free_since) < PATIENCE => {
                Ok(Next::default())
            }
            Ok(Written::Busy) => Err(format!(
                "{path}: another process has locked the trace for {} seconds",
                PATIENCE.as_secs()
            )),
            Err(error) if error.is_disk_full() => {
                self.free_since = now;
                let goes_on = self.was_disk_full();
                self.full_since.get_or_insert(now);
                // If the disk is full again less than [`LONGEST_PAUSE`] after it had space, the trace itself may have
                // filled that space. So the pauses between attempts to write stay long.
                let room_since = self.room_since;
                let soon = |at| now.saturating_duration_since(at) < LONGEST_PAUSE;
                self.pause = if goes_on || room_since.is_some_and(soon) {
                    (self.pause * 2).min(LONGEST_PAUSE)
                } else {
                    FIRST_PAUSE
                };
                let say = (!goes_on).then(|| {
                    format!(
                        "{path}: the disk is full; the trace continues when there is space again"
                    )
                });
                let pause = self.pause;
                Ok(Next { pause, say })
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapdiff_trace::{Database, Limits, NewRun, NewTick, Writer};

    fn at(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    /// If another database connection keeps the file locked for [`PATIENCE`], the agent stops writing the trace. The
    /// clock is simulated.
    #[test]
    fn a_file_that_stays_locked_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let mut writer = Writer::create(&path, &NewRun::default(), Limits::default()).unwrap();
        let mut tick = |uptime_ms| {
            writer.tick(&(), &(), |_| NewTick {
                time_ms: uptime_ms,
                uptime_ms,
                ..NewTick::default()
            })
        };
        let start = Instant::now();
        let mut tries = Tries::new(start);
        let mut tried = |written, seconds| tries.after_attempt(written, &path, at(start, seconds));
        assert_eq!(tried(tick(1000), 1), Ok(Next::default()));
        let holder = Database::create(&path).unwrap();
        let lock = |sql| holder.connection().execute_batch(sql).unwrap();
        lock("BEGIN IMMEDIATE");
        tried(tick(2000), 2).unwrap();
        let busy = || Ok(Written::Busy);
        tried(busy(), 30).unwrap();
        // The file was unlocked for a moment. So the maximum time for which another process may lock the file starts
        // again.
        lock("ROLLBACK");
        tried(tick(30_500), 31).unwrap();
        lock("BEGIN IMMEDIATE");
        tried(tick(32_000), 60).unwrap();
        let why = tried(busy(), 31 + PATIENCE.as_secs()).unwrap_err();
        assert!(
            why.contains("t.db: another process has locked the trace for 30 seconds"),
            "{why}"
        );
        lock("ROLLBACK");
        let ticks = "SELECT count(*) FROM tick";
        let ticks: i64 = holder
            .connection()
            .query_row(ticks, [], |row| row.get(0))
            .unwrap();
        assert_eq!(ticks, 2, "nothing of what was tried while it was held");
    }

    fn failed(code: i32) -> Result<Written, TraceError> {
        Err(TraceError::Sqlite {
            path: std::env::temp_dir().join("t.db"),
            source: rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None),
        })
    }

    #[test]
    fn a_full_disk_is_retried_with_backoff_and_reported_once() {
        let path = Path::new("t.db");
        let start = Instant::now();
        let mut tries = Tries::new(start);
        let full = || failed(rusqlite::ffi::SQLITE_FULL);
        let mut try_at = |seconds, written| {
            let next = tries
                .after_attempt(written, path, at(start, seconds))
                .unwrap();
            assert_eq!(tries.was_disk_full(), !next.pause.is_zero());
            (next.pause.as_secs(), next.say)
        };
        let said = Some(
            "t.db: the disk is full; the trace continues when there is space again".to_owned(),
        );
        assert_eq!(try_at(5, full()), (10, said.clone()));
        let mut now = 15;
        for pause in [20, 40, 80, 160, 180, 180] {
            assert_eq!(try_at(now, full()), (pause, None));
            now += pause;
        }
        let again = "t.db: the disk has space again after 11m10s; the trace continues".to_owned();
        assert_eq!(now, 675);
        assert_eq!(try_at(now, Ok(Written::Done)), (0, Some(again)));
        assert_eq!(try_at(now + 1, Ok(Written::Done)), (0, None));
        // If the disk is full again soon, the pauses between attempts stay long. Otherwise there would be a message
        // every ten seconds. If the disk had space for a longer time, the next pause is short again.
        assert_eq!(try_at(now + 2, full()), (180, said.clone()));
        assert!(try_at(now + 182, Ok(Written::Done)).1.is_some());
        assert_eq!(try_at(now + 400, full()), (10, said));
    }

    #[test]
    fn errors_other_than_a_full_disk_end_the_trace() {
        for code in [
            rusqlite::ffi::SQLITE_IOERR_WRITE,
            rusqlite::ffi::SQLITE_CANTOPEN,
            rusqlite::ffi::SQLITE_CORRUPT,
        ] {
            let mut tries = Tries::new(Instant::now());
            let ended = tries.after_attempt(failed(code), Path::new("t.db"), Instant::now());
            assert!(ended.is_err() && !tries.was_disk_full(), "{code}");
        }
    }
}
