//! Writes collapsed stacks, a text format that `flamegraph.pl`, inferno, speedscope and most profile viewers read.
//!
//! Each line is one stack: `root;caller;leaf;class N`. The last frame is the allocated class. Reversed stacks begin
//! with the class.

use std::io::{self, Write};

use crate::stacks::{StackLine, Stacks, collapsible};

/// The figures at the end of each line, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Columns {
    /// Growth. The format has no negative figures, so stacks that did not grow have no line.
    #[default]
    Growth,
    /// Live bytes in the first dump and in the last dump, as `difffolded.pl` writes them. Stacks that shrank have a
    /// line, too.
    Both,
}

/// Writes collapsed stacks.
///
/// # Errors
/// Returns an error if the stream fails.
pub fn render(stacks: &Stacks, columns: Columns, out: &mut dyn Write) -> io::Result<()> {
    for line in &stacks.lines {
        match columns {
            Columns::Growth if line.growth() <= 0 => {}
            Columns::Growth => writeln!(out, "{} {}", text(stacks, line), line.growth())?,
            Columns::Both if line.before.bytes == 0 && line.after.bytes == 0 => {}
            Columns::Both => writeln!(out, "{}", two_dump_line(stacks, line))?,
        }
    }
    Ok(())
}

/// Returns the line of a stack, with its live bytes in both dumps.
pub(crate) fn two_dump_line(stacks: &Stacks, line: &StackLine) -> String {
    let text = text(stacks, line);
    format!("{text} {} {}", line.before.bytes, line.after.bytes)
}

/// Returns the line of a stack, with its live bytes in the last dump.
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
    fn names_cannot_break_lines() {
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
