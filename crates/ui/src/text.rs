//! Names from a trace, truncated for display. The page inserts names only as text, never as HTML.

use heapdiff_diff::frame_text;
use heapdiff_trace::read::Frame;
use heapdiff_trace::{Trace, TraceError};

/// Maximum number of displayed characters of a name.
pub(crate) const MOST_LETTERS: usize = 400;
/// Maximum number of frames of a stack. The agent's limit is lower, but stacks in a damaged trace can be circular.
const MOST_FRAMES: usize = 512;

/// Returns the displayed part of a name.
pub(crate) fn cut(name: &str) -> &str {
    let end = name.char_indices().nth(MOST_LETTERS);
    end.map_or(name, |(end, _)| name.get(..end).unwrap_or(name))
}

/// Formats a frame as in reports.
pub(crate) fn frame_of(frame: &Frame) -> String {
    let (class, method) = (cut(&frame.class), cut(&frame.method));
    frame_text(class, method, frame.file.as_deref().map(cut), frame.line)
}

/// Returns the frames of a stack, the innermost first.
pub(crate) fn stack(trace: &Trace, stack: Option<i64>) -> Result<Vec<String>, TraceError> {
    let mut frames = Vec::new();
    let mut next = stack;
    while let Some(id) = next
        && frames.len() < MOST_FRAMES
    {
        let Some((innermost, caller)) = trace.frames(id)? else {
            break;
        };
        frames.extend(innermost.iter().map(frame_of));
        next = caller;
    }
    frames.truncate(MOST_FRAMES);
    Ok(frames)
}

#[cfg(test)]
mod tests {
    use super::{MOST_LETTERS, cut};

    #[test]
    fn names_are_cut_between_letters() {
        assert_eq!(cut("short"), "short");
        let long = "\u{e9}".repeat(MOST_LETTERS + 1);
        assert_eq!(cut(&long).chars().count(), MOST_LETTERS);
    }
}
