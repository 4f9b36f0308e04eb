//! The content of a report as a list of blocks in reading order, without a layout.
//!
//! The code that builds a document decides which data is shown. The printer of a format decides how the data is shown.
//! For example, `text` wraps and aligns the blocks.

use std::borrow::Cow;
use std::fmt::Display;

use heapdiff_units::counted;

/// Width of the text layout, in columns.
pub(crate) const WIDTH: usize = 100;
/// Number of columns for the label in front of a text.
pub(crate) const INDENT: usize = 13;

/// The kind of a [`Span`], such as a heading or a warning. The printer of each format decides how to show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    /// A heading, or the name of the thing that a line describes.
    Bold,
    /// A text that is less important.
    Dim,
    /// An error, or a leak.
    Red,
    /// A warning, or growth.
    Yellow,
}

/// A part of a line.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) tone: Tone,
    pub(crate) text: String,
    /// Maximum number of columns. The middle of a longer text is removed. `None` if the text is never cut.
    pub(crate) room: Option<usize>,
}

impl Span {
    pub(crate) fn new(tone: Tone, text: impl Display) -> Self {
        let text = text.to_string();
        Self {
            tone,
            text,
            room: None,
        }
    }

    /// Limits the width of the span to `room` terminal columns.
    pub(crate) fn within(self, room: usize) -> Self {
        Self {
            room: Some(room),
            ..self
        }
    }
}

impl<T: Display> From<T> for Span {
    fn from(text: T) -> Self {
        Self::new(Tone::Plain, text)
    }
}

/// Returns a span whose text is less important than the rest of the report ([`Tone::Dim`]).
pub(crate) fn dim(text: impl Display) -> Span {
    Span::new(Tone::Dim, text)
}

/// Returns a bold span: the name of the thing that a line describes.
pub(crate) fn bold(text: impl Display) -> Span {
    Span::new(Tone::Bold, text)
}

/// Returns a yellow span: a text that warns.
pub(crate) fn yellow(text: impl Display) -> Span {
    Span::new(Tone::Yellow, text)
}

/// The kind of text in a column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Figure,
    /// A name of a class or field.
    Name,
    /// A sentence that contains names.
    Text,
    /// A text that contains names. It is cut to the given number of characters.
    Cut(usize),
    /// A word from a fixed set, such as a verdict. It contains no names.
    Word,
}

/// A table: rows under headings.
#[derive(Debug)]
pub(crate) struct Table {
    /// Empty if the table has no title of its own.
    pub(crate) title: &'static str,
    pub(crate) columns: Vec<(Cow<'static, str>, Column)>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(
        columns: &[(&'static str, Column)],
        rows: impl Iterator<Item = Vec<String>>,
    ) -> Self {
        let columns = columns.iter().map(|&(name, kind)| (name.into(), kind));
        Self {
            title: "",
            columns: columns.collect(),
            rows: rows.collect(),
        }
    }

    pub(crate) fn titled(self, title: &'static str) -> Self {
        Self { title, ..self }
    }
}

/// An allocation stack with its figures.
#[derive(Debug)]
pub(crate) struct Stack {
    /// The number of the stack in a list of stacks. A stack of a suspect has no number.
    pub(crate) number: Option<u64>,
    pub(crate) class: String,
    pub(crate) figures: String,
    /// Frames of the stack, innermost first.
    pub(crate) frames: Vec<String>,
    pub(crate) threads: Vec<String>,
    /// True if all frames are shown.
    pub(crate) verbose: bool,
}

/// A part of a document.
#[derive(Debug)]
pub(crate) enum Block {
    /// Empty space between two parts of the document.
    Gap,
    /// One line.
    Line(Vec<Span>),
    /// A line that is shown only if the user requests internals (`-v`).
    Internal(Span),
    /// Sentences that contain no names.
    Prose(Span),
    /// A verdict, with the sentences that answer the user's question.
    Answer((&'static str, Tone), Vec<String>),
    /// A warning that readers need before they rely on the figures.
    Warning(String),
    /// A label and a text, both on one line.
    Pair(&'static str, String),
    /// A label and a sentence, which may take several lines.
    Reason(&'static str, String),
    Table(Table),
    Stack(Stack),
    /// A label, the frames of a stack, and the choice of frames to show. The choice `(true, _)` means all frames. The
    /// choice `(false, n)` means at most `n` frames, unless the user requests all.
    Frames(String, Vec<String>, (bool, usize)),
}

/// Returns the sentence with the number of items that are not listed; `None` if the number is 0. `what` is the name of
/// one item.
pub(crate) fn unlisted_count(number: u64, what: &str) -> Option<String> {
    let rest = (number > 0).then(|| counted(number, what))?;
    Some(format!("and {rest} (--top N shows more)"))
}

/// A list of blocks.
#[derive(Debug, Default)]
pub(crate) struct Document(pub(crate) Vec<Block>);

impl Document {
    pub(crate) fn gap(&mut self) {
        self.0.push(Block::Gap);
    }

    /// Adds a line. If the line does not fit, its middle is removed.
    pub(crate) fn one_line(&mut self, text: impl Into<Span>) {
        self.line(text.into().within(WIDTH));
    }

    /// Adds a line that is never cut.
    pub(crate) fn line(&mut self, text: impl Into<Span>) {
        self.0.push(Block::Line(vec![text.into()]));
    }

    /// Adds a line of several parts.
    pub(crate) fn spans(&mut self, spans: impl Into<Vec<Span>>) {
        self.0.push(Block::Line(spans.into()));
    }

    /// Adds a line whose text is less important than the rest of the report ([`Tone::Dim`]).
    pub(crate) fn note(&mut self, text: impl Display) {
        self.line(dim(text));
    }

    /// Adds a table under its title, if the table has rows.
    pub(crate) fn titled(&mut self, table: Table) {
        if !table.rows.is_empty() {
            self.gap();
            self.line(bold(table.title));
            self.gap();
            self.0.push(Block::Table(table));
        }
    }

    pub(crate) fn internal(&mut self, text: impl Display) {
        self.0.push(Block::Internal(dim(text)));
    }

    pub(crate) fn prose(&mut self, text: impl Into<Span>) {
        self.0.push(Block::Prose(text.into()));
    }

    pub(crate) fn warnings<'a>(&mut self, warnings: impl Iterator<Item = &'a str>) {
        self.0
            .extend(warnings.map(|w| Block::Warning(w.to_owned())));
    }

    /// Adds a line with the path of the dump that the report is about, and the totals of this dump.
    pub(crate) fn subject(&mut self, path: &str, figures: &str) {
        let room = WIDTH.saturating_sub(figures.chars().count() + 2).max(20);
        self.spans([bold(path).within(room), format!("  {figures}").into()]);
    }

    /// Adds the first line of a numbered item.
    pub(crate) fn ranked(
        &mut self,
        rank: impl Display,
        verdict: Option<(&str, Tone)>,
        name: &str,
        figures: &str,
    ) {
        let mut spans = vec![format!("{rank:>3} ").into()];
        let mut used = 4 + 2;
        if let Some((verdict, tone)) = verdict {
            used += 8;
            spans.extend([Span::new(tone, format!("{verdict:<7}")), " ".into()]);
        }
        let room = WIDTH.saturating_sub(used + figures.chars().count());
        spans.extend([bold(name).within(room), format!("  {figures}").into()]);
        self.spans(spans);
    }

    pub(crate) fn pair(&mut self, label: &'static str, text: impl Display) {
        self.0.push(Block::Pair(label, text.to_string()));
    }

    /// Adds a sentence with a label in front of it.
    pub(crate) fn reason(&mut self, label: &'static str, text: impl Display) {
        self.0.push(Block::Reason(label, text.to_string()));
    }

    pub(crate) fn table(
        &mut self,
        columns: &[(&'static str, Column)],
        rows: impl Iterator<Item = Vec<String>>,
    ) {
        self.0.push(Block::Table(Table::new(columns, rows)));
    }

    pub(crate) fn stack(&mut self, stack: Stack) {
        self.0.push(Block::Stack(stack));
    }

    /// Adds frames with a label in front of them: all frames if `verbose` is set, else at most `limit`.
    pub(crate) fn frames(&mut self, label: &str, frames: &[String], verbose: bool, limit: usize) {
        let (label, frames) = (label.to_owned(), frames.to_vec());
        self.0.push(Block::Frames(label, frames, (verbose, limit)));
    }

    /// Adds a line with the number of items that are not listed, unless it is 0. `what` is the name of one item.
    pub(crate) fn add_unlisted_count(&mut self, number: u64, what: &str) {
        if let Some(rest) = unlisted_count(number, what) {
            self.note(rest);
        }
    }

    /// Adds an empty line and a line with the number of items that are not listed, unless it is 0. Used after items
    /// that take several lines.
    pub(crate) fn add_unlisted_blocks(&mut self, number: u64, what: &str) {
        if number > 0 {
            self.gap();
            self.add_unlisted_count(number, what);
        }
    }
}
