//! The pages of a dump: the text reports of commands as HTML, with links from each object and class to its page.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;
use std::sync::LazyLock;

use askama::Template;
use heapdiff_diff::sentence::Samples;
use regex::{Captures, Regex};

use super::text;
use crate::document::{Block, Column, Document, Span, Stack, Table, Tone};
use crate::report::Report;

/// The style of the pages.
pub const DUMP_STYLE: &str = concat!(
    include_str!("../../assets/page.css"),
    include_str!("../../assets/dump.css")
);

/// A page of a dump.
#[derive(Debug)]
pub struct DumpPage<'a> {
    /// Title of the page.
    pub title: String,
    /// The dumps, oldest first: the name of each, and true for the dump of this page.
    pub dumps: &'a [(String, bool)],
    /// Text of the search field.
    pub search: &'a str,
    /// Links to other pages about the same objects. Each is a name and a URL.
    pub related: Vec<(String, String)>,
    /// Sentences that replace the reports, such as the reason why an object cannot be shown.
    pub messages: Vec<String>,
    /// The reports, each with its heading.
    pub sections: Vec<(String, &'a Report)>,
}

#[derive(Template)]
#[template(path = "dump.html")]
struct Page<'a> {
    policy: &'static str,
    title: String,
    style: &'static str,
    dumps: Vec<Dump<'a>>,
    /// The parameter that names the dump of this page; empty for the last dump.
    dump: String,
    /// The query parameter that ends each link to a page of this dump; empty for the last dump.
    suffix: &'a str,
    search: &'a str,
    related: &'a [(String, String)],
    messages: &'a [String],
    sections: Vec<(&'a str, String)>,
}

struct Dump<'a> {
    name: &'a str,
    number: usize,
    is_current: bool,
}

/// The pages have no script. A form sends searches to this server only.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'self'";

impl DumpPage<'_> {
    /// Returns the page as HTML.
    ///
    /// # Errors
    /// Returns an error if the template fails.
    pub fn html(&self) -> io::Result<Vec<u8>> {
        let current = self.dumps.iter().position(|(_, is_current)| *is_current);
        let is_last = current.is_none_or(|at| at + 1 == self.dumps.len());
        let dump = match current {
            Some(at) if !is_last => (at + 1).to_string(),
            _ => String::new(),
        };
        let suffix = match &*dump {
            "" => String::new(),
            dump => format!("&dump={dump}"),
        };
        let links = Links { suffix: &suffix };
        let sections = self.sections.iter().map(|(heading, report)| {
            let document = crate::text::document(report);
            (&**heading, links.document(&document))
        });
        let dumps = (1..).zip(self.dumps);
        let page = Page {
            policy: POLICY,
            title: self.title.clone(),
            style: DUMP_STYLE,
            dumps: dumps
                .map(|(number, (name, is_current))| Dump {
                    name,
                    number,
                    is_current: *is_current,
                })
                .collect(),
            dump,
            suffix: &suffix,
            search: self.search,
            related: &self.related,
            messages: &self.messages,
            sections: sections.collect(),
        };
        Ok(page.render().map_err(io::Error::other)?.into_bytes())
    }
}

/// Returns the URL of the page about the objects that `selector` selects.
#[must_use]
pub fn object_address(selector: &str) -> String {
    address("object", selector)
}

fn address(page: &str, selector: &str) -> String {
    let selector: String = form_urlencoded::byte_serialize(selector.as_bytes()).collect();
    format!("{page}?of={selector}")
}

/// Matches the address of an object in a text. Does not match the number after `/` or `+` in the name of a lambda
/// class.
static ADDRESS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?P<before>^|[^/+\w])(?P<address>0x[0-9a-f]+)\b").ok());
/// Matches a text that is the name of a class or of an array class.
static CLASS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^(?:(?:class )?(?:[\w$]+\.)+[\w$]+(?:\[\])*|[a-z]+(?:\[\])+)$").ok()
});

/// Hints of text reports that name command-line options. Pages leave them out.
const HINTS: [&str; 3] = [
    " (-v shows them)",
    " (-v shows all)",
    " (--top N shows more)",
];

fn escaped(text: &str) -> String {
    let mut text = self::text(text);
    for hint in HINTS
        .iter()
        .filter(|hint| text.contains(**hint))
        .collect::<Vec<_>>()
    {
        text = text.replace(hint, "");
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            c => out.push(c),
        }
    }
    out
}

/// Writes documents with links.
struct Links<'a> {
    /// The query parameter that is added at the end of each link, such as `&dump=1`; may be empty.
    suffix: &'a str,
}

impl Links<'_> {
    fn document(&self, document: &Document) -> String {
        let mut out = String::new();
        for block in &document.0 {
            self.block(block, &mut out);
        }
        out
    }

    fn block(&self, block: &Block, out: &mut String) {
        match block {
            Block::Gap => out.push_str("<div class=\"gap\"></div>\n"),
            Block::Internal(_) => {}
            Block::Line(spans) => {
                let spans: String = spans.iter().map(|span| self.span(span)).collect();
                let _ = writeln!(out, "<p class=\"line\">{spans}</p>");
            }
            Block::Prose(span) => {
                let _ = writeln!(out, "<p class=\"line\">{}</p>", self.span(span));
            }
            Block::Answer((verdict, _), sentences) => {
                let sentences = sentences.iter().map(|sentence| self.text(sentence));
                let sentences: Vec<String> = sentences.collect();
                let sentences = sentences.join(" ");
                let _ = writeln!(out, "<p><strong>{verdict}</strong> {sentences}</p>");
            }
            Block::Warning(warning) => {
                let warning = self.text(warning);
                let _ = writeln!(out, "<p class=\"warning\">Warning: {warning}</p>");
            }
            Block::Pair(label, text) | Block::Reason(label, text) => {
                let text = match *label {
                    "class" => self.class(text),
                    "next" | "" => self.command(text),
                    _ => self.text(text),
                };
                pair(label, &text, out);
            }
            Block::Table(table) => self.table(table, out),
            Block::Stack(stack) => self.stack(stack, out),
            Block::Frames(label, frames, _) => frames_of(label, frames, out),
        }
    }

    fn span(&self, span: &Span) -> String {
        let text = self.text(&span.text);
        match span.tone {
            Tone::Plain => text,
            Tone::Bold => format!("<strong>{}</strong>", self.class(&span.text)),
            Tone::Dim => format!("<span class=\"dim\">{text}</span>"),
            Tone::Red | Tone::Yellow => format!("<em>{text}</em>"),
        }
    }

    /// Returns a text in which each address is a link to its object.
    fn text(&self, text: &str) -> String {
        let text = escaped(text);
        let link = |found: &Captures<'_>| {
            let (before, address) = (&found["before"], &found["address"]);
            format!(
                "{before}<a href=\"object?of={address}{}\">{address}</a>",
                escaped(self.suffix)
            )
        };
        match &*ADDRESS {
            Some(pattern) => pattern.replace_all(&text, link).into_owned(),
            None => text,
        }
    }

    fn link(&self, page: &str, selector: &str, shown: &str) -> String {
        let address = escaped(&format!("{}{}", address(page, selector), self.suffix));
        format!("<a href=\"{address}\">{}</a>", escaped(shown))
    }

    /// Returns a link if the string is the name of a class. Returns the result of [`Self::text`] for any other string.
    fn class(&self, name: &str) -> String {
        match &*CLASS {
            Some(pattern) if pattern.is_match(name) => self.link("object", name, name),
            _ => self.text(name),
        }
    }

    /// If the text is a `heapdiff show` or `heapdiff paths` command, returns a link to the page that shows the same
    /// objects. Otherwise returns the result of [`Self::text`].
    fn command(&self, text: &str) -> String {
        let page = [("heapdiff show ", "object"), ("heapdiff paths ", "paths")];
        let found = page.iter().find(|(start, _)| text.starts_with(start));
        match (found, last_word(text)) {
            (Some((start, page)), Some(selector)) => {
                let name = start.trim_start_matches("heapdiff ");
                self.link(page, &selector, &format!("{name}{selector}"))
            }
            _ => self.text(text),
        }
    }

    fn table(&self, table: &Table, out: &mut String) {
        if !table.title.is_empty() {
            let _ = writeln!(out, "<h3>{}</h3>", escaped(table.title));
        }
        out.push_str("<div class=\"scroll\" tabindex=\"0\"><table><thead><tr>");
        for (name, column) in &table.columns {
            let class = if *column == Column::Figure {
                " class=\"figure\""
            } else {
                ""
            };
            let _ = write!(out, "<th scope=\"col\"{class}>{}</th>", escaped(name));
        }
        out.push_str("</tr></thead><tbody>\n");
        for row in &table.rows {
            out.push_str("<tr>");
            for (cell, (_, column)) in row.iter().zip(&table.columns) {
                let (class, cell) = match column {
                    Column::Figure => (" class=\"figure\"", escaped(cell)),
                    Column::Name => (" class=\"name\"", self.class(cell)),
                    _ => ("", self.text(cell)),
                };
                let _ = write!(out, "<td{class}>{cell}</td>");
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>\n");
    }

    fn stack(&self, stack: &Stack, out: &mut String) {
        let class = self.class(&stack.class);
        let _ = writeln!(
            out,
            "<p class=\"line\"><strong>{class}</strong> {}</p>",
            escaped(&stack.figures)
        );
        frames_of("", &stack.frames, out);
    }
}

fn pair(label: &str, text: &str, out: &mut String) {
    let _ = writeln!(
        out,
        "<p class=\"pair\"><span class=\"dim\">{}</span> <span>{text}</span></p>",
        escaped(label)
    );
}

fn frames_of(label: &str, frames: &[String], out: &mut String) {
    if frames.is_empty() {
        let label = if label.is_empty() { "from" } else { label };
        return pair(label, &escaped(&Samples::NoStack.to_string()), out);
    }
    if !label.is_empty() {
        pair(label, "", out);
    }
    out.push_str("<ol class=\"frames\">\n");
    for frame in frames {
        let _ = writeln!(out, "<li><bdi>{}</bdi></li>", escaped(frame));
    }
    out.push_str("</ol>\n");
}

/// Returns the last word of a command, without the quotes that a shell needs.
fn last_word(command: &str) -> Option<Cow<'_, str>> {
    let Some(quoted) = command.strip_suffix('\'') else {
        return command.rsplit(' ').next().map(Cow::Borrowed);
    };
    let start = quoted.rfind(" '")?;
    Some(quoted[start + 2..].into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::bold;

    fn html(build: impl FnOnce(&mut Document)) -> String {
        let mut document = Document::default();
        build(&mut document);
        Links { suffix: "&dump=1" }.document(&document)
    }

    #[test]
    fn objects_and_classes_are_links() {
        let page = html(|doc| {
            doc.line("held by a.B @ 0x7f01");
            doc.line("0x7f02 at a.B$$Lambda/0x7f03.run a.B$$Lambda+0x7f04");
            doc.spans([bold("a.Cache$Entry")]);
            doc.pair("class", "byte[]");
            let columns = [("bytes", Column::Figure), ("class", Column::Name)];
            doc.table(&columns, std::iter::once(vec!["12".into(), "a.B[]".into()]));
        });
        for link in [
            ">0x7f02</a> at a.B$$Lambda/0x7f03.run a.B$$Lambda+0x7f04</p>",
            "held by a.B @ <a href=\"object?of=0x7f01&amp;dump=1\">0x7f01</a>",
            "<a href=\"object?of=a.Cache%24Entry&amp;dump=1\">a.Cache$Entry</a>",
            "<a href=\"object?of=byte%5B%5D&amp;dump=1\">byte[]</a>",
            "<td class=\"figure\">12</td><td class=\"name\"><a href=\"object?of=a.B%5B%5D&amp;dump=1\">a.B[]</a></td>",
        ] {
            assert!(page.contains(link), "{link}: {page}");
        }
    }

    #[test]
    fn suggested_commands_are_links() {
        let page = html(|doc| {
            doc.pair("next", "heapdiff show a.hprof com.acme.Cart.lines");
            doc.pair("", "heapdiff paths 'my dump.hprof' 'a.Orders$Order'");
            doc.pair("", "heapdiff sites a.hprof --focus x");
        });
        for part in [
            "<a href=\"object?of=com.acme.Cart.lines&amp;dump=1\">show com.acme.Cart.lines</a>",
            "<a href=\"paths?of=a.Orders%24Order&amp;dump=1\">paths a.Orders$Order</a>",
            "heapdiff sites a.hprof --focus x",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[test]
    fn names_stay_text() {
        let evil = "</p><script>alert(1)</script>\u{202e}\" onclick='x'";
        let page = html(|doc| {
            doc.line(evil);
            doc.spans([bold(evil)]);
            doc.pair("next", evil);
            doc.frames("from", &[evil.to_owned()], true, 3);
            let columns = [("class", Column::Name)];
            doc.table(&columns, std::iter::once(vec![evil.to_owned()]));
        });
        assert!(
            !page.contains("<script") && !page.contains('\u{202e}'),
            "{page}"
        );
        assert!(
            !page.contains("onclick='") && !page.contains("\" onclick"),
            "{page}"
        );
        let dump = (evil.to_owned(), true);
        let whole = DumpPage {
            title: evil.to_owned(),
            dumps: &[dump],
            search: evil,
            related: vec![(evil.to_owned(), object_address(evil))],
            messages: vec![evil.to_owned()],
            sections: Vec::new(),
        };
        let whole = String::from_utf8(whole.html().unwrap()).unwrap();
        assert!(
            !whole.contains("<script") && !whole.contains("onclick='"),
            "{whole}"
        );
    }
}
