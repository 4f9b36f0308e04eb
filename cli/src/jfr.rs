//! Opens and describes JFR recordings for all commands.

use std::io;
use std::path::Path;

use heapdiff_diff::frame_text;
use heapdiff_jfr::{Frame, JfrError, Recording, StackId};
use heapdiff_units::counted;

use crate::failure::{Failure, Result, system_message};
use crate::job::Setup;
use crate::mapping::originals;

/// True if a file is a JFR recording. If the file cannot be read, returns false: the code that opens it next reports
/// the error.
pub(crate) fn is_recording(path: &Path) -> bool {
    heapdiff_jfr::is_recording(path).unwrap_or(false)
}

/// Reads a recording and applies the `--mapping` to its names.
pub(crate) fn open(setup: &Setup, path: &Path) -> Result<Recording> {
    let mut recording = Recording::open(path).map_err(|e| failure(path, &e))?;
    if let Some(names) = originals(setup.analysis.mapping.as_ref()) {
        recording.rename(&*names);
    }
    Ok(recording)
}

pub(crate) fn failure(path: &Path, error: &JfrError) -> Failure {
    let why = match error {
        JfrError::Io(e) if e.kind() == io::ErrorKind::NotFound => system_message(e),
        other => other.to_string(),
    };
    Failure::bad_input(format!("{}: {why}", path.display()))
}

/// Returns warnings about damage in a recording.
pub(crate) fn warnings(recording: &Recording) -> Vec<String> {
    let mut warnings: Vec<String> = recording.damage.iter().map(ToString::to_string).collect();
    if recording.more_damage > 0 {
        let more = counted(recording.more_damage, "more place");
        warnings.push(format!("{more} cannot be read"));
    }
    warnings
}

/// Returns a frame as reports show it.
pub(crate) fn frame(recording: &Recording, frame: &Frame) -> String {
    let names = &recording.names;
    let (class, method) = (names.text(frame.class), names.text(frame.method));
    frame_text(class, method, None, Some(frame.line.into()))
}

/// Returns the frames of a stack, innermost first. A truncated stack ends with `...`.
pub(crate) fn frames(recording: &Recording, stack: StackId, texts: &[String]) -> Vec<String> {
    let stack = recording.names.stack(stack);
    let named = stack.frames.iter().filter_map(|&f| texts.get(f as usize));
    let mut frames: Vec<String> = named.cloned().collect();
    if stack.is_cut {
        frames.push("...".to_owned());
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_are_not_listed_are_counted() {
        let mut recording = Recording::default();
        let damage = |recording: &Recording| warnings(recording).join("; ");
        assert!(!damage(&recording).contains("that cannot be read"));
        recording.more_damage = 3;
        assert_eq!(damage(&recording), "3 more places cannot be read");
    }
}
