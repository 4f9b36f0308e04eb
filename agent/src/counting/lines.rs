//! Writes the results of the standing count (agent option `count=on`) to a trace. For each line of code, the trace
//! shows how much the line has allocated since the last report.
//!
//! The counters and the sizes of objects are read before the trace's file is locked. The next tick (the trace's data of
//! one time interval) contains the results. If this tick cannot be written, a later tick contains the results.

use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;
use std::time::{Duration, Instant};

use heapdiff_sites::types::of_class;
use heapdiff_trace::{Counting, LineCount};
use rustc_hash::FxHashMap;

use super::standing::STANDS;
use super::{ENGINE, Engine, ROUND, locked};
use crate::jvmti::calls::Env;

/// Approximate maximum number of lines of code reported per second. If more lines change, reports are less frequent.
const LINES_A_SECOND: u32 = 5000;
/// Minimum time between two searches for object sizes in the list of loaded classes. A search is made earlier in two
/// cases: for a new class, and if a size is unknown and further classes were loaded.
const LOOKS: Duration = Duration::from_secs(10);

/// Names of class, method and allocated class, and the line number.
type Key = ([Arc<str>; 3], Option<u16>);

struct Line {
    key: Key,
    /// JVM name of the allocated class; `None` for arrays.
    object: Option<Arc<str>>,
    /// Two numbers from the last reading of the counters: number of objects, and bytes. The bytes are only those of
    /// arrays, and of objects whose class shares its name with other classes. For all other objects, the bytes are
    /// computed from the number of objects and the size of one object.
    read: [u64; 2],
    /// The two numbers of `read`, as they were at the last report.
    told: [u64; 2],
    /// True if the last report had no object size for this line. The hook counts an object before the JVM allocates it.
    /// So the JVM may not have loaded the class yet when its first object is counted, and the size is unknown at first.
    lacks_size: bool,
}

/// Remembers which counts of lines of code were already reported to one trace.
#[derive(Default)]
pub(crate) struct Lines {
    /// Number ([`ROUND`]) of the count whose results are written to the trace. Each count has its own number. Results
    /// of counts with other numbers are not written.
    round: Option<u64>,
    numbers: FxHashMap<Key, usize>,
    lines: Vec<Line>,
    /// For each site of the counting table: the index of its line in `lines`.
    of_site: Vec<usize>,
    names: FxHashMap<Arc<str>, Arc<str>>,
    /// Size of an object, by class. `None` if a search did not find the size.
    sizes: FxHashMap<Arc<str>, Option<u64>>,
    looked: Option<(Instant, u64)>,
    /// Time of the last reading of the counters, and the number of lines whose counts had changed.
    last: Option<(Instant, usize)>,
    head: Counting,
}

impl Lines {
    /// Reads the counters if a report is due. Returns true if the counters were read. `uptime` is the time since the
    /// run began. `is_last` is true at the end of the run. `classes` is the number of loaded classes.
    pub(crate) fn read(
        &mut self,
        env: &Env<'_>,
        (uptime, is_last): (Duration, bool),
        classes: u64,
    ) -> bool {
        let Some(engine) = ENGINE.get().filter(|_| STANDS.load(Acquire)) else {
            return false;
        };
        let round = ROUND.load(Acquire);
        if *self.round.get_or_insert(round) != round {
            return false;
        }
        if let Some((at, lines)) = self.last
            && !is_last
            && at.elapsed() * LINES_A_SECOND
                < Duration::from_secs(1) * u32::try_from(lines).unwrap_or(u32::MAX)
        {
            return false;
        }
        // The caller has measured `uptime` just before this call.
        let read = Instant::now();
        if !self.count(engine, engine.counters(env), (uptime, read)) {
            return false;
        }
        self.last = Some((Instant::now(), self.changed_lines().count()));
        self.size(engine, env, (is_last, classes));
        true
    }

    /// Stores `now`, the new readings of the counters. Returns false if no count is running.
    fn count(
        &mut self,
        engine: &Engine,
        now: Vec<[u64; 2]>,
        (uptime, read): (Duration, Instant),
    ) -> bool {
        let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        {
            let table = locked(&engine.table);
            for number in self.of_site.len()..now.len() {
                let Some((site, names)) = table.site(number) else {
                    break;
                };
                let line = self.line(names, site.line, site.is_object);
                self.of_site.push(line);
            }
            self.head.classes = table.classes;
            self.head.missed_sites = table.uncounted;
            self.head.missed_methods = table.left_alone.count;
            self.head.missed_classes = table.refused.count;
        }
        self.head.jdk = locked(&engine.plan).as_ref().is_some_and(|plan| plan.jdk);
        let begun = locked(&engine.begun);
        let Some(begun) = begun.as_ref() else {
            return false;
        };
        self.head.at_ms = millis(uptime);
        // Compute the start time of the count only once, because each reading would give a slightly different time.
        if self.last.is_none() {
            let counted = read.saturating_duration_since(begun.at);
            self.head.from_ms = millis(uptime.saturating_sub(counted));
        }
        self.lines.iter_mut().for_each(|line| line.read = [0; 2]);
        for (number, (now, &line)) in now.iter().zip(&self.of_site).enumerate() {
            let before = begun.counters.get(number).copied().unwrap_or_default();
            if let Some(line) = self.lines.get_mut(line) {
                line.read =
                    [0, 1].map(|i| line.read[i].wrapping_add(now[i].wrapping_sub(before[i])));
            }
        }
        true
    }

    /// Returns the index of the line of code with these names. The names are in the JVM's form. Adds the line if it is
    /// new.
    fn line(&mut self, names: [Arc<str>; 3], line: Option<u16>, is_object: bool) -> usize {
        let [class, method, allocated] = names;
        let object = is_object.then(|| Arc::clone(&allocated));
        let key = ([self.name(class), method, self.name(allocated)], line);
        *self.numbers.entry(key).or_insert_with_key(|key| {
            self.lines.push(Line {
                key: key.clone(),
                object,
                read: [0; 2],
                told: [0; 2],
                lacks_size: false,
            });
            self.lines.len() - 1
        })
    }

    /// Returns a class's name in the form of Java source.
    fn name(&mut self, class: Arc<str>) -> Arc<str> {
        let named = self.names.entry(class);
        Arc::clone(named.or_insert_with_key(|class| of_class(class).into()))
    }

    /// Reads sizes of objects from the JVM if some sizes are not known or the set of loaded classes has changed.
    fn size(&mut self, engine: &Engine, env: &Env<'_>, (is_last, classes): (bool, u64)) {
        let changed = self.lines.iter();
        let changed = changed.filter(|line| line.read != line.told || line.lacks_size);
        let changed = changed.filter_map(|line| line.object.as_ref());
        let (mut new, mut unknown) = (false, false);
        for object in changed {
            match self.sizes.get(object) {
                None => new = true,
                Some(None) => unknown = true,
                Some(Some(_)) => {}
            }
        }
        let is_due = match self.looked {
            None => true,
            Some((at, had)) => {
                let is_changed = had != classes;
                unknown && is_changed
                    || (unknown || is_changed) && (is_last || at.elapsed() >= LOOKS)
            }
        };
        if !new && !is_due {
            return;
        }
        let counted = self.lines.iter().filter(|line| line.read[0] > 0);
        let objects: Vec<Arc<str>> = counted.filter_map(|line| line.object.clone()).collect();
        let found = engine.sizes(env, objects.iter().cloned());
        for object in objects {
            let size = found.get(&object).copied().flatten();
            self.sizes.insert(object, size);
        }
        self.looked = Some((Instant::now(), classes));
    }

    /// Iterates over lines whose counts have changed since the last report, and lines whose object size was found since
    /// then.
    fn changed_lines(&self) -> impl Iterator<Item = (usize, &Line)> {
        let lines = self.lines.iter().enumerate();
        lines.filter(|(_, line)| {
            line.read != line.told || line.lacks_size && self.size_of(line).is_some()
        })
    }

    /// Returns the size of an object that a line allocates. Returns `None` for arrays, and if the size is unknown.
    fn size_of(&self, line: &Line) -> Option<u64> {
        *self.sizes.get(line.object.as_ref()?)?
    }

    /// Returns the changes of all counts between the last report and the last reading of the counters.
    pub(crate) fn counting(&self) -> Counting {
        let lines = self.changed_lines().filter_map(|(number, line)| {
            let [objects, array_bytes] = [0, 1].map(|i| line.read[i].wrapping_sub(line.told[i]));
            let ([class, method, allocated], at) = line.key.clone();
            Some(LineCount {
                number: u32::try_from(number).ok()?,
                class,
                method,
                line: at.map(u32::from),
                allocated,
                object_bytes: self.size_of(line),
                objects,
                array_bytes,
            })
        });
        Counting {
            lines: lines.collect(),
            ..self.head.clone()
        }
    }

    /// Makes the next report contain all counts again, not only changes.
    pub(crate) fn report_all_again(&mut self) {
        self.lines.iter_mut().for_each(|line| line.told = [0; 2]);
    }

    /// Records that the counts of the last reading were reported.
    pub(crate) fn mark_reported(&mut self) {
        for line in &mut self.lines {
            let is_known = |object| matches!(self.sizes.get(object), Some(Some(_)));
            let object = line.object.as_ref().filter(|_| line.read[0] > 0);
            line.lacks_size = object.is_some_and(|object| !is_known(object));
            line.told = line.read;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_that_is_found_later_is_reported() {
        let mut lines = Lines::default();
        let names = ["a/Main", "run", "java/util/LinkedList"].map(Arc::from);
        let list = Arc::clone(&names[2]);
        let line = lines.line(names, Some(7), true);
        let reported = |lines: &mut Lines| {
            let counts = lines.counting().lines;
            lines.mark_reported();
            let counts = counts.iter().map(|line| (line.objects, line.object_bytes));
            counts.collect::<Vec<_>>()
        };
        assert_eq!(reported(&mut lines), []);
        lines.lines[line].read[0] = 1;
        lines.sizes.insert(Arc::clone(&list), None);
        assert_eq!(reported(&mut lines), [(1, None)]);
        assert_eq!(reported(&mut lines), []);
        lines.sizes.insert(list, Some(32));
        assert_eq!(reported(&mut lines), [(0, Some(32))]);
        assert_eq!(reported(&mut lines), []);
    }
}
