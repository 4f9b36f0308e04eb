//! Compares Eclipse MAT's leak suspects of a dump with the expectations that are also used for heapdiff's report on one
//! dump.
//!
//! MAT runs as users run it without a window: `ParseHeapDump.sh DUMP org.eclipse.mat.api:suspects`. MAT is not part of
//! this project and is not installed by it.

mod report;

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use self::report::Suspect;

/// Maximum time that MAT may take, in seconds.
const SECONDS: &str = "900";
/// Number of suspects at the top of a report that a user is expected to read.
const READ: usize = 3;
/// Number of suspects that a table shows.
const SHOWN: usize = 4;

/// MAT's suspects, in the order of MAT's report.
#[derive(Debug)]
pub(crate) struct Suspects(Vec<Suspect>);

/// Positions of the right answers in MAT's list of suspects, counted from 1.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Told {
    /// Position of the first suspect with a path that goes through the expected field of an object of the expected
    /// class.
    pub(crate) field: Option<usize>,
    /// Position of the first suspect that names the class of the expected field, or the expected class that
    /// accumulates.
    pub(crate) class: Option<usize>,
}

impl Told {
    /// True if one of the first three suspects in MAT's report shows an expected field.
    pub(crate) fn names_field(self) -> bool {
        self.field.is_some_and(|place| place <= READ)
    }

    /// True if one of the first three suspects in MAT's report shows an expected field, or names an expected class.
    pub(crate) fn names_class(self) -> bool {
        [self.field, self.class]
            .into_iter()
            .flatten()
            .any(|place| place <= READ)
    }
}

impl Suspects {
    /// Compares the suspects with the right answers. `holders` are the expected fields as `Class.field`. `accumulates`
    /// returns true for the expected classes that accumulate.
    pub(crate) fn compare_with_answers(
        &self,
        holders: &[&str],
        accumulates: &dyn Fn(&str) -> bool,
    ) -> Told {
        let fields: Vec<(&str, &str)> = holders.iter().filter_map(|h| h.rsplit_once('.')).collect();
        let place =
            |is_right: &dyn Fn(&Suspect) -> bool| self.0.iter().position(is_right).map(|at| at + 1);
        let names = |class: &str| accumulates(class) || fields.iter().any(|(of, _)| *of == class);
        Told {
            field: place(&|s| {
                fields
                    .iter()
                    .any(|(class, field)| s.goes_through_field(class, field))
            }),
            class: place(&|s| s.names(&names)),
        }
    }
}

impl fmt::Display for Suspects {
    /// Writes the first suspects. Each suspect is represented by the keywords that MAT gives for it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return write!(f, "nothing");
        }
        for (number, suspect) in (1..).zip(self.0.iter().take(SHOWN)) {
            let before = if number == 1 { "" } else { "; " };
            write!(f, "{before}{number}. {suspect}")?;
        }
        Ok(())
    }
}

/// Returns MAT's suspects of a dump. `program` is MAT's ParseHeapDump.sh, or a program with the same arguments.
/// `scratch` is a folder that is created for MAT's files and removed afterwards.
pub(crate) fn suspects(program: &Path, dump: &Path, scratch: &Path) -> Result<Suspects> {
    let _ = fs::remove_dir_all(scratch);
    fs::create_dir_all(scratch).with_context(|| format!("cannot create {}", scratch.display()))?;
    // MAT writes its indexes beside the dump, and would use indexes of an earlier run again. So the dump gets a link in
    // a new folder.
    let linked = std::path::absolute(scratch.join("last.hprof"))?;
    fs::hard_link(dump, &linked).with_context(|| format!("cannot link {}", dump.display()))?;
    let output = Command::new("timeout")
        .arg(SECONDS)
        .arg(program)
        .arg(&linked)
        .arg("org.eclipse.mat.api:suspects")
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let zip = scratch.join("last_Leak_Suspects.zip");
    ensure!(
        output.status.success() && zip.is_file(),
        "MAT ended with {status} and wrote {a_or_no} report: {output}",
        status = output.status,
        a_or_no = if zip.is_file() { "a" } else { "no" },
        output = last_lines(&output.stdout) + &last_lines(&output.stderr)
    );
    let suspects = report::read(&zip)?;
    fs::remove_dir_all(scratch).with_context(|| format!("cannot remove {}", scratch.display()))?;
    Ok(Suspects(suspects))
}

fn last_lines(of: &[u8]) -> String {
    let text = String::from_utf8_lossy(of);
    let mut lines: Vec<&str> = text.lines().rev().take(5).collect();
    lines.reverse();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mat::report::tests::{PATH, suspect};

    const HOLDER: &str = "com.acme.Registry.open";

    fn compare_with_answers(suspects: Vec<Suspect>, holder: &str, class: &str) -> Told {
        Suspects(suspects).compare_with_answers(&[holder], &|of| of == class)
    }

    #[test]
    fn a_path_through_the_field_is_the_strict_answer() {
        let other = || suspect("One instance of \"com.acme.Other\" occupies much.", "", "");
        let right = || {
            suspect(
                "The memory is in one instance of \"java.util.HashMap$Node[]\".",
                PATH,
                "",
            )
        };
        let found = compare_with_answers(vec![other(), right()], HOLDER, "com.acme.Ticket");
        assert_eq!((found.field, found.class), (Some(2), Some(2)));
        assert!(found.names_field() && found.names_class());
        // MAT's answer is a field of the right class, but not the expected field. So only the class is right.
        let found = compare_with_answers(vec![right()], "com.acme.Registry.closed", "-");
        assert_eq!((found.field, found.class), (None, Some(1)));
        assert!(!found.names_field() && found.names_class());
        let fourth = compare_with_answers(vec![other(), other(), other(), right()], HOLDER, "-");
        assert!(fourth.field == Some(4) && !fourth.names_field() && !fourth.names_class());
        assert_eq!(
            compare_with_answers(Vec::new(), HOLDER, "-"),
            Told::default()
        );
    }

    #[test]
    fn suspects_are_shown_by_their_keywords() {
        let text = "12 instances of \"com.acme.Ticket\" occupy much.\nKeywords\ncom.acme.Ticket\ncom.acme.Desk\n";
        let shown = Suspects(vec![suspect(text, "", ""), suspect("Much.", "", "")]).to_string();
        assert_eq!(shown, "1. com.acme.Ticket, com.acme.Desk; 2. Much.");
        assert_eq!(Suspects(Vec::new()).to_string(), "nothing");
    }
}
