//! A bound on the time of one case of a test: where an answer is wrong, a walk over it may have no end.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

/// A case that is under way. When it takes longer than it may, the process ends, which fails its tests.
#[derive(Debug)]
pub struct Deadline(u64);

/// Cases under way, by number: when each has to be done, and the test that it is of.
type Cases = BTreeMap<u64, (Instant, String)>;

/// The number of the last case, and those under way.
static CASES: Mutex<(u64, Cases)> = Mutex::new((0, BTreeMap::new()));

impl Deadline {
    /// A case of the current thread's test that begins now and may take so long. It ends with this value.
    #[must_use]
    pub fn after(limit: Duration) -> Self {
        static WATCH: Once = Once::new();
        WATCH.call_once(|| {
            std::thread::spawn(watch);
        });
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        let mut cases = CASES.lock().unwrap_or_else(PoisonError::into_inner);
        cases.0 += 1;
        let number = cases.0;
        cases.1.insert(number, (Instant::now() + limit, test));
        Self(number)
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        let mut cases = CASES.lock().unwrap_or_else(PoisonError::into_inner);
        cases.1.remove(&self.0);
    }
}

fn watch() {
    loop {
        std::thread::sleep(Duration::from_millis(500));
        let cases = CASES.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if let Some((_, test)) = cases.1.values().find(|(end, _)| *end < now) {
            // Threads cannot be stopped one by one. Nothing is left to do where this cannot be said.
            let _ = writeln!(std::io::stderr(), "{test}: one case takes too long");
            std::process::exit(101);
        }
    }
}
