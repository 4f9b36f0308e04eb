//! Divides the time of a recording into ticks (intervals of equal length). Collects the allocations and live objects of
//! each allocation site in each tick.

use std::collections::BTreeMap;
use std::time::Duration;

use heapdiff_jfr::{Event, NameId, Recording, Sample, StackId};
use heapdiff_trace::{Activity, EstimatedAmount};

use super::{ImportError, NS_PER_MS};

/// Maximum number of ticks in a trace: `TICKS` if the tick length is the default, `MOST_TICKS` if the user gives the
/// tick length.
const TICKS: i64 = 3600;
const MOST_TICKS: i64 = 1 << 20;

/// The ticks of a recording: time intervals of the same length that together cover the recording.
#[derive(Debug)]
pub(super) struct Ticks {
    pub(super) from_ns: i64,
    pub(super) length_ms: i64,
    pub(super) count: i64,
}

impl Ticks {
    pub(super) fn from_recording(
        recording: &Recording,
        length: Option<Duration>,
    ) -> Result<Self, ImportError> {
        let span_ms = recording.to_ns.saturating_sub(recording.from_ns) / NS_PER_MS + 1;
        let length_ms = match length {
            Some(length) => i64::try_from(length.as_millis().max(1)).unwrap_or(i64::MAX),
            // By default, the length is in whole seconds.
            None => (span_ms / (TICKS * 1000) + 1).saturating_mul(1000),
        };
        let count = (span_ms / length_ms).saturating_add(1);
        if count > MOST_TICKS {
            return Err(ImportError::TooManyTicks {
                count: count.unsigned_abs(),
                most: MOST_TICKS.unsigned_abs(),
            });
        }
        Ok(Self {
            from_ns: recording.from_ns,
            length_ms,
            count,
        })
    }

    /// Returns the index of the tick that contains a time. Returns the first tick for an earlier time, and the last
    /// tick for a later time.
    pub(super) fn at(&self, time_ns: i64) -> i64 {
        let ms = time_ns.saturating_sub(self.from_ns) / NS_PER_MS;
        (ms / self.length_ms).clamp(0, self.count - 1)
    }
}

type RecordedSite = (NameId, StackId);

/// The allocations and live objects of each allocation site in each tick. A site has no entry for a tick without
/// allocations and without changes of its live objects.
pub(super) struct Slices {
    pub(super) activity: Vec<(i64, Activity)>,
}

impl Slices {
    pub(super) fn from_recording(recording: &Recording, ticks: &Ticks) -> Self {
        let mut allocated: BTreeMap<(i64, RecordedSite), EstimatedAmount> = BTreeMap::new();
        // A recording can have samples of allocations, and events for allocations inside and outside of TLABs. If it
        // has samples, only these are used, because they already cover all allocations.
        let has_samples = recording.of(Event::Allocation).next().is_some();
        for sample in &recording.samples {
            let is_counted = match sample.event {
                Event::Old | Event::Live => false,
                Event::Allocation => true,
                Event::InBuffer | Event::Outside => !has_samples,
            };
            if is_counted {
                let at = (ticks.at(sample.time_ns), (sample.class, sample.stack));
                add(allocated.entry(at).or_default(), recording, sample);
            }
        }
        let live = alive(recording, ticks);
        let mut rows: Vec<(i64, RecordedSite)> =
            allocated.keys().chain(live.keys()).copied().collect();
        rows.sort_unstable();
        rows.dedup();
        // In a trace, an entry replaces all earlier figures of the allocation site. So each entry repeats the number of
        // live objects, even if this number did not change.
        let mut now: BTreeMap<RecordedSite, Alive> = BTreeMap::new();
        let activity = rows.into_iter().map(|(tick, site)| {
            let now = now.entry(site).or_default();
            if let Some(&live) = live.get(&(tick, site)) {
                *now = live;
            }
            let activity = Activity {
                class: site.0.0,
                stack: site.1.0,
                allocated: allocated.get(&(tick, site)).copied().unwrap_or_default(),
                live: now.amount,
                live_variance: now.variance,
                ..Activity::default()
            };
            (tick, activity)
        });
        Self {
            activity: activity.collect(),
        }
    }
}

fn add(amount: &mut EstimatedAmount, recording: &Recording, sample: &Sample) {
    let weight = recording.weight(sample);
    amount.samples += 1;
    amount.objects += weight.objects;
    amount.bytes += weight.bytes;
}

/// The live objects of an allocation site.
#[derive(Clone, Copy, Default, PartialEq)]
struct Alive {
    amount: EstimatedAmount,
    variance: f64,
}

/// Returns the live objects at the ends of ticks, only for ticks in which they change.
///
/// Live objects are known only at the moments when the recorder searched for them. So an object counts as live at the
/// end of a tick if it was allocated before that, and if the next search after the tick finds it. After the last
/// search, the objects that the last search found count as live.
///
/// An example with ticks of one second, numbered from 0:
///
/// ```text
/// object      allocated   found by the searches at 2.5 s and 4.5 s   alive at the ends of
/// A           0.5 s       both                                       all ticks
/// B           1.5 s       first                                      ticks 1 and 2
/// C           3.5 s       second                                     ticks from 3 on
/// ```
fn alive(recording: &Recording, ticks: &Ticks) -> BTreeMap<(i64, RecordedSite), Alive> {
    let old = recording.of(Event::Old).next().is_some();
    let mut looks: BTreeMap<i64, Vec<&Sample>> = BTreeMap::new();
    for sample in recording
        .samples
        .iter()
        .filter(|s| s.event.describes_live_object())
    {
        match (old, sample.event) {
            (true, Event::Old) => looks.entry(sample.time_ns).or_default().push(sample),
            // async-profiler searches for live objects only once, at the end of the recording, and this search takes
            // some time.
            (false, Event::Live) => looks.entry(i64::MAX).or_default().push(sample),
            _ => {}
        }
    }
    let mut changes: BTreeMap<(i64, RecordedSite), Alive> = BTreeMap::new();
    let mut now: BTreeMap<RecordedSite, Alive> = BTreeMap::new();
    let mut from = 0;
    let last = looks.len().saturating_sub(1);
    for (number, (time, mut found)) in looks.into_iter().enumerate() {
        let to = if number == last {
            ticks.count - 1
        } else {
            ticks.at(time)
        };
        // If the recorder searched for live objects twice in one tick, only the result of the later search is used.
        if to < from {
            continue;
        }
        found.sort_by_key(|s| s.allocated_ns);
        let mut found = found.into_iter().peekable();
        let mut next: BTreeMap<RecordedSite, Alive> = BTreeMap::new();
        let mut touched: Vec<RecordedSite> = Vec::new();
        let mut tick = from;
        while tick <= to {
            touched.clear();
            if tick == from {
                touched.extend(now.keys());
            }
            while let Some(sample) =
                found.next_if(|s| ticks.at(s.allocated_ns) <= tick || tick == to)
            {
                let site = (sample.class, sample.stack);
                let live = next.entry(site).or_default();
                add(&mut live.amount, recording, sample);
                live.variance += recording.weight(sample).bytes_variance;
                touched.push(site);
            }
            touched.sort_unstable();
            touched.dedup();
            for &site in &touched {
                let live = next.get(&site).copied().unwrap_or_default();
                if tick > from || now.get(&site) != Some(&live) {
                    changes.insert((tick, site), live);
                }
            }
            // Continue with the next tick in which one of the live objects was allocated. In the ticks before that,
            // nothing changes.
            tick = match found.peek() {
                Some(sample) => ticks.at(sample.allocated_ns).clamp(tick + 1, to),
                None => to + 1,
            };
        }
        now = next;
        from = to + 1;
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    /// Returns a sample of a live object of the allocation site `site`. A search at the time `look` found the object.
    /// It was allocated at the time `allocated`. Both times are in seconds.
    fn old(site: u32, look: f64, allocated: f64) -> Sample {
        let ns = |seconds: f64| (seconds * 1e9) as i64;
        Sample {
            event: Event::Old,
            time_ns: ns(look),
            allocated_ns: ns(allocated),
            class: NameId(site),
            stack: StackId(0),
            thread: NameId(0),
            size: 100,
            weight: 0,
            elements: None,
            chain: heapdiff_jfr::ChainId(0),
        }
    }

    fn recording(samples: Vec<Sample>, seconds: i64) -> Recording {
        let mut recording = Recording::default();
        recording.samples = samples;
        recording.to_ns = seconds * SECOND - 1;
        recording
    }

    #[test]
    fn ticks_cover_the_time_and_their_number_is_limited() {
        let of = |seconds, length: Option<u64>| {
            let length = length.map(Duration::from_millis);
            Ticks::from_recording(&recording(Vec::new(), seconds), length)
                .map(|t| (t.length_ms, t.count))
        };
        assert_eq!(of(10, None).unwrap(), (1000, 11));
        assert_eq!(of(10, Some(250)).unwrap(), (250, 41));
        let (length, count) = of(100_000, None).unwrap();
        assert!(length % 1000 == 0 && count <= TICKS, "{length} {count}");
        assert!(length * count >= 100_000_000);
        assert!(of(100_000, Some(1)).is_err());
        let ticks = Ticks::from_recording(&recording(Vec::new(), 10), None).unwrap();
        assert_eq!((ticks.at(-5), ticks.at(i64::MAX)), (0, 10));
    }

    #[test]
    fn live_objects_are_those_of_the_next_search() {
        // The object of the first site stays alive. The object of the second site is dead at the second search. The
        // object of the third site is allocated between the two searches.
        let samples = vec![
            old(1, 2.5, 0.5),
            old(2, 2.5, 1.5),
            old(1, 4.5, 0.5),
            old(3, 4.5, 3.5),
        ];
        let recording = recording(samples, 6);
        let ticks = Ticks::from_recording(&recording, None).unwrap();
        let slices = Slices::from_recording(&recording, &ticks);
        let rows: Vec<_> = slices
            .activity
            .iter()
            .map(|(tick, a)| (*tick, a.class, a.live.samples, a.live.bytes as u64))
            .collect();
        assert_eq!(
            rows,
            [(0, 1, 1, 100), (1, 2, 1, 100), (3, 2, 0, 0), (3, 3, 1, 100)]
        );
    }

    #[test]
    fn an_allocation_row_contains_its_live_objects() {
        let mut samples = vec![old(1, 4.5, 0.5)];
        for second in [0, 2] {
            samples.push(Sample {
                event: Event::Allocation,
                weight: 1000,
                ..old(1, f64::from(second) + 0.7, f64::from(second) + 0.7)
            });
        }
        let recording = recording(samples, 5);
        let ticks = Ticks::from_recording(&recording, None).unwrap();
        let rows = Slices::from_recording(&recording, &ticks).activity;
        let rows: Vec<_> = rows
            .iter()
            .map(|(tick, a)| (*tick, a.allocated.bytes as u64, a.live.samples))
            .collect();
        assert_eq!(rows, [(0, 1000, 1), (2, 1000, 1)]);
    }

    #[test]
    fn two_searches_within_a_tick_count_as_one() {
        let samples = vec![
            old(1, 1.2, 0.5),
            old(1, 1.4, 0.5),
            old(2, 1.4, 1.3),
            old(1, 2.8, 0.5),
        ];
        let recording = recording(samples, 3);
        let ticks = Ticks::from_recording(&recording, Some(Duration::from_secs(2))).unwrap();
        let live = alive(&recording, &ticks);
        // The recorder searched for live objects only in the first two ticks. The result of its last search stays valid
        // until the end.
        let end = live.iter().rev().find(|((_, site), _)| site.0 == NameId(1));
        assert_eq!(end.map(|(_, live)| live.amount.samples), Some(1));
        let second = live.iter().rev().find(|((_, site), _)| site.0 == NameId(2));
        assert!(second.is_none_or(|(_, live)| live.amount.samples == 0));
    }
}
