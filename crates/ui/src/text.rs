//! Names out of a trace, as far as they are shown. The page sets them as text and nothing else.

use heapdiff_diff::frame_text;
use heapdiff_trace::read::Frame;
use heapdiff_trace::{Trace, TraceError};

/// The most letters that are shown of one name.
pub(crate) const MOST_LETTERS: usize = 400;
/// The most frames of one stack. The agent's own limit is lower, and the stacks of a damaged trace may be circular.
const MOST_FRAMES: usize = 512;

/// The part of a name that is shown.
pub(crate) fn cut(name: &str) -> &str {
    let end = name.char_indices().nth(MOST_LETTERS);
    end.map_or(name, |(end, _)| name.get(..end).unwrap_or(name))
}

/// A frame as reports show it.
pub(crate) fn frame_of(frame: &Frame) -> String {
    let (class, method) = (cut(&frame.class), cut(&frame.method));
    frame_text(class, method, frame.file.as_deref().map(cut), frame.line)
}

/// The frames of a stack, the innermost first.
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
