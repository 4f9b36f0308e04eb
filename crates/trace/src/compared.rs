//! Compares samples with exact counts by line of code, to find differences beyond random variation.

use heapdiff_sites::packages::is_jdk;
use rustc_hash::FxHashMap;

use crate::amount::Amount;
use crate::read::{Frame, Run, Trace};
use crate::read_counted::{CountedLine, CountedPart};
use crate::{THINNED, TraceError};

/// Agent options with which samples and exact counts cannot be compared. With these options, samples and counts cover
/// different allocations, or the frames of samples have other names.
const OTHERWISE: [&str; 4] = ["include=", "exclude=", "verbosity=", "delay="];
/// A difference of at most this number of standard deviations is considered random variation.
const NO_CHANCE: f64 = 4.0;
/// The number of samples and the expected number count as equal if their ratio is at most this factor. Samples are
/// summed over ticks and counts over spans (both are time intervals), so the two sums cover slightly different times.
const NEAR: f64 = 1.25;

/// The samples at a line of code that also has an exact count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampledLine {
    /// Samples at the line, and the objects and bytes that they represent.
    pub allocated: Amount,
    /// True if random variation does not explain the difference between the number of samples and the count.
    pub beyond_chance: bool,
}

impl Trace {
    /// Returns the samples at each of the given lines of code in a part of a run, and compares their number with the
    /// count of the line. Returns `None` if samples and counts are not comparable: samples are not taken by bytes,
    /// samples were downsampled or lost, or allocations are filtered.
    ///
    /// A sample belongs to the line of its innermost frame. Samples in JDK methods that the line calls are not included
    /// in the result. But the count of a line may include allocations in these methods. So a line counts as having too
    /// few samples only if its own samples and the samples in these methods together are too few.
    ///
    /// Cost: reads the rows of all sites in the part's ticks once, and all stacks.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn sampled_lines(
        &self,
        run: &Run,
        part: CountedPart,
        lines: &[CountedLine],
    ) -> Result<Option<Vec<SampledLine>>, TraceError> {
        let options = run.options.replace("\\,", "");
        let mut options = options.split(',').map(str::trim_start);
        let differs = options.any(|option| OTHERWISE.iter().any(|key| option.starts_with(key)));
        if run.strategy != "bytes" || differs || self.last_note(run.id, THINNED)?.is_some() {
            return Ok(None);
        }
        let bound = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
        let bounds = [run.id, bound(part.from_ms), bound(part.to_ms)];
        let ticks = "SELECT id FROM tick WHERE run = ?1 AND uptime_ms - span_ms / 2 > ?2 AND uptime_ms - span_ms / 2 <= ?3";
        let lost = format!("SELECT total(lost_samples) > 0 FROM tick WHERE id IN ({ticks})");
        let lost = self.list(&lost, bounds, |row| self.figure(row, 0))?;
        if lost != [0] {
            return Ok(None);
        }
        let sums = format!(
            "SELECT site, total(allocated_samples), total(allocated_objects), total(allocated_bytes) FROM site_tick
             WHERE tick IN ({ticks}) GROUP BY site"
        );
        let mut sites: FxHashMap<i64, Amount> = FxHashMap::default();
        self.each(&sums, bounds, |row| {
            // A cast with `as` saturates: it never overflows.
            let sum = |column| row.get(column).map_or(0, |sum: f64| sum as u64);
            if let Some(site) = self.id(row, 0) {
                let amount = Amount {
                    samples: sum(1),
                    objects: sum(2),
                    bytes: sum(3),
                };
                sites.insert(site, amount);
            }
        })?;
        let places = lines.iter().enumerate().map(|(at, line)| {
            let CountedLine {
                class,
                method,
                allocated,
                ..
            } = line;
            let names = [class, method, allocated].map(String::clone);
            ((names, line.line), at)
        });
        let places: FxHashMap<([String; 3], Option<u64>), usize> = places.collect();
        let mut found = vec![SampledLine::default(); lines.len()];
        // If a line calls certain JDK methods, such as array copies, the agent counts the allocations in them at this
        // line. So `called` counts, for each line, the samples at the line and in the JDK methods that it calls.
        let mut called = vec![0_u64; lines.len()];
        let stacks = self.stacks()?;
        for site in self.sites()? {
            let (Some(amount), Some(stack)) = (sites.get(&site.id), site.stack) else {
                continue;
            };
            let frames = stacks.frames(stack);
            let place = |frame: &&Frame| {
                let names = [&frame.class, &frame.method, &site.class].map(ToString::to_string);
                let line = frame.line.and_then(|line| u64::try_from(line).ok());
                places.get(&(names, line)).copied()
            };
            let leaf = frames.first().and_then(place);
            if let Some(sampled) = leaf.and_then(|at| found.get_mut(at)) {
                sampled.allocated = sampled.allocated.saturating_add(*amount);
            }
            let is_own = |frame: &&&Frame| !is_jdk(&frame.class);
            let caller = frames.iter().find(is_own).and_then(place);
            if let Some(called) = caller.and_then(|at| called.get_mut(at)) {
                *called = called.saturating_add(amount.samples);
            }
        }
        for ((line, sampled), called) in lines.iter().zip(&mut found).zip(called) {
            let expected = expected(line, run.interval_bytes);
            sampled.beyond_chance = expected.is_some_and(|expected| {
                let own = sampled.allocated.samples;
                // The number of samples agrees with the count in two cases:
                // - It differs from the expected number only by random variation.
                // - The expected number lies between `own` (the samples at the line alone) and `called` (with the
                //   samples in JDK methods that the line calls), apart from random variation.
                is_beyond_chance(own, expected)
                    && (exceeds_expected(own, expected)
                        || is_beyond_chance(called.max(own), expected)
                            && !exceeds_expected(called, expected))
            });
        }
        Ok(Some(found))
    }
}

/// Returns the number of samples to expect at a line, given the exact count of its allocations. Returns `None` if the
/// bytes of these allocations are unknown.
fn expected(line: &CountedLine, interval: u64) -> Option<f64> {
    if line.is_remainder_row() {
        return None;
    }
    #[allow(clippy::cast_precision_loss, reason = "an expectation")]
    let (objects, bytes) = (line.objects as f64, line.bytes? as f64);
    #[allow(clippy::cast_precision_loss, reason = "an expectation")]
    let interval = interval as f64;
    if interval > 0.0 && objects > 0.0 {
        Some(objects * -(-bytes / objects / interval).exp_m1())
    } else {
        Some(objects)
    }
}

fn exceeds_expected(samples: u64, expected: f64) -> bool {
    #[allow(clippy::cast_precision_loss, reason = "an expectation")]
    let samples = samples as f64;
    samples > expected
}

fn is_beyond_chance(samples: u64, expected: f64) -> bool {
    #[allow(clippy::cast_precision_loss, reason = "an expectation")]
    let samples = samples as f64;
    let apart = (samples - expected).abs();
    apart > NO_CHANCE * expected.max(1.0).sqrt()
        && !(expected / NEAR..=expected * NEAR).contains(&samples)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::synthetic::{LINES, Scene, count, write};
    use crate::{Database, Window};

    fn sampled(path: &Path) -> Option<Vec<(String, SampledLine)>> {
        let trace = Trace::open(path).unwrap();
        let run = trace.runs().unwrap().pop().unwrap();
        let top = trace.top_lines(run.id, Window::ALL, (10, |_: &CountedLine| true));
        let top = top.unwrap().unwrap();
        let sampled = trace.sampled_lines(&run, top.part, &top.rows).unwrap()?;
        let classes = top.rows.into_iter().map(|line| line.allocated);
        Some(classes.zip(sampled).collect())
    }

    #[test]
    fn only_removed_allocations_show_a_difference() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        write(&path, &Scene::default()).unwrap();
        count(&path, &LINES).unwrap();
        let all = sampled(&path).unwrap();
        let beyond: Vec<_> = all.iter().map(|(c, s)| (&**c, s.beyond_chance)).collect();
        assert_eq!(
            beyond,
            [
                ("com.acme.Point", true),
                ("byte[]", false),
                ("com.acme.Page", false),
                ("com.acme.Plugin", false)
            ]
        );
        assert_eq!(all[0].1.allocated, Amount::default());
        assert!(all[1].1.allocated.objects > 19_000, "{all:?}");
        // If samples and counts are not comparable, the function returns `None`.
        let set = |sql: &str| {
            let database = Database::create(&path).unwrap();
            database.connection().execute_batch(sql).unwrap();
        };
        for (change, back) in [
            (
                "UPDATE run SET options = 'a=b, exclude=x'",
                "UPDATE run SET options = 'service=a\\,include=b'",
            ),
            (
                "UPDATE run SET strategy = 'count'",
                "UPDATE run SET strategy = 'bytes'",
            ),
            (
                "UPDATE tick SET lost_samples = 1 WHERE id = 7",
                "UPDATE tick SET lost_samples = 0",
            ),
            (
                "INSERT INTO note VALUES (99, 1, 0, 'max_samples reached: x')",
                "DELETE FROM note WHERE id = 99",
            ),
        ] {
            set(change);
            assert_eq!(sampled(&path), None, "{change}");
            set(back);
            assert!(sampled(&path).is_some(), "{back}");
        }
    }

    #[test]
    fn random_variation_is_not_a_difference() {
        for (samples, expected, beyond) in [
            (0, 15.0, false),
            (0, 17.0, true),
            (3, 0.0, false),
            (5, 0.0, true),
            (80, 100.0, false),
            (59, 100.0, true),
            (141, 100.0, true),
            // For large numbers, a small relative difference is accepted, even if it is far larger than random
            // variation.
            (11_000, 10_000.0, false),
            (13_000, 10_000.0, true),
            (7900, 10_000.0, true),
        ] {
            assert_eq!(
                is_beyond_chance(samples, expected),
                beyond,
                "{samples} {expected}"
            );
        }
        let line = |bytes| CountedLine {
            class: "A".to_owned(),
            method: "b".to_owned(),
            line: None,
            allocated: "C".to_owned(),
            objects: 1000,
            bytes,
        };
        let of = |bytes, interval| expected(&line(bytes), interval);
        assert_eq!((of(None, 512), of(Some(24_000), 0)), (None, Some(1000.0)));
        assert!((of(Some(24_000), 24_000).unwrap() - 0.9995).abs() < 0.001);
        assert!((of(Some(1 << 40), 512).unwrap() - 1000.0).abs() < 0.001);
    }
}
