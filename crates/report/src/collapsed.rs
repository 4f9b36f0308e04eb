//! Collapsed stacks, as `flamegraph.pl`, inferno, speedscope and most profilers' viewers read them:
//! `root;caller;leaf;class N`, one line a stack, root first, the allocated class as the last frame; reversed, it comes first.

use std::io::{self, Write};

use crate::stacks::{StackLine, Stacks, collapsible};

/// What the figures of a line are, always in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Columns {
    /// Net growth. The format knows no negative figures, so stacks that shrank or stayed have no line.
    #[default]
    Growth,
    /// The first dump's live bytes and the last one's, as `difffolded.pl` writes them: nothing is
    /// left out, and the reader of the lines can tell what shrank.
    Both,
}

/// Writes collapsed stacks.
///
/// # Errors
/// When the stream fails.
pub fn render(stacks: &Stacks, columns: Columns, out: &mut dyn Write) -> io::Result<()> {
    for line in &stacks.lines {
        match columns {
            Columns::Growth if line.growth() <= 0 => {}
            Columns::Growth => writeln!(out, "{} {}", text(stacks, line), line.growth())?,
            Columns::Both if line.before.bytes == 0 && line.after.bytes == 0 => {}
            Columns::Both => writeln!(out, "{}", both(stacks, line))?,
        }
    }
    Ok(())
}

/// One stack with the figures of both dumps.
pub(crate) fn both(stacks: &Stacks, line: &StackLine) -> String {
    let text = text(stacks, line);
    format!("{text} {} {}", line.before.bytes, line.after.bytes)
}

/// One stack with what is alive in the last dump.
pub(crate) fn live(stacks: &Stacks, line: &StackLine) -> String {
    format!("{} {}", text(stacks, line), line.after.bytes)
}

fn text(stacks: &Stacks, line: &StackLine) -> String {
    let steps = stacks
        .steps(line)
        .map(|step| collapsible(stacks.text(step)));
    steps.collect::<Vec<_>>().join(";")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stacks::Names;
    use crate::tests::allocated;

    #[test]
    fn lines_are_whole_whatever_names_hold() {
        let all = allocated(&[
            (
                "a.Main.main(M.java:1) a.Foo.add (lambda)(F.java:3)",
                "a;b\nc",
                [1, 5],
            ),
            ("a.Main.main", "Gone", [9, 1]),
        ]);
        let stacks = Stacks::new(&all, None, Names::Functions);
        let rendered = |columns| {
            let mut out = Vec::new();
            render(&stacks, columns, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let first = "a.Main.main;a.Foo.add (lambda);a:b\u{fffd}c";
        assert_eq!(rendered(Columns::Growth), format!("{first} 4\n"));
        assert_eq!(
            rendered(Columns::Both),
            format!("a.Main.main;Gone 9 1\n{first} 1 5\n")
        );
    }
}
