//! Reads the HTML pages in MAT's zipped report on leak suspects. (MAT's text format is not used, because MAT does not
//! finish writing it if a list has many nodes.)

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use heapdiff_sites::packages;
use zip::ZipArchive;

/// Maximum number of bytes that are read of a page. Longer pages are not expected.
const LONGEST: u64 = 16 << 20;

/// A suspect of MAT.
#[derive(Debug)]
pub(super) struct Suspect {
    /// MAT's description, without the keywords.
    description: String,
    /// The keywords that MAT suggests for a web search.
    keywords: Vec<String>,
    /// The rows of the paths from a GC root to the accumulation point.
    path: Vec<Row>,
    /// The rows in the lists of accumulated objects. Each row names a class.
    accumulated: Vec<Row>,
}

/// A row of a table in MAT's report. A row describes an object or a class.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    /// The fields by which the object refers to the object in the previous row.
    fields: Vec<String>,
    class: String,
}

impl Suspect {
    fn new(description: &str, path: &str, accumulated: &str) -> Self {
        let (description, keywords) = description
            .split_once("\nKeywords\n")
            .unwrap_or((description, ""));
        let lines = keywords.lines().map(str::trim);
        Self {
            description: description.trim().to_owned(),
            keywords: lines.filter(|l| !l.is_empty()).map(str::to_owned).collect(),
            path: path.lines().filter_map(Row::parse).collect(),
            accumulated: accumulated.lines().filter_map(Row::parse).collect(),
        }
    }

    /// True if a path in MAT's report goes through `field` of `class`. MAT shows the class of the object, even if a
    /// superclass declares the field. Therefore any class in the same package or in a subpackage is accepted instead of
    /// `class`.
    pub(super) fn goes_through_field(&self, class: &str, field: &str) -> bool {
        self.path.iter().any(|row| {
            let is_same = row.class == class || is_below(&row.class, package(class));
            is_same && row.fields.iter().any(|f| f == field)
        })
    }

    /// True if MAT's report on the suspect names one of these classes: in its description, its paths or its lists of
    /// accumulated objects. A JDK class or an array counts only if it is among MAT's keywords for the suspect. The
    /// reason is that all lists of accumulated objects contain strings and nodes of collections.
    pub(super) fn names(&self, is_right: &dyn Fn(&str) -> bool) -> bool {
        let own = |class: &str| !is_common(class) && is_right(class);
        let quoted = self.description.split('"').skip(1).step_by(2);
        let mut described = quoted.filter_map(|name| name.split(' ').next());
        let mut rows = self.path.iter().chain(&self.accumulated);
        self.keywords.iter().any(|word| is_right(word))
            || described.any(own)
            || rows.any(|row| own(&row.class))
    }
}

impl fmt::Display for Suspect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.keywords[..] {
            [] => write!(f, "{}", self.description),
            keywords => write!(f, "{}", keywords.join(", ")),
        }
    }
}

impl Row {
    /// Parses `..\open class com.acme.Registry @ 0xfac` or `java.lang.String|First 10 of 12 objects`. Returns `None`
    /// for heading rows and for rows with totals.
    fn parse(line: &str) -> Option<Self> {
        let line = line.trim_start_matches(['.', '\\', '+', '|', ' ']);
        if line.starts_with("Total:") {
            return None;
        }
        let Some((object, _)) = line.split_once(" @ 0x") else {
            let class = line.split('|').next()?.trim();
            let is_class = !class.is_empty() && !class.contains(' ');
            return is_class.then(|| Self {
                fields: Vec::new(),
                class: class.to_owned(),
            });
        };
        let (before, class) = object.rsplit_once(' ').unwrap_or(("", object));
        let fields = before.strip_suffix("class").unwrap_or(before).split(", ");
        let fields = fields.map(str::trim).filter(|f| !f.is_empty());
        Some(Self {
            fields: fields.map(str::to_owned).collect(),
            class: without_length(class),
        })
    }
}

/// Removes the length from the name of an array: returns `byte[]` for `byte[16]`.
fn without_length(class: &str) -> String {
    match class.split_once('[') {
        Some((element, rest)) => {
            let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            format!("{element}[{rest}")
        }
        None => class.to_owned(),
    }
}

fn package(class: &str) -> &str {
    class.rsplit_once('.').map_or("", |(package, _)| package)
}

fn is_below(class: &str, package: &str) -> bool {
    match class.strip_prefix(package) {
        Some(rest) => !package.is_empty() && rest.starts_with('.'),
        None => false,
    }
}

fn is_common(class: &str) -> bool {
    class.ends_with(']') || packages::is_jdk(class)
}

/// Reads the suspects of a zipped report.
pub(super) fn read(zip: &Path) -> Result<Vec<Suspect>> {
    let file = File::open(zip).with_context(|| format!("cannot read {}", zip.display()))?;
    let mut archive =
        ZipArchive::new(file).with_context(|| format!("{} is not a zip file", zip.display()))?;
    let mut page = |name: &str| -> Result<String> {
        let entry = archive
            .by_name(name)
            .with_context(|| format!("MAT's report has no {name}"))?;
        let mut bytes = Vec::new();
        entry.take(LONGEST).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let index = page("index.html")?;
    sections(&index)
        .map(|section| suspect(section, &mut page))
        .collect()
}

/// Returns the sections of the index page, one for each suspect. A section ends before the next heading of the same
/// level.
fn sections(index: &str) -> impl Iterator<Item = &str> {
    index.split("<h3").filter(|part| {
        let heading = part.split("</h3>").next().unwrap_or(part);
        heading.contains("Problem Suspect ")
    })
}

/// Reads one suspect. Its description is on the index page. Its paths and lists are on a separate page.
fn suspect(section: &str, page: &mut dyn FnMut(&str) -> Result<String>) -> Result<Suspect> {
    let (_, section) = section.split_once("</h3>").unwrap_or(("", section));
    let text = section
        .split("<div><a href=\"pages/")
        .next()
        .unwrap_or(section);
    let (mut path, mut accumulated) = (String::new(), String::new());
    let details = section.split_once("\">Details").and_then(|(before, _)| {
        let (_, file) = before.rsplit_once("<a href=\"pages/")?;
        Some(file)
    });
    if let Some(file) = details {
        let details = page(&format!("pages/{file}"))?;
        for part in details.split("<h5").skip(1) {
            let (heading, body) = part.split_once("</h5>").unwrap_or((part, ""));
            let heading = without_tags(&format!("<{heading}"));
            let to = if heading.contains("Paths To the") || heading.contains("Path To the") {
                &mut path
            } else if heading.contains("Accumulated Objects")
                || heading.contains("Suspect Objects by")
            {
                &mut accumulated
            } else {
                continue;
            };
            for row in body.split("<tr").skip(1) {
                let cell = row.split("</td>").next().unwrap_or(row);
                to.push_str(&without_tags(&format!("<tr{}", cell.replace("<br>", "|"))));
                to.push('\n');
            }
        }
    }
    let description = without_tags(&text.replace("<p", "\n<p").replace("<li", "\n<li"));
    ensure!(
        !description.trim().is_empty(),
        "a suspect of MAT's report has no text: {section}"
    );
    Ok(Suspect::new(&description, &path, &accumulated))
}

/// Returns the text of a piece of HTML without its tags. `<q>` becomes a quotation mark.
fn without_tags(html: &str) -> String {
    let mut text = String::new();
    for (number, piece) in html.split('<').enumerate() {
        let (tag, rest) = match number {
            0 => ("", piece),
            _ => piece.split_once('>').unwrap_or((piece, "")),
        };
        if matches!(tag, "q" | "/q") {
            text.push('"');
        }
        text.push_str(rest);
    }
    [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&nbsp;", " "),
        ("&amp;", "&"),
    ]
    .iter()
    .fold(text, |text, (entity, of)| text.replace(entity, of))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::io::Write as _;
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    pub(in crate::mat) fn suspect(description: &str, path: &str, accumulated: &str) -> Suspect {
        Suspect::new(description, path, accumulated)
    }

    pub(in crate::mat) const PATH: &str = r"
java.util.HashMap$Node[64] @ 0xf0
\table java.util.HashMap @ 0xf1
.+open class com.acme.Registry @ 0xf2
.|\[4] java.lang.Object[10] @ 0xf3
.\first, last com.acme.more.Big @ 0xf4  main Thread
..Total: 2 entries
";

    #[test]
    fn rows_have_fields_and_a_class() {
        let rows: Vec<(String, String)> = PATH
            .lines()
            .filter_map(Row::parse)
            .map(|row| (row.fields.join("+"), row.class))
            .collect();
        let told: Vec<(&str, &str)> = rows.iter().map(|(f, c)| (&**f, &**c)).collect();
        assert_eq!(
            told,
            [
                ("", "java.util.HashMap$Node[]"),
                ("table", "java.util.HashMap"),
                ("open", "com.acme.Registry"),
                ("[4]", "java.lang.Object[]"),
                ("first+last", "com.acme.more.Big"),
            ]
        );
        let class = Row::parse("com.acme.Ticket[]|First 10 of 12 objects").expect("a class's row");
        assert_eq!(class.class, "com.acme.Ticket[]");
    }

    #[test]
    fn a_field_counts_at_its_class_or_one_that_may_inherit_it() {
        let one = suspect("", PATH, "");
        assert!(one.goes_through_field("com.acme.Registry", "open"));
        assert!(
            !one.goes_through_field("com.acme.Registry", "table")
                && !one.goes_through_field("org.Registry", "open")
        );
        assert!(
            one.goes_through_field("com.acme.Base", "last")
                && !one.goes_through_field("com.acme.more.less.Base", "last")
        );
        assert!(
            !one.goes_through_field("com.acm.Base", "last")
                && !one.goes_through_field("Base", "last")
        );
    }

    #[test]
    fn common_classes_count_as_keywords_only() {
        let text = "12 instances of \"java.lang.String\" hold \"com.acme.Desk @ 0xf\".\nKeywords\nbyte[]\n";
        let one = suspect(text, PATH, "com.acme.Ticket | 1\njava.util.TreeMap | 2\n");
        let names = |class: &str| one.names(&|of| of == class);
        assert!(names("byte[]") && names("com.acme.Desk") && names("com.acme.Ticket"));
        assert!(names("com.acme.Registry"));
        for other in [
            "java.lang.String",
            "java.util.TreeMap",
            "java.util.HashMap",
            "com.acme.Des",
        ] {
            assert!(!names(other), "{other}");
        }
    }

    #[test]
    fn a_zipped_report_has_its_suspects_in_order() {
        let index = "<h1 id=\"i1\">Leak Suspects</h1><h2 id=\"i2\"><a href=\"pages/Overview2.html\">System Overview</a></h2>\
            <h3 id=\"i3\"><img alt=\"\"> Problem Suspect 1</h3><div><div><p>12 of <strong><q>&lt;none&gt;</q></strong>. \
            <a href=\"pages/34.html\">See stacktrace</a><p><strong>Keywords</strong></p><ul><li>word</li><li>other</li></ul></div>\
            <div><a href=\"pages/21.html\">Details &raquo;</a></div></div>\
            <h3 id=\"i4\">Problem Suspect 2</h3><div><div><p>Two.</div><div><a href=\"pages/22.html\">Details</a></div></div>\
            <h3 id=\"i5\">Hint 1</h3><div><a href=\"pages/23.html\">Details</a></div>";
        let row = |cell: &str| format!("<tr><td><img alt=\"\">{cell}</td><td>7</td></tr>");
        let table = |title: &str, rows: &str| {
            format!(
                "<h5 id=\"i9\"><img alt=\"\"> {title} <a href=\"mat://q\"></a></h5>\
                 <table><tr><th>Class Name</th></tr>{rows}</table>"
            )
        };
        let field = "..\\<ul><li><strong>open</strong> <a href=\"x\">class com.acme.Registry @ 0xf2</a></li></ul>";
        let one = table("Thread Stack", &row("com.acme.Main"))
            + &table("Shortest Paths To the Accumulation Point", &row(field));
        let class = "<a href=\"x\">com.acme.Ticket</a><br><a href=\"y\">First 10 of 12 objects</a>";
        let two = table("All Accumulated Objects by Class", &row(class));
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("r.zip");
        let mut zip = ZipWriter::new(File::create(&file).expect("a file"));
        for (name, text) in [
            ("index.html", index),
            ("pages/21.html", &*one),
            ("pages/22.html", &*two),
        ] {
            zip.start_file(name, SimpleFileOptions::default())
                .expect("an entry");
            zip.write_all(text.as_bytes()).expect("its text");
        }
        zip.finish().expect("a zip");
        let read = read(&file).expect("a report");
        let [one, two] = &read[..] else {
            panic!("{read:?}")
        };
        let told = (one.to_string(), two.to_string());
        assert_eq!(told, ("word, other".to_owned(), "Two.".to_owned()));
        assert_eq!(one.description, "12 of \"<none>\". See stacktrace");
        assert!(one.goes_through_field("com.acme.Registry", "open") && two.path.is_empty());
        assert!(!one.names(&|class| class == "com.acme.Main"));
        assert!(two.names(&|class| class == "com.acme.Ticket"));
    }

    #[test]
    fn a_file_that_is_not_a_report_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("r.zip");
        std::fs::write(&file, "no zip").expect("a file");
        let error = read(&file).expect_err("no zip").to_string();
        assert!(error.ends_with("r.zip is not a zip file"), "{error}");
        let mut none = |_: &str| anyhow::Ok(String::new());
        assert!(super::suspect("Problem Suspect 1</h3>", &mut none).is_err());
    }
}
