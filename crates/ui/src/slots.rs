//! Limits the number of open connections. Each connection has a slot. If all slots are in use, a new connection
//! replaces an open one: the connection on which the server has waited longest for its client. So clients that send or
//! read slowly do not block other clients.

use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time that the server waits for a client before another client may take its slot. A client on this machine sends
/// its request within milliseconds.
const GRACE: Duration = Duration::from_millis(200);

/// The open connections.
pub(crate) struct Slots {
    most: usize,
    open: Mutex<Vec<Open>>,
    freed: Condvar,
}

struct Open {
    number: u64,
    /// The socket of the connection. Shutting it down ends the connection.
    stream: TcpStream,
    /// The time since which the server has waited for the client. `None` while the client waits for the server.
    waits: Option<Instant>,
}

impl Slots {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            open: Mutex::default(),
            freed: Condvar::new(),
        })
    }

    fn open(&self) -> MutexGuard<'_, Vec<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a slot for a connection. If no slot is free, ends another connection: the one on which the server has
    /// waited longest for its client, if it has waited for at least [`GRACE`]. If there is no such connection, waits
    /// until there is one, or until a slot is free. Returns `None` after [`GRACE`].
    pub(crate) fn take(self: &Arc<Self>, stream: &TcpStream, number: u64) -> Option<Slot> {
        let stream = stream.try_clone().ok()?;
        let end = Instant::now() + GRACE;
        let mut open = self.open();
        while open.len() >= self.most {
            let now = Instant::now();
            let waiting = open.iter().enumerate();
            let waiting = waiting.filter_map(|(at, one)| Some((one.waits?, at)));
            let due = match waiting.min() {
                Some((since, at)) if now >= since + GRACE => {
                    // The connection's thread ends at its next read or write.
                    let _ = open.swap_remove(at).stream.shutdown(Shutdown::Both);
                    break;
                }
                Some((since, _)) => end.min(since + GRACE),
                None => end,
            };
            if now >= end {
                return None;
            }
            let wait = due.saturating_duration_since(now);
            let woken = self.freed.wait_timeout(open, wait);
            open = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        open.push(Open {
            number,
            stream,
            waits: Some(Instant::now()),
        });
        Some(Slot {
            slots: Arc::clone(self),
            number,
        })
    }

    fn set(&self, number: u64, waits: Option<Instant>) {
        let mut open = self.open();
        if let Some(one) = open.iter_mut().find(|one| one.number == number) {
            one.waits = waits;
        }
    }
}

/// The slot of one connection. Dropping it frees the slot.
pub(crate) struct Slot {
    slots: Arc<Slots>,
    number: u64,
}

impl Slot {
    /// Records that the server waits for the client from now on. The client must send the request, or accept the next
    /// part of the answer.
    pub(crate) fn waits(&self) {
        self.slots.set(self.number, Some(Instant::now()));
    }

    /// Records that the client waits for the server from now on.
    pub(crate) fn mark_waiting(&self) {
        self.slots.set(self.number, None);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.open().retain(|one| one.number != self.number);
        self.slots.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn the_client_idle_for_longest_loses_its_slot() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connect = || {
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (client, listener.accept().unwrap().0)
        };
        let slots = Slots::new(2);
        let (mut first, at_first) = connect();
        let (second, at_second) = connect();
        let (_third, at_third) = connect();
        let a = slots.take(&at_first, 1).unwrap();
        let b = slots.take(&at_second, 2).unwrap();
        b.mark_waiting();
        let begun = Instant::now();
        let c = slots.take(&at_third, 3).unwrap();
        assert!(begun.elapsed() < GRACE * 20);
        drop(at_first);
        assert_eq!(first.read(&mut [0]).unwrap(), 0, "it was ended");
        // The server works on the requests of both clients, so it ends neither connection.
        c.mark_waiting();
        assert!(slots.take(&second, 4).is_none());
        drop(a);
        assert_eq!(slots.open().len(), 2, "its slot is another's");
        drop(c);
        assert!(slots.take(&at_second, 5).is_some());
    }
}
