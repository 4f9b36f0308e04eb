//! Flight recordings: opened, and what their samples stand for.

use std::io;
use std::path::Path;

use heapdiff_diff::frame_text;
use heapdiff_jfr::{Event, Frame, JfrError, Recording, Sample, StackId};
use heapdiff_sites::{Sampling, Strategy, Weight};
use heapdiff_units::counted;

use crate::failure::{Exit, Failure, Result, plain};

/// Whether a file is a flight recording. What cannot be read is none: who reads it as what it should be tells why.
pub(crate) fn is_recording(path: &Path) -> bool {
    heapdiff_jfr::is_recording(path).unwrap_or(false)
}

/// Reads a recording.
pub(crate) fn open(path: &Path) -> Result<Recording> {
    Recording::open(path).map_err(|e| failure(path, &e))
}

pub(crate) fn failure(path: &Path, error: &JfrError) -> Failure {
    let why = match error {
        JfrError::Io(e) if e.kind() == io::ErrorKind::NotFound => plain(e),
        other => other.to_string(),
    };
    Failure {
        exit: Exit::Input,
        message: format!("{}: {why}", path.display()),
        hint: None,
    }
}

/// What is damaged, in words.
pub(crate) fn warnings(recording: &Recording) -> Vec<String> {
    let mut warnings: Vec<String> = recording.damage.iter().map(ToString::to_string).collect();
    if recording.more_damage > 0 {
        let more = counted(recording.more_damage, "more place");
        warnings.push(format!("{more} that cannot be read"));
    }
    warnings
}

/// The JVM in a line; none if the recording does not tell.
pub(crate) fn jvm(recording: &Recording) -> Option<String> {
    let jvm = recording.jvm.as_ref()?;
    // The version repeats the name, and has who built it.
    let version = jvm.version.split(" for ").next().unwrap_or_default();
    let number = version
        .split_once('(')
        .map_or(version, |(_, rest)| rest.split(')').next().unwrap_or(rest));
    Some(format!("{} {number}", jvm.name))
}

/// What a sample stands for.
///
/// Variances: those of the samples of an interval are known (`heapdiff_sites`). The JVM's own are drawn in a way that
/// is not told; they are taken for independent ones whose number is Poisson-distributed, so that the
/// variance is the sum of the squares of what they stand for.
pub(crate) fn weight(recording: &Recording, sample: &Sample) -> Weight {
    let size = sample.size as f64;
    let of = |objects: f64, bytes: f64| Weight {
        objects,
        bytes,
        objects_variance: objects * objects,
        bytes_variance: bytes * bytes,
    };
    let own = match (sample.event, recording.interval) {
        (Event::Live | Event::InBuffer | Event::Outside, Some(interval)) => Sampling {
            strategy: Strategy::Bytes,
            interval,
            rate: 0,
        }
        .weight(sample.size),
        _ => None,
    };
    let weight = sample.weight as f64;
    own.unwrap_or_else(|| match sample.event {
        Event::Old | Event::Live => of(1.0, size),
        // How large the object was is not told.
        Event::Allocation => of(1.0, weight),
        Event::InBuffer => of((weight / size.max(8.0)).max(1.0), weight),
        // Each of them is recorded.
        Event::Outside => Weight {
            objects_variance: 0.0,
            bytes_variance: 0.0,
            ..of(1.0, size)
        },
    })
}

/// A frame as reports show it.
pub(crate) fn frame(recording: &Recording, frame: &Frame) -> String {
    let names = &recording.names;
    let (class, method) = (names.text(frame.class), names.text(frame.method));
    frame_text(class, method, None, Some(frame.line.into()))
}

/// A stack's frames, the leaf first; a stack that was cut off ends with `...`.
pub(crate) fn frames(recording: &Recording, stack: StackId, texts: &[String]) -> Vec<String> {
    let stack = recording.names.stack(stack);
    let named = stack.frames.iter().filter_map(|&f| texts.get(f as usize));
    let mut frames: Vec<String> = named.cloned().collect();
    if stack.is_cut {
        frames.push("...".to_owned());
    }
    frames
}
