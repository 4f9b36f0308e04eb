//! A flame graph as SVG, drawn by inferno. Widths are live or allocated bytes. If two dumps are compared, colours show
//! the growth.

use std::io::{self, Write};

use inferno::flamegraph::{self, Options};
use regex::Regex;

use crate::collapsed::{live, two_dump_line};
use crate::printable::printable;
use crate::stacks::Stacks;

/// The meaning of the widths of frames in a flame graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measured {
    /// Live bytes, estimated from samples.
    Estimated,
    /// Live bytes of a dump that records the stack of each object.
    Exact,
    /// Live bytes of the objects that the JVM tracked for a recording.
    Followed,
    /// Allocated bytes, alive or not, estimated from samples.
    Allocated,
}

impl Measured {
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Allocated => "Allocated bytes by stack, alive or not",
            _ => "Live bytes by the stack that allocated them",
        }
    }

    /// Returns a sentence that says where the figures come from.
    pub(crate) const fn basis(self) -> &'static str {
        match self {
            Self::Estimated | Self::Allocated => "Estimated from allocation samples",
            Self::Exact => "Exact: the dump records the stack of each object",
            Self::Followed => "Only objects that the JVM tracked",
        }
    }

    /// Returns the error for a flame graph without any stack to draw.
    pub(crate) fn nothing_to_draw(self, focus: Option<&Regex>) -> io::Error {
        let focus = focus.map(|f| printable(f.as_str()));
        let why = match (self, focus) {
            (Self::Allocated, None) => "no allocation was sampled".to_owned(),
            (_, None) => "no sampled object is alive".to_owned(),
            (Self::Allocated, Some(focus)) => {
                format!(
                    "no allocation was sampled in a stack with a frame that matches --focus {focus}"
                )
            }
            (_, Some(focus)) => {
                format!("no live object has a stack with a frame that matches --focus {focus}")
            }
        };
        io::Error::new(io::ErrorKind::InvalidInput, why)
    }
}

/// Writes the flame graph of one dump, or of the change from the first dump to the last.
///
/// # Errors
/// Returns an error if the stream fails, or `InvalidInput` if there is nothing to draw: no object is alive, or no stack
/// matches the focus.
pub fn render(
    stacks: &Stacks,
    measured: Measured,
    focus: Option<&Regex>,
    dumps: &[String],
    warnings: &[String],
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut options = Options::default();
    let names: Vec<_> = dumps.iter().map(|d| printable(d)).collect();
    options.title = measured.title().to_owned();
    options.subtitle = Some(match &names[..] {
        [one] => one.to_string(),
        _ => format!("{}: red grew, blue shrank", names.join(" to ")),
    });
    options.count_name = "bytes".to_owned();
    let class = if stacks.reversed {
        "each stack begins with the class, followed by the allocating frame and its callers."
    } else {
        "the last frame of each stack is the class of the objects."
    };
    options.notes = format!("{}; {class}", measured.basis());
    if let Some(subtitle) = &mut options.subtitle {
        for warning in warnings {
            *subtitle += &format!("; warning: {}", printable(warning));
        }
    }
    // Without this option, inferno would choose colours at random.
    options.deterministic = true;
    // inferno merges only adjacent lines. By default it sorts the lines, so that `B$1` and `B (lambda)` come between
    // `B` and the frames that `B` calls. Then `B` would be drawn twice. With this option, inferno does not sort. It
    // reads the lines from the last to the first.
    options.flame_chart = true;
    options.font_type = "monospace".into();
    let alive = stacks.lines.iter().filter(|l| l.after.bytes > 0);
    let line = |l| match dumps.len() {
        1 => live(stacks, l),
        _ => two_dump_line(stacks, l),
    };
    let lines: Vec<String> = alive.rev().map(line).collect();
    if lines.is_empty() {
        return Err(measured.nothing_to_draw(focus));
    }
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), out)
        .map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stacks::Names;
    use crate::tests::allocated;

    #[test]
    fn names_are_escaped() {
        let hostile = "x.</title><script>alert(1)</script>\"'&.f";
        let all = allocated(&[(hostile, "<b>", [1, 5]), ("a.Main.main", "X", [9, 3])]);
        let stacks = Stacks::new(&all, None, Names::Functions);
        let rendered = |count: usize| {
            let mut out = Vec::new();
            let dumps = ["a.hprof".to_owned(), "<b>".to_owned()];
            let warnings = ["<b>".to_owned()];
            let measured = Measured::Estimated;
            render(
                &stacks,
                measured,
                None,
                &dumps[..count],
                &warnings,
                &mut out,
            )
            .unwrap();
            String::from_utf8(out).unwrap()
        };
        let svg = rendered(2);
        assert!(!svg.contains("<script>alert"), "{svg}");
        assert!(svg.contains("&lt;script&gt;alert(1)"), "{svg}");
        assert!(!svg.contains("<b>"));
        assert_eq!(rendered(1), rendered(1), "the same on every run");
    }

    #[test]
    fn the_svg_explains_its_widths() {
        let all = allocated(&[("a.Main.main", "X", [1, 5])]);
        let stacks = Stacks::new(&all, None, Names::Functions);
        let drawn = |measured, count: usize| {
            let mut out = Vec::new();
            let dumps = ["a.hprof".to_owned(), "b.hprof".to_owned()];
            render(&stacks, measured, None, &dumps[..count], &[], &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let sentences = [
            "Live bytes by the stack that allocated them",
            "Allocated bytes by stack, alive or not",
            "Estimated from allocation samples; the last frame of each stack is the class of the objects.",
            "Exact: the dump records the stack of each object; the last frame of each stack is the class of the objects.",
            "Only objects that the JVM tracked; the last frame of each stack is the class of the objects.",
            "a.hprof to b.hprof: red grew, blue shrank",
        ];
        for (measured, count, said) in [
            (
                Measured::Estimated,
                2,
                [true, false, true, false, false, true],
            ),
            (Measured::Exact, 1, [true, false, false, true, false, false]),
            (
                Measured::Followed,
                1,
                [true, false, false, false, true, false],
            ),
            (
                Measured::Allocated,
                1,
                [false, true, true, false, false, false],
            ),
        ] {
            let svg = drawn(measured, count);
            assert_eq!(
                sentences.map(|s| svg.contains(s)),
                said,
                "{measured:?}: {svg}"
            );
        }
    }

    #[test]
    fn the_order_of_frames_is_stated() {
        let all = allocated(&[("a.Main.main b.B.b", "X", [1, 5])]);
        let drawn = |stacks: &Stacks| {
            let mut out = Vec::new();
            render(
                stacks,
                Measured::Allocated,
                None,
                &["a".to_owned()],
                &[],
                &mut out,
            )
            .unwrap();
            String::from_utf8(out).unwrap()
        };
        let stacks = Stacks::new(&all, None, Names::Functions);
        let callees =
            "each stack begins with the class, followed by the allocating frame and its callers.";
        let class = "the last frame of each stack is the class of the objects.";
        let svg = drawn(&stacks);
        assert!(svg.contains(class) && !svg.contains(callees), "{svg}");
        let svg = drawn(&stacks.reversed());
        assert!(svg.contains(callees) && !svg.contains(class), "{svg}");
    }

    #[test]
    fn an_empty_graph_is_refused() {
        let focus = Regex::new("a.b").unwrap();
        let refused = |measured, focus| {
            let empty = Stacks::default();
            let refused = render(&empty, measured, focus, &[], &[], &mut Vec::new());
            refused.unwrap_err().to_string()
        };
        for (measured, focus, said) in [
            (Measured::Estimated, None, "no sampled object is alive"),
            (Measured::Allocated, None, "no allocation was sampled"),
            (
                Measured::Exact,
                Some(&focus),
                "no live object has a stack with a frame that matches --focus a.b",
            ),
            (
                Measured::Allocated,
                Some(&focus),
                "no allocation was sampled in a stack with a frame that matches --focus a.b",
            ),
        ] {
            assert_eq!(refused(measured, focus), said);
        }
    }

    #[test]
    fn each_frame_is_drawn_once() {
        // Sorted by bytes, the stacks that end with `b.B` are not adjacent.
        let all = allocated(&[
            ("b.B", "X", [0, 3]),
            ("a.A b.B", "X", [0, 5]),
            ("a.A b.B$1", "X", [0, 7]),
            ("a.A b.B (lambda)", "X", [0, 11]),
            ("c.C b.B", "X", [0, 13]),
        ]);
        let drawn = |stacks: &Stacks| {
            let mut out = Vec::new();
            let of = ["a".to_owned()];
            render(stacks, Measured::Allocated, None, &of, &[], &mut out).unwrap();
            let svg = String::from_utf8(out).unwrap();
            let titles = svg.split("<title>").skip(1).map(|rest| {
                let (title, _) = rest.split_once(" bytes").unwrap();
                title.to_owned()
            });
            let mut titles: Vec<String> = titles.collect();
            titles.sort();
            titles
        };
        let stacks = Stacks::new(&all, None, Names::Functions);
        let callers = [
            "X (11",
            "X (13",
            "X (3",
            "X (5",
            "X (7",
            "a.A (23",
            "all (39",
            "b.B (13",
            "b.B (3",
            "b.B (5",
            "b.B (lambda) (11",
            "b.B$1 (7",
            "c.C (13",
        ];
        assert_eq!(drawn(&stacks), callers);
        let callees = [
            "X (39",
            "a.A (11",
            "a.A (5",
            "a.A (7",
            "all (39",
            "b.B (21",
            "b.B (lambda) (11",
            "b.B$1 (7",
            "c.C (13",
        ];
        assert_eq!(drawn(&stacks.reversed()), callees);
    }
}
