//! Computes when the heap of a run reaches its limit, from the used heap after each full GC.

use std::sync::atomic::Ordering;

use heapdiff_trend::{Outlook, Rise, Rising, Slope};
use rusqlite::{Connection, params};

use crate::TraceError;
use crate::database::int;
use crate::guard::is_table;
use crate::history::{Basis, Points, Steps, Timeline};
use crate::rank::HourlySlope;
use crate::read::{Collection, Run, Trace};
use crate::tick::NewRun;

const TABLE: &str = include_str!("heap_limit.sql");
const NAME: &str = "heap_limit";
const MS_PER_HOUR: f64 = 3_600_000.0;
/// Minimum number of full GCs to estimate the time to OutOfMemoryError. Fewer GCs suffice if the time before the first
/// full GC is at least as long as the time from the first full GC to the last. Otherwise the growth may only be the
/// start-up of the program.
pub const LEAST_FULL_GCS: usize = 10;
/// Minimum time from the first full GC to the last, in milliseconds. With a shorter time, the growth may only be the
/// start-up of the program.
const LEAST_SPAN_MS: u64 = 5000;
/// Maximum number of values of the used heap for a trend. If there are more full GCs, each value is the lowest one of
/// several neighbouring full GCs. A concurrent collector does not free the objects that die during its cycle, so single
/// values are too high.
const MOST_FIGURES: usize = 40;
/// Maximum time to OutOfMemoryError that is reported, in milliseconds: a thousand years.
const LONGEST_MS: f64 = 1000.0 * 365.25 * 24.0 * MS_PER_HOUR;

/// The source of a heap limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitSource {
    /// The maximum heap of the JVM (-Xmx).
    Heap,
    /// The memory limit of the container.
    Container,
    /// An option of the user.
    Option,
}

impl LimitSource {
    /// Returns the name used in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Heap => "heap",
            Self::Container => "container",
            Self::Option => "option",
        }
    }
}

/// The size at which the heap of a JVM is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeapLimit {
    /// The limit in bytes.
    pub bytes: u64,
    /// The source of the limit.
    pub source: LimitSource,
}

/// The trend of the heap after full GCs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeapState {
    /// There are too few full GCs to estimate a trend.
    TooFew,
    /// The heap does not reach its limit at the measured rate.
    NoEnd,
    /// The heap grows, but its rate varies so much that the time to its limit has no upper bound.
    Irregular,
    /// The heap grows, but its limit is unknown.
    NoLimit,
    /// The heap reaches its limit.
    Ends,
}

impl HeapState {
    /// Returns the name used in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TooFew => "too-few",
            Self::NoEnd => "no-end",
            Self::Irregular => "irregular",
            Self::NoLimit => "no-limit",
            Self::Ends => "ends",
        }
    }

    /// Returns true if the heap after full GCs is known to grow.
    #[must_use]
    pub const fn grows(self) -> bool {
        matches!(self, Self::NoLimit | Self::Ends)
    }
}

/// A time in milliseconds after the end of the last tick of a window, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLeft {
    /// The estimated time.
    pub at_ms: u64,
    /// Start of the 95 % interval.
    pub from_ms: u64,
    /// End of the 95 % interval.
    pub to_ms: u64,
}

/// The trend of the used heap after full GCs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeapOutlook {
    /// Number of full GCs whose used heap is known.
    pub full_gcs: u64,
    /// The conclusion from the used heap after full GCs.
    pub state: HeapState,
    /// Growth in bytes per hour since `since_ms`. `None` with too few full GCs.
    pub slope: Option<HourlySlope>,
    /// Start of the growth that was measured, in milliseconds since the run began.
    pub since_ms: Option<u64>,
    /// Time until the heap reaches its limit. Set only if the state is [`HeapState::Ends`].
    pub left: Option<TimeLeft>,
    /// The limit of the heap, if it is known.
    pub limit: Option<HeapLimit>,
}

impl HeapOutlook {
    /// Computes the trend of the used heap in a window of a run.
    ///
    /// Cost: linear in the number of GCs of the window.
    #[must_use]
    pub fn of(timeline: &Timeline, limit: Option<HeapLimit>) -> Self {
        let floor = floor(timeline.collections());
        let outlook = Self {
            full_gcs: floor.len() as u64,
            state: HeapState::TooFew,
            slope: None,
            since_ms: None,
            left: None,
            limit,
        };
        let (Some(first), Some(last)) = (floor.first(), floor.last()) else {
            return outlook;
        };
        let span = last.0 - first.0;
        let is_enough = span >= LEAST_SPAN_MS && (floor.len() >= LEAST_FULL_GCS || first.0 >= span);
        let floor = without_start(&floor);
        let points: Vec<(f64, f64)> = lowest(floor)
            .iter()
            .map(|p| (p.0 as f64, p.1 as f64))
            .collect();
        let Some(rise) = Rise::fit(&points).filter(|_| is_enough) else {
            return outlook;
        };
        let end = timeline.ticks().last().map_or(last.0, |t| t.uptime_ms);
        let (state, left) = match limit {
            _ if rise.rising == Rising::No => (HeapState::NoEnd, None),
            _ if rise.rising == Rising::Unclear => (HeapState::Irregular, None),
            None => (HeapState::NoLimit, None),
            Some(limit) => match rise.reach(limit.bytes as f64) {
                Outlook::NoEnd => (HeapState::NoEnd, None),
                Outlook::Irregular => (HeapState::Irregular, None),
                Outlook::Reaches(reach) if reach.at > LONGEST_MS => (HeapState::NoEnd, None),
                Outlook::Reaches(reach) => {
                    let gone = end.saturating_sub(last.0) as f64;
                    // A cast with `as` saturates: it never overflows.
                    let ms = |after: f64| (after.min(LONGEST_MS) - gone).max(0.0).round() as u64;
                    let left = TimeLeft {
                        at_ms: ms(reach.at),
                        from_ms: ms(reach.ci95[0]),
                        to_ms: ms(reach.ci95[1]),
                    };
                    (HeapState::Ends, Some(left))
                }
            },
        };
        let hourly = |rate: f64| (rate * MS_PER_HOUR).round() as i64;
        Self {
            state,
            slope: Some(HourlySlope {
                slope: hourly(rise.slope.slope),
                ci95: rise.slope.ci95.map(|ends| ends.map(hourly)),
            }),
            since_ms: Some(rise.since as u64),
            left,
            ..outlook
        }
    }

    /// Returns the fraction of the heap's growth that is due to given sites, in thousandths. The growth of the sites
    /// and the growth of the heap are measured since the same time. Returns `None` if the heap or the sites do not
    /// certainly grow, or if the live bytes after full GCs are unknown.
    #[must_use]
    pub fn share_permille(
        &self,
        steps: &Steps,
        timeline: &Timeline,
        points: &Points,
    ) -> Option<u64> {
        let (since, slope) = (self.since_ms?, self.slope?);
        if !self.state.grows() || slope.slope <= 0 || points.basis != Basis::Major {
            return None;
        }
        let live: Vec<(f64, f64)> = steps
            .points(timeline, points)
            .iter()
            .filter(|(ms, _)| *ms >= since)
            .map(|(ms, live)| (*ms as f64, live.amount.bytes as f64))
            .collect();
        let own = Slope::fit(&live).filter(|own| own.ci95.is_some_and(|[low, _]| low > 0.0))?;
        let share = own.slope * MS_PER_HOUR / slope.slope as f64 * 1000.0;
        Some(share.clamp(0.0, 1000.0).round() as u64)
    }
}

/// Returns the time (milliseconds since the run began) and the used heap after each full GC.
///
/// The used heap after a full GC is the minimum from this GC to the next full GC. A concurrent cycle of G1 frees
/// objects only in the young GCs after it, so a cycle without a later GC has no value.
fn floor(collections: &[Collection]) -> Vec<(u64, u64)> {
    let mut floor: Vec<(u64, u64)> = Vec::new();
    // The lowest used heap since the last full GC, and true if this value contains no unreachable objects.
    let mut lowest: Option<((u64, u64), bool)> = None;
    for gc in collections.iter().filter(|gc| gc.after_bytes > 0) {
        let own = (gc.uptime_ms, gc.after_bytes);
        let marks_only = gc.collector.contains("Concurrent");
        match &mut lowest {
            _ if gc.major => {
                if let Some((point, true)) = lowest {
                    floor.push(point);
                }
                lowest = Some((own, !marks_only));
            }
            Some((point, is_known)) => {
                if !*is_known || own.1 < point.1 {
                    *point = own;
                }
                *is_known = true;
            }
            None => {}
        }
    }
    if let Some((point, true)) = lowest {
        floor.push(point);
    }
    // Two GCs may end in the same millisecond. Then the value of the later GC is used.
    floor.dedup_by(|later, earlier| {
        let same = later.0 <= earlier.0;
        if same {
            earlier.1 = later.1;
        }
        same
    });
    floor
}

/// Discards the first quarter of the time if two conditions are met:
/// - There are at least `2 * LEAST_FULL_GCS` full GCs.
/// - The time before the first full GC is shorter than the time from the first full GC to the last.
fn without_start(floor: &[(u64, u64)]) -> &[(u64, u64)] {
    let (Some(first), Some(last)) = (floor.first(), floor.last()) else {
        return floor;
    };
    let span = last.0 - first.0;
    if floor.len() < 2 * LEAST_FULL_GCS || first.0 >= span {
        return floor;
    }
    let begin = floor.partition_point(|point| point.0 < first.0 + span / 4);
    &floor[begin..]
}

/// Returns at most [`MOST_FIGURES`] values of the used heap: the lowest one of each group of neighbouring full GCs.
fn lowest(floor: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let size = floor.len().div_ceil(MOST_FIGURES).max(1);
    let groups = floor.chunks(size);
    groups
        .filter_map(|group| group.iter().min_by_key(|p| p.1).copied())
        .collect()
}

/// Stores the maximum heap and the container limit of a run, if at least one of them is known.
pub(crate) fn write_limits(connection: &Connection, id: i64, run: &NewRun) -> rusqlite::Result<()> {
    if run.heap_limit.is_none() && run.container_limit.is_none() {
        return Ok(());
    }
    connection.execute_batch(TABLE)?;
    connection.execute(
        "INSERT OR REPLACE INTO heap_limit (run, heap_bytes, container_bytes) VALUES (?1, ?2, ?3)",
        params![id, run.heap_limit.map(int), run.container_limit.map(int)],
    )?;
    Ok(())
}

impl Trace {
    /// Returns the size at which the heap of a run is full: its maximum heap or the limit of its container, whichever
    /// is smaller. If the agent did not record the maximum heap, it is taken from the arguments of the JVM.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or if a view or another object has the name of the table.
    pub fn heap_limit(&self, run: &Run) -> Result<Option<HeapLimit>, TraceError> {
        let given = max_heap(&run.flags).map(|bytes| HeapLimit {
            bytes,
            source: LimitSource::Heap,
        });
        self.steps.store(0, Ordering::Relaxed);
        match is_table(self.database().connection(), NAME).map_err(|e| self.error(e))? {
            None => return Ok(given),
            Some(true) => {}
            Some(false) => {
                return Err(TraceError::Table {
                    path: self.path().to_owned(),
                    table: NAME,
                });
            }
        }
        let sql = "SELECT ifnull(heap_bytes, 0), ifnull(container_bytes, 0) FROM heap_limit WHERE run = ?1";
        let found = self.list(sql, [run.id], |row| {
            [self.figure(row, 0), self.figure(row, 1)]
        })?;
        let [heap, container] = found.first().copied().unwrap_or_default();
        let limit = |bytes, source| (bytes > 0).then_some(HeapLimit { bytes, source });
        let limits = [
            limit(heap, LimitSource::Heap).or(given),
            limit(container, LimitSource::Container),
        ];
        Ok(limits.into_iter().flatten().min_by_key(|l| l.bytes))
    }
}

/// Returns the maximum heap that the arguments of a JVM set. If several arguments set it, the last one counts.
fn max_heap(flags: &str) -> Option<u64> {
    let mut sizes = flags.split_ascii_whitespace().filter_map(|flag| {
        let size = flag
            .strip_prefix("-Xmx")
            .or_else(|| flag.strip_prefix("-XX:MaxHeapSize="))?;
        // The JVM's units are powers of 1024.
        let size = size.trim_end_matches(['b', 'B']);
        let (number, unit) = match size.chars().last()?.to_ascii_lowercase() {
            'k' => (&size[..size.len() - 1], 10),
            'm' => (&size[..size.len() - 1], 20),
            'g' => (&size[..size.len() - 1], 30),
            't' => (&size[..size.len() - 1], 40),
            _ => (size, 0),
        };
        number.parse::<u64>().ok()?.checked_mul(1 << unit)
    });
    sizes.next_back().filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::{Numbered, Scene, write};
    use crate::{Limits, NewTick, Window, Writer};

    fn gc(uptime_ms: u64, collector: &str, major: bool, after_bytes: u64) -> Collection {
        Collection {
            time_ms: uptime_ms,
            uptime_ms,
            collector: collector.to_owned(),
            major,
            cause: String::new(),
            pause_us: 1,
            before_bytes: 900,
            after_bytes,
        }
    }

    #[test]
    fn a_full_gc_counts_with_the_lowest_figure_after_it() {
        let full = |ms, after| gc(ms, "G1 Old Generation", true, after);
        let young = |ms, after| gc(ms, "G1 Young Generation", false, after);
        let mark = |ms, after| gc(ms, "G1 Concurrent GC", true, after);
        assert_eq!(
            floor(&[full(1, 50), young(2, 60), full(3, 70)]),
            [(1, 50), (3, 70)]
        );
        assert_eq!(floor(&[young(1, 9), full(2, 50), young(3, 40)]), [(3, 40)]);
        // The pauses Remark and Cleanup of one cycle count as one full GC. The mixed GCs after the cycle free its
        // objects.
        assert_eq!(
            floor(&[
                mark(1, 30),
                mark(2, 30),
                young(3, 80),
                young(4, 60),
                mark(5, 10)
            ]),
            [(4, 60)]
        );
        assert_eq!(floor(&[]), []);
    }

    #[test]
    fn many_full_gcs_count_with_the_lowest_figure_of_each_group() {
        let floor: Vec<(u64, u64)> = (0..100).map(|i| (i, 500 - i % 3)).collect();
        let lowest = lowest(&floor);
        assert_eq!(lowest.len(), 34);
        assert_eq!(lowest[..2], [(2, 498), (5, 498)]);
        assert_eq!(super::lowest(&floor[..40]), floor[..40]);
        assert_eq!(super::lowest(&[]), []);
    }

    #[test]
    fn the_last_maximum_heap_counts() {
        for (flags, bytes) in [
            ("-Xmx256m", Some(256 << 20)),
            ("-Xms1g -Xmx2G -XX:MaxHeapSize=1073741824", Some(1 << 30)),
            ("-Xmx64k", Some(64 << 10)),
            ("-Dx=-Xmx1g", None),
            ("-Xmx", None),
            ("-Xmxé", None),
            ("-Xmx0", None),
            ("-Xmx99999999999t", None),
            ("", None),
        ] {
            assert_eq!(max_heap(flags), bytes, "{flags}");
        }
    }

    fn outlook(scene: &Scene<'_>) -> HeapOutlook {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        write(&path, scene).unwrap();
        let trace = Trace::open(&path).unwrap();
        let run = trace.runs().unwrap().pop().unwrap();
        let timeline = Timeline::of(&trace, &run, Window::ALL).unwrap();
        HeapOutlook::of(&timeline, trace.heap_limit(&run).unwrap())
    }

    #[test]
    fn a_leak_has_an_end_and_a_program_without_one_has_none() {
        let leak = outlook(&Scene::default());
        let left = leak.left.unwrap();
        // The service leaks 160 buffers of 2,064 bytes per second, and the maximum heap is 256 MiB.
        let live = (100 * 160 * 2064 + 1600 * 4096 + 4800 * 256 + 320 * 512) + (8 << 20);
        let end = ((256 << 20) - live) as u64 * 1000 / (160 * 2064);
        assert!(left.at_ms.abs_diff(end) < end / 10, "{left:?} {end}");
        assert!((left.from_ms..=left.to_ms).contains(&end), "{left:?} {end}");
        assert_eq!((leak.state, leak.full_gcs), (HeapState::Ends, 12));
        let sites = &crate::synthetic::SITES[1..];
        let bounded = outlook(&Scene {
            sites,
            ticks: 400,
            ..Scene::default()
        });
        assert_eq!((bounded.state, bounded.left), (HeapState::NoEnd, None));
        let young = outlook(&Scene {
            major: 0,
            ..Scene::default()
        });
        assert_eq!((young.state, young.full_gcs), (HeapState::TooFew, 0));
        let early = outlook(&Scene {
            ticks: 60,
            ..Scene::default()
        });
        assert_eq!(early.state, HeapState::TooFew);
    }

    #[test]
    fn the_smaller_limit_counts() {
        let folder = tempfile::tempdir().unwrap();
        let limit = |heap, container, flags: &str| {
            let path = folder.path().join("t.db");
            let _ = std::fs::remove_file(&path);
            let run = NewRun {
                flags: flags.to_owned(),
                heap_limit: heap,
                container_limit: container,
                ..NewRun::default()
            };
            let mut writer = Writer::create(&path, &run, Limits::default()).unwrap();
            writer.tick(&Numbered, &(), |_| NewTick::default()).unwrap();
            writer.end(1).unwrap();
            let trace = Trace::open(&path).unwrap();
            let run = trace.runs().unwrap().pop().unwrap();
            let limit = trace.heap_limit(&run).unwrap();
            limit.map(|limit| (limit.bytes, limit.source.name()))
        };
        assert_eq!(limit(None, None, ""), None);
        assert_eq!(limit(None, None, "-Xmx1k"), Some((1024, "heap")));
        assert_eq!(limit(Some(500), Some(600), "-Xmx1k"), Some((500, "heap")));
        assert_eq!(limit(Some(700), Some(600), ""), Some((600, "container")));
        assert_eq!(limit(None, Some(2048), "-Xmx1k"), Some((1024, "heap")));
    }
}
