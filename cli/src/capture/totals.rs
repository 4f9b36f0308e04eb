//! Checks that a class has really grown since the first dump.
//!
//! The agent's trace contains only objects that were allocated after the agent was loaded. If these objects replace
//! older ones, as in a full cache, the trace shows growth although the heap does not grow.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use heapdiff_sites::types;
use hprof::answers::Histogram;
use hprof::{Options, Silent};

use super::deadline::Sign;
use super::protocol::Jvm;
use super::watch::Seen;

/// Minimum time between the first check and the second. The time is doubled after each check, because each check makes
/// the JVM run a GC, which pauses the program.
const FIRST_PAUSE: Duration = Duration::from_secs(15);

/// The bytes of each class in the first dump, to compare with the current bytes in the JVM.
#[derive(Debug)]
pub(super) struct Totals {
    dump: PathBuf,
    /// True if the totals include unreachable objects, as the dumps do.
    all: bool,
    before: Option<HashMap<String, u64>>,
    next: Instant,
    pause: Duration,
}

impl Totals {
    pub(super) fn new(dump: PathBuf, all: bool) -> Self {
        Self {
            dump,
            all,
            before: None,
            next: Instant::now(),
            pause: FIRST_PAUSE,
        }
    }

    /// Returns the first of the allocation sites in `seen` whose class has at least `enough` bytes more than in the
    /// first dump. `seen` contains the sites that have grown in the trace. Returns `None` if no class has grown by this
    /// number of bytes, or if it is too early for the next check.
    ///
    /// If the first dump or the current bytes of the classes cannot be read, returns the first site without a check,
    /// because a hunt must not miss the leak.
    pub(super) fn first_confirmed<'s>(
        &mut self,
        jvm: &Jvm<'_>,
        seen: &'s [Seen],
        enough: u64,
    ) -> Option<&'s Seen> {
        if seen.is_empty() || Instant::now() < self.next {
            return None;
        }
        if self.before.is_none() {
            self.before = self.read();
        }
        let (Some(before), Some(now)) = (&self.before, Self::now(jvm, self.all)) else {
            return seen.first();
        };
        let found = seen
            .iter()
            .find(|seen| grown(before, &now, &seen.class) >= enough);
        self.next = Instant::now() + self.pause;
        self.pause *= 2;
        found
    }

    /// Reads the bytes of each class in the first dump. Class names have the form that the agent's trace uses.
    fn read(&self) -> Option<HashMap<String, u64>> {
        let read = Histogram::open(&self.dump, &Options::default(), &Silent).ok()?;
        let mut before: HashMap<String, u64> = HashMap::new();
        for ((_, class), total) in read.classes().iter().zip(read.totals()) {
            *before.entry(types::of_class(&class.name)).or_default() += total.all.bytes;
        }
        Some(before)
    }

    /// Reads the current bytes of each class from the JVM's class histogram.
    fn now(jvm: &Jvm<'_>, all: bool) -> Option<HashMap<String, u64>> {
        let what: &[u8] = if all { b"-all" } else { b"-live" };
        jvm.restart();
        let answer = jvm.execute("inspectheap", [what, b"", b""], || {
            jvm.process.check_alive().map(|()| Sign::Nothing)
        });
        let answer = answer.ok().filter(|a| a.code == 0)?;
        let totals = histogram(&answer.text);
        (!totals.is_empty()).then_some(totals)
    }
}

/// Returns the number of bytes by which a class grew. A class that is missing from `now` counts as 0 bytes. The JVM
/// lists the largest classes first, and the end of a long answer is cut off, so a missing class is small.
fn grown(before: &HashMap<String, u64>, now: &HashMap<String, u64>, class: &str) -> u64 {
    let of = |totals: &HashMap<String, u64>| totals.get(class).copied().unwrap_or(0);
    of(now).saturating_sub(of(before))
}

/// Parses the lines of a histogram, such as `   1:   3243   194312  [B (java.base@17)`.
fn histogram(text: &str) -> HashMap<String, u64> {
    let mut totals: HashMap<String, u64> = HashMap::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (Some(rank), Some(_), Some(bytes), Some(name)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        if let (true, Ok(bytes)) = (rank.ends_with(':'), bytes.parse::<u64>()) {
            *totals.entry(types::of_class(name)).or_default() += bytes;
        }
    }
    totals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_jvms_histogram_is_read() {
        let text = " num     #instances         #bytes  class name (module)\n\
                    -------------------------------------------------------\n   \
                    1:          3243         194312  [B (java.base@17.0.15)\n   \
                    2:             7            900  [[Lcom.acme.Entry;\n   \
                    3:             7            100  com.acme.Entry\n\
                    4:             2             32  com.acme.Job$$Lambda$14/0x0000000800c03000\n\
                    5:             1             16  com.acme.Job$$Lambda$15/0x0000000800c03800\n\
                    Total          3257         195312\n";
        let totals = histogram(text);
        assert_eq!(totals.len(), 4);
        // In a trace, all lambdas of a class have one name.
        assert_eq!(totals["com.acme.Job$$Lambda"], 48);
        assert_eq!(totals["byte[]"], 194_312);
        assert_eq!(totals["com.acme.Entry[][]"], 900);
        let before = HashMap::from([("byte[]".to_owned(), 194_000), ("x.Gone".to_owned(), 5)]);
        assert_eq!(grown(&before, &totals, "byte[]"), 312);
        assert_eq!(grown(&before, &totals, "com.acme.Entry"), 100);
        assert_eq!(grown(&before, &totals, "x.Gone"), 0);
        assert_eq!(grown(&before, &totals, "x.Unknown"), 0);
    }
}
