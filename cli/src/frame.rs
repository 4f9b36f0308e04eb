//! Parses frames that a user copies from a report.

use heapdiff_diff::FrameParts;
use regex::Regex;

/// Removes the space between the method and the file of a frame. The titles of suspects in reports print such a space.
pub(crate) fn remove_file_space(frame: &str) -> String {
    match frame.rsplit_once(" (") {
        Some((method, place)) if !place.contains('(') && place.contains('.') => {
            format!("{method}({place}")
        }
        _ => frame.to_owned(),
    }
}

/// Parses a pattern for frames and classes. If the text is a frame or nested class that was copied from a report, the
/// pattern matches this text literally: its parentheses and `$` do not have their usual meaning in a regular
/// expression.
///
/// # Errors
///
/// Returns an error if the text is neither a frame nor a regular expression.
pub(crate) fn pattern(text: &str) -> Result<Regex, String> {
    let frame = remove_file_space(text);
    if is_literal(&frame) {
        heapdiff_diff::pattern(&regex::escape(&frame))
    } else {
        heapdiff_diff::pattern(text)
    }
}

fn is_literal(frame: &str) -> bool {
    let is_plain = |text: &str| {
        let text = text.replace(" (lambda)", "").replace(" (proxy)", "");
        text.chars()
            .all(|c| c.is_alphanumeric() || "._$<> -".contains(c))
    };
    let parts = FrameParts::parse(frame);
    let is_place = |file: &str| file == "Native Method" || file.contains('.') && is_plain(file);
    let has_place =
        parts.line.is_some() && parts.file.is_none_or(is_plain) || parts.file.is_some_and(is_place);
    let is_nested = !frame.ends_with('$') && frame.contains('$');
    (has_place || is_nested && parts.function == frame) && is_plain(parts.function)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copied_frame_matches_itself() {
        for (text, frame) in [
            ("a.B.run(B.java:42)", "a.B.run(B.java:42)"),
            ("a.B.run (B.java:42)", "a.B.run(B.java:42)"),
            ("a.B$C.<init>(B.java:7)", "a.B$C.<init>(B.java:7)"),
            ("a.B.run (lambda)(B.java:42)", "a.B.run (lambda)(B.java:42)"),
            ("a.B.read(Native Method)", "a.B.read(Native Method)"),
            ("a.B.run(line 42)", "a.B.run(line 42)"),
            ("a.B$C.run", "a.B$C.run(B.java:3)"),
            ("a.B$C", "a.B$C"),
            // These strings are regular expressions, not copied frames.
            ("B.run", "a.B.run(B.java:42)"),
            ("run\\(B", "a.B.run(B.java:42)"),
            ("^a\\.(B|C)", "a.C.run(C.java:1)"),
            ("B$", "a.B"),
        ] {
            assert!(pattern(text).unwrap().is_match(frame), "{text}");
        }
        assert!(
            !pattern("a.B.run(B.java:42)")
                .unwrap()
                .is_match("a.B.run(B.java:421)")
        );
        assert!(!pattern("B$").unwrap().is_match("a.B$C"));
        assert_eq!(pattern("(").unwrap_err(), "unclosed group");
    }
}
