//! `--ignore FILE`: the file with rules for known growth.

use std::fs;
use std::path::{Path, PathBuf};

use heapdiff_diff::{IgnoreRule, IgnoreRules, Suspect};

use crate::failure::{Failure, Result, system_message};

/// The rules of a file.
#[derive(Debug)]
pub(crate) struct IgnoreFile {
    path: PathBuf,
    rules: IgnoreRules,
}

/// The result of applying the rules to suspects.
#[derive(Debug, Default)]
pub(crate) struct Ignored {
    /// Suspects that match no rule.
    pub(crate) new: Vec<Suspect>,
    /// Suspects that match a rule, each with its rule.
    pub(crate) known: Vec<(Suspect, String)>,
    /// A warning for each rule that matches nothing.
    pub(crate) unused_rules: Vec<String>,
}

impl IgnoreFile {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).map_err(|e| {
            Failure::usage(format!(
                "--ignore {}: {}",
                path.display(),
                system_message(&e)
            ))
        })?;
        let rules = IgnoreRules::parse(&text).map_err(|e| {
            let message = format!("--ignore {}:{}: {}", path.display(), e.line, e.fault);
            Failure::usage(message).with_hint(
                "write one rule per line: `holder PATTERN`, `class PATTERN` or `frame PATTERN`, where `*` matches anything",
            )
        })?;
        Ok(Self {
            path: path.to_owned(),
            rules,
        })
    }

    /// Separates known suspects from new ones.
    pub(crate) fn sort(&self, suspects: Vec<Suspect>) -> Ignored {
        let sorted = self.rules.sort(suspects);
        let path = self.path.display();
        let said = |rule: &IgnoreRule| format!("{path}:{}: {}", rule.line, rule.text);
        let unused =
            |rule: &IgnoreRule| format!("{path}:{}: no suspect matches `{}`", rule.line, rule.text);
        Ignored {
            known: sorted
                .known
                .into_iter()
                .map(|(suspect, rule)| (suspect, said(rule)))
                .collect(),
            unused_rules: sorted.unused.into_iter().map(unused).collect(),
            new: sorted.new,
        }
    }
}
