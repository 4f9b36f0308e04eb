//! A time limit for one test case. Without it, a test might loop for ever over a wrong answer, such as a list with a
//! cycle.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

/// A running test case. If the case exceeds its time limit, the test process exits, so the test run fails.
#[derive(Debug)]
pub struct Deadline(u64);

/// The running cases by number, each with its deadline and the name of its test.
type Cases = BTreeMap<u64, (Instant, String)>;

/// The running test cases, and the number that the most recent case got.
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
            // End the whole process, because a single thread cannot be stopped. If the message cannot be written, exit
            // without it.
            let _ = writeln!(std::io::stderr(), "{test}: one case takes too long");
            std::process::exit(101);
        }
    }
}
