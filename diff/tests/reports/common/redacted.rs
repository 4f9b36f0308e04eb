//! Checks that the report on redacted dumps equals the report on the original dumps, except for contents of strings.

use heapdiff_diff::{Report, redaction_rules};
use hprof::redaction::Redaction;
use hprof::{Silent, Source};

/// Returns the redacted dump.
pub(super) fn of(dump: &Source) -> Source {
    let mut out = Vec::new();
    let redaction = Redaction::new(dump, redaction_rules(false)).unwrap();
    redaction.write(&mut out, &Silent).unwrap();
    Source::from_bytes(out)
}

/// Fails if the reports differ in anything other than the tokens that replace strings.
#[track_caller]
pub(super) fn assert_same(report: &Report, redacted: &Report) {
    let text = |report: &Report| {
        let mut report = report.clone();
        // The original files may be compressed.
        report.snapshots.iter_mut().for_each(|s| s.bytes = 0);
        format!("{report:#?}")
    };
    let (report, redacted) = (text(report), text(redacted));
    let different: Vec<(&str, &str)> = report
        .lines()
        .zip(redacted.lines())
        .filter(|(line, redacted)| !is_same(line, redacted))
        .take(10)
        .collect();
    assert!(different.is_empty(), "redacted: {different:#?}");
    assert_eq!(report.lines().count(), redacted.lines().count());
}

/// True if the two lines are equal. In `redacted`, letters from `à` to `ÿ` stand for any text.
fn is_same(line: &str, redacted: &str) -> bool {
    // If a table of the agent is damaged, the redacted dump does not contain the table. So the error message names
    // another byte than the message for the original dump.
    const FAULT: &str = "; allocation sites are left out\",";
    if line.ends_with(FAULT) && redacted.ends_with(FAULT) {
        return true;
    }
    let is_token = |c: char| c == '·' || ('à'..='ÿ').contains(&c);
    let mut parts = redacted.split(is_token);
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    for part in parts.filter(|part| !part.is_empty()) {
        // If a token has an odd number of bytes, it ends with a dot.
        let part = match part.strip_prefix(".\"") {
            Some(_) => &part[1..],
            None => part,
        };
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.is_empty() || redacted.ends_with(is_token)
}
