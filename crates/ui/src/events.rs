//! Server-sent events. They notify pages that a trace has changed, so that the pages request new data.

use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::http::{self, Status};
use crate::traces::Traces;

/// The interval between two checks whether a trace has changed. By default, the agent writes to a trace about once per
/// second.
const LOOK: Duration = Duration::from_millis(300);
/// The interval between two checks whether a listener's connection is still open, while there are no events.
const BEAT: Duration = Duration::from_secs(1);
/// The interval between two comments in the stream, while there are no events. A comment that cannot be written shows
/// that the connection is closed.
const COMMENT_EVERY: Duration = Duration::from_secs(5);

/// A version number that increases with each change.
#[derive(Default)]
pub(crate) struct Events {
    version: Mutex<u64>,
    changed: Condvar,
}

impl Events {
    fn version(&self) -> MutexGuard<'_, u64> {
        self.version.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        *self.version() += 1;
        self.changed.notify_all();
    }

    /// Wakes all waiting threads.
    pub(crate) fn wake(&self) {
        // Notify while the lock is held. A thread holds the lock from its check until it waits, so it cannot miss the
        // notification.
        let _held = self.version();
        self.changed.notify_all();
    }

    /// Waits until the version number of the traces differs from `seen`, until `ends` returns true, or until [`BEAT`]
    /// has passed. Returns the current version number.
    fn next(&self, seen: u64, ends: impl Fn() -> bool) -> u64 {
        let wait = |v: &mut u64| *v == seen && !ends();
        let held = self.changed.wait_timeout_while(self.version(), BEAT, wait);
        *held.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Checks the traces for changes until the server ends.
pub(crate) fn watch(traces: &Traces, events: &Events, ends: &AtomicBool) {
    while !ends.load(Ordering::Relaxed) {
        if traces.check_for_changes() {
            events.changed();
        }
        let begun = Instant::now();
        while begun.elapsed() < LOOK && !ends.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK / 6);
        }
    }
}

/// Sends an event for each change to one listener until it disconnects.
pub(crate) fn send_events(stream: &mut TcpStream, events: &Events, ends: &AtomicBool) {
    // An error only means that the connection has ended.
    let _ = send_until_closed(stream, events, ends);
}

fn send_until_closed(stream: &mut TcpStream, events: &Events, ends: &AtomicBool) -> io::Result<()> {
    stream.set_write_timeout(Some(http::WRITE_TIME))?;
    let head = http::head(Status::Ok, "text/event-stream", http::NO_POLICY, "");
    stream.write_all(head.as_bytes())?;
    stream.write_all(b"retry: 1000\n\n")?;
    let mut told = None;
    let mut last = Instant::now();
    let has_ended = || ends.load(Ordering::Relaxed);
    while !has_ended() {
        let version = match told {
            Some(told) => events.next(told, has_ended),
            None => *events.version(),
        };
        if told != Some(version) {
            write!(stream, "event: change\ndata: {version}\n\n")?;
            told = Some(version);
            last = Instant::now();
        } else if last.elapsed() > COMMENT_EVERY {
            stream.write_all(b":\n\n")?;
            last = Instant::now();
        }
        if is_closed(stream)? {
            return Ok(());
        }
    }
    Ok(())
}

/// Returns true if the client has closed the connection.
fn is_closed(stream: &TcpStream) -> io::Result<bool> {
    stream.set_nonblocking(true)?;
    let peeked = stream.peek(&mut [0]);
    stream.set_nonblocking(false)?;
    match peeked {
        Ok(0) => Ok(true),
        Ok(_) => Ok(false),
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(e) => Err(e),
    }
}
