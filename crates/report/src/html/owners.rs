//! The web page of memory by owner.

use std::io::{self, Write};

use askama::Template;
use heapdiff_model::owners::OwnerFigures;
use heapdiff_units::Size;

use super::section::Section;
use super::{STYLE, base, policy, text, wrapped};
use crate::tables;
use crate::view::OwnersReportView;

#[derive(Template)]
#[template(path = "owners.html")]
struct Page<'a> {
    policy: String,
    title: String,
    style: &'a str,
    heading: &'static str,
    warnings: Vec<&'a str>,
    sentence: String,
    /// Path and size of each dump.
    dumps: Vec<String>,
    sections: Vec<Section>,
    script: &'a str,
}

/// Writes the page.
///
/// # Errors
/// Returns an error if the stream fails.
pub(crate) fn render(report: &OwnersReportView, out: &mut dyn Write) -> io::Result<()> {
    let script = wrapped(&[&base()]);
    let dumps = report.snapshots.iter();
    let size = |bytes: Option<u64>| Size(bytes.unwrap_or(0)).to_string();
    let heading = match report.snapshots.len() {
        1 => "Memory by owner",
        _ => "Growth by owner",
    };
    let last = report.snapshots.last().map_or("", |dump| &dump.path);
    let page = Page {
        policy: policy(&script),
        title: format!("{heading}: {}", text(last)),
        style: STYLE,
        heading,
        warnings: dumps
            .clone()
            .flat_map(|dump| &dump.warnings)
            .map(|w| &**w)
            .collect(),
        sentence: tables::owners_sentence(&report.figures).concat(),
        dumps: dumps
            .map(|dump| format!("{}: {} reachable", dump.path, size(dump.reachable_bytes)))
            .collect(),
        sections: sections(&report.figures),
        script: &script,
    };
    let page = page.render().map_err(io::Error::other)?;
    out.write_all(page.as_bytes())
}

/// Returns the tables of owners.
pub(super) fn sections(figures: &OwnerFigures) -> Vec<Section> {
    let mut sections = vec![
        Section::new("owners", "Owners", tables::owners(figures, &figures.owners)),
        Section::new("shared", "Shared", tables::shared_by(figures, usize::MAX)),
        Section::new("owned", "Owned classes", tables::classes_of_owners(figures)),
    ];
    sections.retain(|section| !section.rows.is_empty());
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_text() {
        let mut report = crate::text::owners::tests::report();
        report.data.figures.owners[0].owner = "</script>\u{202e}".to_owned();
        let mut out = Vec::new();
        render(&report, &mut out).unwrap();
        let page = String::from_utf8(out).unwrap();
        assert_eq!(page.matches("<script").count(), 1);
        assert!(page.contains("&#60;/script&#62;") && !page.contains('\u{202e}'));
        for part in [
            "Growth by owner",
            "three owners or more",
            "+1,000",
            "byte[]",
            "Largest classes of each owner",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
}
