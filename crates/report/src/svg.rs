//! A differential flame graph, by inferno: width is what is alive in the last dump, colour is growth.

use std::io::{self, Write};

use inferno::flamegraph::{self, Options};

use crate::collapsed::{both, live};
use crate::printable::printable;
use crate::stacks::Stacks;

/// Writes the flame graph of one dump, or of what changed from the first to the last.
///
/// # Errors
/// When the stream fails; `InvalidInput` when nothing is alive in the last dump.
pub fn render(
    stacks: &Stacks,
    dumps: &[String],
    warnings: &[String],
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut options = Options::default();
    let names: Vec<_> = dumps.iter().map(|d| printable(d)).collect();
    options.title = "Live bytes by the stack that allocated them".to_owned();
    options.subtitle = Some(match &names[..] {
        [one] => one.to_string(),
        _ => format!("{}: red grew, blue shrank", names.join(" to ")),
    });
    options.count_name = "bytes".to_owned();
    options.notes = "Estimated from allocation samples; the last frame is the class.".to_owned();
    if let Some(subtitle) = &mut options.subtitle {
        for warning in warnings {
            *subtitle += &format!("; warning: {}", printable(warning));
        }
    }
    // Without this, inferno chooses colours at random.
    options.deterministic = true;
    options.no_sort = true;
    options.font_type = "monospace".into();
    let alive = stacks.lines.iter().filter(|l| l.after.bytes > 0);
    let line = |l| match dumps.len() {
        1 => live(stacks, l),
        _ => both(stacks, l),
    };
    let mut lines: Vec<String> = alive.map(line).collect();
    if lines.is_empty() {
        let why = "no sampled object that is in focus is alive in the last dump";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    // inferno merges neighbours only if lines are in this order.
    lines.sort_unstable();
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), out)
        .map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stacks::Names;
    use crate::tests::allocated;

    #[test]
    fn names_cannot_get_out() {
        let hostile = "x.</title><script>alert(1)</script>\"'&.f";
        let all = allocated(&[(hostile, "<b>", [1, 5]), ("a.Main.main", "X", [9, 3])]);
        let stacks = Stacks::new(&all, None, Names::Functions);
        let rendered = |count: usize| {
            let mut out = Vec::new();
            let dumps = ["a.hprof".to_owned(), "<b>".to_owned()];
            render(&stacks, &dumps[..count], &["<b>".to_owned()], &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let svg = rendered(2);
        assert!(!svg.contains("<script>alert"), "{svg}");
        assert!(svg.contains("&lt;script&gt;alert(1)"), "{svg}");
        assert!(!svg.contains("<b>"));
        assert_eq!(rendered(1), rendered(1), "the same on every run");
        let empty = render(&Stacks::default(), &[], &[], &mut Vec::new());
        assert!(empty.is_err());
    }
}
