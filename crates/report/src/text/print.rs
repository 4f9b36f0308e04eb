//! Prints a document as text with 100 columns.

use std::io::{self, Write};

use heapdiff_diff::sentence::Samples;
use heapdiff_diff::{Frames, Shown};
use heapdiff_units::grouped;

use crate::document::{Block, Column, Document, INDENT, Span, Stack, Table, Tone, WIDTH};
use crate::printable::printable;
use crate::style::Style;

const WARNING: &str = "warning:";
/// Width in columns of the verdict, which comes before the sentences of the report's answer.
const ANSWER: usize = 8;
/// Maximum number of frames of a stack, unless the user requests all.
const FRAMES: usize = 12;
/// Indentation, in columns, of the frames of a numbered stack.
const NUMBER: usize = 5;
/// Width in characters of the gap between two columns of a table.
const GAP: usize = 2;

pub(crate) fn print(document: &Document, style: Style, out: &mut dyn Write) -> io::Result<()> {
    for block in &document.0 {
        self::block(block, style, out)?;
    }
    Ok(())
}

fn block(block: &Block, style: Style, out: &mut dyn Write) -> io::Result<()> {
    match block {
        Block::Gap => writeln!(out),
        Block::Line(spans) => line(spans, style, out),
        Block::Internal(span) if style.shows_internals() => {
            line(std::slice::from_ref(span), style, out)
        }
        Block::Internal(_) => Ok(()),
        Block::Prose(span) => wrapped(&printable(&span.text), WIDTH)
            .iter()
            .try_for_each(|part| writeln!(out, "{}", style.toned(span.tone, part))),
        Block::Answer((verdict, tone), sentences) => {
            let verdict = format!("{:<ANSWER$}", verdict.to_uppercase());
            let mut label = style.toned(*tone, verdict).to_string();
            for sentence in sentences {
                for part in wrapped(&printable(sentence), WIDTH - ANSWER) {
                    writeln!(out, "{label}{part}")?;
                    label = " ".repeat(ANSWER);
                }
            }
            Ok(())
        }
        Block::Warning(warning) => {
            let parts = wrapped(&printable(warning), WIDTH - WARNING.len() - 1);
            let mut parts = with_label(WARNING, &parts);
            parts.try_for_each(|(label, part)| {
                writeln!(out, "{} {part}", style.yellow(format!("{label:<8}")))
            })
        }
        Block::Pair(label, text) => pair(label, text, style, out),
        Block::Reason(label, sentence) => with_label(label, &wrapped(sentence, WIDTH - INDENT))
            .try_for_each(|(label, part)| pair(label, part, style, out)),
        Block::Table(table) => self::table(table, style, out),
        Block::Stack(stack) => self::stack(stack, style, out),
        Block::Frames(label, frames, (verbose, limit)) => {
            let mut lines = frame_lines(style.frames(*verbose, *limit), frames);
            if frames.is_empty() {
                lines.push("(no Java frame)".to_owned());
            }
            with_label(label, &lines).try_for_each(|(label, text)| pair(label, text, style, out))
        }
    }
}

/// Returns each line with its label. The first line has the given label, all other lines have an empty label.
fn with_label<'a>(label: &'a str, lines: &'a [String]) -> impl Iterator<Item = (&'a str, &'a str)> {
    let labels = std::iter::once(label).chain(std::iter::repeat(""));
    labels.zip(lines.iter().map(|line| &**line))
}

fn line(spans: &[Span], style: Style, out: &mut dyn Write) -> io::Result<()> {
    for span in spans {
        write!(out, "{}", painted(span, style))?;
    }
    writeln!(out)
}

fn painted(span: &Span, style: Style) -> String {
    let text = printable(&span.text);
    let text = match span.room {
        Some(room) => style.shorten_to_fit(&text, room),
        None => text,
    };
    style.toned(span.tone, text).to_string()
}

fn pair(label: &str, text: &str, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let text = printable(text);
    let text = style.shorten_to_fit(&text, WIDTH - INDENT);
    writeln!(out, "    {:<8} {text}", style.toned(Tone::Dim, label))
}

/// Prints a stack: a line of figures, and a line for each frame.
fn stack(stack: &Stack, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let Stack {
        number,
        class,
        figures,
        frames,
        threads,
        verbose,
    } = stack;
    let indent = match number {
        Some(number) => {
            write!(out, "{number:>3}  ")?;
            NUMBER
        }
        None => {
            write!(out, "    {:<8} ", style.toned(Tone::Dim, "from"))?;
            INDENT
        }
    };
    let room = WIDTH - indent;
    let left = room.saturating_sub(figures.chars().count() + 2).max(10);
    let class = printable(class);
    writeln!(
        out,
        "{}  {figures}",
        style.toned(Tone::Bold, style.shorten_to_fit(&class, left))
    )?;
    let mut lines = frame_lines(style.frames(*verbose, FRAMES), frames);
    if frames.is_empty() {
        lines.push(Samples::NoStack.to_string());
    }
    if let Some((first, others)) = threads.split_first()
        && (*verbose || first != "main" || !others.is_empty())
    {
        lines.push(thread_phrase(first, others));
    }
    for text in lines {
        let text = printable(&text);
        writeln!(out, "{:indent$}{}", "", style.shorten_to_fit(&text, room))?;
    }
    Ok(())
}

/// Returns a line for each frame that is shown.
fn frame_lines(choice: Frames, frames: &[String]) -> Vec<String> {
    let (shown, more) = choice.of(frames);
    let mut lines: Vec<String> = shown
        .iter()
        .map(|shown| match shown {
            Shown::Frame(frame) => (*frame).to_owned(),
            Shown::Folded(folded) => folded.to_string(),
        })
        .collect();
    if more > 0 {
        let more = grouped(more as u64);
        lines.push(format!("… and {more} more (-v shows all)"));
    }
    lines
}

pub(crate) fn thread_phrase(first: &str, others: &[String]) -> String {
    match others {
        [] => format!("in thread {first}"),
        [second] => format!("in threads {first} and {second}"),
        _ => format!("in threads {first} and {} others", others.len()),
    }
}

/// Prints a table. Figures are aligned to the right. The last column uses the remaining width of the line.
pub(crate) fn table(table: &Table, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let Some(last) = table.columns.len().checked_sub(1) else {
        return Ok(());
    };
    let headings: Vec<String> = table.columns.iter().map(|c| c.0.to_string()).collect();
    let cell = |(i, cell): (usize, &String)| {
        let text = printable(cell);
        match table.columns[i].1 {
            Column::Cut(room) => style.shorten_to_fit(&text, room).into_owned(),
            _ => text.into_owned(),
        }
    };
    let rows = table.rows.iter();
    let rows: Vec<Vec<String>> = rows
        .map(|row| row.iter().enumerate().map(cell).collect())
        .collect();
    let widths: Vec<usize> = (0..last)
        .map(|c| {
            let cells = rows.iter().chain([&headings]);
            let widths = cells.filter_map(|row| Some(row.get(c)?.chars().count()));
            widths.max().unwrap_or(0)
        })
        .collect();
    let used: usize = widths.iter().map(|w| w + GAP).sum::<usize>();
    let room = WIDTH.saturating_sub(used).max(20);
    let line = |cells: &[String]| {
        let mut line = String::new();
        for (i, cell) in cells.iter().enumerate() {
            match (widths.get(i), table.columns[i].1) {
                (Some(&width), Column::Figure) => line += &format!("{cell:>width$}"),
                (Some(&width), _) => line += &format!("{cell:<width$}"),
                (None, _) => line += &style.shorten_to_fit(cell, room),
            }
            if i + 1 < cells.len() {
                line += &" ".repeat(GAP);
            }
        }
        line.truncate(line.trim_end().len());
        line
    };
    writeln!(out, "{}", style.toned(Tone::Dim, line(&headings)))?;
    for row in &rows {
        writeln!(out, "{}", line(row))?;
    }
    Ok(())
}

/// Splits a text at spaces into lines of at most `room` columns. A word with more columns gets a separate line.
fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let used = lines.last().map_or(0, |l| l.chars().count());
        if used > 0 && used + 1 + word.chars().count() > room {
            lines.push(String::new());
        }
        if let Some(last) = lines.last_mut() {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tests::printed;

    #[test]
    fn no_line_is_too_long() {
        let row = vec!["1".into(), "x".repeat(300)];
        let columns = [("n", Column::Figure), ("class", Column::Name)];
        let style = Style::plain().within(WIDTH);
        let text = printed(style, |doc| doc.table(&columns, std::iter::once(row)));
        assert_eq!(text.lines().map(|l| l.chars().count()).max(), Some(WIDTH));
    }

    #[test]
    fn reasons_are_wrapped() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("", 7), [""]);
    }
}
