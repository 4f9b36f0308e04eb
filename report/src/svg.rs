//! A differential flame graph, by inferno: width is what is alive in the last dump, colour is growth.

use std::io::{self, Write};

use inferno::flamegraph::{self, Options};

use crate::collapsed::both;
use crate::stacks::Stacks;

/// Writes the flame graph. `dumps` names the two that are compared.
///
/// # Errors
/// When the stream fails; `InvalidInput` when nothing is alive in the last dump.
pub fn render(stacks: &Stacks, dumps: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut options = Options::default();
    options.title = "Live bytes by the stack that allocated them".to_owned();
    options.subtitle = Some(format!("{dumps}: red grew, blue shrank"));
    options.count_name = "bytes".to_owned();
    options.notes = "Estimated from allocation samples; the last frame is the class.".to_owned();
    options.no_sort = true;
    // Web fonts would be a network request.
    options.font_type = "monospace".into();
    let alive = stacks.lines.iter().filter(|l| l.after.bytes > 0);
    let mut lines: Vec<String> = alive.map(|l| both(stacks, l)).collect();
    if lines.is_empty() {
        let why = "no sampled object is alive in the last dump";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    // In the order that inferno merges neighbours in.
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
        let rendered = || {
            let mut out = Vec::new();
            render(&stacks, "a.hprof to <b>", &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let svg = rendered();
        assert!(!svg.contains("<script>alert"), "{svg}");
        assert!(svg.contains("&lt;script&gt;alert(1)"), "{svg}");
        assert!(!svg.contains("<b>"));
        assert_eq!(svg, rendered(), "the same on every run");
        let empty = render(&Stacks::default(), "", &mut Vec::new());
        assert!(empty.is_err());
    }
}
