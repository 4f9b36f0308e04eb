//! SARIF 2.1.0, a format that code scanning and editors show. Each suspect becomes a result, and each verdict or known
//! leak pattern becomes a rule.
//!
//! Tools recognise a result in the next run by its holder and class. A result has a location in the source code if one
//! of its stacks names a source file.

use std::io::{self, Write};

use heapdiff_diff::{SnapshotInfo, Stack, is_application_frame};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::findings::{Finding, Findings, Level, Place, Rule};
use crate::printable::printable;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// Maximum number of stacks of a result.
const STACKS: usize = 3;
/// Maximum number of frames of a stack.
const FRAMES: usize = 64;

/// Writes the suspects as SARIF results. A suspect whose growth the user marked as known gets a SARIF suppression.
///
/// # Errors
/// Returns an error if the stream fails.
pub(crate) fn render(findings: &Findings<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut run = Run::new(findings.source_root);
    for finding in &findings.found {
        run.result(finding, None);
    }
    for (finding, rule) in &findings.known {
        run.result(finding, Some(rule));
    }
    for warning in findings.warnings {
        run.notify("warning", warning);
    }
    if let Some(why) = findings.undecided {
        run.notify("error", &format!("gates were not checked: {why}"));
    }
    for why in &findings.tripped {
        run.notify("error", &format!("gate tripped: {why}"));
    }
    run.write(findings.snapshots, out)
}

/// One run of the tool.
struct Run<'a> {
    root: Option<&'a str>,
    rules: Vec<(Rule, Level)>,
    results: Vec<Value>,
    notes: Vec<Value>,
}

impl<'a> Run<'a> {
    const fn new(root: Option<&'a str>) -> Self {
        Self {
            root,
            rules: Vec::new(),
            results: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn notify(&mut self, level: &str, text: &str) {
        let message = json!({ "text": printable(text) });
        self.notes
            .push(json!({ "level": level, "message": message }));
    }

    fn result(&mut self, finding: &Finding<'_>, known: Option<&str>) {
        let place = |r: &(Rule, Level)| r.0 == finding.rule;
        let rule = self.rules.iter().position(place).unwrap_or_else(|| {
            self.rules.push((finding.rule.clone(), finding.level));
            self.rules.len() - 1
        });
        let holder = printable(finding.holder);
        let logical = json!([{
            "name": holder.rsplit('.').next().unwrap_or(&holder),
            "fullyQualifiedName": holder,
            "kind": "member",
        }]);
        let mut location = json!({ "logicalLocations": logical });
        if let Some(place) = finding.frame().and_then(Place::from_frame) {
            location["physicalLocation"] = self.physical(place);
        }
        let path: Vec<_> = finding.path.iter().map(|step| printable(step)).collect();
        let mut result = json!({
            "ruleId": finding.rule.id,
            "ruleIndex": rule,
            "level": level(finding.level),
            "message": { "text": finding.message() },
            "locations": [location],
            "partialFingerprints": { "holderAndClass/v1": fingerprint(finding) },
            "properties": {
                "holder": holder,
                "class": printable(finding.class),
                "root": printable(finding.root),
                "path": path,
            },
        });
        let stacks = finding.stacks.iter().take(STACKS);
        let stacks: Vec<Value> = stacks.map(|stack| self.stack(stack)).collect();
        if !stacks.is_empty() {
            result["stacks"] = stacks.into();
        }
        let flows = finding.stacks.iter().take(STACKS);
        let flows: Vec<Value> = flows.filter_map(|stack| self.flow(stack)).collect();
        if !flows.is_empty() {
            result["codeFlows"] = flows.into();
        }
        if let Some(rule) = known {
            let why = format!("known growth: {}", printable(rule));
            result["suppressions"] = json!([{ "kind": "external", "justification": why }]);
        }
        self.results.push(result);
    }

    fn physical(&self, place: Place) -> Value {
        let place = place.with_root(self.root);
        let mut physical = json!({
            "artifactLocation": { "uri": uri(&place.file), "uriBaseId": "%SRCROOT%" },
        });
        if let Some(line) = place.line {
            physical["region"] = json!({ "startLine": line });
        }
        physical
    }

    /// Returns a frame as a SARIF location.
    fn location(&self, frame: &str) -> Value {
        let text = printable(frame);
        let mut location = json!({ "message": { "text": text } });
        // The sources of the JDK and of frameworks are not in the repository.
        let own = Some(frame).filter(|frame| is_application_frame(frame));
        if let Some(place) = own.and_then(Place::from_frame) {
            location["physicalLocation"] = self.physical(place);
        }
        location
    }

    fn stack(&self, stack: &Stack) -> Value {
        let frames = stack.frames.iter().take(FRAMES);
        let frames: Vec<Value> = frames
            .map(|frame| json!({ "location": self.location(frame) }))
            .collect();
        let text = format!("allocated {}", printable(&stack.class));
        json!({ "message": { "text": text }, "frames": frames })
    }

    /// Returns the application frames of a stack as a SARIF code flow, the outermost first. Only frames with a line in
    /// the source are included. Returns `None` if there are fewer than two such frames.
    fn flow(&self, stack: &Stack) -> Option<Value> {
        let own = stack.frames.iter().take(FRAMES).rev();
        let own = own.filter(|frame| is_application_frame(frame));
        let own = own.filter(|frame| Place::from_frame(frame).is_some_and(|p| p.line.is_some()));
        let steps: Vec<Value> = own
            .map(|frame| json!({ "location": self.location(frame) }))
            .collect();
        (steps.len() > 1).then(|| json!({ "threadFlows": [{ "locations": steps }] }))
    }

    fn write(self, dumps: &[SnapshotInfo], out: &mut dyn Write) -> io::Result<()> {
        let rules = self.rules.iter().map(|(rule, of)| {
            json!({
                "id": rule.id,
                "shortDescription": { "text": rule.about },
                "defaultConfiguration": { "level": level(*of) },
                "helpUri": concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/guide.md"),
            })
        });
        let rules: Vec<Value> = rules.collect();
        let dumps: Vec<_> = dumps.iter().map(|dump| printable(&dump.path)).collect();
        let log = json!({
            "$schema": SCHEMA,
            "version": "2.1.0",
            "runs": [{
                "tool": { "driver": {
                    "name": "heapdiff",
                    "semanticVersion": env!("CARGO_PKG_VERSION"),
                    "informationUri": env!("CARGO_PKG_REPOSITORY"),
                    "rules": rules,
                }},
                "invocations": [{
                    "executionSuccessful": true,
                    "toolExecutionNotifications": self.notes,
                }],
                "results": self.results,
                "properties": { "dumps": dumps },
            }],
        });
        serde_json::to_writer_pretty(&mut *out, &log)?;
        out.write_all(b"\n")
    }
}

const fn level(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Note => "note",
    }
}

/// Returns the fingerprint of a suspect. It is a hash of holder and class, so it is the same in each run.
fn fingerprint(finding: &Finding<'_>) -> String {
    let mut hash = Sha256::new();
    hash.update(finding.holder);
    hash.update([0]);
    hash.update(finding.class);
    let hash = hash.finalize();
    hash.iter().take(16).map(|b| format!("{b:02x}")).collect()
}

/// Returns a relative path as a URI.
fn uri(path: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/-._~".contains(&b);
    let byte = |b: u8| {
        if plain(b) {
            char::from(b).to_string()
        } else {
            format!("%{b:02X}")
        }
    };
    path.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use heapdiff_diff::Verdict;

    use super::*;
    use crate::junit::Gate;
    use crate::synthetic::{HOSTILE, heap, report, stack, suspect};
    use crate::tests::{diff_report, heap_report};
    use crate::view::DiffReport;

    fn rendered(report: &DiffReport) -> Value {
        let mut out = Vec::new();
        render(&report.into(), &mut out).unwrap();
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn a_result_has_rule_level_places_and_stacks() {
        let mut leak = suspect(1, "com.acme.Web.open", Verdict::Leak, 4096);
        leak.stacks = vec![stack(
            "com.acme.Main.main(Main.java:7) java.util.List.forEach(List.java:9) com.acme.Web.put(Web.java:42) java.util.HashMap.put(HashMap.java:3)",
            4096,
            0,
        )];
        let mut timer = suspect(2, "com.acme.Web.timers", Verdict::Leak, 64);
        timer.detector = Some("timer".into());
        timer.stacks.clear();
        let growth = suspect(3, "com.acme.A.b", Verdict::Growth, 32);
        let mut report = diff_report(report(vec![leak.clone(), timer, growth, leak], 0));
        report.view.source_root = Some("src/main/java/".to_owned());
        let log = rendered(&report);
        let run = &log["runs"][0];
        let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
        let ids: Vec<&str> = rules.iter().map(|r| r["id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["leak", "leak/timer", "growth"]);
        assert_eq!(
            rules[1]["shortDescription"]["text"],
            "The content of a field grew, and evidence shows that the growth continues; known leak pattern: timer"
        );
        let results = run["results"].as_array().unwrap();
        let indexes: Vec<_> = results.iter().map(|r| r["ruleIndex"].as_u64()).collect();
        assert_eq!(indexes, [Some(0), Some(1), Some(2), Some(0)]);
        assert_eq!(results[0]["level"], "error");
        assert_eq!(results[2]["level"], "warning");
        let location = &results[0]["locations"][0];
        assert_eq!(
            location["logicalLocations"][0]["fullyQualifiedName"],
            "com.acme.Web.open"
        );
        assert_eq!(location["logicalLocations"][0]["name"], "open");
        let physical = &location["physicalLocation"];
        assert_eq!(
            physical["artifactLocation"]["uri"],
            "src/main/java/com/acme/Web.java"
        );
        assert_eq!(physical["region"]["startLine"], 42);
        assert!(results[1]["locations"][0].get("physicalLocation").is_none());
        assert!(results[1].get("stacks").is_none());
        let frames = results[0]["stacks"][0]["frames"].as_array().unwrap();
        assert_eq!(frames.len(), 4);
        let placed = frames
            .iter()
            .map(|f| f["location"].get("physicalLocation").is_some());
        assert_eq!(placed.collect::<Vec<_>>(), [false, true, false, true]);
        assert_eq!(
            frames[3]["location"]["message"]["text"],
            "com.acme.Main.main(Main.java:7)"
        );
        let steps = results[0]["codeFlows"][0]["threadFlows"][0]["locations"]
            .as_array()
            .unwrap();
        let texts: Vec<_> = steps
            .iter()
            .map(|s| s["location"]["message"]["text"].as_str())
            .collect();
        assert_eq!(
            texts,
            [
                Some("com.acme.Main.main(Main.java:7)"),
                Some("com.acme.Web.put(Web.java:42)")
            ]
        );
        // The fingerprint is the same for the same holder and class, in any run and with any rank.
        let prints = |r: &Value| r["partialFingerprints"]["holderAndClass/v1"].clone();
        assert_eq!(prints(&results[0]), prints(&results[3]));
        assert_ne!(prints(&results[0]), prints(&results[1]));
        assert_eq!(prints(&results[0]).as_str().map(str::len), Some(32));
    }

    #[test]
    fn warnings_gates_and_known_growth_are_there() {
        let mut report = diff_report(report(vec![suspect(1, HOSTILE, Verdict::Cache, 9)], 0));
        let silent = rendered(&report);
        assert_eq!(
            silent["runs"][0]["invocations"][0]["toolExecutionNotifications"],
            json!([])
        );
        report.data.warnings.push("x is damaged".to_owned());
        report.more.outcomes = vec![Gate {
            name: "--fail-on-suspect".to_owned(),
            tripped: Some("a.B.c".to_owned()),
        }];
        report.more.known = vec![(
            suspect(2, "a.B.c", Verdict::Leak, 8),
            "holder a.B.*".to_owned(),
        )];
        let log = rendered(&report);
        let notes = &log["runs"][0]["invocations"][0]["toolExecutionNotifications"];
        assert_eq!(notes[0]["message"]["text"], "x is damaged");
        assert_eq!(notes[1]["message"]["text"], "gate tripped: a.B.c");
        let results = log["runs"][0]["results"].as_array().unwrap();
        assert!(results[0].get("suppressions").is_none());
        assert_eq!(
            results[1]["suppressions"][0]["justification"],
            "known growth: holder a.B.*"
        );
        report.data.add_warning("two JVMs".to_owned());
        report.more.gates.suspect = true;
        let log = rendered(&report).to_string();
        assert!(log.contains("gates were not checked: "), "{log}");
    }

    #[test]
    fn paths_are_uris() {
        assert_eq!(uri("a/b c/é%.kt"), "a/b%20c/%C3%A9%25.kt");
    }

    #[test]
    fn the_largest_holder_is_a_note() {
        let mut out = Vec::new();
        render(&(&heap_report(heap(2))).into(), &mut out).unwrap();
        let log: Value = serde_json::from_slice(&out).unwrap();
        let result = &log["runs"][0]["results"][1];
        assert_eq!(
            (&result["ruleId"], &result["level"]),
            (&json!("large"), &json!("note"))
        );
    }
}
