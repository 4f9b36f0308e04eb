//! Converts JFR recordings to traces.
//!
//! A recording contains allocations, and lists of the objects that were alive at certain moments. A trace contains both
//! for each tick, a short interval. So the import divides the time of the recording into ticks of equal length. Each
//! tick gets the allocations within it and the objects that are known to be alive at its end.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod jvm_stats;
mod slices;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use heapdiff_jfr::{Event, Jvm, LIVE_TABLE_FULL, MANY_OLD, MOST_LIVE, NameId, Recording, StackId};
use heapdiff_trace::{FrameName, Limits, Names, NewRun, TraceError, Writer, Written};
use heapdiff_units::counted;

use self::jvm_stats::JvmStats;
use self::slices::{Slices, Ticks};

const NS_PER_MS: i64 = 1_000_000;

/// The reason why a recording cannot be converted.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The length of a tick (time interval) is so short that the trace would have too many ticks.
    #[error("{count} ticks, but a trace can have at most {most}")]
    TooManyTicks {
        /// The number of ticks.
        count: u64,
        /// The maximum number of ticks in a trace.
        most: u64,
    },
    /// Another process has locked the output file.
    #[error("another process has locked it")]
    Held,
    /// The output file cannot be written.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// The origin of a recording, which the trace stores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The names of the recording's files.
    pub files: Vec<String>,
    /// The service name from the user.
    pub service: Option<String>,
    /// The host of the JVM.
    pub host: Option<String>,
}

/// A recording whose time is divided into ticks (intervals of equal length).
#[derive(Debug)]
pub struct Import<'a> {
    recording: &'a Recording,
    ticks: Ticks,
}

impl<'a> Import<'a> {
    /// Divides the recording into time intervals (ticks) of the length `tick`. By default, the length is a whole number
    /// of seconds, and there are at most about 3,600 ticks.
    ///
    /// # Errors
    /// Returns [`ImportError::TooManyTicks`] if the ticks are too short for the length of the recording.
    pub fn new(recording: &'a Recording, tick: Option<Duration>) -> Result<Self, ImportError> {
        let ticks = Ticks::from_recording(recording, tick)?;
        Ok(Self { recording, ticks })
    }

    /// Returns the number of ticks.
    #[must_use]
    pub fn ticks(&self) -> u64 {
        self.ticks.count.unsigned_abs()
    }

    /// Returns the length of a tick.
    #[must_use]
    pub fn tick_length(&self) -> Duration {
        Duration::from_millis(self.ticks.length_ms.unsigned_abs())
    }

    /// Writes the trace to a new file.
    ///
    /// Cost: one transaction for each tick, and memory for the allocation sites that are active in each tick.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written, or if another process has locked it.
    pub fn write(&self, path: &Path, origin: &Origin) -> Result<(), ImportError> {
        let (recording, ticks) = (self.recording, &self.ticks);
        let limits = Limits {
            retain: Duration::from_secs(u32::MAX.into()),
            max_bytes: u64::MAX,
        };
        let slices = Slices::from_recording(recording, ticks);
        let mut writer = Writer::create(path, &self.run(origin), limits)?;
        let mut stats = JvmStats::new(recording, ticks);
        let mut rows = slices.activity.iter().peekable();
        for number in 0..ticks.count {
            let mut tick = stats.tick(number);
            while let Some((_, activity)) = rows.next_if(|(at, _)| *at <= number) {
                tick.samples += activity.allocated.samples;
                tick.sites.push(*activity);
            }
            if number == 0 {
                tick.notes = notes(recording, origin.files.len());
            }
            match writer.tick(&RecordedNames(recording), &(), |_| tick)? {
                Written::Done => {}
                Written::Busy => return Err(ImportError::Held),
            }
        }
        Ok(writer.end(recording.to_ns / NS_PER_MS)?)
    }

    fn run(&self, origin: &Origin) -> NewRun {
        let recording = self.recording;
        let title = recording.jvm.as_ref().map(Jvm::title);
        let title = title.unwrap_or_else(|| "unknown JVM".to_owned());
        let jvm = recording.jvm.clone().unwrap_or_default();
        let started_ms = recording.from_ns / NS_PER_MS;
        let words = |parts: [&str; 2]| parts.join(" ").trim().to_owned();
        // The sampling interval must not be 0, because 0 means that every allocation was sampled.
        let weights = recording.of(Event::Allocation).map(|s| s.weight);
        let (count, sum) =
            weights.fold((0_u64, 0_u64), |(n, sum), w| (n + 1, sum.saturating_add(w)));
        let mean = sum / count.max(1);
        NewRun {
            uid: format!("jfr-{}-{}", jvm.pid, recording.from_ns),
            pid: u32::try_from(jvm.pid).unwrap_or(0),
            host: origin.host.clone().unwrap_or_default(),
            service: origin.service.clone(),
            started_ms,
            jvm: title,
            command: jvm.command,
            flags: words([&jvm.arguments, &jvm.flags]),
            options: format!("imported from {}", origin.files.join(", ")),
            interval_bytes: recording.interval.unwrap_or(mean).max(1),
            strategy: heapdiff_trace::RECORDING.to_owned(),
            ..NewRun::default()
        }
    }
}

/// Finds names by their ids in the recording.
struct RecordedNames<'a>(&'a Recording);

impl Names for RecordedNames<'_> {
    fn class(&self, class: u32) -> Option<Arc<str>> {
        let name = self.0.names.text(NameId(class));
        (!name.is_empty()).then(|| Arc::clone(name))
    }

    fn stack(&self, stack: u32) -> (Vec<FrameName>, bool) {
        let names = &self.0.names;
        let stack = names.stack(StackId(stack));
        let frames = stack
            .frames
            .iter()
            .filter_map(|&f| names.frames().get(f as usize));
        let frames = frames.map(|frame| FrameName {
            class: Arc::clone(names.text(frame.class)),
            method: Arc::clone(names.text(frame.method)),
            file: None,
            line: frame.line,
        });
        (frames.collect(), stack.is_cut)
    }
}

/// Returns sentences about the recording for readers of the trace, such as which data is missing. They are stored in
/// the trace as notes.
fn notes(recording: &Recording, files: usize) -> Vec<String> {
    let mut notes = Vec::new();
    let old = recording.of(Event::Old).count() as u64;
    if old > 0 {
        let looks = recording.search_times().len() as u64;
        let looks = counted(looks, "time");
        notes.push(format!(
            "live objects were tracked by the JVM (jdk.OldObjectSample) and recorded {looks}"
        ));
        if old >= MANY_OLD {
            notes.push("the JVM's list of tracked objects may have been full, so objects that were allocated late may be missing".to_owned());
        }
        if recording.lacks_sizes {
            notes.push(
                "the JVM does not record the sizes of old objects: the bytes are lower bounds"
                    .to_owned(),
            );
        }
    } else if recording.of(Event::Live).next().is_some() {
        notes.push(
            "live objects: async-profiler tracked at most 1,024 samples, and recorded those that were alive at the end"
                .to_owned(),
        );
        if recording.of(Event::Live).count() as u64 >= MOST_LIVE {
            notes.push(LIVE_TABLE_FULL.to_owned());
        }
    } else {
        notes.push("no live objects are recorded".to_owned());
    }
    if recording.repeated > 0 {
        let chunks = counted(recording.repeated, "chunk");
        notes.push(format!(
            "{chunks} occur in two recordings and are counted once"
        ));
    }
    if recording.is_partial() {
        let all = recording.damage.len() as u64 + recording.more_damage;
        let places = counted(all, "damaged place");
        let of = counted(files as u64, "recording");
        notes.push(format!("{places} in {of} cannot be read and were skipped"));
    }
    notes
}

#[cfg(test)]
mod tests {
    use heapdiff_jfr::Sample;

    use super::*;

    #[test]
    fn a_full_table_of_live_objects_is_noted() {
        let notes = |count: u64| {
            let sample = |_| Sample {
                event: Event::Live,
                time_ns: 5,
                allocated_ns: 3,
                class: NameId(0),
                stack: StackId(0),
                thread: NameId(0),
                size: 16,
                weight: 16,
                elements: None,
                chain: heapdiff_jfr::ChainId(0),
            };
            let mut recording = Recording::default();
            recording.samples = (0..count).map(sample).collect();
            notes(&recording, 1)
        };
        let is_full = |notes: Vec<String>| notes.iter().any(|note| note == LIVE_TABLE_FULL);
        assert!(is_full(notes(1024)));
        assert!(!is_full(notes(1023)));
    }
}
