//! Writes the table of the test matrix: a row for each JDK, and then a row for each cell (JDK, collector and layout).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use testdata::jvm::Jdk;

use super::cell::Outcome;

/// The sums over all cells (combinations of collector and layout) of the test matrix with the same JDK.
#[derive(Debug, Default)]
struct Summary {
    version: String,
    cells: u32,
    classes: usize,
    flattened: u64,
    rounds: u32,
    excepted: BTreeSet<&'static str>,
    faults: usize,
}

#[derive(Debug, Default)]
pub(super) struct Table {
    summaries: BTreeMap<u32, Summary>,
    cells: String,
    failures: Vec<String>,
}

impl Table {
    pub(super) fn add(&mut self, jdk: &Jdk, cell: &str, outcome: &Outcome) {
        let sum = self.summaries.entry(jdk.major()).or_default();
        jdk.version().clone_into(&mut sum.version);
        sum.cells += 1;
        sum.classes += outcome.classes;
        sum.flattened += outcome.flattened;
        sum.rounds += outcome.rounds;
        sum.excepted.extend(&outcome.excepted);
        sum.faults += outcome.faults.len();
        let row = format!(
            "| {} | {cell} | {} | {} | {} | {} | {} |\n",
            jdk.version(),
            outcome.classes,
            outcome.flattened,
            outcome.rounds,
            outcome.steps.join(", "),
            outcome.faults.join("; "),
        );
        print!("{row}");
        self.cells += &row;
        let faults = outcome.faults.iter();
        self.failures
            .extend(faults.map(|fault| format!("JDK {} {cell}: {fault}", jdk.version())));
    }

    pub(super) fn failures(&self) -> &[String] {
        &self.failures
    }

    pub(super) fn text(&self) -> String {
        let mut text = "\
| JDK | runs | classes compared | flattened values | rounds under load | faults | exceptions |
|---|---|---|---|---|---|---|
"
        .to_owned();
        for sum in self.summaries.values() {
            let Summary {
                version,
                cells,
                classes,
                flattened,
                rounds,
                excepted,
                faults,
            } = sum;
            let excepted: Vec<&str> = excepted.iter().copied().collect();
            let excepted = excepted.join("; ");
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "| {version} | {cells} | {classes} | {flattened} | {rounds} | {faults} | {excepted} |"
            );
        }
        text += "\n| JDK | run | classes compared | flattened values | rounds | steps | faults |\n";
        text += "|---|---|---|---|---|---|---|\n";
        text + &self.cells
    }
}
