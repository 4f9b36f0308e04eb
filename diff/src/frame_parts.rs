//! Splits a frame of a report into the parts from which [`crate::frame_text`] built it.

/// The parts of a frame such as `com.acme.Foo.add(Foo.java:42)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameParts<'a> {
    /// Class and method.
    pub function: &'a str,
    /// The source file, or `Native Method`.
    pub file: Option<&'a str>,
    /// The line in the file.
    pub line: Option<u32>,
}

impl<'a> FrameParts<'a> {
    /// Splits the text of a frame. A suffix in parentheses after a space, as in `Foo.add (lambda)`, is not a source
    /// file, and stays with the name.
    #[must_use]
    pub fn parse(text: &'a str) -> Self {
        let whole = Self {
            function: text,
            file: None,
            line: None,
        };
        let Some(open) = text.strip_suffix(')').and_then(|t| t.rfind('(')) else {
            return whole;
        };
        let (function, place) = (&text[..open], &text[open + 1..text.len() - 1]);
        if function.is_empty() || function.ends_with(' ') {
            return whole;
        }
        if let Some(line) = place.strip_prefix("line ")
            && let Ok(line) = line.parse()
        {
            // The file is unknown.
            return Self {
                function,
                file: None,
                line: Some(line),
            };
        }
        let line = place
            .rsplit_once(':')
            .and_then(|(file, line)| Some((file, line.parse().ok()?)));
        Self {
            function,
            file: Some(line.map_or(place, |l| l.0)),
            line: line.map(|l| l.1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_parsed() {
        let parts = |text| {
            let FrameParts {
                function,
                file,
                line,
            } = FrameParts::parse(text);
            (function, file, line)
        };
        assert_eq!(
            parts("com.acme.Foo.add(Foo.java:42)"),
            ("com.acme.Foo.add", Some("Foo.java"), Some(42))
        );
        assert_eq!(
            parts("a.B.c (lambda)(B.java)"),
            ("a.B.c (lambda)", Some("B.java"), None)
        );
        assert_eq!(
            parts("a.B.c(Native Method)"),
            ("a.B.c", Some("Native Method"), None)
        );
        for whole in [
            "a.B.c (lambda)",
            "(unknown method)",
            "(proxy).close",
            "",
            ")",
            "a:7",
        ] {
            assert_eq!(parts(whole), (whole, None, None));
        }
    }
}
