//! Heap, class and GC figures of a recording, for each tick (a short interval) of the trace.

use std::collections::BTreeMap;

use heapdiff_jfr::{Recording, State};
use heapdiff_trace::{NewCollection, NewTick};

use super::NS_PER_MS;
use super::slices::Ticks;

/// Computes the heap, class and GC figures of each tick (time interval) of the trace. Ticks are processed in order.
pub(super) struct JvmStats<'a> {
    recording: &'a Recording,
    ticks: &'a Ticks,
    heap: usize,
    states: usize,
    collections: usize,
    /// Heap used before and after each GC, by GC id.
    around: BTreeMap<i64, [u64; 2]>,
    figures: NewTick,
}

impl<'a> JvmStats<'a> {
    pub(super) fn new(recording: &'a Recording, ticks: &'a Ticks) -> Self {
        let mut around: BTreeMap<i64, [u64; 2]> = BTreeMap::new();
        for summary in &recording.heap {
            around.entry(summary.gc_id).or_default()[usize::from(summary.is_after)] =
                summary.heap_used;
        }
        Self {
            recording,
            ticks,
            heap: 0,
            states: 0,
            collections: 0,
            around,
            figures: NewTick::default(),
        }
    }

    /// Returns the heap, class and GC figures of the next tick. The list of allocation sites in the result is empty.
    /// The caller must call this function for each tick in order.
    pub(super) fn tick(&mut self, number: i64) -> NewTick {
        let Self {
            recording, ticks, ..
        } = *self;
        let is_in = |time_ns: i64| ticks.at(time_ns) <= number;
        while let Some(heap) = recording.heap.get(self.heap).filter(|h| is_in(h.time_ns)) {
            self.heap += 1;
            self.figures.heap_used = heap.heap_used;
            self.figures.heap_committed = heap.heap_committed;
        }
        while let Some((_, state)) = recording.states.get(self.states).filter(|s| is_in(s.0)) {
            self.states += 1;
            match *state {
                State::Metaspace { used, committed } => {
                    self.figures.metaspace_used = used;
                    self.figures.metaspace_committed = committed;
                }
                State::Classes { loaded } => self.figures.loaded_classes = loaded,
            }
        }
        let from_ms = ticks.from_ns / NS_PER_MS;
        let mut collections = Vec::new();
        let rest = recording.collections.get(self.collections..).unwrap_or(&[]);
        for collection in rest.iter().take_while(|c| is_in(c.time_ns)) {
            self.collections += 1;
            let [before_bytes, after_bytes] = self
                .around
                .get(&collection.gc_id)
                .copied()
                .unwrap_or_default();
            let name = recording.names.text(collection.name);
            let time_ms = collection.time_ns / NS_PER_MS;
            collections.push(NewCollection {
                time_ms,
                uptime_ms: time_ms.saturating_sub(from_ms).max(0),
                collector: name.to_string(),
                major: is_major(name),
                cause: recording.names.text(collection.cause).to_string(),
                pause_us: (collection.sum_of_pauses_ns.max(0) / 1000).unsigned_abs(),
                before_bytes,
                after_bytes,
            });
        }
        let uptime_ms = (number + 1).saturating_mul(ticks.length_ms);
        NewTick {
            time_ms: from_ms.saturating_add(uptime_ms),
            uptime_ms,
            span_ms: ticks.length_ms,
            collections,
            ..self.figures.clone()
        }
    }
}

/// Returns true if a collector examines the whole heap. This includes G1's concurrent marking. `collector` is a name as
/// in JFR.
fn is_major(collector: &str) -> bool {
    let minor = ["G1New", "DefNew", "ParNew", "ParallelScavenge", "ZGC Minor"];
    !minor.contains(&collector)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collectors_of_full_gcs_are_recognized() {
        for (name, major) in [
            ("G1New", false),
            ("DefNew", false),
            ("ParallelScavenge", false),
            ("ZGC Minor", false),
            ("SerialOld", true),
            ("G1Full", true),
            ("G1Old", true),
            ("ZGC Major", true),
            ("Shenandoah", true),
        ] {
            assert_eq!(is_major(name), major, "{name}");
        }
    }
}
