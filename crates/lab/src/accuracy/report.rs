//! The fields of a report by `heapdiff diff --format json` that this measurement judges.

use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// A comparison of dumps.
#[derive(Debug, Deserialize)]
pub(super) struct Report {
    /// One entry for each dump.
    pub(super) snapshots: Vec<IgnoredAny>,
    pub(super) suspects: Vec<Suspect>,
}

/// A report on one dump.
#[derive(Debug, Deserialize)]
pub(super) struct OneDump {
    pub(super) suspects: Vec<Holder>,
}

/// A suspect in a report on one dump.
#[derive(Debug, Deserialize)]
pub(super) struct Holder {
    pub(super) holder: String,
    pub(super) class: String,
    pub(super) retained_bytes: u64,
}

impl OneDump {
    pub(super) fn read(file: &Path) -> Result<Self> {
        let text = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} is not a report", file.display()))
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} holds {} {}",
            self.holder, self.class, self.retained_bytes
        )
    }
}

/// A suspect in a comparison.
#[derive(Debug, Deserialize)]
pub(super) struct Suspect {
    pub(super) verdict: String,
    pub(super) detector: Option<String>,
    pub(super) holder: String,
    pub(super) class: String,
    pub(super) retained_bytes: Vec<u64>,
    pub(super) stacks: Vec<Stack>,
    #[serde(default)]
    pub(super) allocated_at: Vec<Stack>,
    /// The sentence about stacks that come from a recording.
    #[serde(default)]
    pub(super) joined: Option<String>,
}

/// An allocation stack.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Stack {
    pub(super) frames: Vec<String>,
    /// Probability of the stack in thousandths. Only stacks of recordings have a probability.
    #[serde(default)]
    pub(super) probability_permille: Option<u64>,
}

impl Report {
    pub(super) fn read(file: &Path) -> Result<Self> {
        let text = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} is not a report", file.display()))
    }

    /// Returns the suspects with the verdict leak or growth.
    pub(super) fn alarms(&self) -> impl Iterator<Item = &Suspect> {
        self.suspects.iter().filter(|suspect| suspect.is_alarm())
    }
}

impl Suspect {
    /// Returns the stack that the text report prints first: a stack that allocated the held objects. If no such stack
    /// is known, returns a stack that allocated objects of the class.
    pub(super) fn first_stack(&self) -> Option<&Stack> {
        self.stacks.first().or_else(|| self.allocated_at.first())
    }

    pub(super) fn is_alarm(&self) -> bool {
        matches!(&*self.verdict, "leak" | "growth")
    }
}

impl fmt::Display for Suspect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.verdict)?;
        if let Some(detector) = &self.detector {
            write!(f, "({detector}) ")?;
        }
        write!(
            f,
            "{} holds {} {:?}",
            self.holder, self.class, self.retained_bytes
        )
    }
}
