//! A time limit for one test case. Without it, a test that walks over a wrong answer might never end.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

/// A running test case. If the case exceeds its time limit, the process ends, and so its tests fail.
#[derive(Debug)]
pub struct Deadline(u64);

/// The running cases by number, each with its deadline and the name of its test.
type Cases = BTreeMap<u64, (Instant, String)>;

/// The number of the most recent case, and the running cases.
static CASES: Mutex<(u64, Cases)> = Mutex::new((0, BTreeMap::new()));

impl Deadline {
    /// Begins a case of the current thread's test with this time limit. The case ends when the value is dropped.
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
            // A single thread cannot be stopped, so the process ends. If the message cannot be written, nothing else
            // can be done.
            let _ = writeln!(std::io::stderr(), "{test}: one case takes too long");
            std::process::exit(101);
        }
    }
}
